"""A recorded run: the intermediates of each iteration, as text and as plain data."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, TypeVar

from exactformer.domains.algebra import Algebra
from exactformer.domains.data import listed
from exactformer.trace.palette import KINDS, MARKED, PLAIN, Ink, Kind, cluster_ink, kind_of

EMPTY_POSITION = "·"
HOLE = "□"  # an inner span, in the text of the one around it
UNKNOWN = "…"  # what depends on it
MOST_IN_HTML = 20_000  # cells of a table in a notebook; what is longer is shown as a line
SHOWN_AS = {"levels": "level", "numbers": "span", "state": "after"}  # fields whose rows are others
NAMES: dict[Kind, tuple[str, str]] = {
    "value": ("operand", "operands"),
    "operator": ("operator", "operators"),
    "parenthesis": ("parenthesis", "parentheses"),
}


@dataclass(frozen=True)
class TraceStep:
    """One iteration, position by position. `routed` and `outputs` are by position in the mask.

    Where the order of operands matters, `ranks` has the rank of each position in its cluster, and
    `slots` what each position received in each slot; `routed` then is the sum over the slots.
    """

    tokens: list[str]
    forward: list[int]  # A_1
    backward: list[int]  # A_2
    mask: list[int]  # P
    clusters: list[int]  # ids
    routed: dict[int, dict[str, int]]  # H: how much of each token a position received
    outputs: dict[int, dict[str, float]]  # Z, before the threshold, by token
    state: list[str]  # X afterwards
    ranks: list[int] | None = None  # R; 0 outside the mask
    slots: dict[int, list[dict[str, int]]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return vars(self)

    def rows(self) -> dict[str, list[Any]]:
        """The rows that are shown for each position, by name; `·` stands for an empty cell."""
        rows: dict[str, list[Any]] = {
            "tokens": self.tokens,
            "forward": self.forward,
            "backward": self.backward,
            "mask": self.mask,
            "cluster": [c or EMPTY_POSITION for c in self.clusters],
        }
        if self.ranks is not None:
            pairs = zip(self.ranks, self.clusters, strict=True)
            rows["rank"] = [rank if cluster else EMPTY_POSITION for rank, cluster in pairs]
        return rows | {"after": self.state}

    def events(self, algebra: Algebra) -> Iterator[str]:
        """The input and output of each position of the mask, in words."""
        for position in self.routed:
            yield (
                f"cluster {self.clusters[position]}: {self.tokens[position]} at {position} "
                f"receives {self._received(position, algebra)}, and becomes {self.state[position]}"
            )

    def _received(self, position: int, algebra: Algebra) -> str:
        if not self.slots:
            return _in_words(algebra, self.routed[position]) or "nothing"
        filled = [(slot, bag) for slot, bag in enumerate(self.slots[position], start=1) if bag]
        parts = [f"{_in_words(algebra, bag)} in slot {slot}" for slot, bag in filled]
        return ", ".join(parts) or "nothing"


@dataclass(frozen=True)
class TracedSpan:
    """A span as the logarithmic layer sees it: a value, a map on values, or waiting."""

    number: int  # from 1, in the order of the text
    text: str  # its tokens, with HOLE for each inner span
    start: int  # position of its `(`
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


@dataclass(frozen=True)
class FoldedSpan(TracedSpan):
    """A span of plain notation, of any number of operators of one level."""

    fold: list[str]  # its operators one after the other, with HOLE and, from there on, UNKNOWN

    def _begin(self) -> str:
        folded = f", which is {', then '.join(self.fold)}," if len(self.fold) > 1 else ""
        return f"{super()._begin()}{folded}"


class _SpanBySpan:
    """An iteration that is recorded span by span; its other fields are by position."""

    spans: list[Any]

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"spans": [vars(span) for span in self.spans]}

    def events(self, algebra: Algebra) -> Iterator[str]:
        """Each span in words."""
        yield from map(str, self.spans)

    def rows(self) -> dict[str, list[Any]]:
        """The rows that are shown for each position, by name; `·` stands for an empty cell."""
        rows: dict[str, list[Any]] = {}
        for name, cells in vars(self).items():
            if name in ("forward", "backward", "mask"):
                rows[name] = cells
            elif name != "spans":
                rows[SHOWN_AS.get(name, name)] = [cell or EMPTY_POSITION for cell in cells]
        return rows


@dataclass(frozen=True)
class SpanStep(_SpanBySpan):
    """One iteration of the logarithmic layer: position by position, then span by span."""

    tokens: list[str]
    forward: list[int]  # A_1
    backward: list[int]  # A_2
    numbers: list[int]  # number of the span of each token; 0 for none
    mask: list[int]  # P
    spans: list[TracedSpan]
    state: list[str]  # X afterwards


@dataclass(frozen=True)
class PlainStep(_SpanBySpan):
    """One iteration in plain notation: position by position, then span by span."""

    tokens: list[str]
    levels: list[int]  # effective level of an operator; 0 for all else
    opened: list[int]  # implied parentheses before a token
    closed: list[int]  # implied parentheses after a token
    numbers: list[int]  # number of the span of each token; 0 for none
    mask: list[int]  # P
    spans: list[FoldedSpan]
    state: list[str]  # X afterwards


StepT = TypeVar("StepT", TraceStep, SpanStep, PlainStep)


@dataclass(frozen=True)
class Trace(Generic[StepT]):
    algebra: Algebra
    expression: str
    steps: list[StepT]
    value: str | None  # None where the model ends with anything but a single value

    def to_dict(self) -> dict[str, Any]:
        """Plain data. Lists are shared with the trace: a long one has millions of entries."""
        steps = [step.to_dict() for step in self.steps]
        return {"expression": self.expression, "steps": steps, "value": self.value}

    @property
    def outcome(self) -> str:
        value = "no single value is left" if self.value is None else f"value {self.value}"
        iterations = "1 iteration" if len(self.steps) == 1 else f"{len(self.steps)} iterations"
        return f"{value} after {iterations}"

    def __repr__(self) -> str:
        text = self.expression if len(self.expression) < 80 else f"{self.expression[:76]} ..."
        return f"Trace({self.algebra.name}, {text}: {self.outcome})"

    def __str__(self) -> str:
        parts = [self.expression]
        for number, step in enumerate(self.steps, start=1):
            rows = step.rows()
            columns = zip(*rows.values(), strict=True)
            widths = [max(len(str(cell)) for cell in column) for column in columns]
            parts.append(f"\niteration {number}")
            for name, cells in rows.items():
                line = " ".join(
                    f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True)
                )
                parts.append(f"  {name:<9} {line}".rstrip())
            parts += [f"  {event}" for event in step.events(self.algebra)]
        parts.append(f"\n{self.outcome}")
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        """For a notebook: a table for each iteration, tokens and clusters in their colours."""
        if sum(len(step.rows()) * len(step.tokens) for step in self.steps) > MOST_IN_HTML:
            return f"<pre>{escape(repr(self))}</pre>"
        parts = [f"<p><code>{escape(self.expression)}</code></p>"]
        for number, step in enumerate(self.steps, start=1):
            rows = "".join(
                f"<tr><th style='text-align:left'>{name}</th>"
                + "".join(_cell(cell, self._ink(name, cell)) for cell in cells)
                + "</tr>"
                for name, cells in step.rows().items()
            )
            events = "<br>".join(escape(event) for event in step.events(self.algebra))
            parts.append(f"<p>iteration {number}</p><table>{rows}</table><p>{events}</p>")
        return "".join([*parts, f"<p><b>{escape(self.outcome)}</b></p>"])

    def _ink(self, row: str, cell: Any) -> Ink:
        if row in ("tokens", "after"):
            return KINDS[kind_of(self.algebra, cell)]
        if row == "mask":
            return MARKED if cell else PLAIN
        if row in ("cluster", "span") and cell != EMPTY_POSITION:
            return cluster_ink(cell)
        return PLAIN


def _cell(cell: Any, ink: Ink) -> str:
    style = f"background:{ink.fill};color:{ink.text};border:1px solid {ink.edge};text-align:center"
    return f"<td style='{style}'>{escape(str(cell))}</td>"


def _in_words(algebra: Algebra, bag: dict[str, int]) -> str:
    """A bag of tokens in words: which are operands and which operators, such as `+`."""
    parts = []
    for kind, (one, several) in NAMES.items():
        counts = {token: n for token, n in bag.items() if kind_of(algebra, token) == kind}
        if counts:
            tokens = [token if n == 1 else f"{n}×{token}" for token, n in counts.items()]
            parts.append(f"{several if sum(counts.values()) > 1 else one} {' '.join(tokens)}")
    return listed(parts, "and")
