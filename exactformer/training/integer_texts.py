"""Short spans of integers with their values: all that a learner of integers is given.

A span is asked for as its columns, from the lowest place on: at each place a digit of the left
operand and one of the right, NONE beyond the end of either. An operand may be `?`, as that of
`((0-1)+5)` is. Of a product one step is asked for: accumulator * base + left operand * digit, so
its columns have the left operand and the accumulator, one place up, which may begin with zeros.

Python's arithmetic is behind `Oracle`, which answers spans and draws them; `Learned` is what a
learner has made of the values of one operator.
"""

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.integers import OPERATORS, Integers
from exactformer.training.machine_texts import NONE

ASKED = -2  # in place of a digit or of a value: `?`
MOST_LONG = 9  # digits of an operand that is asked for: values are machine integers
NO_NUMBERS = 0.1  # share of drawn operands that are `?`
FIRST_STEPS = 0.5  # share of drawn steps of products that have no accumulator yet


class Operation(NamedTuple):
    """An operator, and the digit of the right operand that a product takes, or ASKED."""

    symbol: str
    taken: int = NONE


def operations(domain: Integers) -> list[Operation]:
    found = []
    for symbol in OPERATORS:
        taken = (*range(domain.base), ASKED) if symbol == "*" else (NONE,)
        found += [Operation(symbol, digit) for digit in taken]
    return found


class Oracle:
    """Answers spans, and draws them."""

    def __init__(self, domain: Integers, longest: int = 1, alike: float = 0.0) -> None:
        """`draw` draws operands of up to `longest` digits, with two equal digits at this share of
        the places.
        """
        self.domain, self.longest, self.alike = domain, longest, alike

    def letters(self, operation: Operation) -> NDArray:
        """Every column, (letters, 2); digits first, so that these lead to states first."""
        base, of_product = range(self.domain.base), operation.symbol == "*"
        second = (*base, NONE) if of_product else (*base, NONE, ASKED)
        if operation.taken == ASKED:
            second = (NONE,)
        found = product((*base, NONE, ASKED), second)
        return np.array([column for column in found if column != (NONE, NONE)])

    def ask(self, operation: Operation, columns: NDArray) -> NDArray:
        """The value of each of some spans of as many columns, (spans, places, 2): a number, or
        ASKED; NONE where there is no such span.
        """
        n, places, _ = columns.shape
        if not places:
            return np.full(n, NONE)
        fine, a, asked = self._numerals(columns[..., 0])
        fine &= (columns != NONE).any(2).all(1)
        if operation.symbol == "*":
            kept, place = columns[..., 1] != NONE, np.arange(places)
            digits = kept.sum(1)
            asked |= operation.taken == ASKED
            fine &= (kept == ((place > 0) & (place <= digits[:, None]))).all(1)
            fine &= ~asked | (digits == 0)
            value = self._number(columns[..., 1]) + a * max(0, operation.taken)
        else:
            right, b, asked_too = self._numerals(columns[..., 1])
            fine, asked = fine & right, asked | asked_too
            values = {"+": a + b, "-": np.where(a < b, ASKED, a - b)}
            value = (values | {"<": a < b, "=": a == b, ">": a > b})[operation.symbol]
        return np.where(fine, np.where(asked, ASKED, value), NONE)

    def _numerals(self, digits: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """Whether each row of digits is an operand, its number, and whether it is `?`."""
        there = digits != NONE
        length = there.sum(1)
        fine = (there == (np.arange(digits.shape[1]) < length[:, None])).all(1) & (length > 0)
        top = np.take_along_axis(digits, np.maximum(length - 1, 0)[:, None], 1)[:, 0]
        asked = digits[:, 0] == ASKED
        fine &= (length == 1) | (~asked & (top != 0))
        fine &= (digits[:, 1:] != ASKED).all(1)
        return fine, self._number(digits), asked

    def _number(self, digits: NDArray) -> NDArray:
        return np.maximum(digits, 0) @ self.domain.base ** np.arange(digits.shape[1])

    def draw(self, operation: Operation, count: int, rng: np.random.Generator) -> NDArray:
        """Random spans as columns, (spans, places, 2), with NONE beyond the end of each: numerals
        of each length equally often, or `?`.
        """
        places = self.longest
        a, b = rng.integers(self.domain.base, size=(2, count, places + 1))
        b = np.where(rng.random(b.shape) < self.alike, a, b)
        lengths = rng.integers(1, places + 1, size=(2, count))
        if operation.symbol == "*":
            a = self._drawn(a, lengths[0], rng)
            kept = np.where(np.arange(places + 1) < lengths[1][:, None], b, NONE)
            none = (a[:, 0] == ASKED) | (rng.random(count) < FIRST_STEPS)
            kept[none | np.full(count, operation.taken == ASKED)] = NONE
            ends = np.full((count, 1), NONE)
            return np.stack([np.hstack([a, ends]), np.hstack([ends, kept])], 2)
        return np.stack([self._drawn(a, lengths[0], rng), self._drawn(b, lengths[1], rng)], 2)

    def _drawn(self, digits: NDArray, lengths: NDArray, rng: np.random.Generator) -> NDArray:
        """Numerals of these lengths from digits, the lowest first."""
        digits = np.where(np.arange(digits.shape[1]) < lengths[:, None], digits, NONE)
        rows, top = np.arange(len(digits)), lengths - 1
        bare = (digits[rows, top] == 0) & (top > 0)
        digits[rows[bare], top[bare]] = rng.integers(1, self.domain.base, size=bare.sum())
        asked = rng.random(len(digits)) < NO_NUMBERS
        digits[asked] = np.where(np.arange(digits.shape[1]) < 1, ASKED, NONE)
        return digits


@dataclass(frozen=True)
class Learned:
    """A machine for one operation that was found out. State 0 is the start, and a state that is
    NONE is not known.

    letters    its columns.
    digit      what is written at a column, (states, letters); NONE for nothing.
    following  the next state, (states, letters).
    end        what is written behind the last column, by state: a digit, ASKED or NONE.
    """

    letters: NDArray
    digit: NDArray
    following: NDArray
    end: NDArray

    @property
    def states(self) -> int:
        return len(self.end)

    def values(self, columns: NDArray, base: int) -> NDArray:
        """The value of each span, (spans, places, 2): the digits that are written, or ASKED if that
        is written; NONE where a state is not known.
        """
        index = np.full((base + 2, base + 2), NONE)
        index[tuple(self.letters.T)] = np.arange(len(self.letters))  # NONE and ASKED are the last
        digit, following, end = (
            np.concatenate([part, np.full_like(part[:1], NONE)])
            for part in (self.digit, self.following, self.end)
        )
        n, places, _ = columns.shape
        state, value, rank = (np.zeros(n, dtype=np.int64) for _ in range(3))
        for place in range(places):
            there = (columns[:, place] != NONE).any(1)
            letter = index[columns[:, place, 0], columns[:, place, 1]]
            written = np.where(there, digit[state, letter], NONE)
            value, rank = _written(value, rank, written, base)
            state = np.where(there, following[state, letter], state)
        asked = end[state] == ASKED
        value, rank = _written(value, rank, end[state], base)
        return np.where(
            (state == NONE) | (~asked & (rank == 0)), NONE, np.where(asked, ASKED, value)
        )


def _written(value: NDArray, rank: NDArray, digit: NDArray, base: int) -> tuple[NDArray, NDArray]:
    """The value, and how many digits it has, after one more or none."""
    some = digit >= 0
    return np.where(some, value + digit * base**rank, value), rank + some
