"""Tables of weights for integers: outputs of each row, and what both readings leave of spans."""

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.integers import Integers
from exactformer.domains.symbols import FIRST_VALUE

MANY = (0, 0, 0)  # three zeros that the reference is ahead, or more

# What is written: the value of a digit, or
NOTHING, ASKED, OTHER = -1, -2, -3  # ASKED is `?`; OTHER no single one of these

Bag = tuple[tuple[int, ...], tuple[int, ...]]  # tokens in the slots left and right
Outputs = Callable[[NDArray], NDArray]  # which outputs are positive, for rows of inputs


class Tables:
    """Outputs of the weights in each row: with each bag in each state.

    H           the inputs of all rows, by bag and state.
    words       all that the first reading writes anywhere, as rows of tokens; the first is nothing.
    word        the number of what the first reading writes, by bag and state.
    kept        what it writes into an accumulator, which takes digits only.
    following   its next state. A state that is not known stands behind all others: nothing is
                written in it, and it stays.
    starts      the states of the second reading that may come up, the start first.
    reached     the numbers of the rows that come up.

    The second reading has a row for each word that comes up, in the slot right if it is the lowest,
    or left. Which do, `read_words` is told: a perceptron writes anything where no text leads.
    """

    def __init__(self, domain: Integers, W: int, outputs: Outputs) -> None:
        self.domain, self.W, self.D, self.outputs = domain, W, len(domain.vocabulary), outputs
        first = bags_of(domain)
        self.number = {bag: i for i, bag in enumerate(first)}
        bags = np.zeros((len(first), 2 * self.D), dtype=np.int64)
        for bag, (left, right) in zip(bags, first, strict=True):
            bag[[*left, *(self.D + token for token in right)]] = 1
        H, written, following = self._tried(bags)
        self.following: list[list[int]] = following.tolist()
        words, numbers = np.unique(written.reshape(-1, self.D), axis=0, return_inverse=True)
        if words[0].any():  # nothing goes first, whether it is ever written or not
            words, numbers = np.insert(words, 0, False, axis=0), numbers + 1
        self.words = words
        self.word: list[list[int]] = np.reshape(numbers, (len(first), W)).tolist()
        digits = np.arange(FIRST_VALUE, domain.first_operator)
        self.kept: list[list[int]] = self._meaning(written[..., digits], np.arange(domain.base))
        self.H, self.second = H, len(H)
        self.reached: set[int] = set()

    def read_words(self, some: Sequence[int]) -> None:
        """Try the second reading on these words, all that come up."""
        self.rank = {word: i for i, word in enumerate(some)}
        meaning = np.full(self.D, OTHER)
        meaning[FIRST_VALUE : self.domain.first_operator] = np.arange(self.domain.base)
        meaning[self.domain.none] = ASKED
        words = self.words[[*some]]
        bags = np.zeros((2, len(words), 2, self.D), dtype=np.int64)
        bags[0, :, 0], bags[1, :, 1] = words, words
        H, written, following = self._tried(bags.reshape(-1, 2 * self.D))
        shape = (2, len(words), self.W)
        self.left: list[list[list[int]]] = self._meaning(written.reshape(*shape, self.D), meaning)
        self.then: list[list[list[int]]] = following.reshape(shape).tolist()
        self.H = np.concatenate([self.H[: self.second], H])
        self.reached = {row for row in self.reached if row < self.second}
        self.starts = [0]
        for state in self.starts:  # it grows
            for word in some:
                for lowest in range(2):
                    self.starts += {self.read_again(lowest, word, state)[1]} - {*self.starts}

    def _tried(self, bags: NDArray) -> tuple[NDArray, NDArray, NDArray]:
        """The inputs of each bag in each state; tokens that are written, and the next state."""
        n, W, D = len(bags), self.W, self.D
        H = np.hstack([np.repeat(bags, W, axis=0), np.tile(np.eye(W, dtype=np.int64), (n, 1))])
        positive = self.outputs(H).reshape(n, W, D + W)
        ahead = positive[..., D:]
        following = np.where(ahead.sum(-1) == 1, ahead.argmax(-1), W)
        return H, positive[..., :D], following

    def _meaning(self, positive: NDArray, meaning: NDArray) -> list[Any]:
        """The meaning of the one token that is written; NOTHING if none is, OTHER if several."""
        count = positive.sum(-1)
        one = meaning[positive.argmax(-1)]
        return np.where(count == 1, one, np.where(count, OTHER, NOTHING)).tolist()

    def read(self, bag: Bag, state: int) -> tuple[int, int, int]:
        """The first reading: the word, what is kept and the next state."""
        if state < self.W:
            self.reached.add(self.number[bag] * self.W + state)
        return self.look(bag, state)

    def look(self, bag: Bag, state: int) -> tuple[int, int, int]:
        """The word, what is kept and the next state, of a row that need not be reached."""
        if state == self.W:
            return 0, NOTHING, state
        i = self.number[bag]
        return self.word[i][state], self.kept[i][state], self.following[i][state]

    def read_again(self, lowest: int, word: int, state: int) -> tuple[int, int]:
        """The second reading: what is left, and the next state."""
        if state == self.W:
            return NOTHING, state
        i = self.rank[word]
        self.reached.add(self.second + (lowest * len(self.rank) + i) * self.W + state)
        return self.left[lowest][i][state], self.then[lowest][i][state]


