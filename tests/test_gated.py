"""The base of the weights of every layer: gates by name, a device and the vocabulary size D."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

import exactformer as ef
from exactformer.model.circuit import Feedforward
from exactformer.model.feedforward import MLP, Units
from exactformer.model.gated import Gated
from tests.algebras import MINUS

WEIGHTS: dict[str, Any] = {
    "paper": ef.construct(ef.boolean()).weights,
    "dense, with ranks": ef.construct(MINUS, dense=True).weights,
    "units": ef.construct(ef.listops(None)).weights,
    "plain": ef.construct(ef.boolean_plain()).weights,
}
GATES = {
    "paper": {"G_PE", "W_Q", "W_K"},
    "dense, with ranks": {"G_PE", "W_Q", "W_K", "G_R", "E"},
    "units": {"G_PE", "W_Q", "W_K"},
    "plain": {"G_PE", "W_Q", "W_K", "G_L", "directions"},
}


@dataclass(frozen=True)
class Own(Gated):
    """Weights of a layer of one's own."""

    G_K: Tensor
    f: Feedforward
    G_M: Tensor | None = None


WEIGHTS["a layer of one's own"] = Own(torch.zeros(9), WEIGHTS["paper"].f)
GATES["a layer of one's own"] = {"G_K"}


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_gates_are_those_that_are_there(name):
    weights = WEIGHTS[name]
    assert weights.gates.keys() == GATES[name]
    assert all(tensor is getattr(weights, gate) for gate, tensor in weights.gates.items())


@pytest.mark.parametrize("name", WEIGHTS)
def test_every_tensor_moves_to_another_device(name):
    weights = WEIGHTS[name]
    assert isinstance(weights.f, MLP | Units)
    moved = weights.to("meta")  # a device without numbers, which every machine has
    assert type(moved) is type(weights)
    assert isinstance(moved.f, MLP | Units)
    assert moved.gates.keys() == weights.gates.keys()
    assert moved.f.tensors.keys() == weights.f.tensors.keys()
    tensors = [*moved.gates.values(), *moved.f.tensors.values()]
    assert {tensor.device.type for tensor in tensors} == {moved.device.type} == {"meta"}
    assert weights.device.type == "cpu"
    assert moved.D == weights.D


def test_the_size_of_the_vocabulary():
    assert len(ef.boolean_plain().vocabulary) == WEIGHTS["plain"].D
    assert WEIGHTS["a layer of one's own"].D == 9
    seeds = torch.zeros(4, 9)  # of several at once, as in training
    assert Own(seeds, WEIGHTS["paper"].f).D == 9
