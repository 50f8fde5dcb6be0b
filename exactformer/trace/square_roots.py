"""An iteration of a square root: what is taken away, what is left, and the bit that is found."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from exactformer.domains.domain import Domain
from exactformer.domains.square_roots import NOT_BELOW, ROOT, SquareRoot
from exactformer.model.square_root import Step
from exactformer.trace.shown import EMPTY_POSITION, Explained


@dataclass(frozen=True)
class SquareRootStep(Explained):
    """One iteration, position by position."""

    tokens: list[str]
    mask: list[int]  # P
    bags: list[str]  # H
    states: list[int | None]  # that arrive in the first reading
    difference: list[str]  # Y
    state: list[str]  # X afterwards
    fits: bool
    root: str

    def rows(self) -> dict[str, list[Any]]:
        return {
            "tokens": self.tokens,
            "mask": self.mask,
            "bag": self.bags,
            "state": [EMPTY_POSITION if q is None else q for q in self.states],
            "written": self.difference,
            "after": self.state,
        }

    def events(self, domain: Domain) -> Iterator[str]:
        below = "is not below zero" if self.fits else "is below zero"
        yield f"the difference {below}: the root is {self.root} so far"


def explain(domain: SquareRoot, step: Step, tokens: list[str], state: list[str]) -> SquareRootStep:
    known = [*range(step.F.shape[1] - 1), None]
    kinds = [*domain.vocabulary[ROOT : ROOT + 2]]
    held = [token for cell in state for token in cell.split("+") if token in kinds]
    return SquareRootStep(
        tokens=tokens,
        mask=step.P[0].int().tolist(),
        bags=_symbols(domain, step.H),
        states=[known[q] for q in step.u.tolist()],
        difference=_symbols(domain, step.Y),
        state=state,
        fits=bool(step.Y[:, NOT_BELOW].any()),
        root="".join(str(kinds.index(token)) for token in held),
    )


def _symbols(domain: SquareRoot, rows: Tensor) -> list[str]:
    """The tokens of each row."""
    held: list[list[str]] = [[] for _ in range(len(rows))]
    for row, token in rows.nonzero().tolist():
        held[row].append(domain.vocabulary[token])
    return ["+".join(tokens) or EMPTY_POSITION for tokens in held]
