"""Precedence: what belongs together where parentheses are left out.

The operators of plain notation stand on levels, from the loosest to the tightest. A level groups
from the left, as `a - b - c` is `(a - b) - c`, or from the right, or it is for prefix operators. An
operator such as `-` can stand on two levels, once for each of its uses.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from exactformer.domains.bounds import MOST_OPERATORS
from exactformer.domains.operators import Operator
from exactformer.domains.plain import Place, listed


class Direction(StrEnum):
    """How the operators of a level group; a member is equal to its name in a file."""

    LEFT = "left"  # `a op b op c` is `(a op b) op c`
    RIGHT = "right"  # `a op b op c` is `a op (b op c)`
    PREFIX = "prefix"  # `op op a` is `op (op a)`

    @property
    def operands(self) -> int:
        """How many operands an operator has in this use."""
        return 1 if self is Direction.PREFIX else 2


@dataclass(frozen=True)
class Level:
    """Operators that bind equally, by their symbols."""

    direction: Direction
    operators: tuple[str, ...]

    def __init__(self, direction: str, operators: Iterable[str]) -> None:
        if direction not in tuple(Direction):
            expected = listed([repr(str(known)) for known in Direction])
            raise ValueError(f"expected direction {expected}, found {direction!r}")
        if isinstance(operators, str):
            raise TypeError(f"expected operators such as ['+', '-'], found {operators!r}")
        # The class is frozen, so this is how its fields are set.
        vars(self).update(direction=Direction(direction), operators=tuple(operators))

    def to_dict(self) -> dict[str, Any]:
        return {"direction": str(self.direction), "operators": list(self.operators)}


def read_levels(place: Place) -> tuple[Level, ...]:
    """What `Level.to_dict` gives for each of several, from a file that nobody trusts."""
    levels: list[Level] = []
    for item in place.items(2 * MOST_OPERATORS):
        fields = item.fields(("direction", "operators"))
        symbols = [symbol.text() for symbol in fields["operators"].items(MOST_OPERATORS)]
        levels.append(Level(fields["direction"].one_of(map(str, Direction)), symbols))
    return tuple(levels)


def precedence_fault(levels: Sequence[Level], operators: Sequence[Operator]) -> str | None:
    """What is wrong with these levels, if anything: each use of an operator has exactly one."""
    uses = {(op.symbol, operands): 0 for op in operators for operands in op.arities}
    for number, level in enumerate(levels, start=1):
        if not level.operators:
            return f"precedence: level {number} has no operators"
        for symbol in level.operators:
            use = symbol, level.direction.operands
            if use not in uses:
                takes = "one operand" if level.direction.operands == 1 else "two operands"
                return f"precedence: level {number}: no operator {symbol!r} takes {takes}"
            if uses[use]:
                return (
                    f"precedence: {_describe(use)} stands on level {uses[use]} and on level "
                    f"{number}: expected one level for each use"
                )
            uses[use] = number
    for use, number in uses.items():
        if not number:
            return f"precedence: {_describe(use)} stands on no level"
    return None


def _describe(use: tuple[str, int]) -> str:
    symbol, operands = use
    return f"the operator {symbol!r} of {'one operand' if operands == 1 else 'two operands'}"
