"""A finite ordered set of values and the operators on them: everything that defines a task.

An `Algebra` is data. Everything that differs between Boolean formulas, arithmetic modulo ten
and ListOps is in one of these; nothing else in the package knows a task by name.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import (
    MOST_CASES,
    MOST_ENTRIES,
    MOST_NUMBERS,
    MOST_OPERATORS,
    MOST_SPELLINGS,
    MOST_VALUES,
    require,
)
from exactformer.domains.data import Place, listed
from exactformer.domains.domain import Domain, TokenType
from exactformer.domains.grammar import Grammar
from exactformer.domains.lexicon import Lexicon, is_word
from exactformer.domains.notation import NOTATIONS, Notation
from exactformer.domains.operators import Operator, read_operator
from exactformer.domains.precedence import Direction, Level, read_levels
from exactformer.domains.rules import RuleTable, count_keys, operand_keys
from exactformer.domains.symbols import CLOSE as CLOSE
from exactformer.domains.symbols import EMPTY, FIRST_VALUE, NAME_IN_WORDS, is_name, symbol_fault
from exactformer.domains.symbols import OPEN as OPEN

Ints = NDArray[np.int64]

BRACKETS = ("(", ")", "[", "]")
AN_ALGEBRA = "an Algebra, such as exactformer.boolean()"
SHOWN_SYMBOLS = 12  # symbols of a list that one line about an algebra shows


@dataclass(frozen=True)
class Algebra(Domain):
    """Values, operators on them, and how expressions are written down.

    notation    "infix": `(a op b)` and `(op a)`, so arities 1 and 2; "prefix": `( op a b ... )`;
                "plain": `a op b op c` and `op a`, where precedence says what belongs together;
                "polish": `op a b ...` and "reverse-polish": `a b ... op`, where arities do.
    spellings   other ways to write a token of the vocabulary, accepted when reading.
    precedence  in plain notation only: the levels of its operators, the loosest first.
    """

    kind = "algebra"

    name: str
    values: tuple[str, ...]
    operators: tuple[Operator, ...]
    notation: Notation
    spellings: Mapping[str, str]
    precedence: tuple[Level, ...]

    def __init__(
        self,
        name: str,
        values: Iterable[str],
        operators: Iterable[Operator],
        notation: str,
        spellings: Mapping[str, str] = MappingProxyType({}),
        precedence: Iterable[Level] = (),
    ) -> None:
        if not is_name(name):
            raise ValueError(f"expected a name of {NAME_IN_WORDS}, found {name!r}")
        if notation not in tuple(NOTATIONS):
            expected = listed([repr(known) for known in NOTATIONS])
            raise ValueError(f"expected notation {expected}, found {notation!r}")
        # The class is frozen, so this is how its fields are set.
        vars(self).update(
            name=name,
            values=tuple(values),
            operators=tuple(operators),
            notation=NOTATIONS[notation],
            spellings=MappingProxyType(dict(spellings)),
            precedence=tuple(precedence),
        )
        if not self.values or not self.operators:
            raise ValueError(f"algebra {self.name!r} needs at least one value and one operator")
        require(f"algebra {self.name!r}, values", len(self.values), MOST_VALUES)
        require(f"algebra {self.name!r}, operators", len(self.operators), MOST_OPERATORS)
        require(f"algebra {self.name!r}, spellings", len(self.spellings), MOST_SPELLINGS)
        self._check_symbols()
        for operator in self.operators:
            self._check_operator(operator)
        arities = {operator.symbol: operator.arities for operator in self.operators}
        for fault in self.notation.precedence_faults(self.precedence, arities):
            raise ValueError(f"algebra {self.name!r}: {fault}")

    def __hash__(self) -> int:
        return hash((self.name, self.vocabulary, self.notation))

    def __repr__(self) -> str:
        operators = [operator.symbol for operator in self.operators]
        return (
            f"Algebra({self.name}: values {_some(self.values)}, operators {_some(operators)}, "
            f"{self.notation})"
        )

    def _check_symbols(self) -> None:
        seen: set[str] = set(BRACKETS[:2])
        for symbol in [*self.values, *(op.symbol for op in self.operators), *self.spellings]:
            if symbol in seen:
                raise ValueError(f"algebra {self.name!r}: the symbol {symbol!r} is used twice")
            if fault := symbol_fault(symbol):
                raise ValueError(f"algebra {self.name!r}: the symbol {symbol!r} {fault}")
            square = symbol in ("[", "]") and symbol in self.spellings
            if not square and any(bracket in symbol for bracket in BRACKETS):
                raise ValueError(f"algebra {self.name!r}: {symbol!r} contains a bracket")
            seen.add(symbol)
        for spelling, symbol in self.spellings.items():
            if symbol not in self.vocabulary:
                raise ValueError(
                    f"algebra {self.name!r}: the spelling {spelling!r} stands for {symbol!r}, "
                    f"which is not in the vocabulary {' '.join(self.vocabulary)}"
                )
        if fault := parentheses_fault(self.spellings):
            raise ValueError(f"algebra {self.name!r}: {fault}")

    def _check_operator(self, operator: Operator) -> None:
        where = f"algebra {self.name!r}, operator {operator.symbol!r}"
        if fault := self.notation.arity_fault(operator.arities, operator.unbounded):
            raise ValueError(f"{where}: {fault}, found {operator.counts}; use prefix notation")
        if isinstance(operator.table, RuleTable):
            if operator.table.n_values != len(self.values):
                raise ValueError(
                    f"{where}: its rule is for {operator.table.n_values} values, "
                    f"found {len(self.values)}"
                )
            return
        n, arities = len(self.values), operator.arities
        require(
            f"{where}, entries of its table", count_keys(n, arities, operator.ordered), MOST_ENTRIES
        )
        expected = set(operand_keys(n, arities, operator.ordered))
        for key in sorted(expected ^ operator.table.keys()):
            operands = " ".join(self.values[i] if i < len(self.values) else f"#{i}" for i in key)
            raise ValueError(
                f"{where}: {'no' if key in expected else 'stray'} entry for {operands}"
            )
        for result in operator.table.values():
            if not 0 <= result < len(self.values):
                raise ValueError(
                    f"{where}: expected results from 0 to {len(self.values) - 1}, found {result}"
                )

    def to_dict(self) -> dict[str, Any]:
        """Everything that defines the algebra, in plain data; tables in symbols, result last."""

        def definition(op: Operator) -> dict[str, Any]:
            if op.rule is not None:
                unbounded = {"unbounded": True} if op.unbounded else {}
                return {"rule": op.rule, "arities": list(op.arities), **unbounded}
            rows = ((*key, value) for key, value in op.table.items())
            return {"table": [[self.values[i] for i in row] for row in rows]}

        levels = [level.to_dict() for level in self.precedence]
        return {
            "name": self.name,
            "notation": str(self.notation),
            "values": list(self.values),
            "operators": [
                {"symbol": op.symbol, "ordered": op.ordered, **definition(op)}
                for op in self.operators
            ],
            "spellings": dict(self.spellings),
            **({"precedence": levels} if levels else {}),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Algebra":
        """Read an algebra from the data that `to_dict` gives. The data may come from an untrusted
        file: every field is checked, and a ValueError says where a mistake is.
        """
        required = ("name", "notation", "values", "operators", "spellings")
        top = Place(data).fields(required, ("precedence",))
        values = tuple(value.text() for value in top["values"].items(MOST_VALUES))
        operators = tuple(
            read_operator(op, values) for op in top["operators"].items(MOST_OPERATORS)
        )
        spellings = top["spellings"]
        if not isinstance(spellings.value, dict):
            raise spellings.unexpected("an object")
        return cls(
            top["name"].text(),
            values,
            operators,
            top["notation"].one_of(NOTATIONS),
            {name: place.text() for name, place in spellings.fields((), spellings.value).items()},
            read_levels(top["precedence"]) if "precedence" in top else (),
        )

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The paper's ordered Sigma: parentheses, values, operators; a token's id is its index."""
        return ("(", ")", *self.values, *(op.symbol for op in self.operators))

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        """Maps every accepted spelling of a token to its token id."""
        ids = {symbol: i for i, symbol in enumerate(self.vocabulary)}
        return ids | {spelling: ids[symbol] for spelling, symbol in self.spellings.items()}

    @cached_property
    def lexicon(self) -> Lexicon:
        return Lexicon(self.token_ids, marks=(OPEN, CLOSE))

    @property
    def first_operator(self) -> int:
        """Token id of the first operator; values have the ids from FIRST_VALUE up to it."""
        return FIRST_VALUE + len(self.values)

    def token_type(self, token: int) -> TokenType:
        if token <= CLOSE:
            return "parenthesis"
        return "value" if token < self.first_operator else "operator"

    @property
    def value_ids(self) -> range:
        return range(FIRST_VALUE, self.first_operator)

    @property
    def operator_ids(self) -> range:
        return range(self.first_operator, len(self.vocabulary))

    @cached_property
    def declared_levels(self) -> Ints:
        """Levels of each token as a prefix operator (row 0) and as a binary operator (row 1): 1 is
        the loosest, 0 means that the token has no such use.
        """
        levels = np.zeros((2, len(self.vocabulary)), dtype=np.int64)
        for number, level in enumerate(self.precedence, start=1):
            row = 0 if level.direction is Direction.PREFIX else 1
            levels[row, [self.token_ids[symbol] for symbol in level.operators]] = number
        levels.setflags(write=False)
        return levels

    @cached_property
    def declared_directions(self) -> Ints:
        """Direction of each level: -1 groups from the left, 1 from the right; 0 for prefix
        operators and for level 0.
        """
        steps = {Direction.LEFT: -1, Direction.RIGHT: 1, Direction.PREFIX: 0}
        directions = np.array([0, *(steps[level.direction] for level in self.precedence)])
        directions.setflags(write=False)
        return directions

    @cached_property
    def parenthesized(self) -> "Algebra":
        """This algebra with all parentheses written: infix if this is plain, prefix if it is Polish
        or reverse Polish, else itself.
        """
        full = self.notation.full
        if full is None:
            return self
        return Algebra(self.name, self.values, self.operators, full, self.spellings)

    def has_spans_of(self, other: Domain) -> bool:
        return (
            isinstance(other, Algebra)
            and other.notation in self.notation.served_by
            and other.vocabulary == self.vocabulary
            and all(map(Operator.agrees_with, self.operators, other.operators))
        )

    @cached_property
    def declared_gates(self) -> Mapping[str, Ints]:
        """The gates that weights have for the notation alone, with the declared numbers."""
        return self.notation.gates(self)

    def layer(self, iterations: str) -> str:
        """The name of the layer that reads its expressions: plain and Polish notation have their
        own.
        """
        return self.notation.layer or iterations

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle and copy an algebra as plain data."""
        return Algebra.from_dict, (self.to_dict(),)

    @property
    def max_fan_in(self) -> int | None:
        """The largest number of operands of any operator; None if an operator takes any number."""
        return None if any(op.unbounded for op in self.operators) else self.require_fan_in()

    def require_fan_in(self) -> int:
        """The largest number of operands of any operator; a ValueError if one takes any number."""
        for op in self.operators:
            if op.unbounded:
                raise ValueError(
                    f"operator {op.symbol!r} of {self.name!r} takes {op.counts} operands: "
                    f"its cases cannot be listed without a bound"
                )
        return max(op.arities[-1] for op in self.operators)

    def cases(self, *, every_order: bool) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Every span of depth 1: its operator, its operands and its result, all as indices."""
        self.require_listable(every_order=every_order)
        for o, operator in enumerate(self.operators):
            for operands, value in operator.cases(len(self.values), every_order=every_order):
                yield o, operands, value

    def case_arrays(self, *, every_order: bool) -> Iterator[tuple[int, Ints, Ints]]:
        """The cases of `cases` in blocks of one operator and arity: operator index, rows of
        operands, results.
        """
        self.require_listable(every_order=every_order, numbers=len(self.vocabulary))
        for o, operator in enumerate(self.operators):
            for arity in operator.arities:
                keys = list(operand_keys(len(self.values), [arity], every_order))
                results = np.array([operator(key) for key in keys])
                yield o, np.array(keys), results

    def count_cases(self, *, every_order: bool) -> int:
        """Number of `cases`, computed without listing them."""
        self.require_fan_in()
        n = len(self.values)
        return sum(count_keys(n, op.arities, every_order) for op in self.operators)

    def require_listable(self, *, every_order: bool, numbers: int = 1) -> None:
        """Raise a ValueError if there are too many cases to list, each with `numbers` numbers."""
        cases = self.count_cases(every_order=every_order)
        units = "units of its rules (constructed/units) need no list"
        require(f"cases of {self.name!r} to be listed", cases, MOST_CASES, units)
        what = f"numbers of {cases} cases of {self.name!r}"
        require(what, cases * numbers, MOST_NUMBERS, units)

    @property
    def ordered(self) -> bool:
        """Whether the order of operands matters anywhere."""
        return any(op.ordered for op in self.operators)

    @property
    def empty_after_close(self) -> bool:
        """Whether a zero vector follows each `)` so that neighbouring spans never touch."""
        return not self.notation.separates_operands

    def positions(self, ids: NDArray[np.int16], lengths: Ints) -> tuple[NDArray[np.int16], Ints]:
        """The token ids that the transformer reads: EMPTY follows each `)` where that is needed."""
        if not self.empty_after_close:
            return ids, lengths
        closing = np.flatnonzero(ids == CLOSE)
        closed = np.searchsorted(closing, np.cumsum(lengths))
        return np.insert(ids, closing + 1, np.int16(EMPTY)), lengths + np.diff(closed, prepend=0)

    def answers(self, tokens: Ints, lengths: Ints) -> list[str | None]:
        """The value of each text of which a single value is left."""
        last = np.append(tokens, CLOSE)[np.minimum(np.cumsum(lengths) - 1, len(tokens))]
        single = (lengths == 1) & (last >= FIRST_VALUE) & (last < self.first_operator)
        names = (*self.values, None)
        return [names[i] for i in np.where(single, last - FIRST_VALUE, -1).tolist()]

    @property
    def answer_symbols(self) -> list[str]:
        return [symbol for symbol, token in self.token_ids.items() if token in self.value_ids]

    def read_answer(self, text: str) -> str | None:
        token = self.token_ids.get(text.strip(), OPEN)
        return self.vocabulary[token] if token in self.value_ids else None

    @property
    def operator_counts(self) -> dict[str, str]:
        return {op.symbol: op.counts for op in self.operators}

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        return self.notation.every(self, length)

    @cached_property
    def grammar(self) -> Grammar:
        return self.notation.grammar(self)

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        failure = self.grammar.first_error(ids)
        read = words[: failure[0]] if failure else words
        return self.grammar.first_mixed_brackets(read) or failure

    @cached_property
    def packs(self) -> bool:
        """Whether text can be read without spaces: every symbol is one character, and no operator
        is a word. Values that never stand side by side may be letters or digits.
        """
        return (
            self.notation.separates_operands
            and all(len(symbol) == 1 for symbol in (*self.vocabulary, *self.lexicon.marks))
            and not any(op.symbol in self.lexicon.words for op in self.operators)
        )


def parentheses_fault(spellings: Mapping[str, object]) -> str | None:
    """Why parentheses cannot have these other spellings; None if they can. Either there are square
    brackets, which close each other, or words, which may close a parenthesis, too.
    """
    found = {s: t for s, t in spellings.items() if s in BRACKETS or t in BRACKETS}
    words = sorted(map(str, found.values())) == ["(", ")"] and all(map(is_word, found))
    if not found or words or found == {"[": "(", "]": ")"}:
        return None
    pairs = ", ".join(f"{s!r} for {t!r}" for s, t in found.items())
    expected = "'[' for '(' and ']' for ')', or a word for each, as the only other brackets"
    return f"expected {expected}, found {pairs}"


def _some(symbols: Sequence[str]) -> str:
    """The first few symbols of a list, short enough for one line."""
    text = " ".join(symbols[:SHOWN_SYMBOLS])
    more = len(symbols) > SHOWN_SYMBOLS or len(text) > 3 * SHOWN_SYMBOLS
    return f"{text[: 3 * SHOWN_SYMBOLS].rstrip()} ... ({len(symbols)} in all)" if more else text
