"""Learns the arithmetic of integers by futures: a state is what the value will be.

Columns are read from the lowest place on. After two beginnings of a span the learner takes an
operation to be in one state if they agree, whatever up to b more columns follow, on what of the
value stands above them. Which spans there are depends on the beginning (no numeral is empty, or
begins with 0), so beginnings agree if they do wherever both can go on, and there is some such way.
A state gathers what its beginnings have been answered, and a beginning that can go on as none of
them could is extended, too.

Digits are written as they are read, if none depends on what follows; what is left of the value is
written behind the last column. Where one does depend on it, as in comparisons, nothing is written
before that. With b = 1, 2, ... this ends when fresh spans come out right: neither carries nor the
certificate are asked for.
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from exactformer.training.integer_recipes import IntegerFutures
from exactformer.training.integer_texts import Learned, Operation, Oracle, operations
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


class DependsOnWhatFollows(Exception):
    """A digit that was to be written as it is read."""


def hypothesis(oracle: Oracle, operation: Operation, most_states: int, b: int) -> Hypothesis:
    """The machine whose states differ within b columns."""
    search = _Search(oracle, operation, most_states, b, as_read=True)
    try:
        return Hypothesis(search.run(), b, search.asked)
    except DependsOnWhatFollows:
        again = _Search(oracle, operation, most_states, b, as_read=False)
        return Hypothesis(again.run(), b, search.asked + again.asked)


@dataclass
class _State:
    """A state, and the answers to the beginnings that lead to it.

    left       what was left of the value with each continuation; NONE where there is no such span.
    digit      what is written at each letter; UNKNOWN if no span has told it, or has none.
    following  the number of the next state, by letter; NONE if no beginning can go on so.
    """

    left: NDArray
    digit: NDArray
    following: NDArray

    def agrees(self, left: NDArray) -> bool:
        both = (left != NONE) & (self.left != NONE)
        return bool(both.any() and (self.left[both] == left[both]).all())


@dataclass
class _Search:
    """as_read   whether digits are written as they are read."""

    oracle: Oracle
    operation: Operation
    most_states: int
    b: int
    as_read: bool
    asked: int = 0

    def run(self) -> Learned:
        letters = self.oracle.letters(self.operation)
        n = len(letters)
        self.continuations = [
            letters[np.array([*product(range(n), repeat=j)], dtype=int)].reshape(n**j, j, 2)
            for j in range(self.b + 1)
        ]
        nothing = np.zeros((0, 2), dtype=int)
        self.states = [_State(self._futures(nothing)[0], np.full(n, UNKNOWN), np.full(n, NONE))]
        beginnings = [(nothing, self.states[0])]
        for beginning, state in beginnings:  # it grows
            for i, letter in enumerate(letters):
                extended = np.concatenate([beginning, letter[None]])
                left, digit = self._futures(extended)
                known = left != NONE
                if not known.any() or (number := self._number(left, n)) == NONE:
                    continue
                if state.following[i] == NONE:
                    state.following[i] = number
                if state.digit[i] == UNKNOWN:
                    state.digit[i] = digit
                reached = self.states[number]
                if (new := known & (reached.left == NONE)).any():
                    reached.left[new] = left[new]
                    beginnings.append((extended, reached))
        return self._learned(letters)

    def _number(self, left: NDArray, letters: int) -> int:
        """The first state that agrees, or else a new one; NONE if there are too many already."""
        for number, state in enumerate(self.states):
            if state.agrees(left):
                return number
        if len(self.states) == self.most_states:
            return NONE
        state = _State(np.full_like(left, NONE), np.full(letters, UNKNOWN), np.full(letters, NONE))
        self.states.append(state)
        return len(self.states) - 1

    def _learned(self, letters: NDArray) -> Learned:
        end = np.array([state.left[0] for state in self.states])  # nothing follows
        if self.as_read:
            end[end == 0] = NONE
        end[end >= self.oracle.domain.base] = NONE  # no single digit
        digit = np.array([state.digit for state in self.states])
        following = np.array([state.following for state in self.states])
        return Learned(letters, np.where(digit == UNKNOWN, NONE, digit), following, end)

    def _futures(self, beginning: NDArray) -> tuple[NDArray, int]:
        """The rest of the value with each continuation, the shorter ones first, and the digit that
        is written at the last column.
        """
        spans = (
            np.concatenate([np.tile(beginning, (len(part), 1, 1)), part], 1)
            for part in self.continuations
        )
        values = np.concatenate([self.oracle.ask(self.operation, some) for some in spans])
        self.asked += len(values)
        if not self.as_read:
            return values, NONE
        numbers = values[values >= 0]
        if not len(numbers) or not len(beginning):
            return values, UNKNOWN
        scale = self.oracle.domain.base ** len(beginning)
        below = numbers % scale
        if (below != below[0]).any():
            raise DependsOnWhatFollows
        digit = int(below[0]) * self.oracle.domain.base // scale
        return np.where(values >= 0, values // scale, values), digit
