"""Every intermediate of every iteration, as text for people and as plain data for programs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html import escape
from typing import Any

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.plain import listed
from exactformer.model.circuit import Weights, read_tokens, steps
from exactformer.model.encode import NO_VALUE, initial_state, read_values
from exactformer.palette import KINDS, MARKED, PLAIN, Ink, Kind, cluster_ink, kind_of

EMPTY_POSITION = "·"
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
class Trace:
    algebra: Algebra
    expression: str
    steps: list[TraceStep]
    value: str | None  # None where the model ends with anything but a single value

    def to_dict(self) -> dict[str, Any]:
        """Plain data. Lists are shared with the trace: a long one has millions of entries."""
        steps = [vars(step) for step in self.steps]
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
        return cluster_ink(cell) if row == "cluster" and cell != EMPTY_POSITION else PLAIN


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
) -> Trace:
    """Run one expression, keeping what `iterate` returns.

    `observe` sees each iteration as soon as it is there; it may raise to put an end to a long run.
    """
    X, inside = initial_state([expression], weights)
    traced: list[TraceStep] = []
    for step in steps(X, weights, inside):
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
    value = int(read_values(X, weights, algebra)[0])
    answer = None if value == NO_VALUE else algebra.values[value]
    return Trace(algebra, str(expression), traced, answer)


def _symbols(algebra: Algebra, rows: torch.Tensor) -> list[str]:
    """The token of each row; several, joined, where uncertified weights leave more than one."""
    held: list[list[str]] = [[] for _ in range(len(rows))]
    for position, token in rows.nonzero().tolist():
        held[position].append(algebra.vocabulary[token])
    return ["+".join(tokens) or EMPTY_POSITION for tokens in held]


def _counts(algebra: Algebra, row: torch.Tensor) -> dict[str, int]:
    return {algebra.vocabulary[i]: int(row[i]) for i in row.nonzero().flatten().tolist()}
