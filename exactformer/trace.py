"""Every intermediate of every iteration, as text for people and as plain data for programs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any, Generic, TypeVar

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression, packs
from exactformer.domains.plain import listed
from exactformer.model import circuit, speculate
from exactformer.model.circuit import Weights, read_tokens
from exactformer.model.encode import NO_VALUE, initial_state, read_values
from exactformer.palette import KINDS, MARKED, PLAIN, Ink, Kind, cluster_ink, kind_of

EMPTY_POSITION = "·"
HOLE = "□"  # an inner span, in the text of the one around it
MOST_IN_HTML = 20_000  # cells of a table in a notebook; what is longer is shown as a line
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
        """What is shown of each position, by name; `·` where there is nothing."""
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
        """What each position of the mask received and became, in words."""
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
        begin = f"span {self.number}: {self.text}"
        inner = listed([f"span {number}" for number in self.inner], "and")
        if self.map is not None:
            pairs = " ".join(f"{value}→{result}" for value, result in self.map.items())
            begin = f"{begin} maps {pairs}"
        if self.value is None:
            return f"{begin}{';' if self.map else ''} waits for {inner}"
        worth = f"{'; with ' + inner + ' it' if self.map else ''} is {self.value}"
        written = "" if self.at is None else f", written at {self.at}"
        return f"{begin}{worth}{written}"


@dataclass(frozen=True)
class SpanStep:
    """One iteration of the logarithmic layer: position by position, then span by span."""

    tokens: list[str]
    forward: list[int]  # A_1
    backward: list[int]  # A_2
    numbers: list[int]  # of the span that each token is in; 0 for none
    mask: list[int]  # P
    spans: list[TracedSpan]
    state: list[str]  # X afterwards

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"spans": [vars(span) for span in self.spans]}

    def rows(self) -> dict[str, list[Any]]:
        """What is shown of each position, by name; `·` where there is nothing."""
        return {
            "tokens": self.tokens,
            "forward": self.forward,
            "backward": self.backward,
            "span": [number or EMPTY_POSITION for number in self.numbers],
            "mask": self.mask,
            "after": self.state,
        }

    def events(self, algebra: Algebra) -> Iterator[str]:
        """What each span is, in words."""
        yield from map(str, self.spans)


StepT = TypeVar("StepT", TraceStep, SpanStep)


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
