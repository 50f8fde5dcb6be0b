"""An iteration of the layer of integers: span by span, with carries and what is written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from exactformer.domains.domain import Domain
from exactformer.domains.integers import Integers
from exactformer.model.integers import Step
from exactformer.trace.shown import EMPTY_POSITION, Explained


@dataclass(frozen=True)
class IntegerStep(Explained):
    """One iteration, position by position; None where a position has no such number.

    `written` is what the first reading writes, before leading zeros go.
    """

    tokens: list[str]
    mask: list[int]  # P
    clusters: list[int]  # ids
    places: list[int | None]  # of digits of the deepest spans
    states: list[int | None]  # that arrive in the first reading
    written: list[str]  # Y
    state: list[str]  # X afterwards

    def rows(self) -> dict[str, list[Any]]:
        return {
            "tokens": self.tokens,
            "mask": self.mask,
            "cluster": [c or EMPTY_POSITION for c in self.clusters],
            "place": [EMPTY_POSITION if p is None else p for p in self.places],
            "state": [EMPTY_POSITION if q is None else q for q in self.states],
            "written": self.written,
            "after": self.state,
        }

    def events(self, domain: Domain) -> Iterator[str]:
        """Each of the deepest spans, with its value."""
        last = 0
        for i, cluster in enumerate(self.clusters):
            if cluster > last:
                size = self.clusters.count(cluster)
                before, after = (
                    "".join(cell for cell in cells[i : i + size] if cell != EMPTY_POSITION)
                    for cells in (self.tokens, self.state)
                )
                yield f"cluster {cluster}: {before} becomes {after or 'nothing'}"
                last = cluster


def explain(domain: Integers, step: Step, tokens: list[str], state: list[str]) -> IntegerStep:
    inside = step.P[0].tolist()
    places, arriving = iter(step.place.tolist()), iter(step.u.tolist())
    known = [*range(step.F.shape[1] - 1), None]
    rows = iter(_symbols(domain, step.Y))
    spread = [(next(places), next(arriving), next(rows)) if p else None for p in inside]
    return IntegerStep(
        tokens=tokens,
        mask=step.P[0].int().tolist(),
        clusters=step.ids[0].tolist(),
        places=[row[0] if row and row[0] >= 0 else None for row in spread],
        states=[known[row[1]] if row else None for row in spread],
        written=[row[2] if row else EMPTY_POSITION for row in spread],
        state=state,
    )


def _symbols(domain: Integers, rows: Tensor) -> list[str]:
    """The tokens that each row writes."""
    held: list[list[str]] = [[] for _ in range(len(rows))]
    for row, token in rows.nonzero().tolist():
        held[row].append(domain.vocabulary[token])
    return ["+".join(tokens) or EMPTY_POSITION for tokens in held]
