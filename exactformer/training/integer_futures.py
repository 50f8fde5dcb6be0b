"""Learns the arithmetic of integers by futures: a state is what the value will be, whatever follows.

Columns are read from the lowest place on. After two beginnings of a span that agree, whatever up to
b more columns follow, on what of the value stands above them, the learner takes an operation to be
in one state. Which spans there are depends on the beginning (none is shorter than a numeral, or
begins with 0), so beginnings agree if they do where both can go on in one way at least: a state gathers what its
beginnings have been answered, and a beginning that can go on as none before it is extended, too.

Digits are written as they are read if none that is below depends on what follows; what is left of
the value is written behind the last column. Where one does depend on it, as in comparisons, nothing
is written before that. With b = 1, 2, ... this ends when fresh spans come out right.
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from exactformer.training.integer_recipes import IntegerFutures
from exactformer.training.integer_texts import ASKED, Learned, Operation, Oracle, operations
from exactformer.training.machine_texts import NONE
from exactformer.training.state import CHECKS, generator

UNKNOWN = -3  # in place of a digit: no span has told it


@dataclass(frozen=True)
class Hypothesis:
    """A machine found with continuations of up to so many columns, by asking for so many spans."""

    learned: Learned
    continuations: int
    asked: int


@dataclass
class Discoverer:
    """Finds the machine of each operation. What is asked for does not depend on the seed: so it is
    asked for once for all seeds, each of which then draws fresh spans.
    """

    oracle: Oracle
    recipe: IntegerFutures
    found: dict[Operation, list[Hypothesis]] = field(default_factory=dict)

    def find(self, seed: int) -> tuple[dict[Operation, Hypothesis], int]:
        """For each operation the first hypothesis under which all fresh spans of a seed come out
        right, or the last one that there is; and how many do, of all operations together.
        """
        chosen, right_in_all = {}, 0
        for number, operation in enumerate(operations(self.oracle.domain)):
            held, right = self.found.setdefault(operation, []), 0
            for b in range(1, self.recipe.continuations + 1):
                if len(held) < b:
                    if held and not self._affordable(held[-1], b):
                        break
                    held.append(hypothesis(self.oracle, operation, self.recipe.states, b))
                chosen[operation] = held[b - 1]
                rng = generator(seed, 1, CHECKS, number * self.recipe.continuations + b)
                spans = self.oracle.draw(operation, self.recipe.checks, rng)
                right = self._right(operation, held[b - 1].learned, spans)
                if right == self.recipe.checks:
                    break
            right_in_all += right
        return chosen, right_in_all

    def _right(self, operation: Operation, learned: Learned, spans: NDArray) -> int:
        lengths = (spans != NONE).any(2).sum(1)
        right = 0
        for length in np.unique(lengths).tolist():
            some = spans[lengths == length, :length]
            found = learned.values(some, self.oracle.domain.base)
            right += int((found == self.oracle.ask(operation, some)).sum())
        return right

    def _affordable(self, last: Hypothesis, b: int) -> bool:
        """Whether continuations of b columns are few enough, if there are no more states then."""
        letters = len(last.learned.letters)
        return last.learned.states * letters ** (b + 1) <= self.recipe.most_asked


def hypothesis(oracle: Oracle, operation: Operation, most_states: int, b: int) -> Hypothesis:
    """The machine whose states differ within b columns."""
    search = _Search(oracle, operation, most_states, b, as_read=True)
    learned = search.run()
    if learned is None:  # a digit depends on what follows
        search = _Search(oracle, operation, most_states, b, as_read=False, asked=search.asked)
        learned = search.run()
    assert learned is not None
    return Hypothesis(learned, b, search.asked)


@dataclass
class _Search:
    """as_read   whether digits are written as they are read."""

    oracle: Oracle
    operation: Operation
    most_states: int
    b: int
    as_read: bool
    asked: int = 0

    def run(self) -> Learned | None:
        """The machine; None if a digit that is written depends on what follows."""
        letters = self.oracle.letters(self.operation)
        n = len(letters)
        self.continuations = [
            letters[np.array([*product(range(n), repeat=j)], dtype=int)].reshape(n**j, j, 2)
            for j in range(self.b + 1)
        ]
        first = self._futures(np.zeros((0, 2), dtype=int))
        if first is None:
            return None
        futures = [first[0]]
        digit, following = [np.full(n, UNKNOWN)], [np.full(n, NONE)]
        beginnings = [(np.zeros((0, 2), dtype=int), 0)]
        for beginning, state in beginnings:  # it grows
            for i, letter in enumerate(letters):
                extended = np.concatenate([beginning, letter[None]])
                if (answered := self._futures(extended)) is None:
                    return None
                found, last = answered
                known = found != NONE
                if not known.any():
                    continue
                for reached, held in enumerate(futures):
                    both = known & (held != NONE)
                    if both.any() and (held[both] == found[both]).all():
                        break
                else:
                    if len(futures) == self.most_states:
                        continue
                    reached = len(futures)
                    futures.append(np.full_like(found, NONE))
                    digit.append(np.full(n, UNKNOWN))
                    following.append(np.full(n, NONE))
                if following[state][i] == NONE:
                    following[state][i] = reached
                if digit[state][i] == UNKNOWN:
                    digit[state][i] = last
                if (new := known & (futures[reached] == NONE)).any():
                    futures[reached][new] = found[new]
                    beginnings.append((extended, reached))
        ends = np.array([found[0] for found in futures])  # with nothing that follows
        if self.as_read:
            ends[ends == 0] = NONE
        ends[ends >= self.oracle.domain.base] = NONE  # no single digit
        written = np.where(np.array(digit) == UNKNOWN, NONE, digit)
        return Learned(letters, written, np.array(following), ends)

    def _futures(self, beginning: NDArray) -> tuple[NDArray, int] | None:
        """What is left of the value with each continuation, the shorter ones first, and the digit
        that is written at the last column; None if digits should be written as they are read, and
        one depends on the continuation.
        """
        values = np.concatenate(
            [
                self.oracle.ask(
                    self.operation,
                    np.concatenate([np.tile(beginning, (len(part), 1, 1)), part], 1),
                )
                for part in self.continuations
            ]
        )
        self.asked += len(values)
        if not self.as_read:
            return values, NONE
        scale = self.oracle.domain.base ** len(beginning)
        numbers = values[values >= 0]
        if not len(numbers):
            return values, UNKNOWN
        below = numbers % scale
        if (below != below[0]).any():
            return None
        digit = int(below[0]) * self.oracle.domain.base // scale if len(beginning) else UNKNOWN
        return np.where(values >= 0, values // scale, values), digit
