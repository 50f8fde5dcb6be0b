"""The notations of algebras: how a span is written, and all that follows from it.

A notation is an object that answers, so that nobody compares notations by name. A new one is a
class and a line in `NOTATIONS`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.climbing import Applied, Node, climb, flat
from exactformer.domains.grammar import Grammar
from exactformer.domains.plain_grammar import PlainGrammar
from exactformer.domains.plain_sampling import plain_tokens, write_plain
from exactformer.domains.polish import arities_by_token, fold
from exactformer.domains.polish_grammar import PolishGrammar, ReversePolishGrammar, polish_tokens
from exactformer.domains.precedence import Level, precedence_faults
from exactformer.domains.span_grammar import SpanGrammar
from exactformer.domains.span_sampling import parenthesized_tokens
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra
    from exactformer.domains.expression import Expression

T = TypeVar("T")
Ids = NDArray[np.int16]
Surplus = Callable[[int], NDArray[np.bool_]]


class Notation(str):
    """A notation; it is equal to its name in a file. This one is `( op a b ... )`, with parentheses
    around every span; another is a class with what it does otherwise.

    groups_by            what tells which operands belong to an operator.
    layer                name of the only layer that reads it; None: the way to iterate decides.
    full                 name of the notation of the same trees with parentheses around every span;
                         None if this is one.
    served_by            names of the notations with parentheses whose weights may serve this one.
    separates_operands   whether no two operands ever stand side by side.
    operators_first      whether an operator stands before its operands; asked where it has no
                         operand on each side.
    """

    groups_by: ClassVar[Literal["parentheses", "precedence", "arity"]] = "parentheses"
    layer: ClassVar[str | None] = None
    full: ClassVar[str | None] = None
    served_by: ClassVar[frozenset[str]] = frozenset()
    separates_operands: ClassVar[bool] = False
    operators_first: ClassVar[bool] = True

    def operands_before(self, arity: int) -> int:
        """Number of operands written before an operator of this arity."""
        return 0

    def operands_wanted(self, before: int) -> int | None:
        """Arity of an operator with `before` operands before it; None if any number may follow."""
        return None

    def arrange(self, operator: T, operands: Sequence[T]) -> list[T]:
        """An operator and its operands in the order of `tree`."""
        before = self.operands_before(len(operands))
        return [*operands[:before], operator, *operands[before:]]

    def arity_fault(self, arities: Sequence[int], unbounded: bool) -> str | None:
        """Why an operator cannot have these arities, and all larger ones too if that is
        `unbounded`; None if it can.
        """
        return None

    def gates(self, algebra: "Algebra") -> dict[str, NDArray[np.int64]]:
        """The gates that weights have for this notation alone, by name, with the numbers that an
        algebra declares.
        """
        return {}

    def precedence_faults(
        self, levels: Sequence[Level], arities: Mapping[str, Sequence[int]]
    ) -> Iterator[str]:
        """All that is wrong with the levels of operators of these arities."""
        if levels:
            yield f"{self} notation has no precedence"

    def grammar(self, algebra: "Algebra") -> Grammar:
        """The automaton of an algebra's well-formed texts."""
        return SpanGrammar(algebra)

    def every(self, algebra: "Algebra", length: int) -> Iterator[tuple[int, ...]]:
        """Every text of exactly this many tokens, in a fixed order."""
        return parenthesized_tokens(algebra, length)

    def tree(self, expression: "Expression") -> Ids:
        """The token ids of an expression with parentheses around every span, and no others."""
        return expression.ids

    def root(self, expression: "Expression") -> int:
        """Index in the text of the outermost operator; 0 for a bare value."""
        if len(expression) == 1:
            return 0
        operators = expression.ids >= expression.algebra.first_operator
        return int(np.argmax((expression.nesting == 1) & operators))

    def write(self, algebra: "Algebra", ids: Ids, surplus: Surplus) -> Ids:
        """The inverse of `tree`: token ids of the text for a tree. `surplus` is asked only where
        there may be parentheses without need: given the number of tokens, it says of each `(` and
        each value that needs no pair whether it has one.
        """
        return ids


class Infix(Notation):
    """`(a op b)` and `(op a)`."""

    separates_operands = True

    def operands_before(self, arity: int) -> int:
        return 1 if arity == 2 else 0

    def operands_wanted(self, before: int) -> int | None:
        return 1 + before

    def arity_fault(self, arities: Sequence[int], unbounded: bool) -> str | None:
        too_many = max(arities) > 2 or unbounded
        return f"{self} notation takes 1 or 2 operands" if too_many else None


