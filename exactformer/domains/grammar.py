"""Which token may stand where: the automaton of an algebra's expressions, whatever its notation.

It has one state for each open span, and a state decides which tokens may come next. An error is
therefore found at the first token that no well-formed expression could have there.
"""

from collections.abc import Sequence

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.plain import listed

UNKNOWN = -2  # the id of text that spells no token
TOP, DONE, START = 0, 1, 2  # states: before any token, after the whole expression, after `(`
CLOSED = -1  # no state: the token is not allowed here
SHOWN_VALUES = 12  # of an algebra, in a message


class Grammar:
    """The tables of the automaton, by state, and what is expected where a token cannot stand.

    after_operand    the state after one more value or span; CLOSED where none may come
    after_operator   the state after each operator that may come, by its token id
    complete         whether `)` may come
    ends             whether the text may end
    """

    def __init__(self, algebra: Algebra) -> None:
        self.algebra = algebra
        self.after_operand: list[int] = []
        self.after_operator: list[dict[int, int]] = []
        self.complete: list[bool] = []
        self.ends: list[bool] = []

    def _add(
        self, operand: int, operators: dict[int, int], complete: bool = False, ends: bool = False
    ) -> None:
        """The next state."""
        self.after_operand.append(operand)
        self.after_operator.append(operators)
        self.complete.append(complete)
        self.ends.append(ends)

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
        if not self.ends[state]:
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
        expected: list[str] = []
        if self.after_operand[state] != CLOSED:
            values = self.algebra.values
            few = values if len(values) <= SHOWN_VALUES else (*values[:3], "...", values[-1])
            expected += [f"a value ({' '.join(few)})", "'('"]
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

    def _operators(self, state: int) -> str:
        """What the operators that may come in a state are called."""
        return "an operator"

    def _reason(self, state: int, token: int | None) -> str | None:
        """What is wrong in the user's terms, where the expectation alone does not show it."""
        raise NotImplementedError
