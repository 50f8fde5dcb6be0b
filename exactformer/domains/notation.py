"""Where an operator stands among its operands, and all that follows from it."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Notation(StrEnum):
    """How the spans of an algebra are written; a member is equal to its name in a file."""

    INFIX = "infix"  # `(a op b)` and `(op a)`
    PREFIX = "prefix"  # `( op a b ... )`
    PLAIN = "plain"  # `a op b op c` and `op a`, grouped by precedence; parentheses where one likes

    def operands_before(self, arity: int) -> int:
        """How many of so many operands are written before their operator."""
        return 1 if self is not Notation.PREFIX and arity == 2 else 0

    def arrange(self, operator: T, operands: Sequence[T]) -> list[T]:
        """An operator and its operands in the order they are written in."""
        before = self.operands_before(len(operands))
        return [*operands[:before], operator, *operands[before:]]

    def operands_wanted(self, before: int) -> int | None:
        """How many operands an operator has in all if so many stand before it; None if any number
        may follow.
        """
        return None if self is Notation.PREFIX else 1 + before

    def arity_fault(self, arity: int, unbounded: bool) -> str | None:
        """Why an operator cannot take so many operands, or that many and more; None if it can."""
        if self is not Notation.PREFIX and (arity > 2 or unbounded):
            return f"{self} notation takes 1 or 2 operands"
        return None

    @property
    def separates_operands(self) -> bool:
        """Whether no two operands ever stand side by side."""
        return self is not Notation.PREFIX
