"""Machines over spans: what stands between parentheses is read by a machine, symbol by symbol.

    kind = "span-machine"
    name = "last"
    symbols = ["LAST", "0", "1"]
    states = ["begin", "none", "zero", "one"]
    start = "begin"
    partial = true

    [transitions]
    begin = { LAST = "none" }
    none = { 0 = "zero", 1 = "one" }
    zero = { 0 = "zero", 1 = "one" }
    one = { 0 = "zero", 1 = "one" }

    [outputs]                             # the value of the span, by the state at its `)`
    zero = "0"
    one = "1"

The data is that of a machine that answers at the end and is read from the left. An inner span is
read as one symbol, its value: so outputs are symbols, too. `(LAST 0 (LAST 1 0) 1)` is 1.

Which symbols are allowed must not depend on the value of an inner span: a reader finds mistakes
before anything is evaluated. States that can be told apart by values alone are one *phase*; all
states of a phase must allow the same symbols, and values all or none.
"""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.data import listed, show
from exactformer.domains.domain import Ids, Lengths, TokenType
from exactformer.domains.machines import NO_STATE, Ints, Machine, ReadByMachine
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN

VALUE = -1  # in place of a token: any value, or an inner span
SHOWN = 12  # symbols that a message lists


@dataclass(frozen=True)
class Phase:
    """Symbols that may follow in all states of a phase.

    after      the number of the phase after each token that is no value, and after VALUE.
    ends       whether the span may end.
    to_close   least number of symbols up to where it may; -1 if it never may.
    """

    after: Mapping[int, int]
    ends: bool
    to_close: int


