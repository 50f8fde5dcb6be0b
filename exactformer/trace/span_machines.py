"""An iteration of a machine over spans: token by token, then span by span."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exactformer.domains.domain import Domain
from exactformer.domains.span_machines import SpanMachine
from exactformer.model.span_machine import Step
from exactformer.trace.shown import EMPTY_POSITION, Explained

MOST_SPANS = 40  # that sentences tell of


@dataclass(frozen=True)
class ReadSpan:
    """A span that became a value: its positions, and whether it was written."""

    first: int
    last: int
    value: str
    written: bool


@dataclass(frozen=True)
class SpanMachineStep(Explained):
    """One iteration; states are those of the weights, by number."""

    tokens: list[str]
    forward: list[int]  # A
    states: list[int | None]  # that arrive at each token; None for one that is not known
    mask: list[int]  # P
    spans: list[ReadSpan]
    state: list[str]  # X afterwards

    def to_dict(self) -> dict[str, Any]:
        return vars(self) | {"spans": [vars(span) for span in self.spans]}

    def rows(self) -> dict[str, list[Any]]:
        arriving = [EMPTY_POSITION if q is None else q for q in self.states]
        rows = {"tokens": self.tokens, "count": self.forward, "state": arriving}
        return rows | {"mask": self.mask, "after": self.state}

    def events(self, domain: Domain) -> Iterator[str]:
        for span in self.spans[:MOST_SPANS]:
            where = f"positions {span.first} to {span.last}"
            how = "is written" if span.written else "is read as a symbol of the span around it"
            yield f"the span at {where} is worth {span.value}, which {how}"
        if len(self.spans) > MOST_SPANS:
            yield f"and {len(self.spans) - MOST_SPANS} spans more"


def explain(
    domain: SpanMachine, step: Step, tokens: list[str], state: list[str]
) -> SpanMachineStep:
    position, unknown = step.position.tolist(), step.F.shape[1] - 1
    states: list[int | None] = [None] * len(tokens)
    for place, q in zip(position, step.u.tolist(), strict=True):
        states[place] = None if q == unknown else q
    rows = zip(step.opened.tolist(), step.value.tolist(), step.top.tolist(), strict=True)
    spans = [
        ReadSpan(position[opened], position[i], domain.vocabulary[value], top)
        for i, (opened, value, top) in enumerate(rows)
        if value >= 0
    ]
    mask = step.P[0].int().tolist()
    return SpanMachineStep(tokens, step.A[0, :, 0].tolist(), states, mask, spans, state)
