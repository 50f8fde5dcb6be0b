"""The automaton of an algebra's expressions: which tokens may follow in each state.

It has one state for each open span, and a state decides which tokens may come next. An error is
therefore found at the first token that no well-formed expression could have there.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from exactformer.domains.data import listed
from exactformer.domains.symbols import CLOSE, OPEN

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra

UNKNOWN = -2  # the id of text that spells no token
TOP, DONE, START = 0, 1, 2  # states: before any token, after the whole expression, after `(`
CLOSED = -1  # in place of a state: the token is not allowed here
SHOWN_VALUES = 12  # values of an algebra that a message shows


class Grammar:
    """The tables of the automaton by state, and the messages about tokens that are not allowed.

    after_operand    the state after one more value or span; CLOSED where none may come
    after_operator   the state after each operator that may come, by its token id
    complete         whether `)` may come
    ends             whether the text may end
    """

    def __init__(self, algebra: "Algebra") -> None:
        self.algebra = algebra
        self.after_operand: list[int] = []
        self.after_operator: list[dict[int, int]] = []
        self.complete: list[bool] = []
        self.ends: list[bool] = []

    def _add(
        self, operand: int, operators: dict[int, int], complete: bool = False, ends: bool = False
    ) -> None:
        """Append the tables of the next state."""
        self.after_operand.append(operand)
        self.after_operator.append(operators)
        self.complete.append(complete)
        self.ends.append(ends)

    def first_error(
        self, ids: list[int], state: int = TOP, enclosing: Sequence[int] = (), outside: int = 0
    ) -> tuple[int, str] | None:
        """Index of the first token that is not allowed, with the problem; None if there is none.

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
        if not self.ends[state]:
            unclosed = outside + len(enclosing)
            parentheses = "parenthesis" if unclosed == 1 else "parentheses"
            note = f" ({unclosed} {parentheses} unclosed)" if unclosed else ""
            return len(ids), self._problem(state, None) + note
        return None

    def first_mixed_brackets(self, words: list[str]) -> tuple[int, str] | None:
        """Index and problem of the first span with brackets of two kinds; None if there is none."""
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
        """The message of a token that is not allowed in a state, with `{found}` to be filled in."""
        expected: list[str] = []
        if self.after_operand[state] != CLOSED:
            expected += [self._value(), "'('"]
        if self.after_operator[state]:
            symbols = [self.algebra.vocabulary[t] for t in self.after_operator[state]]
            expected.append(f"{self._operators(state)} ({' '.join(symbols)})")
        if self.complete[state]:
            expected.append("')'")
        if self.ends[state]:
            whole = "the end of the text"
            expected.append(whole if expected else f"{whole} after a whole expression")
        reason = self._reason(state, token) if token != UNKNOWN else None
        return f"expected {listed(expected)}, {{found}}" + (f": {reason}" if reason else "")

    def _value(self) -> str:
        """The words in a message for a value."""
        values = self.algebra.values
        few = values if len(values) <= SHOWN_VALUES else (*values[:3], "...", values[-1])
        return f"a value ({' '.join(few)})"

    def _operators(self, state: int) -> str:
        """The words in a message for the operators that may follow in a state."""
        return "an operator"

    def _reason(self, state: int, token: int | None) -> str | None:
        """Why a token is wrong, in the user's terms; None if the expected tokens say it all."""
        raise NotImplementedError
