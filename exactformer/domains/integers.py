"""Whole numbers from 0 up, written in digits: sums, differences, products and comparisons.

    ( 123 + ( 45 * 678 ) )

A text is a numeral, or two texts with an operator between them in parentheses. Digits that stand
together are one numeral, and a numeral of more than one digit does not begin with 0. `+`, `-` and
`*` are those of arithmetic; `<`, `=` and `>` give 1 if they hold, else 0. A difference below zero
is no such number: its value is `?`, and so is that of all that is computed from it.

Answers are numerals, too. No text has a `?` in it, nor the digits of an accumulator, such as `7'`,
which are tokens that only the layer writes (`model/integers.py`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.data import Place, show
from exactformer.domains.domain import Domain, Ids, Lengths, TokenType
from exactformer.domains.lexicon import Characters, Lexicon
from exactformer.domains.numerals import DIGITS
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, NAME_IN_WORDS, OPEN, is_name

OPERATORS = ("+", "-", "*", "<", "=", ">")
NONE = "?"  # the value of what is no natural number
BASES = (10, *range(2, 10), 16)

# States of a text while it is read.
OPERAND, ZERO, NUMERAL, AFTER = range(4)  # before an operand; behind 0, another digit, and `)`


class Numerals(Characters):
    """Characters, and white space between two digits, which would make one numeral of two."""

    def __init__(self, token_ids: Mapping[str, int], digits: str) -> None:
        super().__init__(token_ids)
        self.scanner = re.compile(rf"(?<=[{digits}])\s+(?=[{digits}])|\S")


@dataclass(frozen=True)
class Integers(Domain):
    """Natural numbers in a base of 2 to 10, or 16.

    The vocabulary is `(`, `)`, digits, operators, `?` and the digits of accumulators.
    """

    kind = "integers"
    name: str
    base: int

    nests: ClassVar[bool] = True  # if not, numerals may have zeros on top, and no operand is a span

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        kept = (f"{digit}'" for digit in self.digits)
        return ("(", ")", *self.digits, *OPERATORS, NONE, *kept)

    @property
    def digits(self) -> str:
        return DIGITS[: self.base]

    @property
    def first_operator(self) -> int:
        """Token id of the first operator; digits have the ids from FIRST_VALUE up to it."""
        return FIRST_VALUE + self.base

    @property
    def operators(self) -> tuple[str, ...]:
        """The operators of its texts."""
        return OPERATORS

    def operator_id(self, symbol: str) -> int:
        """Token id of an operator, however it is spelled."""
        return self.first_operator + OPERATORS.index(symbol)

    @property
    def none(self) -> int:
        """Token id of `?`."""
        return self.first_operator + len(OPERATORS)

    @property
    def first_kept(self) -> int:
        """Token id of the accumulator's digit 0."""
        return self.none + 1

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        ids = {symbol: i for i, symbol in enumerate(self.vocabulary[: self.none])}
        return ids | {digit.upper(): ids[digit] for digit in self.digits if digit.isalpha()}

    @cached_property
    def lexicon(self) -> Lexicon:
        return Numerals(self.token_ids, "".join(s for s in self.token_ids if s.isalnum()))

    @cached_property
    def packs(self) -> bool:
        return True

    @property
    def max_fan_in(self) -> int:
        return 4  # an operator, two digits and one of an accumulator

    def token_type(self, token: int) -> TokenType:
        if token <= CLOSE:
            return "parenthesis"
        return "operator" if self.first_operator <= token < self.none else "value"

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        first_operator, none = self.first_operator, self.none
        operators: list[int | None] = []  # of the open spans; None before it
        state = OPERAND
        for place, token in enumerate(ids):
            if FIRST_VALUE <= token < first_operator:
                if state in (AFTER, ZERO):
                    return place, self._problem(state, operators, token)
                if state == OPERAND:
                    state = ZERO if token == FIRST_VALUE else NUMERAL
            elif token == OPEN and state == OPERAND:
                operators.append(None)
            elif token == CLOSE and state != OPERAND and operators and operators[-1] is not None:
                operators.pop()
                state = AFTER
            elif (
                first_operator <= token < none
                and state != OPERAND
                and operators
                and operators[-1] is None
            ):
                operators[-1], state = token, OPERAND
            else:
                if words[place].isspace():
                    return place, "expected the digits of a number side by side, {found}"
                return place, self._problem(state, operators, token)
        if state == OPERAND or operators:
            n = len(operators)
            note = f" ({n} {'parenthesis' if n == 1 else 'parentheses'} unclosed)" if n else ""
            return len(ids), self._problem(state, operators, None) + note
        return None

    def _problem(self, state: int, operators: list[int | None], token: int | None) -> str:
        """The message about a token, or the end of the text for None, that may not come here."""
        symbol = None if token is None or token < 0 else self.vocabulary[token]
        why = None
        if state == OPERAND:
            expected = "a number or '('"
            if symbol == ")" and operators:
                why = "empty parentheses" if operators[-1] is None else "an operand is missing"
            elif symbol in OPERATORS:
                why = f"{symbol} comes where an operand is missing"
        else:
            digit = symbol is not None and symbol in self.digits
            if state == ZERO and digit:
                return "expected a number without leading zeros, {found} behind a 0"
            if not operators:
                expected = "the end of the text"
                if symbol in OPERATORS:
                    why = f"each operator needs its parentheses, as in (1{symbol}1)"
                elif symbol == ")":
                    why = "no parenthesis is open"
            elif operators[-1] is None:
                expected = f"an operator ({' '.join(OPERATORS)})"
                if symbol == ")":
                    why = "these parentheses hold no operator"
                elif symbol == "(" or digit:
                    why = "no operator between two operands"
            else:
                expected = "')'"
                if symbol in OPERATORS:
                    why = "a second operator in the same parentheses"
            if state == NUMERAL:
                expected = f"a digit or {expected}" if why is None else expected
        return f"expected {expected}, {{found}}" + (f": {why}" if why else "")

    def layer(self, iterations: str) -> str:
        return "integers"

    def positions(self, ids: Ids, lengths: Lengths) -> tuple[Ids, Lengths]:
        return ids, lengths

    def answers(self, tokens: NDArray[np.int64], lengths: Lengths) -> list[str | None]:
        symbols = np.frombuffer(self.digits.encode(), dtype=np.uint8)
        is_digit = (tokens >= FIRST_VALUE) & (tokens < self.first_operator)
        found: list[str | None] = []
        for end, length in zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True):
            part = tokens[end - length : end]
            if length == 1 and part[0] == self.none:
                found.append(NONE)
            elif (
                not length
                or not is_digit[end - length : end].all()
                or (length > 1 and part[0] == FIRST_VALUE)
            ):
                found.append(None)
            else:
                found.append(symbols[part - FIRST_VALUE].tobytes().decode())
        return found

    @property
    def answer_symbols(self) -> tuple[str, ...]:
        return (*self.digits, NONE)

    def read_answer(self, text: str) -> str | None:
        text = text.strip().lower()
        is_numeral = text and not text.strip(self.digits) and (text == "0" or text[0] != "0")
        return text if is_numeral or text == NONE else None

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        """Numerals, then spans: the shortest left operand first, then by operator."""
        digits = range(FIRST_VALUE, self.first_operator)
        for first in digits if length == 1 else digits[1:]:
            yield from ((first, *rest) for rest in product(digits, repeat=length - 1))
        operators = range(self.first_operator, self.none)
        for left in range(1, length - 3):
            for o in operators:
                for a in self.every(left):
                    for b in self.every(length - 3 - left):
                        yield (OPEN, *a, o, *b, CLOSE)

    def span(self, a: Sequence[int], operator: int, b: Sequence[int]) -> tuple[int, ...]:
        """The text of a span with these operands."""
        return (OPEN, *a, operator, *b, CLOSE)

    def most_iterations(self, ids: Ids) -> int:
        """An upper bound on the layer's iterations. Spans of one depth take theirs at once: a
        product as many as its right operand has digits, which are no more than stand in its text.
        """
        opens, closes = ids == OPEN, ids == CLOSE
        depth = np.cumsum(opens.astype(np.int64) - closes)
        at = np.flatnonzero(ids == self.token_ids["*"])
        most = np.ones(int(depth.max(initial=0)) + 1, dtype=np.int64)
        # Sorted by the depth around it, each `)` is the next one behind the products of its span.
        ends = np.flatnonzero(closes)
        ends = ends[np.argsort(depth[ends] + 1, kind="stable")]
        n = len(ids)
        found = np.searchsorted((depth[ends] + 1) * n + ends, depth[at] * n + at)
        digits = np.cumsum((ids >= FIRST_VALUE) & (ids < self.first_operator))
        np.maximum.at(most, depth[at], digits[ends[found]] - digits[at])
        return int(most[1:].sum())

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "base": self.base}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Integers":
        fields = Place(data).fields(("kind", "name", "base"))
        return cls(fields["name"].text(), fields["base"].whole(2, 16))

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError(f"name: expected {NAME_IN_WORDS}, found {show(self.name)}")
        if self.base not in BASES:
            raise ValueError(f"base: expected 2 to 10, or 16, found {show(self.base)}")


def integers(base: int = 10) -> Integers:
    """The built-in domain of this base: `integers`, `integers-2` and so on."""
    return Integers("integers" if base == 10 else f"integers-{base}", base)


INTEGERS: Mapping[str, Callable[[], Integers]] = {
    integers(base).name: partial(integers, base) for base in BASES
}
