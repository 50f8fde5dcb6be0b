"""The values of many expressions, in batches."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.model import packed
from exactformer.model.circuit import Weights, finish
from exactformer.model.encode import flat_positions, initial_state, read_values, require_countable
from exactformer.model.iterations import Iterations, by_depth, most_iterations, require_feasible
from exactformer.model.kinds import Kinds
from exactformer.model.layers import layer_of
from exactformer.model.remembered import fixed
from exactformer.threads import one_thread

AT_ONCE = {"cpu": 1 << 17, "cuda": 1 << 23}  # tokens of one batch
POSITIONS_AT_ONCE = 1 << 18  # where there is padding, with it; a longer expression goes alone
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
    names = (*algebra.values, None)  # NO_VALUE is -1
    values, _ = _run(algebra, weights, expressions, dtype, iterations)
    return [names[value] for value in values.tolist()]


def outcomes(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype = torch.float32,
    iterations: Iterations = "depth",
    observe: Callable[[int], None] = lambda positions: None,
) -> list[Outcome]:
    """What the model makes of each expression. `observe` is called now and then with a number of
    positions that are done: in the paper's layer each is once, else after each iteration.
    """
    names = (*algebra.values, None)
    values, taken = _run(algebra, weights, expressions, dtype, iterations, observe)
    return [Outcome(names[v], t) for v, t in zip(values.tolist(), taken.tolist(), strict=True)]


Found = tuple[Int[Tensor, " B"], Int[Tensor, " B"]]  # values and iterations


@torch.no_grad()
def _run(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype,
    iterations: Iterations,
    observe: Callable[[int], None] = lambda positions: None,
) -> Found:
    """Values and iterations, in batches, by the weights as they are now."""
    weights = fixed(weights)
    if layer_of(algebra, iterations).packed:
        run, batches = _run_packed, _in_order(expressions, AT_ONCE[weights.G_PE.device.type])
    else:
        run, batches = partial(_run_padded, iterations), _similar(expressions)
    values, taken = torch.empty(2, len(expressions), dtype=torch.int64)
    for batch in batches:
        places = torch.from_numpy(np.asarray(batch))
        chosen = [expressions[i] for i in batch]
        found = run(algebra, weights, chosen, dtype, observe)
        values[places], taken[places] = (part.cpu() for part in found)
    return values, taken


def _run_packed(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype,
    observe: Callable[[int], None],
) -> Found:
    """By the paper's layer."""
    require_countable(expressions, dtype)
    kinds = Kinds.of(weights, dtype)
    ids, lengths = (torch.from_numpy(part) for part in flat_positions(expressions))
    device = weights.G_PE.device
    state = packed.pack(ids.to(device), lengths.to(device), kinds)
    left = len(state.symbols)

    def gone(state: packed.State) -> None:
        nonlocal left
        observe(left - len(state.symbols))
        left = len(state.symbols)

    small = device.type == "cpu" and left <= AT_ONCE["cpu"]
    with one_thread() if small else nullcontext():
        last, taken = packed.run(state, kinds, gone)
    observe(left)
    kinds.remember()
    values = kinds.alphabet.values(last.symbols, last.sequence[last.owner], len(taken), algebra)
    return values, taken


def _run_padded(
    iterations: Iterations,
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype,
    observe: Callable[[int], None],
) -> Found:
    """The values and iterations by a layer that takes padded states."""
    X, inside = initial_state(expressions, weights, dtype)
    steps = layer_of(algebra, iterations).run(X, inside, weights, algebra)
    X, taken = finish(X, steps, lambda: observe(inside.numel()))
    return read_values(X, weights, algebra), taken


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
    total = sum(
        len(e) * (1 if by_depth(e, iterations) else most_iterations(e, iterations))
        for e in expressions
    )
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


def _in_order(expressions: Sequence[Expression], tokens: int) -> list[range]:
    """Places of expressions that run together without padding: so many tokens, or a little more."""
    ends = np.cumsum([len(expression.ids) for expression in expressions])
    first = np.flatnonzero(np.diff((ends - 1) // tokens, prepend=-1))
    return [range(*pair) for pair in pairwise([*first.tolist(), len(expressions)])]


def _similar(expressions: Sequence[Expression]) -> list[list[int]]:
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
