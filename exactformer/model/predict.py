"""Evaluates many expressions with the transformer, in batches."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from jaxtyping import Int, Shaped
from torch import Tensor

from exactformer.domains.belonging import algebra_of
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.host.threads import one_thread
from exactformer.model import packed
from exactformer.model.circuit import Weights, finish
from exactformer.model.encode import (
    flat_positions,
    initial_state,
    padded,
    read_answers,
    read_values,
    require_countable,
    state_of,
)
from exactformer.model.gated import Gated
from exactformer.model.iterations import Iterations, most_iterations, require_feasible
from exactformer.model.kinds import Kinds
from exactformer.model.layers import Layer, layer_of
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
    domain: Domain,
    weights: Gated,
    expressions: Sequence[Expression],
    dtype: torch.dtype = torch.float32,
    iterations: Iterations = "depth",
) -> list[str | None]:
    """The value that the model gives each expression; None if it does not end with a single
    value.
    """
    return _run(domain, weights, expressions, dtype, iterations)[0]


def outcomes(
    domain: Domain,
    weights: Gated,
    expressions: Sequence[Expression],
    dtype: torch.dtype = torch.float32,
    iterations: Iterations = "depth",
    observe: Callable[[int], None] = lambda positions: None,
) -> list[Outcome]:
    """The outcome of each expression. `observe` is called now and then with the number of positions
    done since the last call: by the paper's layer each position counts once, by the others once an
    iteration.
    """
    answers, taken = _run(domain, weights, expressions, dtype, iterations, observe)
    return [Outcome(*pair) for pair in zip(answers, taken.tolist(), strict=True)]


Found = tuple[list[str | None], Int[Tensor, " B"]]  # answers and iterations


@torch.no_grad()
def _run(
    domain: Domain,
    weights: Gated,
    expressions: Sequence[Expression],
    dtype: torch.dtype,
    iterations: Iterations,
    observe: Callable[[int], None] = lambda positions: None,
) -> Found:
    """Answers and iterations, in batches, by the weights as they are now."""
    weights, layer = fixed(weights), layer_of(domain, iterations)
    if layer.packed:
        run, batches = _run_packed, _in_order(expressions, AT_ONCE[weights.device.type])
    else:
        run, batches = partial(_run_padded, layer), _similar(expressions)
    answers: list[str | None] = [None] * len(expressions)
    taken = torch.empty(len(expressions), dtype=torch.int64)
    for batch in batches:
        chosen = [expressions[i] for i in batch]
        found, taken[torch.from_numpy(np.asarray(batch))] = run(
            domain, weights, chosen, dtype, observe
        )
        for i, answer in zip(batch, found, strict=True):
            answers[i] = answer
    return answers, taken


def _run_packed(
    domain: Domain,
    weights: Any,
    expressions: Sequence[Expression],
    dtype: torch.dtype,
    observe: Callable[[int], None],
) -> Found:
    """Run one batch through the paper's layer, without padding."""
    require_countable(expressions, dtype)
    device = weights.device
    ids, lengths = (torch.from_numpy(part).to(device) for part in flat_positions(expressions))
    values, taken = _values_packed(domain, weights, ids, lengths, dtype, observe)
    names = (*algebra_of(domain).values, None)  # NO_VALUE is -1
    return [names[value] for value in values.tolist()], taken.cpu()


def _run_padded(
    layer: Layer,
    domain: Domain,
    weights: Gated,
    expressions: Sequence[Expression],
    dtype: torch.dtype,
    observe: Callable[[int], None],
) -> Found:
    """Run one batch through a layer that takes padded states."""
    X, inside = initial_state(expressions, weights, dtype)
    steps = layer.steps(X, inside, weights, domain)
    with _threads_for(inside.flatten()):
        X, taken = finish(X, steps, lambda: observe(inside.numel()))
    return read_answers(X, weights, domain), taken.cpu()


def _values_packed(
    domain: Domain,
    weights: Any,
    ids: Int[Tensor, " t"],
    lengths: Int[Tensor, " B"],
    dtype: torch.dtype,
    observe: Callable[[int], None] = lambda positions: None,
) -> tuple[Int[Tensor, " B"], Int[Tensor, " B"]]:
    """Value index and iterations of each of many sequences, one after another, by the paper's
    layer.
    """
    kinds = Kinds.of(weights, dtype)
    state = packed.pack(ids, lengths, kinds)
    left = len(state.symbols)

    def gone(state: packed.Packed) -> None:
        nonlocal left
        observe(left - len(state.symbols))
        left = len(state.symbols)

    with _threads_for(ids):
        last, taken = packed.run(state, kinds, gone)
    observe(left)
    kinds.remember()
    owner = last.sequence[last.owner]
    return kinds.alphabet.values(last.symbols, owner, len(taken), algebra_of(domain)), taken


@torch.no_grad()
def values_of_rows(
    domain: Domain,
    weights: Gated,
    ids: Int[Tensor, " t"],
    lengths: Int[Tensor, " B"],
    iterations: Iterations = "depth",
    dtype: torch.dtype = torch.float32,
) -> tuple[Int[Tensor, " B"], Int[Tensor, " B"]]:
    """Value index (NO_VALUE if none) and iterations of each of many sequences of positions, which
    are stored one after another on the device of the weights. It is one batch, of which the
    caller bounds the size, without an object for each sequence.
    """
    weights, layer = fixed(weights), layer_of(domain, iterations)
    if layer.packed:
        return _values_packed(domain, weights, ids, lengths, dtype)
    X, inside = state_of(*padded(ids, lengths), weights, dtype)
    with _threads_for(ids):
        X, taken = finish(X, layer.steps(X, inside, weights, domain))
    return read_values(X, cast("Weights", weights), algebra_of(domain)), taken


def _threads_for(ids: Shaped[Tensor, " t"]) -> AbstractContextManager[None]:
    """One thread for a batch that is small, on the CPU; all of them for others."""
    small = ids.device.type == "cpu" and len(ids) <= AT_ONCE["cpu"]
    return one_thread() if small else nullcontext()


def require_outcomes(
    domain: Domain,
    weights: Gated,
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
    once = layer_of(domain, iterations).packed  # each position counts once
    total = sum(len(e) * (1 if once else most_iterations(e, iterations)) for e in expressions)
    done = 0

    def observe(positions: int) -> None:
        nonlocal done
        done += positions
        tell(min(1.0, done / total))  # padding counts, so the sum may exceed the estimate

    found = outcomes(domain, weights, expressions, iterations=iterations, observe=observe)
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
