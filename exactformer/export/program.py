"""One iteration as a program of `torch.export`, to be run where exactformer is not."""

import warnings
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np
import torch

from exactformer.api import Model
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import DRAWN
from exactformer.export.loop import iteration_graph
from exactformer.host.atomic import new_file
from exactformer.model.encode import initial_state
from exactformer.model.iterations import Iterations
from exactformer.model.layers import layer_of
from exactformer.model.remembered import fixed

TRIED = 50  # lengths at which texts are looked for


def export_iteration(model: Model, path: Path, iterations: Iterations = "depth") -> None:
    """Write a .pt2 file, for `torch.export.load(path).module()`: a state (B, n, D) and a mask of
    where it may act, (B, n), to the state after one iteration, for any B and n, also 0.
    """
    model = fixed(model).to("cpu")  # one content for the program and the comparison
    graph = iteration_graph(model, iterations).eval()
    batches = [
        initial_state(texts_to_compare(model.domain, size, count), model.weights)
        for size, count in ((3, 3), (6, 5))
    ]
    any_size = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    dynamic = {"X": any_size, "inside": any_size}
    with new_file(Path(path)) as unfinished, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its file format
        program = torch.export.export(graph, batches[0], dynamic_shapes=dynamic)
        saved = BytesIO()  # torch would not say why a file could not be written
        torch.export.save(program, saved)
        unfinished.write_bytes(saved.getvalue())
        read = torch.export.load(BytesIO(unfinished.read_bytes())).module()  # whatever its name
        for X, inside in batches:
            for step in layer_of(model.domain, iterations).steps(
                X, inside, model.weights, model.domain
            ):
                acts = inside & step.P.any(-1, keepdim=True)
                if not torch.equal(read(X, acts), step.X):
                    raise ValueError("the program gives another state than the model")
                X = step.X


def texts_to_compare(domain: Domain, size: int, count: int) -> list[Expression]:
    """Random texts of a depth or length, or of a larger one where a machine allows none of it."""
    for larger in range(size, size + TRIED):
        with suppress(ValueError):
            return DRAWN[domain.kind].draw(domain, larger, count, np.random.default_rng(0))
    raise ValueError(f"no text of {domain.name!r} to compare the program with was found")
