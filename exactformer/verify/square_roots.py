"""Square roots: whether weights find the root of every binary number, of any length.

One step of the method on paper: let `root` be the floor of the root of the bits taken so far, and
`remainder` those bits less root * root. With two more bits taken, remainder becomes 4 * remainder +
these; if 4 * root + 1 is not more than that, it is taken away from it and the next bit of the root
is 1, otherwise that is 0 and nothing is taken away. Then both are again what they are called. So,
by induction over iterations, it is enough that each is such a step.

With the gates as declared, bags are what `model/square_root.py` says: at each place a bit of 4 *
remainder + the bits taken, and in the first reading one of 4 * root, in the second one of 2 * root
and what the first one wrote. So it is a question about all sequences of bags that come up, of any
length. `columns.py` has them as the ways through an automaton: root and remainder are any numbers
with remainder at most 2 * root, as they are those of root * root + remainder. The first reading is
the automaton from the lowest place up, the second one the same from the top down. In each a
reference and the weights are followed through all pairs of their states; the tokens must be the
reference's, and the next state one alone. In the first reading the reference's state is the borrow,
which the `$` brings as the 1 of 4 * root + 1. In the second it is whether the difference was below
zero, and whether a bit other than 0 has come. The weights may have more states.

There is room: of n bits, before an iteration root has t < ceil(n / 2) bits and remainder, which has
no zeros in front, t + 1 at most. So neither has a bit beyond place t + 2, which is n at most, and
the `^` is at place n + 1. (Before the first iteration there are none.) The bits of the root are one
for each iteration, and those of the number are taken in ceil(n / 2) of them.

A fault has a number of which that row comes up, unless another one leads elsewhere before. More is
asked for than must hold: a remainder with zeros in front, say, would do no harm as long as there is
room for it. So weights that are right might be refused, and the verdict on them is "undecided".
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import MOST_CASES, MOST_NUMBERS, MOST_PAIRS, require
from exactformer.domains.square_roots import (
    BELOW,
    BIT,
    DIFFERENCE,
    END,
    NOT_BELOW,
    REMAINDER,
    ROOT,
    TOP,
    SquareRoot,
)
from exactformer.verify.columns import Column, Columns, State, number_of
from exactformer.verify.findings import Findings
from exactformer.verify.machine import inputs, outputs_of
from exactformer.verify.rounding import SUBNORMAL
from exactformer.verify.rows import Fault
from exactformer.weights.tensors import FEEDFORWARDS, Arrays

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Step:
    """A row that may follow in a reading.

    bag      its tokens.
    due      those that are to be written.
    column   what is read there; None for the `^`.
    after    the next state of the reference; None at the end of the reading.
    """

    bag: Tokens
    due: Tokens
    column: Column | None
    after: Hashable | None


def check(domain: SquareRoot, weights: Sequence[tuple[Arrays, str | None]]) -> list[Findings]:
    """The conditions for square roots, for many weights."""
    columns = Columns()
    return [_check(domain, arrays, str(activation), columns) for arrays, activation in weights]


def _check(domain: SquareRoot, arrays: Arrays, activation: str, columns: Columns) -> Findings:
    W = len(inputs(arrays)) - len(domain.vocabulary)
    pairs = _Pairs(domain, W, lambda H: outputs_of(H, arrays, activation).positive, columns)
    pairs.follow(columns.start, lambda state: subtract(columns, state))
    pairs.follow(None, lambda state: choose(columns, state), downwards=True)
    outputs = outputs_of(pairs.inputs_of([*pairs.reached]), arrays, activation)
    conditions = _gates(arrays) | {
        "in all states of both readings, what is written and the next state are right": not (
            pairs.faults
        ),
        "every output is farther from the threshold than rounding can move it": outputs.smallest
        > outputs.error,
    }
    if "W_1" in arrays:
        numbers = (arrays[name] for name in FEEDFORWARDS["perceptron"])
        tiny = any((abs(part[part != 0]) < SUBNORMAL).any() for part in numbers)
        conditions["no weight is so small that a device may take it for zero"] = not tiny
    rows, wrong = len(pairs.reached), tuple(pairs.faults.values())
    return Findings(domain, conditions, rows, wrong, outputs.smallest, outputs.error)


def _gates(arrays: Arrays) -> dict[str, bool]:
    """The conditions on the gates, for the tokens that positions hold between iterations."""
    G_T, *others = (arrays[name].astype(int) for name in ("G_T", "G_A", "G_B", "G_M"))
    held = np.r_[BIT:DIFFERENCE, TOP, END]
    names = "remainder", "root", "marks"
    right = [np.isin(held, (first, first + 1)) for first in (BIT, REMAINDER, ROOT, TOP)]
    own = (G_T[held][right[0]] > 0).all() and not G_T[held][~right[0]].any()
    return {"the gate of bits to be taken is positive on them, 0 elsewhere": bool(own)} | {
        f"that of the {name} is positive on what it is for alone": bool(
            ((gate[held] > 0) == due).all()
        )
        for name, gate, due in zip(names, others, right[1:], strict=True)
    }


def _tokens(*bits: tuple[int, int | None]) -> Tokens:
    """The token of each bit of a kind that there is."""
    return tuple(kind + bit for kind, bit in bits if bit is not None)


def _read(column: Column) -> Tokens:
    """The tokens of a column that both readings have, without the mark."""
    return _tokens((BIT, column.bit), (REMAINDER, column.remainder))


def _difference(column: Column) -> Tokens:
    """The bit that is due in the first reading; none where there is nothing to take away."""
    there = column.bit is not None or column.remainder is not None or column.root_4 is not None
    return (DIFFERENCE + column.difference,) if there else ()


def subtract(columns: Columns, state: State) -> Iterator[Step]:
    """The reference of the first reading, from the lowest place up."""
    for column, after in columns.above[state]:
        mark = (END,) if column.lowest else ()
        bag = (*mark, *_read(column), *_tokens((ROOT, column.root_4)))
        yield Step(bag, _difference(column), column, after)
    if state in columns.ends:
        yield Step((TOP,), (BELOW if state.borrow else NOT_BELOW,), None, None)


def choose(columns: Columns, state: tuple[State, int, int] | None) -> Iterator[Step]:
    """The reference of the second reading, from the top down: the state of the columns, whether the
    difference was below zero, and whether a bit other than 0 has come.
    """
    if state is None:
        for end in columns.ends:
            verdict = BELOW if end.borrow else NOT_BELOW
            yield Step((TOP, verdict), (TOP,), None, (end, end.borrow, 0))
        return
    upper, below, seen = state
    for column, lower in columns.below[upper]:
        written = _difference(column)
        kept = (_read(column) or (BIT,)) if below else written or (BIT,)
        now = seen or kept[0] % 2
        left = (REMAINDER + kept[0] % 2,) if now and written else ()
        bag = (*_read(column), *_tokens((ROOT, column.root_2)), *written)
        if column.lowest:
            yield Step((END, *bag), (*left, ROOT + 1 - below, END), column, None)
        else:
            due = (*left, *_tokens((ROOT, column.root_2)))
            yield Step(bag, due, column, (lower, below, now))


@dataclass
class _Pairs:
    """The pairs of states of the weights and of a reference that readings lead to.

    outputs   which outputs are positive, for rows of inputs.
    reached   the rows that come up, each a bag and a state, with the tokens that are given in it
              and the next state, -1 if it is no single one.
    """

    domain: SquareRoot
    W: int
    outputs: Callable[[NDArray], NDArray]
    columns: Columns
    reached: dict[tuple[Tokens, int], tuple[frozenset[int], int]] = field(default_factory=dict)
    faults: dict[tuple[Tokens, int], Fault] = field(default_factory=dict)

    def follow(
        self, start: Hashable, steps: Callable[..., Iterator[Step]], downwards: bool = False
    ) -> None:
        """Find all pairs of a reading, the nearest first, with their rows and faults."""
        first = (0, start)
        before: dict[tuple[int, Hashable], tuple] = {first: ()}  # the pair before, and the step
        waiting: deque[tuple[int, Hashable]] = deque([first])
        while waiting:
            require("pairs of states to go through", len(before), MOST_PAIRS)
            pair = waiting.popleft()
            following = [*steps(pair[1])]
            self._look_up([(step.bag, pair[0]) for step in following])
            for step in following:
                row = step.bag, pair[0]
                given, ahead = self.reached[row]
                after = (ahead, step.after)
                if given != {*step.due} or (step.after is not None and ahead < 0):
                    if row not in self.faults:
                        way = self._way(before, pair, step)
                        self.faults[row] = self._fault(row, step, way, downwards)
                elif step.after is not None and after not in before:
                    before[after] = pair, step
                    waiting.append(after)

    def _way(self, before: dict, pair: tuple, step: Step) -> list[Step]:
        """The steps that lead to a pair, and this one."""
        way = [step]
        while before[pair]:
            pair, last = before[pair]
            way.append(last)
        return way[::-1]

    def _fault(
        self, row: tuple[Tokens, int], step: Step, way: list[Step], downwards: bool
    ) -> Fault:
        bag, state = row
        words = " and ".join(self.domain.vocabulary[token] for token in bag)
        columns = [step.column for step in way if step.column is not None]
        if downwards:
            end = step.after[0] if isinstance(step.after, tuple) else self.columns.start
            columns = [*self.columns.ways_down(end), *reversed(columns)]
        elif step.after is not None:
            assert isinstance(step.after, State)
            columns = [*columns, *self.columns.ways_up(step.after)]
        bits = tuple(BIT + int(bit) for bit in number_of(columns))
        return Fault(f"{words or 'the empty bag'} in state {state}", bits)

    def _look_up(self, rows: Sequence[tuple[Tokens, int]]) -> None:
        new = [row for row in dict.fromkeys(rows) if row not in self.reached]
        if not new:
            return
        positive = self.outputs(self.inputs_of(new))
        D = len(self.domain.vocabulary)
        for row, given in zip(new, positive, strict=True):
            states = np.flatnonzero(given[D:])
            ahead = int(states[0]) if len(states) == 1 else -1
            self.reached[row] = frozenset(np.flatnonzero(given[:D]).tolist()), ahead

    def inputs_of(self, rows: Sequence[tuple[Tokens, int]]) -> NDArray:
        D = len(self.domain.vocabulary)
        require(f"rows of {self.domain.name!r} to be listed", len(rows), MOST_CASES)
        require(f"numbers of {len(rows)} rows", len(rows) * (D + self.W), MOST_NUMBERS)
        H = np.zeros((len(rows), D + self.W), dtype=np.int64)
        for inputs_, (bag, state) in zip(H, rows, strict=True):
            inputs_[[*bag, D + state]] = 1
        return H
