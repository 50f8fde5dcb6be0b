"""Learns a machine by futures: a state is what it answers to all that may follow.

After two beginnings of a text that get the same answers whatever up to b more symbols follow, the
machine is taken to be in one state (Myhill and Nerode; as queries, Angluin). Beginnings are
extended by each symbol until no new state appears. With b = 1, 2, ... this ends when fresh short
texts come out right: what the machine is, and what the certificate says, nobody asks before the
end. It needs a black box that answers chosen texts, all of them short: a beginning that leads to a
state, one symbol, and b more.
"""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from numpy.typing import NDArray

from exactformer.training.machine_recipes import Futures
from exactformer.training.machine_texts import NONE, Learned, Oracle
from exactformer.training.state import CHECKS, generator


@dataclass(frozen=True)
class Hypothesis:
    """A machine that was found with continuations of up to `continuations` symbols, by asking for
    `asked` texts.
    """

    learned: Learned
    continuations: int
    asked: int


@dataclass
class Discoverer:
    """Finds machines by futures. What is asked for does not depend on the seed: so it is asked for
    once for all seeds, each of which then draws fresh texts.
    """

    oracle: Oracle
    recipe: Futures
    found: list[Hypothesis] = field(default_factory=list)

    def find(self, seed: int) -> tuple[Hypothesis, int]:
        """The first hypothesis under which all fresh texts of a seed come out right, or the last
        one that there is; and how many do.
        """
        right = 0
        for b in range(1, self.recipe.continuations + 1):
            if len(self.found) < b:
                if self.found and not self._affordable(b):
                    break
                self.found.append(_hypothesis(self.oracle, self.recipe.states, b))
            rng = generator(seed, 1, CHECKS, b)
            texts = self.oracle.draw(self.recipe.checks, rng)
            right = int(self.found[b - 1].learned.right(texts).sum())
            if right == self.recipe.checks:
                return self.found[b - 1], right
        return self.found[-1], right

    def _affordable(self, b: int) -> bool:
        """Whether continuations of b symbols are few enough, if there are no more states then."""
        symbols = len(self.oracle.symbols)
        return self.found[-1].learned.states * symbols ** (b + 1) <= self.recipe.most_asked


def _hypothesis(oracle: Oracle, most_states: int, b: int) -> Hypothesis:
    """The machine whose states differ within b symbols. Once there are `most_states`, what would be
    another one is nothing.
    """
    symbols, end = oracle.symbols, oracle.machine.end
    continuations = [
        np.array(list(product(symbols, repeat=n)), dtype=int).reshape(len(symbols) ** n, n)
        for n in range(0 if end is not None else 1, b + 1)
    ]
    at_end = 0 if end is None else 1  # the first of the answers is that of the end
    beginnings: list[tuple[int, ...]] = [()]
    futures = [_futures(oracle, (), continuations)]
    asked = len(futures[0])
    known = {futures[0][at_end:].tobytes(): [0]}  # states by what they answer before an end
    following: list[NDArray] = []
    for beginning in beginnings:  # it grows
        row = np.full(len(oracle.machine.vocabulary), NONE)
        for symbol in symbols.tolist():
            found = _futures(oracle, (*beginning, symbol), continuations)
            asked += len(found)
            if (found == NONE).all():
                continue
            same = known.setdefault(found[at_end:].tobytes(), [])
            for state in same:
                # No text is empty, so what the start answers at the end shows when it is back.
                unknown = state == 0 and at_end and futures[0][0] == NONE
                if unknown or np.array_equal(futures[state], found):
                    futures[state], row[symbol] = found, state
                    break
            else:
                if len(beginnings) < most_states:
                    row[symbol] = len(beginnings)
                    same.append(len(beginnings))
                    beginnings.append((*beginning, symbol))
                    futures.append(found)
        following.append(row)
    answer = np.full((len(beginnings), len(following[0])), NONE)
    if end is None:
        answer[:, symbols] = [part[: len(symbols)] for part in futures]
    else:
        answer[:, end] = [part[0] for part in futures]
    return Hypothesis(Learned(answer, np.array(following)), b, asked)


def _futures(oracle: Oracle, beginning: tuple[int, ...], continuations: list[NDArray]) -> NDArray:
    """The answers to a beginning with each continuation, the shorter ones first."""
    return np.concatenate(
        [
            oracle.ask(np.hstack([np.tile(np.array(beginning, dtype=int), (len(part), 1)), part]))
            for part in continuations
        ]
    )
