"""One iteration as a program of `torch.export`, to be run where exactformer is not."""

import warnings
from io import BytesIO
from pathlib import Path

import numpy as np
import torch

from exactformer.api import Model
from exactformer.domains.sampling import draw
from exactformer.export.graph import IterationGraph
from exactformer.host.atomic import new_file
from exactformer.model.circuit import steps
from exactformer.model.encode import initial_state
from exactformer.model.remembered import fixed


def export_iteration(model: Model, path: Path) -> None:
    """Write a .pt2 file, for `torch.export.load(path).module()`: a state (B, n, D) and a mask of
    where it may act, (B, n), to the state after one iteration, for any B and n, also 0.
    """
    model = fixed(model).to("cpu")  # one content for the program and the comparison
    batches = [
        initial_state(draw(model.algebra, depth, count, np.random.default_rng(0)), model.weights)
        for depth, count in ((3, 3), (6, 5))
    ]
    any_size = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    dynamic = {"X": any_size, "inside": any_size}
    with new_file(Path(path)) as unfinished, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its file format
        graph = IterationGraph(model).eval()
        program = torch.export.export(graph, batches[0], dynamic_shapes=dynamic)
        saved = BytesIO()  # torch would not say why a file could not be written
        torch.export.save(program, saved)
        unfinished.write_bytes(saved.getvalue())
        read = torch.export.load(BytesIO(unfinished.read_bytes())).module()  # whatever its name
        for X, inside in batches:
            if not torch.equal(read(X, inside), next(steps(X, model.weights, inside)).X):
                raise ValueError("the program gives another state than the model")
