"""Runs of one expression in which every intermediate is kept."""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.model import circuit, precedence, speculate
from exactformer.model.circuit import Weights, read_tokens
from exactformer.model.encode import initial_state, read_answers
from exactformer.model.iterations import Iterations
from exactformer.model.layers import layer_of
from exactformer.model.precedence import LEFT_KNOWN, PREFIX, RIGHT_KNOWN
from exactformer.model.remembered import fixed
from exactformer.trace.shown import (
    EMPTY_POSITION,
    HOLE,
    UNKNOWN,
    FoldedSpan,
    PlainStep,
    SpanStep,
    Trace,
    TracedSpan,
    TraceStep,
)


@torch.no_grad()
def trace(
    algebra: Algebra,
    weights: Weights,
    expression: Expression,
    iterations: Iterations = "depth",
    observe: Callable[[Any], None] = lambda step: None,
) -> Trace[Any]:
    """Run one expression and keep the results of `iterate` of its layer. The logarithmic layer
    requires certified weights. `observe` gets each iteration at once; it may raise to end a long
    run.
    """
    weights = fixed(weights)
    X, inside = initial_state([expression], weights)
    explained = EXPLAINED[algebra.layer(iterations)]
    tokens, traced = _symbols(algebra, read_tokens(X, weights)[0]), []
    for step in layer_of(algebra, iterations).steps(X, inside, weights, algebra):
        X = step.X
        state = _symbols(algebra, read_tokens(X, weights)[0])
        traced.append(explained(algebra, step, tokens, state))
        observe(traced[-1])
        tokens = state
    (answer,) = read_answers(X, weights, algebra)
    return Trace(algebra, str(expression), traced, answer)


def _by_depth(
    algebra: Algebra, step: circuit.Step, tokens: list[str], state: list[str]
) -> TraceStep:
    acts = step.P[0] & (step.H[0].any(-1) | step.Y[0].any(-1))
    busy = acts.nonzero().squeeze(-1).tolist()
    outputs = {i: step.Z[0, i].tolist() for i in busy}
    bags = {i: step.H[0, i].view(-1, len(algebra.vocabulary)) for i in busy}  # slot by slot
    by_slot = {i: [_counts(algebra, slot) for slot in bag] for i, bag in bags.items()}
    return TraceStep(
        tokens=tokens,
        forward=step.A[0, :, 0].tolist(),
        backward=step.A[0, :, 1].tolist(),
        mask=step.P[0].int().tolist(),
        clusters=step.ids[0].tolist(),
        routed={i: _counts(algebra, bag.sum(0)) for i, bag in bags.items()},
        outputs={i: dict(zip(algebra.vocabulary, outputs[i], strict=True)) for i in busy},
        state=state,
        ranks=None if step.R is None else (step.R[0] * step.P[0]).tolist(),
        slots={} if step.R is None else by_slot,
    )


def _by_logarithm(
    algebra: Algebra, step: speculate.Step, tokens: list[str], state: list[str]
) -> SpanStep:
    names, space = [*algebra.values, None], "" if algebra.packs else " "
    held = _held(step)
    own = {at: j for j, places in enumerate(held, 1) for at, is_hole in places if not is_hole}
    maps, values, is_top = step.F.tolist(), step.u.tolist(), step.top.tolist()
    spans = []  # in the order of the text
    for j, places in enumerate(held):
        inner = [own[at] for at, is_hole in places if is_hole]
        written = [at for at, _ in places if state[at] != EMPTY_POSITION]
        spans.append(
            TracedSpan(
                number=j + 1,
                text=space.join(HOLE if is_hole else tokens[at] for at, is_hole in places),
                start=places[0][0],
                inner=inner,
                map=_map(algebra, maps[j]) if len(inner) == 1 else None,
                value=names[values[j]],
                at=written[0] if is_top[j] else None,
            )
        )
    return SpanStep(
        tokens=tokens,
        forward=step.A[0, :, 0].tolist(),
        backward=step.A[0, :, 1].tolist(),
        numbers=_spread(own, len(tokens)),
        mask=step.P[0].int().tolist(),
        spans=spans,
        state=state,
    )


def _in_plain_notation(
    algebra: Algebra, step: precedence.Step, tokens: list[str], state: list[str]
) -> PlainStep:
    at = step.reading.at.tolist()
    parts = (step.reading.level, step.written.opened, step.written.closed)
    levels, opened, closed = (dict(zip(at, part.tolist(), strict=True)) for part in parts)
    numbers, spans = _folded_spans(algebra, step)
    return PlainStep(
        tokens=tokens,
        levels=_spread(levels, len(tokens)),
        opened=_spread(opened, len(tokens)),
        closed=_spread(closed, len(tokens)),
        numbers=_spread(numbers, len(tokens)),
        mask=step.P[0].int().tolist(),
        spans=spans,
        state=state,
    )


