"""The table of tensors is all that says which there are: others follow it."""

from dataclasses import dataclass, fields, replace

import pytest
import torch
from torch import Tensor

import exactformer as ef
from exactformer.interp import module
from exactformer.model import storage
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP, Table, Units
from exactformer.weights.file import WeightFile
from exactformer.weights.tensors import ALGEBRA_GATES, FEEDFORWARDS, TensorSpec
from tests.algebras import MINUS

MODELS = {
    "closed": ef.construct(ef.boolean()),
    "table": ef.construct(ef.boolean(), "table"),
    "units": ef.construct(ef.listops(None)),
    "dense, with ranks": ef.construct(MINUS, dense=True),
    "plain": ef.construct(ef.boolean_plain()),
}


def test_every_gate_of_the_weights_is_in_the_table():
    assert {field.name for field in fields(Weights)} - {"f"} == ALGEBRA_GATES.keys()


@pytest.mark.parametrize("made", [MLP, Table, Units])
def test_every_tensor_of_a_feedforward_is_in_the_table(made):
    tensors = [field for field in fields(made) if field.name not in ("activation", "D")]
    assert len(FEEDFORWARDS[made.kind]) == len(tensors)


@pytest.mark.parametrize("name", MODELS)
def test_types_are_those_of_the_table(name):
    weights = MODELS[name].weights
    assert isinstance(weights.f, MLP | Table | Units)
    specs = FEEDFORWARDS[weights.f.kind]
    tensors = weights.gates | dict(zip(specs, weights.f.tensors.values(), strict=True))
    arrays = storage.to_file(MODELS[name].algebra, weights, {}).arrays
    assert tensors.keys() == arrays.keys()
    for tensor, spec in ((tensor, (ALGEBRA_GATES | specs)[tensor]) for tensor in tensors):
        assert arrays[tensor].dtype == spec.stored
        assert tensors[tensor].dtype == getattr(torch, spec.in_model or spec.stored)


@dataclass(frozen=True)
class WithOneMore(Weights):
    """Weights with a gate that nothing else in the package knows of."""

    G_X: Tensor | None = None


@pytest.fixture
def one_more(monkeypatch) -> ef.Model:
    """A model of such weights, with the gate's line in the table."""
    spec = TensorSpec("D pairs", "int16", "float32", optional=True)
    monkeypatch.setitem(ALGEBRA_GATES, "G_X", spec)
    monkeypatch.setitem(storage.WEIGHTS, "algebra", WithOneMore)
    model = MODELS["closed"]
    gate = torch.arange(2.0 * model.weights.D).view(-1, 2) - 300
    return ef.Model(model.algebra, WithOneMore(**vars_of(model.weights), G_X=gate))


def vars_of(weights: Weights) -> dict:
    return {field.name: getattr(weights, field.name) for field in fields(weights)}


def test_a_gate_with_a_line_in_the_table_is_stored_moved_and_shown(one_more, tmp_path):
    gate = one_more.weights.G_X
    assert one_more.certify().verdict == "exact"
    assert one_more.sha256 != MODELS["closed"].sha256
    one_more.save(tmp_path / "model")
    assert WeightFile.read(tmp_path / "model").arrays["G_X"].dtype == "int16"
    read = ef.load(tmp_path / "model")
    assert torch.equal(read.weights.gates["G_X"], gate)
    assert read.weights.to("meta").gates["G_X"].is_meta
    shown = module.LayerModule(read.algebra, read.weights)
    assert torch.equal(shown.state_dict()["G_X"], gate)
    assert torch.equal(shown.weights.gates["G_X"], gate)
    without = module.LayerModule(read.algebra, MODELS["closed"].weights)
    assert "G_X" not in without.state_dict()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda gate: gate[:5], r"tensor G_X: expected the shape \(7, 2\), found \(5, 2\)"),
        (lambda gate: gate[:, 0], r"tensor G_X: expected the shape \(7, pairs\), found \(7,\)"),
        (lambda gate: gate + 0.5, "tensor G_X: expected small whole numbers, found others"),
        (lambda gate: gate + 70_000, "tensor G_X: expected small whole numbers, found others"),
    ],
    ids=["short", "flat", "halves", "large"],
)
def test_a_gate_with_a_line_in_the_table_is_checked(one_more, wrong, message, tmp_path):
    weights = replace(one_more.weights, G_X=wrong(one_more.weights.G_X))
    with pytest.raises(ValueError, match=message):
        ef.Model(one_more.algebra, weights).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_a_gate_without_a_line_in_the_table_is_not_left_out_in_silence(one_more, monkeypatch):
    monkeypatch.delitem(ALGEBRA_GATES, "G_X")
    with pytest.raises(KeyError, match="G_X"):
        storage.to_file(one_more.algebra, one_more.weights, {})
