"""Machines: whether weights give the answers of a machine on every text of every length.

The weights are a machine of their own, with states that nobody has named: a token beside a state
gives tokens and a next state. Both machines read the same text at once, so they are in a pair of
states. Of all pairs that a text can lead to, which are finitely many, each with each symbol that
may follow there is a row. If the weights give in each row what the machine gives, and lead to one
known state, every text of every length has the right answer (induction over its symbols); if not,
the symbols that lead there are a text that shows it, and as the pairs are found by their distance,
no shorter one leads there.

That the running model does what this says needs two more facts. With the gate 1 on every token,
keys are distinct, so that each token is a row of its own (`model/machine.py`). And maps of states
compose associatively, so the scan gives each row the state that reading one symbol after the other
would; the map of a row that no text leads to may be anything. The weights may have more states than
the machine, and several for one of its states.

Machines over spans (`model/span_machine.py`) are read in the same way, with the `)` for the end and
inner spans for letters: an inner span is read as its value, and a value is a letter, so what a span
may have in it is among what has been gone through.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import MOST_CASES, MOST_NUMBERS, MOST_PAIRS, require
from exactformer.domains.machines import NO_STATE, Machine, ReadByMachine
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.symbols import CLOSE, OPEN
from exactformer.verify.findings import Findings
from exactformer.verify.rounding import SUBNORMAL, Outputs, perceptrons
from exactformer.verify.rows import Fault, look_up
from exactformer.weights.tensors import FEEDFORWARDS, Arrays

MOST_TOLD = 100_000  # symbols of all texts that are told of; the shortest ones are found first

Pair = tuple[int, int]  # a state of the weights and one of the machine


def check(machine: Machine, weights: Sequence[tuple[Arrays, str | None]]) -> list[Findings]:
    """The conditions for a machine over a text, for many weights."""
    name = "the gate of the key is 1 on every token"
    return [
        _check(machine, arrays, str(activation), {name: bool((arrays["G_K"] == 1).all())}, False)
        for arrays, activation in weights
    ]


def check_spans(
    domain: SpanMachine, weights: Sequence[tuple[Arrays, str | None]]
) -> list[Findings]:
    """The conditions for a machine over spans, for many weights."""
    right = np.zeros(len(domain.vocabulary), dtype=np.int64)
    right[OPEN], right[CLOSE] = 1, -1
    name = "the gate is +1 on '(', -1 on ')', 0 elsewhere"
    return [
        _check(domain, arrays, str(activation), {name: bool((arrays["G_PE"] == right).all())}, True)
        for arrays, activation in weights
    ]


def _check(
    machine: ReadByMachine, arrays: Arrays, activation: str, gates: dict[str, bool], only_end: bool
) -> Findings:
    D = len(machine.vocabulary)
    W = len(inputs(arrays)) - D
    require_checkable(machine, W)
    every = np.hstack([np.repeat(np.eye(D), W, axis=0), np.tile(np.eye(W), (D, 1))])
    positive = outputs_of(every.astype(np.int64), arrays, activation).positive
    product = _Product(machine, positive.reshape(D, W, D + W), only_end)
    product.explore()
    rows = np.array([token * W + state for state, token in sorted(product.rows)], dtype=np.int64)
    outputs = outputs_of(every[rows].astype(np.int64), arrays, activation)
    wrong = tuple(product.faults)
    conditions = gates | {
        "in all states that a text leads to, answers and next states are the machine's": not wrong,
        "every output is farther from the threshold than rounding can move it": outputs.smallest
        > outputs.error,
    }
    if "W_1" in arrays:
        numbers = (arrays[name] for name in FEEDFORWARDS["perceptron"])
        tiny = any((abs(part[part != 0]) < SUBNORMAL).any() for part in numbers)
        conditions["no weight is so small that a device may take it for zero"] = not tiny
    return Findings(machine, conditions, len(rows), wrong, outputs.smallest, outputs.error)


def require_checkable(machine: ReadByMachine, W: int) -> None:
    """Raise a ValueError if weights with W states have more rows than are listed."""
    D = len(machine.vocabulary)
    require(f"rows of {machine.name!r} to be listed", D * W, MOST_CASES)
    require(f"numbers of {D * W} rows of {machine.name!r}", D * W * (D + W), MOST_NUMBERS)


def inputs(arrays: Arrays) -> NDArray:
    """A tensor with a row for each input of the feedforward."""
    return arrays["bags"].T if "bags" in arrays else arrays["W_1"]


def outputs_of(H: NDArray, arrays: Arrays, activation: str) -> Outputs:
    if "bags" in arrays:
        positive = look_up(H, arrays["bags"], arrays["outputs"])
        return Outputs(positive, smallest=Fraction(1, 2), error=Fraction(0))
    tensors = tuple(arrays[name] for name in FEEDFORWARDS["perceptron"])
    return perceptrons(H, [tensors], activation)[0]  # type: ignore[list-item]


def _alone(positive: NDArray) -> list[list[int]]:
    """The one output that is above the threshold in each row; -1 if there is none, -2 if there are
    several.
    """
    count = positive.sum(-1)
    return np.where(count == 1, positive.argmax(-1), np.where(count, -2, -1)).tolist()


@dataclass
class _Product:
    """The pairs of states that texts lead to.

    positive   which outputs are above the threshold, by token and state of the weights.
    only_end   whether no tokens are written but those given at the end.
    rows       state of the weights and token of each row that is reached.
    before     for each pair, the pair before it and the token between them; for the beginning of a
               text, which is None as it is no end of one, nothing.
    told       length of all texts that are told of.
    """

    machine: ReadByMachine
    positive: NDArray
    only_end: bool
    rows: set[Pair] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    before: dict[Pair | None, tuple[Pair | None, int]] = field(default_factory=dict)
    told: int = 0

    def explore(self) -> None:
        """Find all pairs, the nearest first, with their rows and faults."""
        machine, D = self.machine, len(self.machine.vocabulary)
        given, ahead = _alone(self.positive[..., :D]), _alone(self.positive[..., D:])
        answers = machine.output_ids.tolist()
        waiting: deque[Pair | None] = deque([None])
        while waiting and self.told < MOST_TOLD:
            require("pairs of states to go through", len(self.before), MOST_PAIRS)
            pair = waiting.popleft()
            state, true = pair or (0, machine.start)
            for token, following in self._symbols(pair, true):
                self.rows.add((state, token))
                if self.is_written(token) and given[token][state] != answers[true][token]:
                    self._add_fault(pair, token, following)
                elif following == NO_STATE:
                    continue
                elif (next_state := ahead[token][state]) >= 0:
                    reached = (next_state, following)
                    if reached not in self.before:
                        self.before[reached] = (pair, token)
                        waiting.append(reached)
                elif machine.end is not None or self._after(following):
                    self._add_fault(pair, token, following)

    def is_written(self, token: int) -> bool:
        """Whether the tokens that the weights give at this one are written."""
        return token == self.machine.end or not self.only_end

    def _symbols(self, pair: Pair | None, true: int) -> Iterator[tuple[int, int]]:
        """The symbols that may follow in some text, each with the machine's next state; and the end
        with NO_STATE. No text is empty.
        """
        machine = self.machine
        for token, following in enumerate(self.next_states[true]):
            if following != NO_STATE and self.ways_to_end[following] is not None:
                yield token, following
        if pair is not None and machine.end is not None and self._may_end(true):
            yield machine.end, NO_STATE

    def _may_end(self, true: int) -> bool:
        """Whether the machine may have read its last symbol in this state."""
        end = self.machine.end
        return end is None or bool(self.machine.output_ids[true, end] >= 0)

    def _after(self, true: int) -> tuple[int, ...]:
        """A symbol that may follow in this state of a machine that answers each; none if none."""
        allowed = np.flatnonzero(self.machine.next_states[true] != NO_STATE)
        return tuple(allowed[:1].tolist())

    def _add_fault(self, pair: Pair | None, token: int, following: int) -> None:
        """A text on which the row of this pair and token shows: the shortest one that leads there,
        and on to an end.
        """
        machine = self.machine
        ids: list[int] = []
        while pair is not None:
            pair, read = self.before[pair]
            ids.append(read)
        ids.reverse()
        if following == NO_STATE:
            shown = "the end"
        else:
            shown = machine.vocabulary[token]
            ways = self.ways_to_end
            on = self._after(following) if machine.end is None else ways[following]
            ids += [token, *(on or ())]
        text = machine.text_of(ids)
        words = ("" if machine.packs else " ").join(machine.vocabulary[i] for i in text)
        self.faults.append(Fault(f"{shown} in {words}", text))
        self.told += 1 + len(text)

    @cached_property
    def next_states(self) -> list[list[int]]:
        return self.machine.next_states.tolist()

    @cached_property
    def ways_to_end(self) -> list[tuple[int, ...] | None]:
        """The shortest symbols from each state of the machine to a state in which a text may end;
        None if there are none.
        """
        ends = [*map(self._may_end, range(len(self.machine.states)))]
        ways: list[tuple[int, ...] | None] = [() if end else None for end in ends]
        into: list[list[Pair]] = [[] for _ in ways]  # by state: those before it, with the symbol
        for state, row in enumerate(self.next_states):
            for token, following in enumerate(row):
                if following != NO_STATE:
                    into[following].append((state, token))
        waiting = deque(state for state, end in enumerate(ends) if end)
        while waiting:
            state = waiting.popleft()
            way = ways[state]
            assert way is not None
            for previous, token in into[state]:
                if ways[previous] is None:
                    ways[previous] = (token, *way)
                    waiting.append(previous)
        return ways
