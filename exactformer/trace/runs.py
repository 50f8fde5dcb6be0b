"""Runs of one expression in which every intermediate is kept."""

from collections.abc import Callable
from itertools import accumulate

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression, packs
from exactformer.model import circuit, precedence, speculate
from exactformer.model.circuit import Weights, read_tokens
from exactformer.model.encode import NO_VALUE, initial_state, read_values
from exactformer.model.precedence import PREFIX, RIGHT_KNOWN
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
    observe: Callable[[TraceStep], None] = lambda step: None,
) -> Trace[TraceStep]:
    """Run one expression, keeping what `iterate` returns.

    `observe` sees each iteration as soon as it is there; it may raise to put an end to a long run.
    """
    X, inside = initial_state([expression], weights)
    traced: list[TraceStep] = []
    for step in circuit.steps(X, weights, inside):
        acts = step.P[0] & (step.H[0].any(-1) | step.Y[0].any(-1))
        busy = acts.nonzero().squeeze(-1).tolist()
        outputs = {i: step.Z[0, i].tolist() for i in busy}
        bags = {i: step.H[0, i].view(-1, len(algebra.vocabulary)) for i in busy}  # slot by slot
        by_slot = {i: [_counts(algebra, slot) for slot in bag] for i, bag in bags.items()}
        traced.append(
            TraceStep(
                tokens=_symbols(algebra, read_tokens(X, weights)[0]),
                forward=step.A[0, :, 0].tolist(),
                backward=step.A[0, :, 1].tolist(),
                mask=step.P[0].int().tolist(),
                clusters=step.ids[0].tolist(),
                routed={i: _counts(algebra, bag.sum(0)) for i, bag in bags.items()},
                outputs={i: dict(zip(algebra.vocabulary, outputs[i], strict=True)) for i in busy},
                state=_symbols(algebra, read_tokens(step.X, weights)[0]),
                ranks=None if step.R is None else (step.R[0] * step.P[0]).tolist(),
                slots={} if step.R is None else by_slot,
            )
        )
        observe(traced[-1])
        X = step.X
    return Trace(algebra, str(expression), traced, _answer(X, weights, algebra))


@torch.no_grad()
def trace_spans(
    algebra: Algebra,
    weights: Weights,
    expression: Expression,
    observe: Callable[[SpanStep], None] = lambda step: None,
) -> Trace[SpanStep]:
    """The same of the logarithmic layer, for weights that are certified."""
    X, _ = initial_state([expression], weights)
    traced: list[SpanStep] = []
    for step in speculate.steps(X, weights, len(algebra.values)):
        tokens, state = (_symbols(algebra, read_tokens(x, weights)[0]) for x in (X, step.X))
        at, hole, ids = (part.tolist() for part in step.entries[:3])
        numbers = [0] * len(tokens)
        for position, number, is_hole in zip(at, ids, hole, strict=True):
            numbers[position] = numbers[position] if is_hole else number
        traced.append(
            SpanStep(
                tokens=tokens,
                forward=step.A[0, :, 0].tolist(),
                backward=step.A[0, :, 1].tolist(),
                numbers=numbers,
                mask=step.P[0].int().tolist(),
                spans=_spans(algebra, step, tokens, state, numbers),
                state=state,
            )
        )
        observe(traced[-1])
        X = step.X
    return Trace(algebra, str(expression), traced, _answer(X, weights, algebra))


def _spans(
    algebra: Algebra, step: speculate.Step, tokens: list[str], state: list[str], numbers: list[int]
) -> list[TracedSpan]:
    """What happened to each span, in the order of the text."""
    names = [*algebra.values, None]
    entries: list[list[tuple[int, bool]]] = [[] for _ in step.holes]  # positions, whether holes
    at, hole, ids = (part.tolist() for part in step.entries[:3])
    for position, is_hole, number in zip(at, hole, ids, strict=True):
        entries[number - 1].append((position, is_hole))
    spans = []
    for j, (held, F, u) in enumerate(zip(entries, step.F.tolist(), step.u.tolist(), strict=True)):
        inner = [numbers[position] for position, is_hole in held if is_hole]
        words = [HOLE if is_hole else tokens[position] for position, is_hole in held]
        written = [position for position, _ in held if state[position] != EMPTY_POSITION]
        spans.append(
            TracedSpan(
                number=j + 1,
                text=("" if packs(algebra) else " ").join(words),
                start=held[0][0],
                inner=inner,
                map=dict(zip(algebra.values, (names[v] for v in F), strict=False))
                if len(inner) == 1
                else None,
                value=names[u],
                at=written[0] if step.top[j] else None,
            )
        )
    return spans


