"""The layers by name: how each iterates, and which intermediates pass its tap. What cannot be
done in one is in `domains/capabilities.py`.

This is the one place that knows which layers there are. An algebra names the layer that reads it
(`Algebra.layer`); whoever runs, caches, patches or explains a run asks for no more than this table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from torch import Tensor

from exactformer.domains.belonging import algebra_of
from exactformer.domains.domain import Domain
from exactformer.model import (
    circuit,
    integers,
    machine,
    polish,
    precedence,
    rearrange,
    span_machine,
    speculate,
    square_root,
)
from exactformer.model.circuit import NO_TAP, Reduced, Tap, Weights
from exactformer.model.iterations import Iterations

PATTERN = "pattern"  # the tap of the attention pattern, which is computed on demand only


@runtime_checkable
class Steps(Protocol):
    """The iterations of a layer from the state X of texts of a domain, until all have halted."""

    def __call__(
        self, X: Tensor, inside: Tensor, weights: Any, domain: Any, tap: Tap = NO_TAP
    ) -> Iterator[Reduced]: ...


@dataclass(frozen=True)
class Layer:
    """A layer: its iterations, its taps, and what is known of it.

    taps    names of the intermediates, as in the glossary of the layer's file.
    flat    the taps that hold the spans of all sequences together; the others have an axis of
            sequences in front.
    packed  whether `packed.py` has the same states for less work.
    proved  whether it runs weights with a proof only.
    """

    steps: Steps
    taps: tuple[str, ...]
    flat: frozenset[str] = frozenset()
    packed: bool = False
    proved: bool = False


def _by_depth(
    X: Tensor, inside: Tensor, weights: Weights, domain: Domain, tap: Tap = NO_TAP
) -> Iterator[Reduced]:
    return circuit.steps(X, weights, inside, tap)


def _by_logarithm(
    X: Tensor, inside: Tensor, weights: Weights, domain: Domain, tap: Tap = NO_TAP
) -> Iterator[Reduced]:
    return speculate.steps(X, weights, len(algebra_of(domain).values), tap)


def _in_plain_notation(
    X: Tensor, inside: Tensor, weights: Weights, domain: Domain, tap: Tap = NO_TAP
) -> Iterator[Reduced]:
    return precedence.steps(X, weights, len(algebra_of(domain).values), tap)


def _in_polish_notation(
    X: Tensor, inside: Tensor, weights: Weights, domain: Domain, tap: Tap = NO_TAP
) -> Iterator[Reduced]:
    return polish.steps(X, weights, len(algebra_of(domain).values), tap)


_OF_INTEGERS = Layer(
    integers.steps,
    taps=("A", "P", "ids", "place", "goes_on", "H", "F", "u", "Y", "H_2", "u_2", "Y_2", "X"),
    flat=frozenset({"place", "goes_on", "H", "F", "u", "Y", "H_2", "u_2", "Y_2"}),
)

LAYERS: dict[str, Layer] = {
    "depth": Layer(
        _by_depth,
        taps=("A", "P", "ids", "R", PATTERN, "H", "Z", "Y", "X"),
        packed=True,
    ),
    "log": Layer(
        _by_logarithm,
        taps=("A", "F", "u", "top", "P", "R", PATTERN, "H", "Z", "Y", "X"),
        flat=frozenset({"F", "u", "top", "Y"}),
        proved=True,
    ),
    "plain": Layer(
        _in_plain_notation,
        taps=("A", "c", "M", "u", "top", "P", "Y", "X"),
        flat=frozenset({"c", "M", "u", "top", "Y"}),
    ),
    "polish": Layer(
        _in_polish_notation,
        taps=("A", "F", "u", "top", "P", "Y", "X"),
        flat=frozenset({"F", "u", "top", "Y"}),
    ),
    "machine": Layer(
        machine.steps,
        taps=("P", "key", "H", "F", "u", "Y", "X"),
        flat=frozenset({"H", "F", "u", "Y"}),
    ),
    "span-machine": Layer(
        span_machine.steps,
        taps=("A", "H", "F", "c", "u", "top", "P", "Y", "X"),
        flat=frozenset({"H", "F", "c", "u", "top", "Y"}),
    ),
    "integers": _OF_INTEGERS,
    "little-endian": _OF_INTEGERS,
    "square-root": Layer(
        square_root.steps,
        taps=("P", "rank", "H", "F", "u", "Y", "H_2", "u_2", "Y_2", "X"),
        flat=frozenset({"rank", "H", "F", "u", "Y", "H_2", "u_2", "Y_2"}),
    ),
    "rearrange": Layer(rearrange.steps, taps=("P", "A", "key", "H", "Y", "X")),
}


def layer_of(domain: Domain, iterations: Iterations) -> Layer:
    """The layer that reads texts of a domain."""
    return LAYERS[domain.layer(iterations)]
