"""An iteration in plain notation: span by span, in words and as data."""

from dataclasses import dataclass
from itertools import accumulate

import torch

from exactformer.domains.algebra import Algebra
from exactformer.model import precedence
from exactformer.model.precedence import LEFT_KNOWN, PREFIX, RIGHT_KNOWN
from exactformer.trace.spans import HOLE, SpanBySpan, TracedSpan, held_by, map_of, spread

UNKNOWN = "…"  # what depends on the value of an inner span


@dataclass(frozen=True)
class FoldedSpan(TracedSpan):
    """A span of plain notation, of any number of operators of one level."""

    fold: list[str]  # its operators one after the other, with HOLE and, from there on, UNKNOWN

    def _begin(self) -> str:
        folded = f", which is {', then '.join(self.fold)}," if len(self.fold) > 1 else ""
        return f"{super()._begin()}{folded}"


@dataclass(frozen=True)
class PlainStep(SpanBySpan):
    """One iteration in plain notation: position by position, then span by span."""

    tokens: list[str]
    levels: list[int]  # effective level of an operator; 0 for all else
    opened: list[int]  # implied parentheses before a token
    closed: list[int]  # implied parentheses after a token
    numbers: list[int]  # number of the span of each token; 0 for none
    mask: list[int]  # P
    spans: list[FoldedSpan]
    state: list[str]  # X afterwards


def explain(
    algebra: Algebra, step: precedence.Step, tokens: list[str], state: list[str]
) -> PlainStep:
    """The record of an iteration, with its spans in the order of the text."""
    at = step.reading.at.tolist()
    parts = (step.reading.level, step.written.opened, step.written.closed)
    levels, opened, closed = (dict(zip(at, part.tolist(), strict=True)) for part in parts)
    numbers, spans = _folded_spans(algebra, step)
    return PlainStep(
        tokens=tokens,
        levels=spread(levels, len(tokens)),
        opened=spread(opened, len(tokens)),
        closed=spread(closed, len(tokens)),
        numbers=spread(numbers, len(tokens)),
        mask=step.P[0].int().tolist(),
        spans=spans,
        state=state,
    )


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
    held = held_by(step)
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
    return map_of(algebra, results.tolist())


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
