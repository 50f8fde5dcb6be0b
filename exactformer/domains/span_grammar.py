"""The grammar of infix and prefix notation, in which every span has its parentheses.

The state of a span is how many operands were read, and which operator. (An operator that takes any
number of operands is counted up to its fewest.)
"""

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from exactformer.domains.grammar import CLOSED, DONE, START, Grammar
from exactformer.domains.symbols import CLOSE, OPEN

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra


@dataclass(frozen=True)
class OpenSpan:
    """State of a span while it is read. `wanted` operands are known in infix notation only."""

    operator: int | None  # its token id
    read: int
    wanted: int | None


class SpanGrammar(Grammar):
    """The automaton of infix and prefix notation, with the span that each state stands for."""

    def __init__(self, algebra: "Algebra") -> None:
        super().__init__(algebra)
        self.spans: list[OpenSpan | None] = [None, None, OpenSpan(None, 0, None)]
        self._add(DONE, {})
        self._add(CLOSED, {}, ends=True)
        numbers: dict[OpenSpan, int] = {OpenSpan(None, 0, None): START}

        def number(span: OpenSpan) -> int:
            if span not in numbers:
                numbers[span] = len(self.spans)
                self.spans.append(span)
            return numbers[span]

        for span in islice(self.spans, START, None):  # `number` appends the spans still to visit
            assert span is not None
            operand, operators, complete = self._steps(span)
            following = number(operand) if operand else CLOSED
            self._add(following, {t: number(next) for t, next in operators.items()}, complete)

    def _steps(self, span: OpenSpan) -> tuple[OpenSpan | None, dict[int, OpenSpan], bool]:
        """The span after one more operand, after each operator, and whether `)` may follow."""
        first = self.algebra.first_operator
        if span.operator is not None:
            operator = self.algebra.operators[span.operator - first]
            limit = span.wanted or operator.arities[-1]
            operand = (
                OpenSpan(span.operator, span.read + 1, span.wanted) if span.read < limit else None
            )
            if operator.unbounded and span.read == limit:
                operand = span  # from here on it takes any number: no need to count further
            complete = span.read == span.wanted if span.wanted else span.read in operator.arities
            return operand, {}, complete
        notation = self.algebra.notation
        wanted = notation.operands_wanted(span.read)
        operators = {
            token: OpenSpan(token, span.read, wanted)
            for token, op in enumerate(self.algebra.operators, start=first)
            if wanted is None or wanted in op.arities
        }
        arities = (arity for op in self.algebra.operators for arity in op.arities)
        most_before = max(map(notation.operands_before, arities))
        operand = OpenSpan(None, span.read + 1, None) if span.read < most_before else None
        return operand, operators, False

    def _reason(self, state: int, token: int | None) -> str | None:
        span = self.spans[state]
        if span is None:
            if token is not None and token >= self.algebra.first_operator:
                return self._parentheses_needed(token, operands_before=state == DONE)
            return "no parenthesis is open" if token == CLOSE and state != DONE else None
        if span.operator is None:
            if token == CLOSE:
                return "these parentheses hold no operator" if span.read else "empty parentheses"
            if token is None or not span.read:
                return None
            if token < self.algebra.first_operator:
                return "no operator between two operands"
            return f"{self.algebra.vocabulary[token]} comes before its operand"
        operator = self.algebra.operators[span.operator - self.algebra.first_operator]
        if token is not None and token >= self.algebra.first_operator:
            return "a second operator in the same parentheses"
        counts = str(span.wanted) if span.wanted else operator.counts
        takes = counts + (" operand" if counts == "1" else " operands")
        if token == CLOSE:
            return f"{operator.symbol} takes {takes}, not {span.read}"
        return None if token is None else f"{operator.symbol} takes {takes} here, not more"

    def _parentheses_needed(self, token: int, *, operands_before: bool) -> str:
        """Hint about an operator outside all parentheses: an example with that operator, and
        the algebra that takes text without them, if there is one.
        """
        from exactformer.domains.catalog import plain_counterpart  # these know of grammars
        from exactformer.domains.expression import Expression

        algebra = self.algebra
        arities = algebra.operators[token - algebra.first_operator].arities
        arity = arities[-1] if operands_before else arities[0]
        operands = [algebra.value_ids[i % len(algebra.values)] for i in range(arity)]
        span = [OPEN, *algebra.notation.arrange(token, operands), CLOSE]
        example = Expression(algebra, np.array(span, dtype=np.int16))
        hint = f"each operator needs its parentheses, as in {example}"
        if not algebra.notation.separates_operands:
            return hint
        name = plain_counterpart(algebra)
        without = f"the domain {name} reads" if name else 'an algebra of notation "plain" reads'
        return f"{hint}; {without} text without them"