class Plain(Infix):
    """`a op b op c` and `op a`, grouped by precedence; parentheses where one likes."""

    groups_by = "precedence"
    layer = "plain"
    full = "infix"
    served_by = frozenset({"infix"})

    def gates(self, algebra: "Algebra") -> dict[str, NDArray[np.int64]]:
        return {"G_L": algebra.declared_levels, "directions": algebra.declared_directions}

    def precedence_faults(
        self, levels: Sequence[Level], arities: Mapping[str, Sequence[int]]
    ) -> Iterator[str]:
        return precedence_faults(levels, arities)

    def grammar(self, algebra: "Algebra") -> Grammar:
        return PlainGrammar(algebra)

    def every(self, algebra: "Algebra", length: int) -> Iterator[tuple[int, ...]]:
        return plain_tokens(algebra, length)

    def tree(self, expression: "Expression") -> Ids:
        def span(operator: Applied, operands: list[Node]) -> Node:
            return (OPEN, *self.arrange(operator.token, operands), CLOSE)

        ids = expression.ids.tolist()
        tree: Node = climb(expression.algebra, ids, lambda token: token, span)
        return flat(tree)

    def root(self, expression: "Expression") -> int:
        ids = expression.ids.tolist()
        return climb(expression.algebra, ids, lambda _: 0, lambda applied, _: applied.place)

    def write(self, algebra: "Algebra", ids: Ids, surplus: Surplus) -> Ids:
        return write_plain(algebra, ids, surplus(len(ids)))


class Polish(Notation):
    """`op a b ...`, without parentheses: the arities of operators say what belongs together."""

    groups_by = "arity"
    layer = "polish"
    full = "prefix"
    served_by = frozenset({"prefix", "infix"})  # whose spans have the same operands in one order

    def arity_fault(self, arities: Sequence[int], unbounded: bool) -> str | None:
        if len(arities) == 1 and not unbounded:
            return None
        return f"{self} notation takes a fixed number of operands, for no bracket tells how many"

    def gates(self, algebra: "Algebra") -> dict[str, NDArray[np.int64]]:
        arities = np.array(arities_by_token(algebra))
        arities[:FIRST_VALUE] = 1  # parentheses, which no text has, count nothing
        return {"G_A": arities - 1, "side": np.array([1 if self.operators_first else -1])}

    def grammar(self, algebra: "Algebra") -> Grammar:
        return PolishGrammar(algebra)

    def every(self, algebra: "Algebra", length: int) -> Iterator[tuple[int, ...]]:
        return polish_tokens(algebra, length)

    def tree(self, expression: "Expression") -> Ids:
        ids = expression.ids.tolist()

        def span(place: int, operands: list[Node]) -> Node:
            return (OPEN, *self.arrange(ids[place], operands), CLOSE)

        tree: Node = fold(expression.algebra, ids, lambda place: ids[place], span)
        return flat(tree)

    def root(self, expression: "Expression") -> int:
        return 0

    def write(self, algebra: "Algebra", ids: Ids, surplus: Surplus) -> Ids:
        return ids[ids >= FIRST_VALUE]


class ReversePolish(Polish):
    """`a b ... op`, without parentheses. In a tree, operators stand before their operands, as in
    Polish notation, for weights serve both.
    """

    operators_first = False

    def grammar(self, algebra: "Algebra") -> Grammar:
        return ReversePolishGrammar(algebra)

    def root(self, expression: "Expression") -> int:
        return len(expression) - 1

    def write(self, algebra: "Algebra", ids: Ids, surplus: Surplus) -> Ids:
        written: list[int] = []
        enclosing: list[int] = []  # operators of the spans that are still open
        for token in ids.tolist():
            if token >= algebra.first_operator:
                enclosing.append(token)
            elif token == CLOSE:
                written.append(enclosing.pop())
            elif token != OPEN:
                written.append(token)
        return np.array(written, dtype=np.int16)


NOTATIONS: dict[str, Notation] = {
    "infix": Infix("infix"),
    "prefix": Notation("prefix"),
    "plain": Plain("plain"),
    "polish": Polish("polish"),
    "reverse-polish": ReversePolish("reverse-polish"),
}
