"""Machines: a finite number of states, a text in, and an answer of one symbol or of a whole text.

    kind = "machine"
    name = "parity"
    symbols = ["0", "1"]
    states = ["even", "odd"]
    start = "even"
    read = "left"                         # or "right": from which end; "left" if not given

    [transitions]                         # the next state, by state and symbol
    even = { 0 = "even", 1 = "odd" }
    odd = { 0 = "odd", 1 = "even" }

    [outputs]                             # at the end, by the state that the machine is in then
    even = "0"
    odd = "1"

A machine that answers with a symbol for each symbol has outputs by state and symbol, as transitions
are: `even = { 0 = "0", 1 = "1" }`.

With `partial = true` transitions may be missing: such a symbol is not allowed in such a state. Of a
machine that answers at the end outputs may be missing, too: no text ends in such a state.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import MOST_STATES, MOST_VALUES, require
from exactformer.domains.data import Place, a_few, show, suggestion
from exactformer.domains.domain import Domain, Ids, Lengths, TokenType
from exactformer.domains.lexicon import Characters, Lexicon
from exactformer.domains.symbols import (
    NAME_IN_WORDS,
    is_name,
    require_distinct,
    symbol_fault,
)

Read = Literal["left", "right"]

END = "$"  # the token behind the last symbol, at which a machine that answers at the end answers
NO_STATE = -1  # in place of a state: the symbol is not allowed here

Ints = NDArray[np.int64]
State = TypeVar("State", bound=Hashable)


class ReadByMachine(Domain):
    """The base of domains of which something is read by a machine: whole texts, or spans.

    states        names of the machine's states.
    start         the state before the first symbol.
    next_states   the next state by state and token; NO_STATE where the token is not allowed.
    output_ids    token id of the answer's symbol by state and token; -1 where there is none.
    end           token id of the mark of the end; None if there is none, so that each symbol has an
                  answer.
    """

    states: tuple[str, ...]
    start: int
    next_states: "cached_property[Ints]"
    output_ids: "cached_property[Ints]"

    @property
    @abstractmethod
    def end(self) -> int | None: ...

    @abstractmethod
    def text_of(self, read: Sequence[int]) -> tuple[int, ...]:
        """The token ids of a text in which the machine reads these symbols, in this order."""

    @cached_property
    def lexicon(self) -> Lexicon:
        return (Characters if self.packs else Lexicon)(self.token_ids)

    @cached_property
    def packs(self) -> bool:
        return all(len(symbol) == 1 for symbol in self.vocabulary)

    @property
    def max_fan_in(self) -> int:
        return 1


@dataclass(frozen=True)
class Machine(ReadByMachine):
    """A machine as plain data. States and symbols are numbered in their order.

    symbols       what texts are made of.
    states        their names.
    transitions   the next state by state and symbol; NO_STATE where the symbol is not allowed.
    outputs       the answer's symbol by state and symbol; or, of a machine that answers at the end,
                  a single one by state. None where a symbol, or the end, is not allowed.
    start         the state before the first symbol.
    read          the end of a text that is read first.
    """

    kind = "machine"
    name: str
    symbols: tuple[str, ...]
    states: tuple[str, ...]
    transitions: tuple[tuple[int, ...], ...]
    outputs: tuple[tuple[str | None, ...] | str | None, ...]
    start: int = 0
    read: Read = "left"

    @classmethod
    def from_rule(
        cls,
        name: str,
        symbols: Sequence[str],
        start: State,
        step: Callable[[State, str], State | None],
        end: Callable[[State], str | None] | None = None,
        each: Callable[[State, str], str] | None = None,
        read: Read = "left",
    ) -> "Machine":
        """The machine with the states that `step` leads to from `start`.

        step   the next state by state and symbol; None where the symbol is not allowed.
        end    the answer by the state at the end; None where no text ends. Either this or `each`.
        each   the answer's symbol by state and symbol.
        """
        if (end is None) == (each is None):
            raise ValueError("expected `end` or `each`, and not both")
        numbers: dict[State, int] = {start: 0}
        transitions: list[tuple[int, ...]] = []
        found = [start]
        for state in found:  # it grows
            row = []
            for symbol in symbols:
                if (following := step(state, symbol)) is None:
                    row.append(NO_STATE)
                    continue
                if following not in numbers:
                    require("states", len(numbers) + 1, MOST_STATES)
                    numbers[following] = len(found)
                    found.append(following)
                row.append(numbers[following])
            transitions.append(tuple(row))
        outputs: list[tuple[str | None, ...] | str | None] = []
        for state, row in zip(found, transitions, strict=True):
            if end is not None:
                outputs.append(end(state))
            else:
                assert each is not None
                pairs = zip(symbols, row, strict=True)
                outputs.append(
                    tuple(each(state, symbol) if q != NO_STATE else None for symbol, q in pairs)
                )
        names = tuple(map(str, found))
        return cls(name, tuple(symbols), names, tuple(transitions), tuple(outputs), read=read)

    @cached_property
    def answers_at_end(self) -> bool:
        """Whether the answer is one symbol, given at the end, and not one for each symbol."""
        return not any(isinstance(row, tuple) for row in self.outputs)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Symbols, then those that only answers have, then the mark of the end, if it is used."""
        rows = [row if isinstance(row, tuple) else (row,) for row in self.outputs]
        answers = [symbol for row in rows for symbol in row if symbol is not None]
        end = [END] if self.answers_at_end else []
        return (*dict.fromkeys([*self.symbols, *answers]), *end)

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        return {symbol: i for i, symbol in enumerate(self.vocabulary) if i != self.end}

    @property
    def end(self) -> int | None:
        return len(self.vocabulary) - 1 if self.answers_at_end else None

    @cached_property
    def output_ids(self) -> Ints:
        ids = np.full((len(self.states), len(self.vocabulary)), -1)
        for state, row in enumerate(self.outputs):
            answers = row if isinstance(row, tuple) else (row,)
            first = 0 if self.end is None else self.end
            for token, symbol in enumerate(answers, start=first):
                if symbol is not None:
                    ids[state, token] = self.token_ids[symbol]
        ids.setflags(write=False)
        return ids

    @cached_property
    def next_states(self) -> Ints:
        following = np.full((len(self.states), len(self.vocabulary)), NO_STATE)
        following[:, : len(self.symbols)] = self.transitions
        following.setflags(write=False)
        return following

    def text_of(self, read: Sequence[int]) -> tuple[int, ...]:
        return tuple(read if self.read == "left" else read[::-1])

    def token_type(self, token: int) -> TokenType:
        return "operator" if token == self.end else "value"

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        if not ids:
            return 0, f"expected {a_few(self.symbols)}, {{found}}"
        state, backwards = self.start, self.read == "right"
        for step, token in enumerate(reversed(ids) if backwards else ids):
            place = len(ids) - 1 - step if backwards else step
            if not 0 <= token < len(self.symbols):
                return place, f"expected {a_few(self.symbols)}, {{found}}"
            following = self.transitions[state][token]
            if following == NO_STATE:
                return place, f"expected {a_few(self._allowed(state))}, {{found}}"
            state = following
        if self.answers_at_end and self.outputs[state] is None:
            before = " before the first symbol" if backwards else ""
            place = 0 if backwards else len(ids)
            return place, f"expected {a_few(self._allowed(state))}{before}, {{found}}"
        return None

    def _allowed(self, state: int) -> list[str]:
        row = zip(self.symbols, self.transitions[state], strict=True)
        return [symbol for symbol, following in row if following != NO_STATE]

    def layer(self, iterations: str) -> str:
        return "machine"

    def positions(self, ids: Ids, lengths: Lengths) -> tuple[Ids, Lengths]:
        """The mark of the end goes behind the symbol that is read last."""
        if self.end is None:
            return ids, lengths
        ends = np.cumsum(lengths)
        places = ends - lengths if self.read == "right" else ends
        return np.insert(ids, places, np.int16(self.end)), lengths + 1

    def answers(self, tokens: NDArray[np.int64], lengths: Lengths) -> list[str | None]:
        is_answer = np.isin(tokens, self.output_ids[self.output_ids >= 0])
        between, vocabulary = "" if self.packs else " ", self.vocabulary
        found: list[str | None] = []
        for end, length in zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True):
            part = slice(end - length, end)
            whole = length == 1 if self.answers_at_end else length > 0
            whole = whole and bool(is_answer[part].all())
            symbols = [vocabulary[token] for token in tokens[part].tolist()] if whole else []
            found.append(between.join(symbols) if whole else None)
        return found

    @property
    def answer_symbols(self) -> tuple[str, ...]:
        return self._answer_symbols

    @cached_property
    def _answer_symbols(self) -> tuple[str, ...]:
        given = np.unique(self.output_ids[self.output_ids >= 0])
        return tuple(self.vocabulary[token] for token in given.tolist())

    def read_answer(self, text: str) -> str | None:
        words = self.lexicon.scanner.findall(text)
        whole = len(words) == 1 if self.answers_at_end else len(words) > 0
        if not whole or not {*words} <= {*self._answer_symbols}:
            return None
        return ("" if self.packs else " ").join(words)

    @property
    def answers_in_places(self) -> bool:
        return not self.answers_at_end

    def completions(self, length: int) -> NDArray[np.float64]:
        """In row k, the share of each state in the ways to go on for k symbols to the end of a
        text; rows have the sum 1, unless there is no way.
        """
        allowed = self.next_states != NO_STATE
        ends = np.array([not self.answers_at_end or row is not None for row in self.outputs])
        rows = [ends / max(1, ends.sum())]
        for _ in range(length):
            ways = (rows[-1][self.next_states] * allowed).sum(1)
            rows.append(ways / (ways.sum() or 1.0))
        return np.array(rows)

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        """Every text of this many symbols, in the order of the symbols as they are read."""
        can_end = self.completions(length) > 0
        begun: list[tuple[int, tuple[int, ...]]] = [(self.start, ())] if length else []
        while begun:
            state, tokens = begun.pop()
            if not can_end[length - len(tokens), state]:
                continue
            if len(tokens) == length:
                yield tokens if self.read == "left" else tokens[::-1]
                continue
            row = self.transitions[state]
            begun += [(q, (*tokens, t)) for t, q in reversed([*enumerate(row)]) if q != NO_STATE]

    def to_dict(self) -> dict[str, Any]:
        def by_symbol(row: Iterable[str | None]) -> dict[str, str]:
            pairs = zip(self.symbols, row, strict=True)
            return {symbol: part for symbol, part in pairs if part is not None}

        def by_state(rows: Iterable[Any]) -> dict[str, Any]:
            pairs = zip(self.states, rows, strict=True)
            return {state: part for state, part in pairs if part is not None}

        names = (*self.states, None)  # NO_STATE is -1
        return {
            "kind": self.kind,
            "name": self.name,
            "symbols": list(self.symbols),
            "states": list(self.states),
            "start": self.states[self.start],
            "read": self.read,
            "partial": self.is_partial,
            "transitions": by_state(by_symbol(names[q] for q in row) for row in self.transitions),
            "outputs": by_state(
                by_symbol(row) if isinstance(row, tuple) else row for row in self.outputs
            ),
        }

    @cached_property
    def is_partial(self) -> bool:
        """Whether some symbol, or the end, is not allowed in some state."""
        return any(NO_STATE in row for row in self.transitions) or None in self.outputs

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Machine":
        """Read a machine from the data of `to_dict` or of a file, which may be untrusted."""
        required = ("kind", "name", "symbols", "states", "start", "transitions", "outputs")
        top = Place(data).fields(required, ("read", "partial"))
        symbols = tuple(place.text() for place in top["symbols"].items(MOST_VALUES))
        states = tuple(place.text() for place in top["states"].items(MOST_STATES))
        for name, words in {"symbols": symbols, "states": states}.items():
            require_distinct(name, words)
        number = {state: i for i, state in enumerate(states)}
        partial = "partial" in top and top["partial"].flag()
        end = isinstance(top["outputs"].value, dict) and any(
            isinstance(row, str) for row in top["outputs"].value.values()
        )

        def of_states(name: str, needed: bool) -> list[Place | None]:
            found = top[name].fields(states if needed else (), () if needed else states)
            return [found.get(state) for state in states]

        def of_symbols(row: Place | None) -> list[Place | None]:
            if row is None:
                return [None] * len(symbols)
            found = row.fields(() if partial else symbols, symbols if partial else ())
            return [found.get(symbol) for symbol in symbols]

        def state(place: Place | None) -> int:
            if place is None:
                return NO_STATE
            if (name := place.text()) not in number:
                raise place.fault(f"there is no state {show(name)}{suggestion(name, states)}")
            return number[name]

        def text(place: Place | None) -> str | None:
            return None if place is None else place.text()

        transitions = (of_symbols(row) for row in of_states("transitions", not partial))
        outputs = of_states("outputs", not partial)
        return cls(
            top["name"].text(),
            symbols,
            states,
            tuple(tuple(map(state, row)) for row in transitions),
            tuple(text(row) if end else tuple(map(text, of_symbols(row))) for row in outputs),
            state(top["start"]),
            top["read"].one_of(get_args(Read)) if "read" in top else "left",  # type: ignore[arg-type]
        )

    def __post_init__(self) -> None:
        """Raise a ValueError that says what is wrong, and where, unless all is right. Lists become
        tuples.
        """
        for name in ("symbols", "states", "transitions", "outputs"):
            object.__setattr__(self, name, _as_tuples(getattr(self, name)))
        if not is_name(self.name):
            raise ValueError(f"name: expected {NAME_IN_WORDS}, found {show(self.name)}")
        require("states", len(self.states), MOST_STATES)
        require("symbols", len(self.symbols), MOST_VALUES)
        for name, words in {"symbols": self.symbols, "states": self.states}.items():
            if not words:
                raise ValueError(f"{name}: expected some, found none")
            require_distinct(name, words)
        if self.read not in get_args(Read):
            raise ValueError(f"read: expected left or right, found {show(self.read)}")
        if self.start not in range(len(self.states)):
            raise ValueError(f"start: expected the number of a state, found {show(self.start)}")
        self._check_rows()
        for i, symbol in enumerate(self.vocabulary[: None if self.end is None else -1]):
            fault = symbol_fault(symbol)
            if symbol == END and self.end is not None:
                fault = "stands for the end of a text in machines that answer there"
            if fault:
                where = f"symbols[{i}]" if i < len(self.symbols) else "outputs"
                raise ValueError(f"{where}: {show(symbol)} {fault}")
        reached = {self.start}
        waiting = [self.start]
        while waiting:
            following = {*self.transitions[waiting.pop()]} - reached - {NO_STATE}
            reached |= following
            waiting += following
        for i, state in enumerate(self.states):
            if i not in reached:
                raise ValueError(f"states[{i}]: {show(state)} cannot be reached from the start")
        if not self._has_texts:
            raise ValueError("outputs: no text is allowed: no end has an answer")

    def _check_rows(self) -> None:
        """Raise a ValueError unless there is a row for each state, with an entry a symbol."""
        for name, rows in {"transitions": self.transitions, "outputs": self.outputs}.items():
            if len(rows) != len(self.states):
                raise ValueError(
                    f"{name}: expected a row for each of {len(self.states)} states, "
                    f"found {len(rows)}"
                )
        for i, (row, outputs) in enumerate(zip(self.transitions, self.outputs, strict=True)):
            state = self.states[i]
            if len(row) != len(self.symbols) or not {*row} <= {*range(-1, len(self.states))}:
                raise ValueError(
                    f"transitions.{state}: expected the number of a state, or {NO_STATE}, for "
                    f"each of {len(self.symbols)} symbols"
                )
            if self.answers_at_end:
                continue
            missing = [q == NO_STATE for q in row]
            if not isinstance(outputs, tuple) or [part is None for part in outputs] != missing:
                raise ValueError(
                    f"outputs.{state}: expected a symbol for each symbol that has a transition"
                )

    @property
    def _has_texts(self) -> bool:
        """Whether there is a text with a symbol in it that the machine answers."""
        allowed = self.next_states[self.next_states != NO_STATE]
        return any(not self.answers_at_end or self.outputs[q] is not None for q in allowed.tolist())


def _as_tuples(part: Any) -> Any:
    return tuple(map(_as_tuples, part)) if isinstance(part, list | tuple) else part
