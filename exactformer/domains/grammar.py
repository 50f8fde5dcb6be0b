"""The grammar of an algebra's expressions: where each token may stand, and what is wrong if not.

It is a small automaton with one state for each open span: how many operands were read, and which
operator. (An operator that takes any number of operands is counted up to its fewest.) An error is
therefore found at the first token that no well-formed expression could have there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.plain import listed

UNKNOWN = -2  # the id of text that spells no token
TOP, DONE, START = 0, 1, 2  # states: before any token, after the whole expression, after `(`
CLOSED = -1  # no state: the token is not allowed here


@dataclass(frozen=True)
class Span:
    """What was read of one span: an automaton state. `wanted` operands are known in infix only."""

    operator: int | None  # its token id
    read: int
    wanted: int | None


class Grammar:
    """The automaton of an algebra: where each token may stand, and what is expected instead."""

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.spans: list[Span | None] = [None, None, Span(None, 0, None)]
        self.after_operand: list[int] = [DONE, CLOSED]
        self.after_operator: list[dict[int, int]] = [{}, {}]  # operator's token id to next state
        self.complete: list[bool] = [False, False]
        numbers: dict[Span, int] = {Span(None, 0, None): START}

        def number(span: Span) -> int:
            if span not in numbers:
                numbers[span] = len(self.spans)
                self.spans.append(span)
            return numbers[span]

        state = START
        while state < len(self.spans):  # `number` adds the states that are still to visit
            span = self.spans[state]
            assert span is not None
            operand, operators, complete = self._steps(span)
            self.after_operand.append(number(operand) if operand else CLOSED)
            self.after_operator.append({token: number(next) for token, next in operators.items()})
            self.complete.append(complete)
            state += 1

    def _steps(self, span: Span) -> tuple[Span | None, dict[int, Span], bool]:
        """The span after one more operand, after each operator, and whether `)` may follow."""
        first = self.algebra.first_operator
        if span.operator is not None:
            operator = self.algebra.operators[span.operator - first]
            limit = span.wanted or operator.arities[-1]
            operand = Span(span.operator, span.read + 1, span.wanted) if span.read < limit else None
            if operator.unbounded and span.read == limit:
                operand = span  # from here on it takes any number: no need to count further
            complete = span.read == span.wanted if span.wanted else span.read in operator.arities
            return operand, {}, complete
        notation = self.algebra.notation
        wanted = notation.operands_wanted(span.read)
        operators = {
            token: Span(token, span.read, wanted)
            for token, op in enumerate(self.algebra.operators, start=first)
            if wanted is None or wanted in op.arities
        }
        arities = (arity for op in self.algebra.operators for arity in op.arities)
        most_before = max(map(notation.operands_before, arities))
        operand = Span(None, span.read + 1, None) if span.read < most_before else None
        return operand, operators, False

    def first_error(
        self, ids: list[int], state: int = TOP, enclosing: Sequence[int] = (), outside: int = 0
    ) -> tuple[int, str] | None:
        """Index of the first token that cannot stand where it does, and the problem with it.

        To go on within a text: the state there, those of the spans around it (at least the last
        `len(ids)`), and the number of spans around those.
        """
        first_operator = self.algebra.first_operator
        after_operand, after_operator = self.after_operand, self.after_operator
        enclosing, following = list(enclosing), CLOSED
        for place, token in enumerate(ids):
            if token == OPEN:
                following = START if after_operand[state] != CLOSED else CLOSED
                if following != CLOSED:
                    enclosing.append(state)
            elif token == CLOSE:
                following = after_operand[enclosing.pop()] if self.complete[state] else CLOSED
            elif token >= first_operator:
                following = after_operator[state].get(token, CLOSED)
            elif token >= 0:
                following = after_operand[state]
            else:
                following = CLOSED
            if following == CLOSED:
                return place, self._problem(state, token)
            state = following
        if state != DONE:
            unclosed = outside + len(enclosing)
            parentheses = "parenthesis" if unclosed == 1 else "parentheses"
            note = f" ({unclosed} {parentheses} unclosed)" if unclosed else ""
            return len(ids), self._problem(state, None) + note
        return None

    def first_mixed_brackets(self, words: list[str]) -> tuple[int, str] | None:
        """A span opened with `[` that does not end with `]`, or the reverse."""
        if "[" not in words:
            return None if "]" not in words else (words.index("]"), "expected ')', {found}")
        open_spans: list[str] = []
        for place, word in enumerate(words):
            if word in "([":
                open_spans.append(")" if word == "(" else "]")
            elif word in ")]" and word != (expected := open_spans.pop()):
                return place, f"expected {expected!r}, {{found}}"
        return None

    def _problem(self, state: int, token: int | None) -> str:
        """What was expected in a state, as a sentence in which `{found}` is to be filled in."""
        if state == DONE:
            return "expected the end of the text after a whole expression, {found}"
        span = self.spans[state]
        expected: list[str] = []
        if self.after_operand[state] != CLOSED:
            values = self.algebra.values
            shown = " ".join(values if len(values) <= 12 else (*values[:3], "...", values[-1]))
            expected.append(f"a value ({shown})")
            expected.append("'('")
        if self.after_operator[state]:
            symbols = [self.algebra.vocabulary[t] for t in self.after_operator[state]]
            expected.append(f"an operator ({' '.join(symbols)})")
        if self.complete[state]:
            expected.append("')'")
        reason = self._reason(span, token) if token != UNKNOWN else None
        return f"expected {listed(expected)}, {{found}}" + (f": {reason}" if reason else "")

    def _reason(self, span: Span | None, token: int | None) -> str | None:
        """What is wrong in the user's terms, where the expectation alone does not show it."""
        if span is None:
            return "no parenthesis is open" if token == CLOSE else None
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


grammar_of = lru_cache(maxsize=64)(Grammar)
