"""The values of many expressions, in batches of similar length."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.model import circuit, precedence, speculate
from exactformer.model.circuit import Weights
from exactformer.model.encode import NO_VALUE, initial_state, read_values
from exactformer.model.iterations import (
    Iterations,
    most_iterations,
    require_feasible,
)

POSITIONS_AT_ONCE = 1 << 18  # of one batch, padding included; a longer expression goes alone
MUCH_LONGER = 1.3  # than the shortest of a batch: padding would cost more than another batch,
SHORT = 1_000  # unless all are short anyway


class Outcome(NamedTuple):
    """What the transformer makes of an expression, and in how many iterations."""

    value: str | None  # None where it ends with anything but a single value
    iterations: int


def predict(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype = torch.float32,
    iterations: Iterations = "depth",
) -> list[str | None]:
    """The value the model gives each expression; None where it ends with anything else."""
    found = outcomes(algebra, weights, expressions, dtype, iterations)
    return [outcome.value for outcome in found]


@torch.no_grad()
def outcomes(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype = torch.float32,
    iterations: Iterations = "depth",
    observe: Callable[[int], None] = lambda positions: None,
) -> list[Outcome]:
    """What the model makes of each expression. `observe` is called after each iteration
    with the number of its positions.
    """
    found: dict[int, Outcome] = {}
    for batch in _batches(expressions):
        X, inside = initial_state([expressions[i] for i in batch], weights, dtype)
        if weights.G_L is not None:
            states = precedence.steps(X, weights, len(algebra.values))
        elif iterations == "depth":
            states = circuit.steps(X, weights, inside)
        else:
            states = speculate.steps(X, weights, len(algebra.values))
        taken = torch.zeros_like(inside[:, 0], dtype=torch.int64)
        for step in states:
            X, taken = step.X, taken + step.P.any(-1)
            observe(inside.numel())
        values = read_values(X, weights, algebra).tolist()
        for i, value, count in zip(batch, values, taken.tolist(), strict=True):
            found[i] = Outcome(None if value == NO_VALUE else algebra.values[value], count)
    return [found[i] for i in range(len(expressions))]


def require_outcomes(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    places: Sequence[str] | None = None,
    most_work: int | None = None,
    tell: Callable[[float], None] = lambda share: None,
    iterations: Iterations = "depth",
) -> list[Outcome]:
    """The same where all must have a value, and none may cost more than `most_work`. `places` begin
    the error about each; `tell` is called with the fraction that is done.
    """
    places = places or [""] * len(expressions)
    for expression, place in zip(expressions, places, strict=True):
        require_feasible(expression, most_work, place, iterations)
    total = sum(most_iterations(e, iterations) * len(e.positions) for e in expressions)
    done = 0

    def observe(positions: int) -> None:
        nonlocal done
        done += positions
        tell(min(1.0, done / total))  # padding counts, so there may be more than was thought

    found = outcomes(algebra, weights, expressions, iterations=iterations, observe=observe)
    for expression, place, outcome in zip(expressions, places, found, strict=True):
        if outcome.value is None:
            raise ValueError(
                f"{place}{expression!r}: no single value is left: the weights are not exact"
            )
    return found


def _batches(expressions: Sequence[Expression]) -> list[list[int]]:
    """Places of expressions that run together: of similar length, so that little is padded."""
    batches: list[list[int]] = []
    shortest = 0
    for i in sorted(range(len(expressions)), key=lambda i: len(expressions[i])):
        length = len(expressions[i])
        full = batches and (len(batches[-1]) + 1) * length > POSITIONS_AT_ONCE
        if not batches or full or (length > MUCH_LONGER * shortest and length > SHORT):
            batches.append([])
            shortest = length
        batches[-1].append(i)
    return batches
