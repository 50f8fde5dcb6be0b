"""Sums and products of two numbers that are written with their lowest digit first.

    1 1 0 2 1 0 1          3 and 5, in base 2 with `2` between them

A text is a numeral, a mark and another numeral. Zeros on top, which are its last digits, mean
nothing. The answer is the numeral of the sum or of the product, without zeros on top, and then the
symbol that ends answers, if there is one.

Read from its end, such a text is a span of `integers` without its parentheses, and with the
operands exchanged, which makes no difference to sums and products. So it is a spelling of those:
the transformer reads `( 1 0 1 + 0 1 1 )`, with the layer and the weights of integers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.data import Place, listed, show
from exactformer.domains.domain import Ids, Lengths
from exactformer.domains.integers import NONE, Integers
from exactformer.domains.lexicon import Characters, Lexicon
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN, symbol_fault

COMMUTATIVE = ("+", "*")


@dataclass(frozen=True)
class LittleEndian(Integers):
    """Two numerals, the lowest digits first, that are added or multiplied.

    operator   `+` or `*`.
    between    the symbol between the numerals.
    end        the symbol behind an answer; "" if there is none.
    """

    kind = "little-endian"
    operator: str
    between: str
    end: str = ""

    nests = False

    @property
    def operators(self) -> tuple[str, ...]:
        return (self.operator,)

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The tokens of integers, with the symbol between the numbers in place of the operator."""
        own, symbols = self.operator_id(self.operator), super().vocabulary
        return (*symbols[:own], self.between, *symbols[own + 1 :])

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        ids = {digit: FIRST_VALUE + i for i, digit in enumerate(self.digits)}
        ids |= {digit.upper(): token for digit, token in ids.items() if digit.isalpha()}
        return ids | {self.between: self.operator_id(self.operator)}

    @cached_property
    def lexicon(self) -> Lexicon:
        return Characters(self.token_ids)

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        mark = self.token_ids[self.between]
        marks, digits = 0, 0
        for place, token in enumerate(ids):
            if FIRST_VALUE <= token < self.first_operator:
                digits += 1
            elif token == mark and digits and not marks:
                marks, digits = 1, 0
            else:
                return place, self._problem_after(marks, digits)
        if not marks or not digits:
            return len(ids), self._problem_after(marks, digits)
        return None

    def _problem_after(self, marks: int, digits: int) -> str:
        """The message about what may not come behind so many marks, and then digits."""
        shown = f"a digit ({' '.join(self.digits)})"
        if digits and not marks:
            shown = f"{shown} or {show(self.between)}"
        elif digits:
            shown = f"{shown} or the end of the text"
        return f"expected {shown}, {{found}}"

    def positions(self, ids: Ids, lengths: Lengths) -> tuple[Ids, Lengths]:
        """Each text from its end, in parentheses."""
        ends = np.cumsum(lengths)
        starts = ends - lengths
        backwards = np.repeat(starts + ends - 1, lengths) - np.arange(len(ids))
        between = np.column_stack([starts, ends]).reshape(-1)
        brackets = np.tile(np.array([OPEN, CLOSE], dtype=ids.dtype), len(lengths))
        return np.insert(ids[backwards], between, brackets), lengths + 2

    def span(self, a: Sequence[int], operator: int, b: Sequence[int]) -> tuple[int, ...]:
        return (*reversed(b), operator, *reversed(a))

    def answers(self, tokens: NDArray[np.int64], lengths: Lengths) -> list[str | None]:
        found = super().answers(tokens, lengths)
        return [None if a in (None, NONE) else a[::-1] + self.end for a in found]

    def layer(self, iterations: str) -> str:
        return "little-endian"

    @property
    def answer_symbols(self) -> tuple[str, ...]:
        return (*self.digits, *self.end)

    @property
    def answers_in_places(self) -> bool:
        return True

    def read_answer(self, text: str) -> str | None:
        text = "".join(text.split()).lower()
        numeral = text.removesuffix(self.end)[::-1]
        if not text.endswith(self.end) or numeral == NONE:
            return None
        return None if super().read_answer(numeral) is None else text

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        """The shortest first number first, then by digits."""
        digits, mark = range(FIRST_VALUE, self.first_operator), self.token_ids[self.between]
        for first in range(1, length - 1):
            for a in product(digits, repeat=first):
                yield from ((*a, mark, *b) for b in product(digits, repeat=length - 1 - first))

    def most_iterations(self, ids: Ids) -> int:
        """A product takes as many iterations as its first number has digits, a sum takes one."""
        marks = np.flatnonzero(ids == self.token_ids[self.between])
        return int(marks[0]) if self.operator == "*" else 1

    def to_dict(self) -> dict[str, Any]:
        own = {"operator": self.operator, "between": self.between, "end": self.end}
        return super().to_dict() | own

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "LittleEndian":
        top = Place(data).fields(("kind", "name", "base", "operator", "between"), ("end",))
        return cls(
            top["name"].text(),
            top["base"].whole(2, 16),
            top["operator"].one_of(COMMUTATIVE),
            top["between"].text(),
            top["end"].text() if "end" in top else "",
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.operator not in COMMUTATIVE:
            expected = listed([*COMMUTATIVE])
            raise ValueError(f"operator: expected {expected}, found {show(self.operator)}")
        for name, symbol in {"between": self.between, "end": self.end}.items():
            if (symbol or name == "between") and (len(symbol) != 1 or symbol_fault(symbol)):
                raise ValueError(f"{name}: expected one character, found {show(symbol)}")
            if symbol and symbol.lower() in self.digits:
                raise ValueError(f"{name}: {show(symbol)} is a digit")
        if self.vocabulary.count(self.between) > 1:
            raise ValueError(f"between: {show(self.between)} stands for something else")


@cache
def binary_addition() -> LittleEndian:
    """The sum of two binary numbers, as in the Chomsky-hierarchy benchmark."""
    return LittleEndian("binary-addition", 2, "+", between="2", end="2")


@cache
def binary_multiplication() -> LittleEndian:
    """The product of two binary numbers, as in the Chomsky-hierarchy benchmark."""
    return LittleEndian("binary-multiplication", 2, "*", between="2", end="2")


LITTLE_ENDIAN: Mapping[str, Callable[[], LittleEndian]] = {
    "binary-addition": binary_addition,
    "binary-multiplication": binary_multiplication,
}
