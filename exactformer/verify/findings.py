"""The outcome of the check of weights."""

from dataclasses import dataclass
from fractions import Fraction

from exactformer.domains.belonging import OfDomain
from exactformer.domains.domain import Domain
from exactformer.verify.levels import Grouping
from exactformer.verify.rows import Fault


@dataclass(frozen=True)
class Findings(OfDomain):
    """Each condition of the proof with its outcome, and the numbers behind the last one."""

    domain: Domain
    conditions: dict[str, bool]
    rows: int
    wrong_rows: tuple[Fault, ...]
    smallest_margin: Fraction  # least distance of an output from the threshold, over all rows
    rounding_bound: Fraction  # most that float64 can move an output
    most_operands: dict[str, int] | None = None  # operands of one span, by format; None: all
    checked: str = "rows"  # or units, which are not rows of cases
    grouping: Grouping | None = None  # by the gate of levels, in plain notation
    wrong_counts: tuple[Fault, ...] = ()  # by the gate of arities, in Polish notation

    @property
    def exact(self) -> bool:
        return all(self.conditions.values())

    @property
    def failed(self) -> list[str]:
        """The conditions that do not hold."""
        return [name for name, holds in self.conditions.items() if not holds]

    @property
    def suspects(self) -> list[tuple[int, ...]]:
        """Token ids of the expressions that what is wrong is likely to show in."""
        grouped = self.grouping.wrong if self.grouping else ()
        faults = (*self.wrong_rows, *grouped, *self.wrong_counts)
        return [fault.ids for fault in faults if fault.ids]
