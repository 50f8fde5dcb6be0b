"""The automaton of an algebra's spans: all that the fast engine knows.

What was read of an open span decides all that can follow: it is the state of the span. A text is
then worth one pass from left to right, with a stack of the states of the spans that are still open:

    `(`    keep the state, and begin with START
    `)`    take the span's value to the state kept last, as an operand
    else   step on

No torch and no numba in here: they take longer to import than a short expression takes to evaluate.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN

TOP = 0  # the state before any token; after a whole expression of value v, it is 1 + v
REFUSED = -1  # no state, or no value: the token may not stand here
TOO_WIDE = "a span has more operands than the fast engine has tables for: use --engine model"

Keys = NDArray[np.int64]  # (keys, operands): operands as indices of values
# The values of spans of one operator (its token id) on each row of operands.
SpanValues = Callable[[int, Keys], NDArray[np.int32]]


@dataclass(frozen=True)
class SpanAutomaton:
    """Transitions by state and token id, and the value of each state that may end a span."""

    step: NDArray[np.int32]  # (states, tokens); REFUSED where the token may not stand
    value: NDArray[np.int32]  # (states,): index of the value if `)` may follow, else REFUSED
    grammar: NDArray[np.int32]  # (states,): the state of the grammar, to explain a refusal
    n_values: int
    is_group = False  # whether a text is a group without parentheses of its own
    reads_text = True  # whether the parentheses of its spans are in a text

    @cached_property
    def spans(self) -> "SpanAutomaton":
        """The automaton of texts that are one value or one span."""
        return self

    @property
    def start(self) -> int:
        """The state after `(`."""
        return 1 + self.n_values

    @property
    def final(self) -> NDArray[np.int32]:
        """(states,): index of the value if the text may end, else REFUSED."""
        final = np.full(len(self.value), REFUSED, dtype=np.int32)
        final[1 : self.start] = np.arange(self.n_values)
        return final

    def total(self, bad: int, width: int) -> NDArray[np.integer]:
        """(states + 1, width): the next state, of which there is always one. Tokens that may not
        stand lead to the last one, and nothing leads out of it. With `)` for the token, what the
        span becomes: the token of its value, or `bad`.
        """
        states, tokens = self.step.shape
        table = np.full((states + 1, width), states)
        table[:states, :tokens] = np.where(self.step < 0, states, self.step)
        table[:, CLOSE] = bad
        table[:states, CLOSE] = np.where(self.value < 0, bad, FIRST_VALUE + self.value)
        return table

    def run(self, ids: Iterable[int]) -> int | None:
        """The index of the value of token ids, by the definition above; None if they are no
        expression. For a short one: the compiled pass takes longer to load than this to run.
        """
        step, values, final = self.step.tolist(), self.value.tolist(), self.final.tolist()
        enclosing: list[int] = []
        state = TOP
        for token in ids:
            if token == OPEN:
                if step[state][FIRST_VALUE] == REFUSED:  # a span stands where a value may
                    return None
                enclosing.append(state)
                state = self.start
                continue
            if token == CLOSE:
                if values[state] == REFUSED or not enclosing:
                    return None
                token = FIRST_VALUE + values[state]
                state = enclosing.pop()
            state = step[state][token]
            if state == REFUSED:
                return None
        return None if enclosing or final[state] == REFUSED else final[state]


@dataclass(frozen=True)
class PlainAutomaton(SpanAutomaton):
    """The automaton of plain notation. A text is a group without parentheses of its own, which may
    go on after a whole expression.
    """

    whole: NDArray[np.int32]  # (states,): index of the value if the text may end, else REFUSED
    is_group = True

    @cached_property
    def spans(self) -> SpanAutomaton:
        """The automaton of the same texts in parentheses, with no two states that nothing that may
        follow tells apart.
        """
        step = np.vstack([self.step, np.full_like(self.step[:1], REFUSED)])  # row -1 is REFUSED
        classes, found = np.append(self.value, REFUSED), 0
        while found != (found := len(np.unique(classes))):
            rows = np.column_stack([classes, classes[step]])
            classes = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
        of_class = np.unique(classes, return_index=True)[1]
        after = classes[step[of_class]]
        numbers = {int(classes[self.start]): self.start}
        for number in (reached := [*numbers]):  # grows while it is gone through
            for other in after[number].tolist():
                if other != classes[-1] and other not in numbers:
                    numbers[other] = self.start + len(reached)
                    reached.append(other)
        outside = np.full((self.start, step.shape[1]), REFUSED)
        outside[TOP, FIRST_VALUE : FIRST_VALUE + self.n_values] = np.arange(1, self.start)
        number_of = np.array([numbers.get(i, REFUSED) for i in range(len(after))])
        value = np.append(np.full(self.start, REFUSED), self.value[of_class[reached]])
        step = np.vstack([outside, number_of[after[reached]]])
        return SpanAutomaton(step, value, np.zeros_like(value), self.n_values)

    @property
    def final(self) -> NDArray[np.int32]:
        return self.whole
