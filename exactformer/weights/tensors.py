"""The tensors that weights have, by the kind of their domain: names, shapes, types and bounds.

One description serves all that store, read, check and show tensors.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.bounds import (
    LARGEST_ARITY,
    MOST_CASES,
    MOST_HIDDEN,
    MOST_OPERATORS,
    MOST_STATES,
    require,
)
from exactformer.domains.integers import Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machines import Machine, ReadByMachine
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SquareRoot
from exactformer.domains.units import slots_of

Arrays = dict[str, NDArray]  # tensors by name
Sizes = dict[str, int]  # by the names in shapes


@dataclass(frozen=True)
class TensorSpec:
    """The description of a tensor.

    shape      its sizes by name: D tokens, S slots, d_h dimensions of queries and keys, m hidden
               units, and others. What the domain leaves open, the first tensor with it decides.
    stored     its type in the file; the hash covers it, and a proof is about float32.
    in_model   its type in the model, where that is another one.
    logits     the shape of the logits from which it is learned, where it is. A file may have them
               as NAME_logits, for inspection; the hash does not cover them.
    optional   whether there may be weights without it.
    """

    shape: str
    stored: str
    in_model: str | None = None
    logits: str | None = None
    optional: bool = False


ALGEBRA_GATES = {  # the tensors of `Weights` in `model/circuit.py`
    "G_PE": TensorSpec("D", "int8", "float32", logits="D"),
    "W_Q": TensorSpec("D d_h", "int8", "float32", logits="D d_h"),
    "W_K": TensorSpec("D d_h", "int8", "float32", logits="D d_h"),
    "G_R": TensorSpec("D", "int8", "float32", logits="D", optional=True),
    "E": TensorSpec("D D", "float32", optional=True),
    "G_L": TensorSpec("2 D", "int16", "int64", logits="2 D digits", optional=True),
    "directions": TensorSpec("levels", "int16", "int64", logits="levels", optional=True),
    "G_A": TensorSpec("D", "int16", "int64", optional=True),
    "side": TensorSpec("1", "int8", "int64", optional=True),
}
OF_NOTATIONS = ("G_L", "directions", "G_A", "side")  # there if the notation has such a gate
FEEDFORWARDS = {  # by kind, in the order of the fields in `model/feedforward.py`
    "perceptron": {
        "W_1": TensorSpec("S*D m", "float32"),
        "b_1": TensorSpec("m", "float32"),
        "W_2": TensorSpec("m D", "float32"),
        "b_2": TensorSpec("D", "float32"),
    },
    "table": {
        "bags": TensorSpec("rows S*D", "int16"),
        "outputs": TensorSpec("rows D", "int8"),
    },
    "units": {
        "U_in": TensorSpec("S*D m", "int32"),
        "U_bias": TensorSpec("m", "int32"),
        "U_cap": TensorSpec("m", "int32"),
        "U_period": TensorSpec("m", "int32"),
        "U_code": TensorSpec("m operators", "int32"),
        "U_readout": TensorSpec("operators codes", "int32"),
    },
}
MOST = {"m": ("hidden units", MOST_HIDDEN), "levels": ("levels", 2 * MOST_OPERATORS + 1)}


@dataclass(frozen=True)
class Contents:
    """The tensors of the weights for a kind of domain, besides those of the feedforward.

    gates   their descriptions by name.
    sizes   the sizes that the domain decides, or a ValueError for tensors that contradict it.
    check   raises a ValueError for numbers that mean nothing, where all shapes and types are right.
    """

    gates: dict[str, TensorSpec]
    sizes: Callable[[Any, Arrays], Sizes]
    check: Callable[[Any, Arrays], None]

    @cached_property
    def logits(self) -> dict[str, TensorSpec]:
        return {
            f"{name}_logits": TensorSpec(spec.logits, "float32")
            for name, spec in self.gates.items()
            if spec.logits
        }


def feedforward_of(arrays: Mapping[str, NDArray]) -> str:
    """The kind of feedforward that these tensors have."""
    return next(kind for kind, parts in FEEDFORWARDS.items() if parts.keys() <= arrays.keys())


def stored(**gates: NDArray) -> Arrays:
    """Gates of an algebra in their types in the file."""
    return {name: gate.astype(ALGEBRA_GATES[name].stored) for name, gate in gates.items()}


def _algebra_sizes(algebra: Algebra, arrays: Arrays) -> Sizes:
    """The sizes of tensors for an algebra; with a rank gate the feedforward has two slots or more,
    each of which has an input for every token.
    """
    for name in OF_NOTATIONS:
        if (found := name in arrays) != (name in algebra.declared_gates):
            there = "there is one" if found else "there is none"
            raise ValueError(f"tensor {name}: {algebra.notation} notation, and {there}")
    D = len(algebra.vocabulary)
    sizes = {"1": 1, "2": 2, "D": D, "operators": len(algebra.operators)}
    if "G_R" not in arrays:
        return sizes | {"S*D": D}
    name, spec = next(iter(FEEDFORWARDS[feedforward_of(arrays)].items()))
    found = dict(zip(spec.shape.split(), arrays[name].shape, strict=False))
    if "S*D" not in found:
        return sizes
    slots = max(2, found["S*D"] // D)
    require("slots of the feedforward", slots, max(2, slots_of(algebra)))
    return sizes | {"S*D": slots * D}


def _check_gates(algebra: Algebra, arrays: Arrays) -> None:
    """Check the gates of notations: that there is a level for each use of an operator, and a
    direction for each level; that counts of operands and the side are such.
    """
    if "G_A" in arrays:
        G_A, side = arrays["G_A"], arrays["side"]
        if (G_A < -1).any() or (G_A >= LARGEST_ARITY).any():
            raise ValueError(f"tensor G_A: expected numbers from -1 to {LARGEST_ARITY - 1}")
        if abs(side[0]) != 1:
            raise ValueError(f"tensor side: expected 1 or -1, found {side[0]}")
    if "G_L" not in arrays:
        return
    G_L, directions = arrays["G_L"], arrays["directions"]
    highest = len(directions) - 1
    has_level = np.clip(G_L, 1, highest) == G_L
    if not np.where(algebra.declared_levels > 0, has_level, G_L == 0).all():
        raise ValueError(
            f"tensor G_L: expected levels from 1 to {highest} where an operator has such a "
            f"use, and 0 elsewhere"
        )
    if not np.isin(directions, (-1, 0, 1)).all():
        raise ValueError("tensor directions: expected -1, 0 and 1 only")


def _integer_sizes(domain: Integers, arrays: Arrays) -> Sizes:
    """The sizes of tensors for integers: the feedforward has inputs for the tokens of two slots."""
    sizes = _machine_sizes(domain, arrays)
    return sizes | {"S*D": sizes["D"] + sizes["tokens"]}


INTEGER_GATES = {  # `model/integers.py`
    name: TensorSpec("tokens", "int8", "float32") for name in ("G_PE", "G_N", "G_O", "G_F")
}
SQUARE_ROOT_GATES = {  # `model/square_root.py`
    name: TensorSpec("tokens", "int8", "float32") for name in ("G_T", "G_A", "G_B", "G_M")
}
MACHINE_GATES = {"G_K": TensorSpec("tokens", "int8", "float32")}  # `model/machine.py`
SPAN_MACHINE_GATES = {"G_PE": TensorSpec("tokens", "int8", "float32")}  # `model/span_machine.py`


REARRANGEMENT_GATES = {  # `model/rearrange.py`
    "G_K": TensorSpec("tokens", "int8", "float32"),
    "G_C": TensorSpec("tokens", "int16", "int64", optional=True),
}


def _rearrangement_sizes(domain: Rearrangement, arrays: Arrays) -> Sizes:
    """The sizes of tensors for a rearrangement: the feedforward gets a token, or two, and gives
    one.
    """
    if feedforward_of(arrays) == "units":
        raise ValueError(f"expected a perceptron or a table for {domain.name!r}, found units")
    if (found := "G_C" in arrays) != (domain.counted is not None):
        there = "there is one" if found else "there is none"
        raise ValueError(f"tensor G_C: the order {domain.order}, and {there}")
    D = len(domain.vocabulary)
    return {"tokens": D, "D": D, "S*D": D}


def _machine_sizes(machine: ReadByMachine | Integers | SquareRoot, arrays: Arrays) -> Sizes:
    """The sizes of tensors for a machine: the feedforward has an input and an output for each token
    and then for each state, of which there may be more than the machine has.
    """
    kind = feedforward_of(arrays)
    if kind == "units":
        raise ValueError(f"expected a perceptron or a table for {machine.name!r}, found units")
    D = len(machine.vocabulary)
    last = arrays[[*FEEDFORWARDS[kind]][-1]]
    width = last.shape[-1] if last.ndim else 0
    if width <= D:
        raise ValueError(f"expected outputs for {D} tokens and then for states, found {width}")
    require("states of the weights", width - D, MOST_STATES)
    require("tokens times states of the weights", D * (width - D), MOST_CASES)
    return {"tokens": D, "D": width, "S*D": width}


CONTENTS = {  # by kind
    Algebra.kind: Contents(ALGEBRA_GATES, _algebra_sizes, _check_gates),
    Machine.kind: Contents(MACHINE_GATES, _machine_sizes, lambda machine, arrays: None),
    SpanMachine.kind: Contents(SPAN_MACHINE_GATES, _machine_sizes, lambda domain, arrays: None),
    Integers.kind: Contents(INTEGER_GATES, _integer_sizes, lambda domain, arrays: None),
    LittleEndian.kind: Contents(INTEGER_GATES, _integer_sizes, lambda domain, arrays: None),
    Rearrangement.kind: Contents(
        REARRANGEMENT_GATES, _rearrangement_sizes, lambda domain, arrays: None
    ),
    SquareRoot.kind: Contents(SQUARE_ROOT_GATES, _machine_sizes, lambda domain, arrays: None),
}