def bags_of(domain: Integers) -> list[Bag]:
    """Every bag that may come up in the first reading."""
    digits, none = range(FIRST_VALUE, domain.first_operator), domain.none
    kept = range(domain.first_kept, len(domain.vocabulary))
    one = [(), *((token,) for token in (*digits, none))]
    found: list[Bag] = []
    for symbol in domain.operators:
        o = domain.operator_id(symbol)
        if symbol == "*":
            found += [((*a, *k), (d, o)) for a, k, d in product(one, [(), *zip(kept)], digits)]
            found += [(a, (none, o)) for a in one]
        else:
            found += [(a, (*b, o)) for a, b in product(one, one)]
    return [*dict.fromkeys(found)]


# The shape of a text from the lowest digit on: none; `?`; 0; more that ends with 0; with another
# digit; or what is no answer.
EMPTY, IS_ASKED, IS_ZERO, ZERO_ON_TOP, NUMBER, BAD = range(6)


class Left(NamedTuple):
    """A text that the second reading leaves, from the lowest place up to here, and how it compares
    with what the reference has written there.

    shape    of the text.
    ahead    1 if it has more digits than the reference, -1 if fewer, 0 if as many.
    digits   those that the one that is ahead has more; None if the others differ.
    """

    shape: int = EMPTY
    ahead: int = 0
    digits: tuple[int, ...] | None = ()

    def and_then(self, expected: int, found: int) -> "Left":
        """With one more row of each."""
        shape = self.shape
        if found == ASKED:
            shape = IS_ASKED if shape == EMPTY else BAD
        elif found == OTHER or (found != NOTHING and shape in (IS_ASKED, BAD)):
            shape = BAD
        elif found != NOTHING:
            shape = NUMBER if found else (IS_ZERO if shape == EMPTY else ZERO_ON_TOP)
        if self.digits is None or shape in (IS_ASKED, BAD):
            return Left(shape, 0, None)
        mine = (*(self.digits if self.ahead > 0 else ()), *([found] if found >= 0 else []))
        other = (*(self.digits if self.ahead < 0 else ()), *([expected] if expected >= 0 else []))
        both = min(len(mine), len(other))
        if mine[:both] != other[:both]:
            return Left(shape, 0, None)
        rest = mine[both:] or other[both:]
        if self.ahead < 0 and self.digits == MANY and not any(rest):
            rest = MANY
        if len(rest) > 1 and (any(rest) or len(mine) > len(other)):
            return Left(shape, 0, None)  # too far behind, or too far ahead
        rest = rest[: len(MANY)]
        ahead = -1 if rest == MANY and self.ahead < 0 else np.sign(len(mine) - len(other))
        return Left(shape, int(ahead), rest)

    def is_right(self, none: bool) -> bool:
        """Whether it is the answer; `none` if that is `?`."""
        if none:
            return self.shape == IS_ASKED
        fine = self.shape in (IS_ZERO, NUMBER) and self.digits is not None
        return fine and (not self.digits or (self.ahead < 0 and not any(self.digits)))

    def may_be_right(self, below: bool) -> bool:
        """Whether more rows might make it right; `below` if the value may yet be `?`."""
        return self.digits is not None or (below and self.shape in (EMPTY, IS_ASKED))


class Hypotheses(NamedTuple):
    """Digits that the second reading leaves up to here, for each state that may come from above.

    some   whether anything was written.
    none   whether the value is `?`.
    """

    lefts: tuple[Left, ...]
    some: bool = False
    none: bool = False
