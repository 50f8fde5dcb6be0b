"""The grammar of Polish and reverse Polish notation: a count takes the place of parentheses.

Give a value -1 and an operator of a operands a - 1. A text in Polish notation is well formed if and
only if these numbers add up to -1 over the whole text and to 0 or more over each shorter beginning
of it: the sum is how many operands are missing, less one. In reverse Polish notation, the numbers
add up so from the right. No bracket tells how many operands an operator has, so each has one arity.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from exactformer.domains.data import listed
from exactformer.domains.grammar import TOP, UNKNOWN, Grammar
from exactformer.domains.polish import arities_by_token
from exactformer.domains.symbols import CLOSE

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra

END = "the end of the text"


def polish_tokens(algebra: "Algebra", length: int) -> Iterator[tuple[int, ...]]:
    """Every expression of exactly this many tokens, as token ids. Those in reverse Polish notation
    are the others, read backwards.
    """
    arities = arities_by_token(algebra)

    def further(tokens: tuple[int, ...], missing: int) -> Iterator[tuple[int, ...]]:
        left = length - len(tokens)
        if missing > left or (not missing and left):
            return
        if not left:
            yield tokens if algebra.notation.operators_first else tokens[::-1]
            return
        for token in (*algebra.value_ids, *algebra.operator_ids):
            yield from further((*tokens, token), missing - 1 + arities[token])

    return further((), 1)


class CountedGrammar(Grammar):
    """The grammar of a notation with a count for its state, and without parentheses."""

    def __init__(self, algebra: "Algebra") -> None:
        super().__init__(algebra)
        self.arities = arities_by_token(algebra)

    def _expected(self, tokens: Sequence[str], token: int | None, reason: str | None) -> str:
        """The message of a token that is not allowed, with `{found}` to be filled in."""
        if token is not None and UNKNOWN < token <= CLOSE:
            reason = f"{self.algebra.notation} notation has no parentheses"
        known = reason is not None and token != UNKNOWN
        return f"expected {listed(tokens)}, {{found}}" + (f": {reason}" if known else "")

    def _symbols(self, most: int | None = None) -> str:
        """The operators, or those of up to `most` operands, in words; none if there are none."""
        fitting = [op for op in self.algebra.operators if most is None or op.arities[0] <= most]
        return f"an operator ({' '.join(op.symbol for op in fitting)})" if fitting else ""

    def _operands(self, token: int) -> str:
        arity = self.arities[token]
        return f"{self.algebra.vocabulary[token]} takes {counted(arity)}"


class PolishGrammar(CountedGrammar):
    """The count of Polish notation. Each beginning of a text can go on until no operand is missing,
    and cannot from there on.
    """

    def first_error(
        self, ids: list[int], state: int = TOP, enclosing: Sequence[int] = (), outside: int = 0
    ) -> tuple[int, str] | None:
        arities, missing = self.arities, 1
        operand = [self._value(), self._symbols()]
        for place, token in enumerate(ids):
            if not missing:
                reason = "the expression before it is complete"
                return place, self._expected([f"{END} after a whole expression"], token, reason)
            if token <= CLOSE:
                return place, self._expected(operand, token, None)
            missing += arities[token] - 1
        if not missing:
            return None
        return len(ids), self._expected(operand, None, self._missing(ids, missing))

    def _missing(self, ids: list[int], missing: int) -> str | None:
        """The reason why a text may not end: its last unfinished operator, and how many operands it
        and others in front of it have yet to get.
        """
        read: list[list[int]] = []  # unfinished operators, each with the operands that it has
        for token in ids:
            read.append([token, 0])
            while read and read[-1][1] == self.arities[read[-1][0]]:
                read.pop()
                if read:
                    read[-1][1] += 1
        if not read:
            return None
        operator, has = read[-1]
        own = self.arities[operator] - has
        others = f"; {counted(missing)} are missing in all" if missing > own else ""
        return f"{self._operands(operator)}, {has or 'none'} found{others}"


class ReversePolishGrammar(CountedGrammar):
    """The count of reverse Polish notation: how many operands wait for an operator behind them.
    More may always come, unless all operators take a single one.
    """

    def first_error(
        self, ids: list[int], state: int = TOP, enclosing: Sequence[int] = (), outside: int = 0
    ) -> tuple[int, str] | None:
        arities, waiting, joins = self.arities, 0, max(self.arities) > 1
        for place, token in enumerate(ids):
            reason = None
            if token > CLOSE and arities[token] > waiting:
                reason = f"{self._operands(token)}, {waiting or 'none'} found before it"
            elif token > CLOSE and not arities[token] and waiting and not joins:
                reason = "no operator takes two operands"
            elif token > CLOSE:
                waiting += 1 - arities[token]
                continue
            return place, self._expected(self._following(waiting, joins=joins), token, reason)
        if waiting == 1:
            return None
        reason = f"{counted(waiting)} without an operator that takes them" if waiting else None
        expected = [part for part in self._following(waiting, joins=joins) if part != END]
        return len(ids), self._expected(expected, None, reason)

    def _following(self, waiting: int, *, joins: bool) -> list[str]:
        """The tokens that may follow where so many operands wait, in words."""
        value = self._value() if joins or not waiting else ""
        operators = self._symbols(waiting)
        return [*filter(None, [value, operators, END if waiting == 1 else ""])]


def counted(operands: int) -> str:
    return f"{operands} operand{'' if operands == 1 else 's'}"
