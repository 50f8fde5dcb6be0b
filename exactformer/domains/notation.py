"""The notations of an algebra: the position of an operator among its operands."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

T = TypeVar("T")


class Notation(StrEnum):
    """Notation of the spans of an algebra; a member is equal to its name in a file."""

    INFIX = "infix"  # `(a op b)` and `(op a)`
    PREFIX = "prefix"  # `( op a b ... )`
    PLAIN = "plain"  # `a op b op c` and `op a`, grouped by precedence; parentheses where one likes

    def operands_before(self, arity: int) -> int:
        """Number of operands written before an operator of this arity."""
        return 1 if self is not Notation.PREFIX and arity == 2 else 0

    def arrange(self, operator: T, operands: Sequence[T]) -> list[T]:
        """An operator and its operands in the order of the text."""
        before = self.operands_before(len(operands))
        return [*operands[:before], operator, *operands[before:]]

    def operands_wanted(self, before: int) -> int | None:
        """Arity of an operator that has `before` operands before it; None if any number may
        follow.
        """
        return None if self is Notation.PREFIX else 1 + before

    def arity_fault(self, arity: int, unbounded: bool) -> str | None:
        """Why an operator cannot have this arity, or this arity and all larger ones; None if it
        can.
        """
        if self is not Notation.PREFIX and (arity > 2 or unbounded):
            return f"{self} notation takes 1 or 2 operands"
        return None

    @property
    def separates_operands(self) -> bool:
        """Whether no two operands ever stand side by side."""
        return self is not Notation.PREFIX
