"""An iteration in Polish or reverse Polish notation: span by span, in words and as data."""

from dataclasses import dataclass
from typing import Any

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.model import polish
from exactformer.trace.shown import EMPTY_POSITION
from exactformer.trace.spans import HOLE, SpanBySpan, TracedSpan, held_by, map_of, spread


@dataclass(frozen=True)
class PolishStep(SpanBySpan):
    """One iteration in Polish notation: position by position, then span by span, in the order in
    which operators are read.
    """

    tokens: list[str]
    counts: list[int | None]  # g: operands less one; None where no token is read
    heights: list[int | None]  # h: sum of the counts read before a token
    opened: list[int]  # implied parentheses before a token, as it is read
    closed: list[int]  # implied parentheses after a token, as it is read
    numbers: list[int]  # number of the span of each token; 0 for none
    mask: list[int]  # P
    spans: list[TracedSpan]
    state: list[str]  # X afterwards

    def rows(self) -> dict[str, list[Any]]:
        counted = {"count": self.counts, "height": self.heights}  # of which 0 is a number
        return super().rows() | {
            name: [EMPTY_POSITION if cell is None else cell for cell in cells]
            for name, cells in counted.items()
        }


def explain(algebra: Algebra, step: polish.Step, tokens: list[str], state: list[str]) -> PolishStep:
    """The record of an iteration."""
    n, at = len(tokens), step.reading.at.tolist()
    parts = (step.reading.g, step.reading.h, step.written.opened, step.written.closed)
    counts, heights, opened, closed = (dict(zip(at, part.tolist(), strict=True)) for part in parts)
    numbers, spans = _spans(algebra, step, tokens)
    return PolishStep(
        tokens=tokens,
        counts=[counts.get(position) for position in range(n)],
        heights=[heights.get(position) for position in range(n)],
        opened=spread(opened, n),
        closed=spread(closed, n),
        numbers=spread(numbers, n),
        mask=step.P[0].int().tolist(),
        spans=spans,
        state=state,
    )


def _spans(
    algebra: Algebra, step: polish.Step, tokens: list[str]
) -> tuple[dict[int, int], list[TracedSpan]]:
    """The number of the span of each token, by position; and the record of each span."""
    names, ids = [*algebra.values, None], step.written.ids.flatten().tolist()
    position = step.reading.at[step.written.source].tolist()  # of the token at each place
    held = held_by(step)
    opens = {places[0][0]: number for number, places in enumerate(held, 1)}
    own: dict[int, int] = {}
    maps, values, is_top = step.F.tolist(), step.u.tolist(), step.top.tolist()
    spans = []
    for j, places in enumerate(held):
        parts = sorted(
            (position[place], HOLE if is_hole else tokens[position[place]], is_hole, place)
            for place, is_hole in places
            if is_hole or ids[place] >= FIRST_VALUE  # no parentheses
        )
        own |= {at: j + 1 for at, _, is_hole, _ in parts if not is_hole}
        inner = [opens[place] for _, _, is_hole, place in parts if is_hole]
        start = position[places[0][0]]
        spans.append(
            TracedSpan(
                number=j + 1,
                text=" ".join(symbol for _, symbol, _, _ in parts),
                start=start,
                inner=inner,
                map=map_of(algebra, maps[j]) if len(inner) == 1 else None,
                value=names[values[j]],
                at=start if is_top[j] else None,
            )
        )
    return own, spans