@dataclass(frozen=True)
class SpanMachine(ReadByMachine):
    """A machine over spans, as plain data: the machine, which answers at the end with symbols."""

    kind = "span-machine"
    machine: Machine

    def __post_init__(self) -> None:
        """Raise a ValueError that says what is wrong, and where, unless all is right."""
        machine = self.machine
        if not machine.answers_at_end:
            raise ValueError("outputs: expected one for each state: the value of a span")
        if machine.read != "left":
            raise ValueError("read: expected left: spans are read from there")
        for i, symbol in enumerate(machine.symbols):
            if symbol in ("(", ")"):
                raise ValueError(f"symbols[{i}]: {show(symbol)} stands around every span")
        for state, value in zip(machine.states, machine.outputs, strict=True):
            if value is not None and value not in machine.symbols:
                raise ValueError(f"outputs.{state}: {show(value)} is none of the symbols")
        _ = self.phases  # refuse here what has none

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.machine.name

    @property
    def states(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.machine.states

    @property
    def start(self) -> int:  # type: ignore[override]
        return self.machine.start

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The symbols that are values of spans, in the order of the symbols."""
        return tuple(symbol for symbol in self.machine.symbols if symbol in self.machine.outputs)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        return ("(", ")", *self.machine.symbols)

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        return {symbol: i for i, symbol in enumerate(self.vocabulary)}

    @cached_property
    def value_ids(self) -> frozenset[int]:
        return frozenset(self.token_ids[value] for value in self.values)

    @property
    def end(self) -> int:
        return CLOSE

    @cached_property
    def next_states(self) -> Ints:
        none = np.full((len(self.states), FIRST_VALUE), NO_STATE)
        return np.hstack([none, np.array(self.machine.transitions)])

    @cached_property
    def output_ids(self) -> Ints:
        ids = np.full((len(self.states), len(self.vocabulary)), -1)
        for state, value in enumerate(self.machine.outputs):
            if isinstance(value, str):
                ids[state, CLOSE] = self.token_ids[value]
        return ids

    def text_of(self, read: Any) -> tuple[int, ...]:
        return (OPEN, *read, CLOSE)

    def token_type(self, token: int) -> TokenType:
        if token < FIRST_VALUE:
            return "parenthesis"
        return "value" if token in self.value_ids else "operator"

    @cached_property
    def phases(self) -> tuple[Phase, ...]:
        """The phases, the first of them that of the start."""
        same = self._same_phase()
        number = {root: i for i, root in enumerate(dict.fromkeys([same[self.start], *same]))}
        members: dict[int, list[int]] = {root: [] for root in number}
        for state, root in enumerate(same):
            members[root].append(state)
        phases: list[Phase] = []
        ends, rows = self.output_ids[:, CLOSE] >= 0, self.next_states.tolist()
        for states in members.values():
            after: dict[int, int] = {}
            for token in range(FIRST_VALUE, len(self.vocabulary)):
                following = {rows[q][token] for q in states}
                if NO_STATE in following and len(following) > 1:
                    raise self._ambiguous(states, self.vocabulary[token])
                phase = number[same[following.pop()]] if NO_STATE not in following else NO_STATE
                if after.setdefault(self._key(token), phase) != phase:
                    raise self._ambiguous(states, "values")
            if len({bool(ends[q]) for q in states}) > 1:
                raise self._ambiguous(states, "the end")
            allowed = {token: phase for token, phase in after.items() if phase != NO_STATE}
            phases.append(Phase(allowed, bool(ends[states[0]]), -1))
        return _with_ways_to_close(phases)

    def _ambiguous(self, states: list[int], what: str) -> ValueError:
        names = listed([show(self.states[q]) for q in states[:SHOWN]], "and")
        return ValueError(
            f"transitions: whether {what} may follow depends on the value of an inner span: the "
            f"states {names} must allow the same"
        )

    def _same_phase(self) -> list[int]:
        """A state of its phase for each state. What the same symbol leads to from one phase is one
        phase; and all values are the same symbol. (Classes are merged, and for each two that are,
        what one symbol leads to from both is merged next: as many merges as states at most.)
        """
        rows = [
            {self._key(token): q for token, q in enumerate(row) if q != NO_STATE}
            for row in self.next_states.tolist()
        ]
        parent = [*range(len(rows))]

        def root(state: int) -> int:
            while parent[state] != state:
                parent[state] = state = parent[parent[state]]
            return state

        values = [token for token in range(len(self.vocabulary)) if token in self.value_ids]
        waiting = [
            (int(q), row[VALUE])
            for row, following in zip(rows, self.next_states[:, values], strict=True)
            for q in following
            if q != NO_STATE
        ]
        while waiting:
            first, other = (root(state) for state in waiting.pop())
            if first == other:
                continue
            parent[other] = first
            for key, following in rows[other].items():
                waiting.append((rows[first].setdefault(key, following), following))
        return [root(state) for state in parent]

    def _key(self, token: int) -> int:
        return VALUE if token in self.value_ids else token

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        if not ids:
            return 0, "expected a value or '(', {found}"
        if ids[0] != OPEN:
            if ids[0] not in self.value_ids:
                return 0, "expected a value or '(', {found}"
            return (1, "expected the end of the text, {found}") if len(ids) > 1 else None
        enclosing: list[int] = []
        phase, empty = -1, False  # of the innermost open span; -1 outside
        for place, token in enumerate(ids):
            if place and not enclosing and phase < 0:
                return place, "expected the end of the text, {found}"
            allowed = self.phases[phase] if phase >= 0 else None
            if token == OPEN:
                if allowed and VALUE not in allowed.after:
                    return place, self._expected(allowed, empty)
                enclosing.append(phase)
                phase, empty = 0, True
                continue
            assert allowed is not None
            if token == CLOSE:
                if empty or not allowed.ends:
                    return place, self._expected(allowed, empty)
                phase, token = enclosing.pop(), VALUE
                if phase < 0:
                    continue
            following = self.phases[phase].after.get(self._key(token))
            if following is None:
                return place, self._expected(allowed, empty)
            phase, empty = following, False
        if phase >= 0:
            return len(ids), self._expected(self.phases[phase], empty)
        return None

    def _expected(self, phase: Phase, empty: bool) -> str:
        """The beginning of a message about a token that may not follow: those that may."""
        words = [self.vocabulary[token] for token in phase.after if token != VALUE]
        shown = words[:SHOWN] + [f"... ({len(words)} in all)"] * (len(words) > SHOWN)
        shown += ["a value", "'('"] * (VALUE in phase.after)
        shown += ["')'"] * (phase.ends and not empty)
        return f"expected {listed(shown) if shown else 'nothing'}, {{found}}"

    def layer(self, iterations: str) -> str:
        return "span-machine"

    def positions(self, ids: Ids, lengths: Lengths) -> tuple[Ids, Lengths]:
        return ids, lengths

    def answers(self, tokens: NDArray[np.int64], lengths: Lengths) -> list[str | None]:
        found: list[str | None] = []
        for end, length in zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True):
            token = int(tokens[end - 1]) if length == 1 else OPEN
            found.append(self.vocabulary[token] if token in self.value_ids else None)
        return found

    @property
    def answer_symbols(self) -> Collection[str]:
        return self.values

    def read_answer(self, text: str) -> str | None:
        return text.strip() if text.strip() in self.values else None

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        """Every text of this many tokens, depth first."""
        if length == 1:
            yield from ((token,) for token in sorted(self.value_ids))
        # Each text that is begun: its tokens, the phases of its open spans, the least to come.
        begun = [((OPEN,), (0,), True)] if length > 2 else []
        while begun:
            tokens, open_spans, empty = begun.pop()
            if not open_spans:
                if len(tokens) == length:
                    yield tokens
                continue
            *around, phase = open_spans
            here = self.phases[phase]
            ahead = [self.phases[self.phases[outer].after[VALUE]] for outer in around] + [here]
            least = sum(1 + span.to_close for span in ahead) + (empty and here.ends)
            if len(tokens) + least > length:
                continue
            following = []
            if here.ends and not empty:
                outer = [*around[:-1], self.phases[around[-1]].after[VALUE]] if around else []
                following.append(((*tokens, CLOSE), tuple(outer), False))
            if VALUE in here.after:
                following.append(((*tokens, OPEN), (*open_spans, 0), True))
            for token in range(FIRST_VALUE, len(self.vocabulary)):
                if (key := self._key(token)) in here.after:
                    following.append(((*tokens, token), (*around, here.after[key]), False))
            begun += reversed(following)

    def to_dict(self) -> dict[str, Any]:
        return self.machine.to_dict() | {"kind": self.kind}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SpanMachine":
        return cls(Machine.from_dict(data))


def _with_ways_to_close(phases: list[Phase]) -> tuple[Phase, ...]:
    """The phases with the least number of symbols up to where a span may end, without ways to where
    it never may.
    """
    before: list[list[int]] = [[] for _ in phases]
    for i, phase in enumerate(phases):
        for following in phase.after.values():
            before[following].append(i)
    least = {i: 0 for i, phase in enumerate(phases) if phase.ends}
    waiting = deque(least)
    while waiting:
        at = waiting.popleft()
        for i in before[at]:
            if i not in least:
                least[i] = least[at] + 1
                waiting.append(i)
    if 0 not in least:
        raise ValueError("outputs: no span is allowed: no end has a value")
    return tuple(
        Phase({t: q for t, q in phase.after.items() if q in least}, phase.ends, least.get(i, -1))
        for i, phase in enumerate(phases)
    )
