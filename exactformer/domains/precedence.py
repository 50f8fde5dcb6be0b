"""Levels of precedence: they group operators where parentheses are left out.

The operators of plain notation stand on levels, from the loosest to the tightest. A level groups
from the left, as `a - b - c` is `(a - b) - c`, or from the right, or it is for prefix operators. An
operator such as `-` can stand on two levels, once for each of its uses.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from exactformer.domains.bounds import MOST_OPERATORS
from exactformer.domains.data import Place, listed, suggestion


class Direction(StrEnum):
    """How the operators of a level group; a member is equal to its name in a file."""

    LEFT = "left"  # `a op b op c` is `(a op b) op c`
    RIGHT = "right"  # `a op b op c` is `a op (b op c)`
    PREFIX = "prefix"  # `op op a` is `op (op a)`

    @property
    def operands(self) -> int:
        """Number of operands of an operator in this use."""
        return 1 if self is Direction.PREFIX else 2


@dataclass(frozen=True)
class Level:
    """Operators of equal precedence, by their symbols."""

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
    """Read levels from the data that `Level.to_dict` gives, from an untrusted file."""
    levels: list[Level] = []
    for item in place.items(2 * MOST_OPERATORS):
        fields = item.fields(("direction", "operators"))
        symbols = [symbol.text() for symbol in fields["operators"].items(MOST_OPERATORS)]
        levels.append(Level(fields["direction"].one_of(map(str, Direction)), symbols))
    return tuple(levels)


def precedence_faults(
    levels: Sequence[Level | None], arities: Mapping[str, Sequence[int]]
) -> Iterator[str]:
    """All that is wrong with these levels: each use of an operator has exactly one.

    levels    None stands for a level that could not be read: it may hold any operator.
    arities   the numbers of operands of each operator by its symbol; empty where they are unknown.
    """
    uses = {(symbol, operands): 0 for symbol, counts in arities.items() for operands in counts}
    for number, level in enumerate(levels, start=1):
        if level is None:
            continue
        if not level.operators:
            yield f"precedence: level {number} has no operators"
        for symbol in level.operators:
            use = symbol, level.direction.operands
            if arities.get(symbol, [0]) and use not in uses:
                takes = "one operand" if level.direction.operands == 1 else "two operands"
                hint = "" if symbol in arities else suggestion(symbol, arities)
                yield f"precedence: level {number}: no operator {symbol!r} takes {takes}{hint}"
            elif uses.get(use):
                yield (
                    f"precedence: {_describe(use)} stands on level {uses[use]} and on level "
                    f"{number}: expected one level for each use"
                )
            else:
                uses[use] = number
    if None not in levels:
        for use, number in uses.items():
            if not number:
                yield f"precedence: {_describe(use)} stands on no level"


def _describe(use: tuple[str, int]) -> str:
    symbol, operands = use
    return f"the operator {symbol!r} of {'one operand' if operands == 1 else 'two operands'}"
