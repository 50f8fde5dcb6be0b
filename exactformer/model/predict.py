"""Evaluates many expressions with the transformer, in batches."""

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
from exactformer.host.threads import one_thread
from exactformer.model import packed
from exactformer.model.circuit import Weights, finish
from exactformer.model.encode import flat_positions, initial_state, read_values, require_countable
from exactformer.model.iterations import Iterations, by_depth, most_iterations, require_feasible
from exactformer.model.kinds import Kinds
from exactformer.model.layers import layer_of
from exactformer.model.remembered import fixed

AT_ONCE = {"cpu": 1 << 17, "cuda": 1 << 23}  # tokens of one batch
POSITIONS_AT_ONCE = 1 << 18  # positions of one padded batch; a longer expression goes alone
MUCH_LONGER = 1.3  # ratio to the shortest of a batch: above it, padding costs more than a batch
SHORT = 1_000  # tokens up to which that ratio is ignored


class Outcome(NamedTuple):
    """The value that the transformer gives an expression, and the number of iterations it took."""

    value: str | None  # None if it does not end with a single value
    iterations: int


def predict(
    algebra: Algebra,
    weights: Weights,
    expressions: Sequence[Expression],
    dtype: torch.dtype = torch.float32,
    iterations: Iterations = "depth",
) -> list[str | None]:
    """The value that the model gives each expression; None if it does not end with a single
    value.
    """
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
    """The outcome of each expression. `observe` is called now and then with the number of positions
    done since the last call: by the paper's layer each position counts once, by the others once an
    iteration.
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
        run, batches = _run_packed, _in_order(expressions, AT_ONCE[weights.device.type])
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
    """Run one batch through the paper's layer, without padding."""
    require_countable(expressions, dtype)
    kinds = Kinds.of(weights, dtype)
    ids, lengths = (torch.from_numpy(part) for part in flat_positions(expressions))
    device = weights.device
    state = packed.pack(ids.to(device), lengths.to(device), kinds)
    left = len(state.symbols)

    def gone(state: packed.Packed) -> None:
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
    """The outcomes of expressions that must all have a value. Raises a ValueError if one has none
    or would cost more than `most_work`; `places` begin the message about each. `tell` is called
    with the fraction that is done.
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
        tell(min(1.0, done / total))  # padding counts, so the sum may exceed the estimate

    found = outcomes(algebra, weights, expressions, iterations=iterations, observe=observe)
    for expression, place, outcome in zip(expressions, places, found, strict=True):
        if outcome.value is None:
            raise ValueError(
                f"{place}{expression!r}: no single value is left: the weights are not exact"
            )
    return found


def _in_order(expressions: Sequence[Expression], tokens: int) -> list[range]:
    """Index ranges of batches without padding: about `tokens` tokens each, in the given order."""
    ends = np.cumsum([len(expression.ids) for expression in expressions])
    first = np.flatnonzero(np.diff((ends - 1) // tokens, prepend=-1))
    return [range(*pair) for pair in pairwise([*first.tolist(), len(expressions)])]


def _similar(expressions: Sequence[Expression]) -> list[list[int]]:
    """Indices of the expressions of each batch: of similar length, so that there is little
    padding.
    """
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
