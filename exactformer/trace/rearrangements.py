"""The iteration of a rearrangement: token by token, with its count and the row it is brought to."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from exactformer.domains.domain import Domain
from exactformer.domains.rearrangements import ORDERS, Rearrangement
from exactformer.model.rearrange import Step
from exactformer.trace.shown import EMPTY_POSITION, Explained


@dataclass(frozen=True)
class RearrangeStep(Explained):
    """The one iteration; a token may have several keys, or none."""

    tokens: list[str]
    count: list[int]  # A
    keys: list[list[int]]
    mask: list[int]  # P
    state: list[str]  # X afterwards
    order: str

    def rows(self) -> dict[str, list[Any]]:
        keys = [",".join(map(str, some)) or EMPTY_POSITION for some in self.keys]
        rows: dict[str, list[Any]] = {"tokens": self.tokens, "count": self.count, "key": keys}
        return rows | {"mask": self.mask, "after": self.state}

    def events(self, domain: Domain) -> Iterator[str]:
        yield f"in the order {self.order}: {ORDERS[self.order]}"


def explain(
    domain: Rearrangement, step: Step, tokens: list[str], state: list[str]
) -> RearrangeStep:
    keys = step.key[:, 0].T.tolist()
    return RearrangeStep(
        tokens=tokens,
        count=step.A[0].tolist(),
        keys=[[key for key in some if key >= 0] for some in keys],
        mask=step.P[0].int().tolist(),
        state=state,
        order=domain.order,
    )