@torch.no_grad()
def trace_plain(
    algebra: Algebra,
    weights: Weights,
    expression: Expression,
    observe: Callable[[PlainStep], None] = lambda step: None,
) -> Trace[PlainStep]:
    """The same of the layer for plain notation."""
    X, _ = initial_state([expression], weights)
    traced: list[PlainStep] = []
    for step in precedence.steps(X, weights, len(algebra.values)):
        tokens, state = (_symbols(algebra, read_tokens(x, weights)[0]) for x in (X, step.X))
        at = step.reading.at.tolist()

        def spread(part: torch.Tensor, at: list[int] = at, n: int = len(tokens)) -> list[int]:
            held = dict(zip(at, part.tolist(), strict=True))
            return [held.get(position, 0) for position in range(n)]

        numbers, spans = _folded_spans(algebra, step)
        traced.append(
            PlainStep(
                tokens=tokens,
                levels=spread(step.reading.level),
                opened=spread(step.written.opened),
                closed=spread(step.written.closed),
                numbers=[numbers.get(position, 0) for position in range(len(tokens))],
                mask=step.P[0].int().tolist(),
                spans=spans,
                state=state,
            )
        )
        observe(traced[-1])
        X = step.X
    return Trace(algebra, str(expression), traced, _answer(X, weights, algebra))


def _folded_spans(
    algebra: Algebra, step: precedence.Step
) -> tuple[dict[int, int], list[FoldedSpan]]:
    """The number of the span that each token is in, by position; and what happened to each span, in
    the order of the text. Parentheses around a single span that are counted only are left out.
    """
    names, space = [*algebra.values, None], "" if packs(algebra) else " "
    symbols = [algebra.vocabulary[token] for token in step.written.ids.flatten().tolist()]
    position = step.reading.at[step.written.source].tolist()  # of the token at each place
    is_written = set(step.written.place.tolist())
    held: list[list[tuple[int, bool]]] = [[] for _ in step.holes]  # places, whether holes
    for place, is_hole, number in zip(*(part.tolist() for part in step.entries[:3]), strict=True):
        held[number - 1].append((place, is_hole))
    shown = [held_by[0][0] in is_written or len(held_by) > 3 for held_by in held]
    numbers = list(
        accumulate(map(int, shown))
    )  # an inner span that is left out counts as the next one
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
    """What a span is worth by the value in its hole: its steps, one after the other."""
    results = torch.arange(len(algebra.values) + 1, device=step.M.device)
    for i in acts:
        results = step.M[i][results]
    names = [*algebra.values, None]
    return dict(zip(algebra.values, (names[v] for v in results.tolist()), strict=False))


def _fold(algebra: Algebra, step: precedence.Step, acts: range, space: str) -> list[str]:
    """The operators of a span as they act, with what is known up to its hole."""
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
        if side == PREFIX:
            parts = [operator, before]
        else:
            parts = (
                [before, operator, brings] if side == RIGHT_KNOWN else [brings, operator, before]
            )
        acted.append(space.join(parts) + (f"={result}" if result != UNKNOWN else ""))
        before = result
    return acted


def _answer(X: torch.Tensor, weights: Weights, algebra: Algebra) -> str | None:
    value = int(read_values(X, weights, algebra)[0])
    return None if value == NO_VALUE else algebra.values[value]


def _symbols(algebra: Algebra, rows: torch.Tensor) -> list[str]:
    """The token of each row; several, joined, where uncertified weights leave more than one."""
    held: list[list[str]] = [[] for _ in range(len(rows))]
    for position, token in rows.nonzero().tolist():
        held[position].append(algebra.vocabulary[token])
    return ["+".join(tokens) or EMPTY_POSITION for tokens in held]


def _counts(algebra: Algebra, row: torch.Tensor) -> dict[str, int]:
    return {algebra.vocabulary[i]: int(row[i]) for i in row.nonzero().flatten().tolist()}