def _spread(numbers: dict[int, int], n: int) -> list[int]:
    """Numbers of some positions, with 0 in the others."""
    return [numbers.get(position, 0) for position in range(n)]


def _held(step: speculate.Step | precedence.Step) -> list[list[tuple[int, bool]]]:
    """The entries of each span: their positions, and whether they are holes."""
    held: list[list[tuple[int, bool]]] = [[] for _ in step.holes]
    for place, is_hole, number in zip(*(part.tolist() for part in step.entries[:3]), strict=True):
        held[number - 1].append((place, is_hole))
    return held


def _map(algebra: Algebra, results: list[int]) -> dict[str, str | None]:
    """The value of a span by the value in its hole."""
    names = [*algebra.values, None]
    return {value: names[result] for value, result in zip(algebra.values, results, strict=False)}


def _folded_spans(
    algebra: Algebra, step: precedence.Step
) -> tuple[dict[int, int], list[FoldedSpan]]:
    """The number of the span of each token, by position; and the record of each span, in the order
    of the text. Implied parentheses around a single span are left out.
    """
    names, space = [*algebra.values, None], "" if algebra.packs else " "
    symbols = [algebra.vocabulary[token] for token in step.written.ids.flatten().tolist()]
    position = step.reading.at[step.written.source].tolist()  # of the token at each place
    is_written = set(step.written.place.tolist())
    held = _held(step)
    shown = [places[0][0] in is_written or len(places) > 3 for places in held]
    numbers = [*accumulate(map(int, shown))]  # an inner span that is left out counts as the next
    own = {
        position[place]: number
        for number, places in zip(numbers, held, strict=True)
        for place, is_hole in places
        if place in is_written and not is_hole
    }
    opens = {places[0][0]: j for j, places in enumerate(held)}
    u, is_top = step.u.tolist(), step.top.tolist()
    starts = [*step.folds.start.tolist(), len(step.M)]
    spans, top = [], False
    for j, places in enumerate(held):
        acts = range(starts[j + 1] - 1, starts[j] - 1, -1)  # steps stand in backward order
        top = is_top[j] or (top and not shown[j - 1])
        if not shown[j]:
            continue
        inner = [opens[place] for place, is_hole in places if is_hole]
        spans.append(
            FoldedSpan(
                number=numbers[j],
                text=space.join(HOLE if is_hole else symbols[place] for place, is_hole in places),
                start=position[places[0][0]],
                inner=[numbers[i] + (not shown[i]) for i in inner],
                map=_composed(algebra, step, acts) if len(inner) == 1 else None,
                value=names[u[j]],
                at=position[places[0][0]] if top else None,
                fold=_fold(algebra, step, acts, space),
            )
        )
    return own, spans


def _composed(algebra: Algebra, step: precedence.Step, acts: range) -> dict[str, str | None]:
    """The value of a span by the value in its hole: the composition of its steps."""
    results = torch.arange(len(algebra.values) + 1, device=step.M.device)
    for i in acts:
        results = step.M[i][results]
    return _map(algebra, results.tolist())


def _fold(algebra: Algebra, step: precedence.Step, acts: range, space: str) -> list[str]:
    """The operators of a span in the order in which they act, with the values known up to its
    hole.
    """
    folds, names = step.folds, [*algebra.values, UNKNOWN]
    acted: list[str] = []
    before = HOLE
    for i in acts:
        token, side = int(folds.operator[i]), int(folds.side[i])
        brings = HOLE if folds.hole[i] else names[int(folds.known[i])]
        result = names[int(step.c[i])]
        if not token:
            before = brings
            continue
        operator = algebra.vocabulary[token]
        parts = {
            RIGHT_KNOWN: [before, operator, brings],
            LEFT_KNOWN: [brings, operator, before],
            PREFIX: [operator, before],
        }[side]
        acted.append(space.join(parts) + (f"={result}" if result != UNKNOWN else ""))
        before = result
    return acted


def _symbols(algebra: Algebra, rows: torch.Tensor) -> list[str]:
    """The token of each row; several, joined, where uncertified weights leave more than one."""
    held: list[list[str]] = [[] for _ in range(len(rows))]
    for position, token in rows.nonzero().tolist():
        held[position].append(algebra.vocabulary[token])
    return ["+".join(tokens) or EMPTY_POSITION for tokens in held]


def _counts(algebra: Algebra, row: torch.Tensor) -> dict[str, int]:
    return {algebra.vocabulary[i]: int(row[i]) for i in row.nonzero().flatten().tolist()}


# What an iteration of each layer was, by the layer's name.
EXPLAINED: dict[str, Callable[[Algebra, Any, list[str], list[str]], Any]] = {
    "depth": _by_depth,
    "log": _by_logarithm,
    "plain": _in_plain_notation,
}
