"""Exported graphs take batches without expressions, and expressions without tokens."""

import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.sampling import draw
from exactformer.export.program import export_iteration
from exactformer.model.encode import initial_state
from exactformer.model.layers import layer_of
from tests.algebras import S3

LAB = pytest.mark.skipif(not find_spec("onnxruntime"), reason="`make test-lab` runs what is slow")
SHAPES = [(0, 5), (0, 1), (0, 0), (3, 0), (1, 0), (1, 1)]
MODELS = {
    "learned": lambda: ef.load("boolean/7520"),
    "units": lambda: ef.construct(ef.listops(10)),
    "dense": lambda: ef.construct(ef.arithmetic(), dense=True),
    "log": lambda: ef.construct(S3),
    "plain": lambda: ef.construct(ef.arithmetic_plain()),
}


def by(kind):
    return "log" if kind == "log" else "depth"


@LAB
@pytest.mark.parametrize("kind", MODELS)
def test_onnx_takes_batches_without_elements(kind, tmp_path):
    """In a process of its own: the exporter warns of what is not installed."""
    weights = tmp_path / "weights.safetensors"
    MODELS[kind]().save(weights)
    code = f"""if True:
        import sys
        from pathlib import Path
        import numpy, onnxruntime
        import exactformer as ef
        from exactformer.export.onnx import export_onnx
        export_onnx(ef.load(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
        session = onnxruntime.InferenceSession(sys.argv[2])
        for B, n in {SHAPES}:
            value, iterations = session.run(None, {{"ids": numpy.full((B, n), -1)}})
            assert (value.tolist(), iterations.tolist()) == ([-1] * B, [0] * B), (B, n)
    """
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        code,
        weights,
        tmp_path / "model.onnx",
        by(kind),
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("kind", MODELS)
def test_torch_export_takes_every_shape(kind, tmp_path):
    model, path = MODELS[kind](), tmp_path / "iteration.pt2"
    export_iteration(model, path, by(kind))
    run = torch.export.load(path).module()
    X, inside = initial_state(draw(model.algebra, 2, 1, np.random.default_rng(0)), model.weights)
    layer = layer_of(model.domain, by(kind))
    step = next(iter(layer.steps(X, inside, model.weights, model.domain)))
    assert torch.equal(run(X, inside), step.X)
    for B, n in SHAPES:
        nothing = torch.zeros(B, n, X.shape[-1])
        assert torch.equal(run(nothing, torch.zeros(B, n, dtype=torch.bool)), nothing)
