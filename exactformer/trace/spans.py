"""An iteration of the logarithmic layer: span by span, in words and as data."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exactformer.domains.algebra import Algebra
from exactformer.domains.data import listed
from exactformer.domains.domain import Domain
from exactformer.model import polish, precedence, speculate
from exactformer.trace.shown import EMPTY_POSITION, Explained

HOLE = "□"  # an inner span, in the text of the one around it
SHOWN_AS = {  # fields whose rows have another name
    "levels": "level",
    "counts": "count",
    "heights": "height",
    "numbers": "span",
    "state": "after",
}


@dataclass(frozen=True)
class TracedSpan:
    """A span as the logarithmic layer sees it: a value, a map on values, or waiting."""

    number: int  # from 1, in the order of the text
    text: str  # its tokens, with HOLE for each inner span
    start: int  # position of its `(`; where none is written, of its first token or its operator
    inner: list[int]  # numbers of the inner spans
    map: dict[str, str | None] | None  # F: what it is worth by the value of its one inner span
    value: str | None  # u; None while it waits
    at: int | None  # the position where its value is written; None inside another such span

    def __str__(self) -> str:
        begin = self._begin()
        inner = listed([f"span {number}" for number in self.inner], "and")
        if self.map is not None:
            pairs = " ".join(f"{value}→{result}" for value, result in self.map.items())
            begin = f"{begin} maps {pairs}"
        if self.value is None:
            return f"{begin}{';' if self.map else ''} waits for {inner}"
        worth = f"{'; with ' + inner + ' it' if self.map else ''} is {self.value}"
        written = "" if self.at is None else f", written at {self.at}"
        return f"{begin}{worth}{written}"

    def _begin(self) -> str:
        return f"span {self.number}: {self.text}"


class SpanBySpan(Explained):
    """An iteration that is recorded span by span; its other fields are by position."""

    spans: list[Any]  # TracedSpan or a kind of it

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"spans": [vars(span) for span in self.spans]}

    def events(self, domain: Domain) -> Iterator[str]:
        """Each span in words."""
        yield from map(str, self.spans)

    def rows(self) -> dict[str, list[Any]]:
        rows: dict[str, list[Any]] = {}
        for name, cells in vars(self).items():
            if name in ("forward", "backward", "mask"):
                rows[name] = cells
            elif name != "spans":
                rows[SHOWN_AS.get(name, name)] = [cell or EMPTY_POSITION for cell in cells]
        return rows

    @property
    def size(self) -> int:
        return super().size + sum(len(span.map or ()) for span in self.spans)


@dataclass(frozen=True)
class SpanStep(SpanBySpan):
    """One iteration of the logarithmic layer: position by position, then span by span."""

    tokens: list[str]
    forward: list[int]  # A_1
    backward: list[int]  # A_2
    numbers: list[int]  # number of the span of each token; 0 for none
    mask: list[int]  # P
    spans: list[TracedSpan]
    state: list[str]  # X afterwards


def explain(
    algebra: Algebra, step: speculate.Step, tokens: list[str], state: list[str]
) -> SpanStep:
    """The record of an iteration, with its spans in the order of the text."""
    names, space = [*algebra.values, None], "" if algebra.packs else " "
    held = held_by(step)
    own = {at: j for j, places in enumerate(held, 1) for at, is_hole in places if not is_hole}
    maps, values, is_top = step.F.tolist(), step.u.tolist(), step.top.tolist()
    spans = []
    for j, places in enumerate(held):
        inner = [own[at] for at, is_hole in places if is_hole]
        written = [at for at, _ in places if state[at] != EMPTY_POSITION]
        spans.append(
            TracedSpan(
                number=j + 1,
                text=space.join(HOLE if is_hole else tokens[at] for at, is_hole in places),
                start=places[0][0],
                inner=inner,
                map=map_of(algebra, maps[j]) if len(inner) == 1 else None,
                value=names[values[j]],
                at=written[0] if is_top[j] else None,
            )
        )
    return SpanStep(
        tokens=tokens,
        forward=step.A[0, :, 0].tolist(),
        backward=step.A[0, :, 1].tolist(),
        numbers=spread(own, len(tokens)),
        mask=step.P[0].int().tolist(),
        spans=spans,
        state=state,
    )


def spread(numbers: dict[int, int], n: int) -> list[int]:
    """Numbers of some positions, with 0 in the others."""
    return [numbers.get(position, 0) for position in range(n)]


def held_by(step: speculate.Step | precedence.Step | polish.Step) -> list[list[tuple[int, bool]]]:
    """The entries of each span: their positions, and whether they are holes."""
    held: list[list[tuple[int, bool]]] = [[] for _ in step.holes]
    for place, is_hole, number in zip(*(part.tolist() for part in step.entries[:3]), strict=True):
        held[number - 1].append((place, is_hole))
    return held


def map_of(algebra: Algebra, results: list[int]) -> dict[str, str | None]:
    """The value of a span by the value in its hole."""
    names = [*algebra.values, None]
    return {value: names[result] for value, result in zip(algebra.values, results, strict=False)}
