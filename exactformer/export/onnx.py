"""Exports the whole model as an ONNX file: from token ids to value indices."""

import json
import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch

from exactformer import __version__
from exactformer.api import Model
from exactformer.domains.capabilities import require_capability
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import draw
from exactformer.export.loop import LoopGraph
from exactformer.host.atomic import new_file
from exactformer.model.encode import pad_slots
from exactformer.model.iterations import Iterations
from exactformer.model.remembered import fixed

FORMAT = "exactformer onnx 1"
TRIED = {0: 5, 1: 20, 2: 20, 5: 20, 9: 10}  # expressions of each depth that are compared


def export_onnx(model: Model, path: Path, iterations: Iterations = "depth") -> None:
    """Write the file; needs onnx, onnxscript and onnxruntime.

    It takes `ids`, int64 of any shape (B, n), also with B or n of 0: what `Expression.positions`
    has, -1 for an empty position and behind the end. It gives `value`, a place among the algebra's
    values or -1 if there is none, and `iterations`, both (B,).
    """
    require_capability("whole graph", model.domain, iterations)
    onnx, _ = _packages()
    model = fixed(model)  # one content for the graph, its hash and the comparison
    with new_file(Path(path)) as unfinished:
        made = _graph(model, iterations)
        facts = {
            "format": FORMAT,
            "version": __version__,
            "algebra": model.algebra.name,
            "vocabulary": list(model.algebra.vocabulary),
            "values": list(model.algebra.values),
            "layer": model.domain.layer(iterations),
            "empty_after_close": model.algebra.empty_after_close,
            "weights_sha256": model.sha256,
        }
        onnx.helper.set_model_props(made, {"exactformer": json.dumps(facts, ensure_ascii=False)})
        unfinished.write_bytes(made.SerializeToString())
        _compare(model, unfinished, iterations)


def _graph(model: Model, iterations: Iterations) -> Any:
    """The model of onnx, for batches of any size and expressions of any length."""
    graph = LoopGraph(model.to("cpu"), iterations).eval()
    some = position_ids(draw(model.algebra, 3, 2, np.random.default_rng(0)))
    dynamic = {"ids": {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}}
    with _quiet():
        program: Any = torch.onnx.export(
            graph,
            (some,),
            dynamo=True,
            dynamic_shapes=dynamic,
            verbose=False,
            input_names=["ids"],
            output_names=["value", "iterations"],
        )
    made = program.model_proto
    for part in (made.graph, *made.functions):
        _strip(part)
    return made


def position_ids(expressions: Sequence[Expression]) -> torch.Tensor:
    """The input of the ONNX file for several expressions."""
    return pad_slots(expressions)[0].long()


def run_onnx(session: Any, expressions: Sequence[Expression]) -> tuple[list[str | None], list[int]]:
    """Values and iterations computed by a session of onnxruntime."""
    values, taken = session.run(None, {"ids": position_ids(expressions).numpy()})
    symbols = expressions[0].algebra.values
    return [symbols[i] if i >= 0 else None for i in values.tolist()], taken.tolist()


def _compare(model: Model, path: Path, iterations: Iterations) -> None:
    _, onnxruntime = _packages()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    for depth, count in TRIED.items():
        expressions = draw(model.algebra, depth, count, np.random.default_rng(depth))
        wanted = model.outcomes(expressions, iterations)
        if list(zip(*run_onnx(session, expressions), strict=True)) != [tuple(o) for o in wanted]:
            raise ValueError(f"onnxruntime gives other values than the model at depth {depth}")


def _strip(graph: Any) -> None:
    """Remove the source positions of operations, which make up most of the file."""
    for part in (graph, *graph.node, *graph.value_info):
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _strip(attribute.g)


def _packages() -> tuple[Any, Any]:
    try:
        import onnx  # pyright: ignore[reportMissingImports]
        import onnxruntime  # pyright: ignore[reportMissingImports]
        import onnxscript  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ValueError(f"ONNX needs {error.name}: pip install 'exactformer[onnx]'") from None
    return onnx, onnxruntime


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's warnings about optional packages that are not installed."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
