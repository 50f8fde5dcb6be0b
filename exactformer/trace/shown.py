"""A recorded run: the intermediates of each iteration, as text and as plain data."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Generic, TypeVar

from exactformer.domains.domain import Domain
from exactformer.trace.palette import KINDS, MARKED, PLAIN, Ink, cluster_ink, kind_of

EMPTY_POSITION = "·"
MOST_IN_HTML = 20_000  # cells of a table in a notebook; what is longer is shown as a line


class Explained(ABC):
    """The record of an iteration, in the words of its layer, each of which has a file here.

    Text, notebooks and the page can draw any record by its rows and events.
    """

    tokens: list[str]  # X before
    state: list[str]  # X afterwards

    def to_dict(self) -> dict[str, Any]:
        """Its fields as plain data, `tokens` and `state` among them."""
        return vars(self)

    @abstractmethod
    def rows(self) -> dict[str, list[Any]]:
        """The rows that are shown for each position, by name; `·` stands for an empty cell."""

    @abstractmethod
    def events(self, domain: Domain) -> Iterator[str]:
        """Sentences on what happened."""

    @property
    def size(self) -> int:
        """The number of tokens and numbers to draw."""
        return len(self.rows()) * len(self.tokens)


StepT = TypeVar("StepT", bound=Explained)


@dataclass(frozen=True)
class Trace(Generic[StepT]):
    domain: Domain
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
        return f"Trace({self.domain.name}, {text}: {self.outcome})"

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
            parts += [f"  {event}" for event in step.events(self.domain)]
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
            events = "<br>".join(escape(event) for event in step.events(self.domain))
            parts.append(f"<p>iteration {number}</p><table>{rows}</table><p>{events}</p>")
        return "".join([*parts, f"<p><b>{escape(self.outcome)}</b></p>"])

    def _ink(self, row: str, cell: Any) -> Ink:
        if row in ("tokens", "after"):
            return KINDS[kind_of(self.domain, cell)]
        if row == "mask":
            return MARKED if cell else PLAIN
        if row in ("cluster", "span") and cell != EMPTY_POSITION:
            return cluster_ink(cell)
        return PLAIN


def _cell(cell: Any, ink: Ink) -> str:
    style = f"background:{ink.fill};color:{ink.text};border:1px solid {ink.edge};text-align:center"
    return f"<td style='{style}'>{escape(str(cell))}</td>"
