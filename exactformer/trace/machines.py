"""The iteration of a machine: token by token, with the state that arrives at each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exactformer.domains.domain import Domain
from exactformer.domains.machines import Machine
from exactformer.model.machine import Step
from exactformer.trace.shown import EMPTY_POSITION, Explained

MOST_STATES = 24  # that a sentence lists


@dataclass(frozen=True)
class MachineStep(Explained):
    """The one iteration; states are those of the weights, by number."""

    tokens: list[str]
    key: list[int]
    states: list[int | None]  # that arrive at each token; None for one that is not known
    mask: list[int]  # P
    state: list[str]  # X afterwards
    read: str

    def rows(self) -> dict[str, list[Any]]:
        arriving = [EMPTY_POSITION if q is None else q for q in self.states]
        rows = {"tokens": self.tokens, "key": self.key, "state": arriving}
        return rows | {"mask": self.mask, "after": self.state}

    def events(self, domain: Domain) -> Iterator[str]:
        order = self.states if self.read == "left" else self.states[::-1]
        shown = ["not known" if q is None else str(q) for q in order]
        more = [f"... ({len(shown)} in all)"] if len(shown) > MOST_STATES else []
        yield f"read from the {self.read}, in the states {' '.join(shown[:MOST_STATES] + more)}"


def explain(machine: Machine, step: Step, tokens: list[str], state: list[str]) -> MachineStep:
    known = [*range(step.F.shape[1] - 1), None]
    arriving = step.u.tolist()
    rows = step.rows[0].tolist()
    return MachineStep(
        tokens=tokens,
        key=step.key[0].tolist(),
        states=[None if row < 0 else known[arriving[row]] for row in rows],
        mask=step.P[0].int().tolist(),
        state=state,
        read=machine.read,
    )
