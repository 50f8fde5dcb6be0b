"""Rearrangements: texts whose symbols are written elsewhere, at places that counts say.

    kind = "rearrangement"
    name = "vowels-first"
    symbols = ["a", "b", "c", "e", "-"]
    order = "sorted"
    classes = [["a", "e"], ["b", "c"]]        # of the order sorted; each symbol if not given

    [writes]                                  # each symbol itself if not given
    a = "a"
    b = "b"
    c = "c"
    e = "e"

The order is one of `ORDERS`. A symbol that is not in `writes` has no place: it is skipped, or in
the order stack, it takes the last symbol off. In the order halves symbols come together in pairs,
and `writes` says what each pair becomes, whichever comes first: `"0 2" = "0"`, or "" for nothing.
Pairs that are not there are not allowed. The order stack needs `end`, which is written last.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import MOST_ENTRIES, MOST_VALUES, require
from exactformer.domains.data import Place, a_few, listed, show, suggestion
from exactformer.domains.domain import Domain, Ids, Lengths, TokenType
from exactformer.domains.lexicon import Characters, Lexicon
from exactformer.domains.symbols import (
    EMPTY,
    NAME_IN_WORDS,
    is_name,
    require_distinct,
    symbol_fault,
)

ORDERS: Mapping[str, str] = {  # in words
    "same": "the symbols as they come",
    "reversed": "the last one first",
    "twice": "all of them, and then all of them again",
    "alternate": "the 2nd, the 4th and so on, then the 1st, the 3rd and so on",
    "sorted": "class after class, each as its symbols come",
    "stack": "what is left on a stack, from its top, and then the end",
    "halves": "the symbols of the first half, each with the one at its place in the second",
}

MARK = "$"  # the token below the bottom of a stack, at which the end is written
NOTHING = -1  # in place of a token that is written

Bag = tuple[int, ...]  # token ids, the lowest first


@dataclass(frozen=True)
class Rearrangement(Domain):
    """A rearrangement as plain data.

    symbols   what texts are made of.
    order     a name in `ORDERS`.
    writes    what is written for a symbol, or in the order halves for two with a space between
              them, where "" is nothing; a mapping does, too. Each symbol is written as itself if
              there is none of it.
    classes   the symbols of each class, in the order sorted; each that is written if not given.
    end       the symbol that is written at the end, in the order stack.
    """

    kind = "rearrangement"
    name: str
    symbols: tuple[str, ...]
    order: str
    writes: tuple[tuple[str, str], ...] = ()  # or a mapping, which becomes this
    classes: tuple[tuple[str, ...], ...] = ()
    end: str | None = None

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """Symbols, then those that only answers have, then the mark below a stack."""
        answers = [symbol for _, symbol in self.writes if symbol]
        below = [] if self.end is None else [self.end, MARK]
        return tuple(dict.fromkeys([*self.symbols, *answers, *below]))

    @property
    def mark(self) -> int | None:
        """Token id of the mark below a stack; None in other orders."""
        return None if self.end is None else len(self.vocabulary) - 1

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        return {symbol: i for i, symbol in enumerate(self.vocabulary) if i != self.mark}

    @cached_property
    def lexicon(self) -> Lexicon:
        return (Characters if self.packs else Lexicon)(self.token_ids)

    @cached_property
    def packs(self) -> bool:
        return all(len(symbol) == 1 for symbol in self.vocabulary)

    @cached_property
    def bags(self) -> Mapping[Bag, int]:
        """The token that is written for each bag of tokens that may come together; NOTHING if none
        is.
        """
        ids = self.token_ids
        found = {
            tuple(sorted(ids[word] for word in bag.split())): ids[symbol] if symbol else NOTHING
            for bag, symbol in self.writes
        }
        if self.mark is not None:
            assert self.end is not None
            found[(self.mark,)] = ids[self.end]
        return found

    @cached_property
    def has_place(self) -> NDArray[np.bool_]:
        """Whether each token is brought to a place."""
        found = np.zeros(len(self.vocabulary), dtype=bool)
        found[[token for bag in self.bags for token in bag]] = True
        found.setflags(write=False)
        return found

    @cached_property
    def counted(self) -> NDArray[np.int16] | None:
        """The class of each token that has a place, or its step on the stack; None in an order that
        counts places only.
        """
        found = np.zeros(len(self.vocabulary), dtype=np.int16)
        if self.order == "stack":
            found[: len(self.symbols)] = np.where(self.has_place[: len(self.symbols)], 1, -1)
        elif self.order == "sorted":
            for number, symbols in enumerate(self.classes):
                found[[self.token_ids[symbol] for symbol in symbols]] = number
        else:
            return None
        found.setflags(write=False)
        return found

    @property
    def max_fan_in(self) -> int:
        return 2 if self.order == "halves" else 1

    def token_type(self, token: int) -> TokenType:
        return "operator" if token == self.mark else "value"

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        known, has_place = range(len(self.symbols)), self.has_place.tolist()
        for place, token in enumerate(ids):
            if token not in known:
                return place, f"expected {a_few(self.symbols)}, {{found}}"
        if not ids:
            return 0, f"expected {a_few(self.symbols)}, {{found}}"
        places = [place for place, token in enumerate(ids) if has_place[token]]
        if self.order == "halves":
            return self._pair_error(ids, places)
        if not places and self.end is None:
            symbols = [s for s, written in zip(self.symbols, has_place, strict=False) if written]
            return len(ids), f"expected a symbol that is written: {a_few(symbols)}, {{found}}"
        return None

    def _pair_error(self, ids: list[int], places: list[int]) -> tuple[int, str] | None:
        half = len(places) // 2
        if len(places) % 2:
            symbols = [self.symbols[i] for i in np.flatnonzero(self.has_place[: len(self.symbols)])]
            return len(ids), f"expected {a_few(symbols)}: a second half as long, {{found}}"
        written = False
        for first, second in zip(places[:half], places[half:], strict=True):
            bag = tuple(sorted((ids[first], ids[second])))
            if bag not in self.bags:
                beside = [b if a == ids[first] else a for a, b in self.bags if ids[first] in (a, b)]
                symbols = [self.symbols[token] for token in beside]
                one = show(self.symbols[ids[first]])
                return second, f"expected {a_few(symbols)} to go with {one}, {{found}}"
            written = written or self.bags[bag] != NOTHING
        if not written:
            return len(ids), "expected a pair for which a symbol is written, {found}"
        return None

    def layer(self, iterations: str) -> str:
        return "rearrange"

    def positions(self, ids: Ids, lengths: Lengths) -> tuple[Ids, Lengths]:
        """Texts that are written twice take twice the room; the mark below a stack goes first."""
        ends = np.cumsum(lengths)
        if self.order == "twice":
            return np.insert(ids, np.repeat(ends, lengths), np.int16(EMPTY)), 2 * lengths
        if self.mark is not None:
            return np.insert(ids, ends - lengths, np.int16(self.mark)), lengths + 1
        return ids, lengths

    def answers(self, tokens: NDArray[np.int64], lengths: Lengths) -> list[str | None]:
        is_answer = np.isin(tokens, [token for token in self.bags.values() if token != NOTHING])
        between, vocabulary = "" if self.packs else " ", self.vocabulary
        found: list[str | None] = []
        for end, length in zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True):
            part = slice(end - length, end)
            whole = length > 0 and bool(is_answer[part].all())
            symbols = [vocabulary[token] for token in tokens[part].tolist()] if whole else []
            found.append(between.join(symbols) if whole else None)
        return found

    @property
    def answer_symbols(self) -> tuple[str, ...]:
        return self._answer_symbols

    @cached_property
    def _answer_symbols(self) -> tuple[str, ...]:
        return tuple(self.vocabulary[i] for i in sorted({*self.bags.values()} - {NOTHING}))

    @property
    def answers_in_places(self) -> bool:
        return True

    def read_answer(self, text: str) -> str | None:
        words = self.lexicon.scanner.findall(text)
        if not words or not {*words} <= {*self._answer_symbols}:
            return None
        return ("" if self.packs else " ").join(words)

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        """Every text of this many symbols, in the order of the symbols."""
        for ids in product(range(len(self.symbols)), repeat=length):
            if self.first_error([*ids], []) is None:
                yield ids

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            "symbols": list(self.symbols),
            "order": self.order,
            "writes": dict(self.writes),
        }
        if self.order == "sorted":
            data["classes"] = [list(symbols) for symbols in self.classes]
        return data if self.end is None else data | {"end": self.end}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Rearrangement":
        """Read a rearrangement from the data of `to_dict` or of a file, which may be untrusted."""
        top = Place(data).fields(("kind", "name", "symbols", "order"), ("writes", "classes", "end"))
        order = top["order"].one_of(ORDERS)
        for name, of in {"classes": "sorted", "end": "stack"}.items():
            if name in top and order != of:
                raise top[name].fault(f"expected none in the order {order}, found one")
        writes: list[tuple[str, str]] = []
        if "writes" in top:
            if not isinstance(top["writes"].value, dict):
                raise top["writes"].unexpected("an object")
            require("writes", len(top["writes"].value), MOST_ENTRIES)
            rows = top["writes"].fields((), top["writes"].value)
            writes = [(bag, place.text()) for bag, place in rows.items()]
        classes = top["classes"].items(MOST_VALUES) if "classes" in top else []
        return cls(
            top["name"].text(),
            tuple(place.text() for place in top["symbols"].items(MOST_VALUES)),
            order,
            tuple(writes),
            tuple(tuple(item.text() for item in place.items(MOST_VALUES)) for place in classes),
            top["end"].text() if "end" in top else None,
        )

    def __post_init__(self) -> None:
        """Raise a ValueError that says what is wrong, and where, unless all is right. What is not
        given is filled in.
        """
        writes = self.writes.items() if isinstance(self.writes, Mapping) else self.writes
        object.__setattr__(self, "symbols", tuple(self.symbols))
        object.__setattr__(self, "classes", tuple(map(tuple, self.classes)))
        if not is_name(self.name):
            raise ValueError(f"name: expected {NAME_IN_WORDS}, found {show(self.name)}")
        require("symbols", len(self.symbols), MOST_VALUES)
        if not self.symbols:
            raise ValueError("symbols: expected some, found none")
        require_distinct("symbols", self.symbols)
        if self.order not in ORDERS:
            hint = suggestion(self.order, ORDERS)
            raise ValueError(f"order: expected {listed([*ORDERS])}, found {show(self.order)}{hint}")
        if not writes and self.order != "halves":
            writes = [(symbol, symbol) for symbol in self.symbols]
        object.__setattr__(self, "writes", tuple(map(tuple, writes)))
        if (self.end is not None) != (self.order == "stack"):
            given = "none" if self.end is None else show(self.end)
            expected = "a symbol" if self.end is None else f"none in the order {self.order}"
            raise ValueError(f"end: expected {expected}, found {given}")
        self._check_writes()
        if not self.classes and self.order == "sorted":
            of_its_own = tuple((s,) for s in self.symbols if s in dict(self.writes))
            object.__setattr__(self, "classes", of_its_own)
        self._check_classes()
        answers = {f"writes.{show(bag)}": symbol for bag, symbol in self.writes if symbol}
        every = {f"symbols[{i}]": symbol for i, symbol in enumerate(self.symbols)} | answers
        for where, symbol in (every | ({} if self.end is None else {"end": self.end})).items():
            fault = symbol_fault(symbol)
            if symbol == MARK and self.mark is not None:
                fault = "stands for the bottom of a stack"
            if fault:
                raise ValueError(f"{where}: {show(symbol)} {fault}")

    def _check_writes(self) -> None:
        """Raise a ValueError unless bags are of as many symbols as come together."""
        size, seen = self.max_fan_in, set()
        expected = "two symbols with a space between them" if size == 2 else "one symbol"
        for bag, symbol in self.writes:
            where, words = f"writes.{show(bag)}", bag.split()
            if len(words) != size:
                raise ValueError(f"{where}: expected {expected}, found {len(words)}")
            for word in words:
                if word not in self.symbols:
                    hint = suggestion(word, self.symbols)
                    raise ValueError(f"{where}: there is no symbol {show(word)}{hint}")
            if (key := tuple(sorted(words))) in seen:
                raise ValueError(f"{where}: it is there twice")
            seen.add(key)
            if not symbol and size == 1:
                raise ValueError(f"{where}: expected a symbol, found ''; leave out what is skipped")
        if not any(symbol for _, symbol in self.writes):
            raise ValueError(f"writes: expected a symbol that is written for {expected}")

    def _check_classes(self) -> None:
        """Raise a ValueError unless each symbol that is written is in one class."""
        if self.classes and self.order != "sorted":
            raise ValueError(f"classes: expected none in the order {self.order}, found some")
        written, seen = dict(self.writes), set()
        for i, symbols in enumerate(self.classes):
            if not symbols:
                raise ValueError(f"classes[{i}]: expected some symbols, found none")
            for j, symbol in enumerate(symbols):
                if symbol not in written:
                    hint = suggestion(symbol, written)
                    raise ValueError(
                        f"classes[{i}][{j}]: {show(symbol)} is not among what is written{hint}"
                    )
                if symbol in seen:
                    raise ValueError(f"classes[{i}][{j}]: {show(symbol)} is there twice")
                seen.add(symbol)
        for symbol in written:
            if self.classes and symbol not in seen:
                raise ValueError(f"classes: {show(symbol)} is in none")
