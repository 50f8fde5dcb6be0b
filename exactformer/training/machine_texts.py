"""Short texts of a machine with their answers: all that a learner of it is given.

Tokens are numbers, in the order in which they are read, with the mark of the end behind them where
the machine answers there. The machine itself is behind `Oracle`, which answers texts and draws
them; `Learned` is what a learner has made of the answers: rows of a state and a token.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.machines import NO_STATE, Machine

NONE = -1  # in place of a token or of a state
LARGEST = 1 - 1e-9  # random number, so that none is rounded up to 1


@dataclass(frozen=True)
class Texts:
    """Texts of several lengths, (texts, places): tokens, and the answer's token at each place; NONE
    beyond the end, and where nothing is answered.
    """

    tokens: NDArray
    answers: NDArray

    def __getitem__(self, some: slice | NDArray) -> "Texts":
        return Texts(self.tokens[some], self.answers[some])


class Oracle:
    """Answers texts of a machine. Learners use `ask`, `draw` and `machine.vocabulary`, no more."""

    def __init__(self, machine: Machine, longest: int = 1, often: str = "") -> None:
        """`draw` draws texts of up to `longest` symbols, half of them those of `often`."""
        self.machine, self.longest = machine, longest
        self.symbols = np.arange(len(machine.symbols))
        states, D = len(machine.states), len(machine.vocabulary)
        self._next = np.full((states + 1, D), states)  # the last state: something is not allowed
        following = machine.next_states
        self._next[:-1] = np.where(following == NO_STATE, states, following)
        self._output = np.full((states + 1, D), NONE)
        self._output[:-1] = machine.output_ids
        weight = np.ones(len(self.symbols))
        chosen = [machine.symbols.index(symbol) for symbol in often.split()]
        rest = len(self.symbols) - len(chosen)
        if chosen and rest:
            weight[chosen] = rest / len(chosen)
        self._weight = weight

    def ask(self, texts: NDArray) -> NDArray:
        """The last symbol of each answer to texts of one length, (texts, symbols), as a token; NONE
        where a text is not allowed. No text is empty.
        """
        state = np.full(len(texts), self.machine.start)
        output = np.full(len(texts), NONE)
        for token in texts.T:
            output, state = self._output[state, token], self._next[state, token]
        if not texts.shape[1]:
            return output
        return output if self.machine.end is None else self._output[state, self.machine.end]

    def draw(self, count: int, rng: np.random.Generator) -> Texts:
        """Random texts: each length equally often, and each symbol that some text goes on with by
        its weight.
        """
        begin, end = self.machine.start, self.machine.end
        can_end = self.machine.completions(self.longest)[:, begin] > 0
        lengths = [n for n in range(1, self.longest + 1) if can_end[n]]
        left = rng.choice(lengths, count)
        state = np.full(count, begin)
        places = self.longest + (end is not None)
        tokens, answers = np.full((2, count, places), NONE, dtype=np.int16)
        for place in range(places):
            going = left > 0
            row = np.maximum(left, 1) * len(self._next) + state
            drawn = np.minimum(rng.random(count), LARGEST) + row
            at = self._shares.searchsorted(drawn, side="right") - row * len(self.symbols)
            token = np.where(going, at, NONE)
            if end is not None:
                token[left == 0] = end
            there = token != NONE
            tokens[:, place] = token
            answers[there, place] = self._output[state[there], token[there]]
            state[going] = self._next[state[going], token[going]]
            left -= 1
        return Texts(tokens, answers)

    @cached_property
    def _shares(self) -> NDArray:
        """The chance of each symbol or one before it, in one ascending list: row by row, each with
        its number added. A row is how many symbols are left, and the state; its symbols are those
        that lead to where a text of the right length can end.
        """
        can_end = self.machine.completions(self.longest) > 0
        can_end = np.pad(can_end, ((0, 0), (0, 1)))  # the last state leads nowhere
        after = can_end[:-1][:, self._next[:, self.symbols]]
        sums = np.cumsum(np.pad(after, ((1, 0), (0, 0), (0, 0))) * self._weight, -1)
        chances = (sums / np.where(sums[..., -1:] > 0, sums[..., -1:], 1)).reshape(
            -1, len(self.symbols)
        )
        return (chances + np.arange(len(chances))[:, None]).ravel()


@dataclass(frozen=True)
class Learned:
    """A machine that was found out: the answer's token and the next state by state and token, with
    NONE for nothing. State 0 is the start.
    """

    answer: NDArray
    following: NDArray

    @property
    def states(self) -> int:
        return len(self.answer)

    @property
    def rows(self) -> tuple[NDArray, NDArray]:
        """State and token of the rows that there is something in."""
        return ((self.answer != NONE) | (self.following != NONE)).nonzero()

    def right(self, texts: Texts) -> NDArray:
        """Whether each text gets the right answer."""
        answer = np.pad(self.answer, ((0, 1), (0, 0)), constant_values=NONE)
        following = np.pad(self.following, ((0, 1), (0, 0)), constant_values=NONE)
        state = np.zeros(len(texts.tokens), dtype=int)
        right = np.ones(len(texts.tokens), dtype=bool)
        for token, wanted in zip(texts.tokens.T, texts.answers.T, strict=True):
            there = token != NONE
            right &= ~there | (answer[state, token] == wanted)
            state = np.where(there, following[state, token], state)  # NONE is the last row
        return right

    def reached(self) -> "Learned":
        """With nothing in the rows of states that its own transitions never lead to."""
        seen, waiting = {0}, [0]
        while waiting:
            following = {*self.following[waiting.pop()].tolist()} - seen - {NONE}
            seen |= following
            waiting += following
        out = np.array([state not in seen for state in range(self.states)])[:, None]
        return Learned(np.where(out, NONE, self.answer), np.where(out, NONE, self.following))
