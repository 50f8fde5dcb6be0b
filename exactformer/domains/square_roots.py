"""Square roots of binary numbers: the floor of the root, a bit for every two of the number.

    1 1 0 1          13, whose root is 3: the answer is 1 1

The highest bit comes first, in texts and in answers. Zeros in front are kept: of n bits the answer
has half as many, rounded up.

Besides bits the vocabulary has tokens that only the layer writes (`model/square_root.py`): the bits
of a remainder `1'`, of the root so far `1"` and of a difference `1-`, marks of the top `^` and of
the end `$` of the text, and whether a difference is below zero, `<`, or not, `>`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.data import Place, show
from exactformer.domains.domain import Domain, Ids, Lengths, TokenType
from exactformer.domains.lexicon import Characters, Lexicon
from exactformer.domains.symbols import NAME_IN_WORDS, is_name

VOCABULARY = ("0", "1", "0'", "1'", '0"', '1"', "0-", "1-", "^", "$", "<", ">")
# Token ids of the bit 0 of each kind, whose bit 1 is next, and of the others.
BIT, REMAINDER, ROOT, DIFFERENCE, TOP, END, BELOW, NOT_BELOW = 0, 2, 4, 6, 8, 9, 10, 11


@dataclass(frozen=True)
class SquareRoot(Domain):
    """Square roots, which there is one kind of."""

    kind = "square-root"
    name: str

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        return VOCABULARY

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        return {"0": BIT, "1": BIT + 1}

    @cached_property
    def lexicon(self) -> Lexicon:
        return Characters(self.token_ids)

    @cached_property
    def packs(self) -> bool:
        return True

    @property
    def max_fan_in(self) -> int:
        return 3  # bits of the remainder, of the root and of the difference; or a mark and two bits

    def token_type(self, token: int) -> TokenType:
        return "operator" if token >= TOP else "value"

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        wrong = (place for place, token in enumerate(ids) if token not in (BIT, BIT + 1))
        place = next(wrong, None if ids else 0)
        return None if place is None else (place, "expected 0 or 1, {found}")

    def layer(self, iterations: str) -> str:
        return "square-root"

    def positions(self, ids: Ids, lengths: Lengths) -> tuple[Ids, Lengths]:
        """Each text between its marks."""
        ends = np.cumsum(lengths)
        between = np.column_stack([ends - lengths, ends]).reshape(-1)
        marks = np.tile(np.array([TOP, END], dtype=ids.dtype), len(lengths))
        return np.insert(ids, between, marks), lengths + 2

    def answers(self, tokens: NDArray[np.int64], lengths: Lengths) -> list[str | None]:
        found: list[str | None] = []
        for end, length in zip(np.cumsum(lengths).tolist(), lengths.tolist(), strict=True):
            bits = tokens[end - length : end] - ROOT
            whole = length > 0 and bool(((bits == 0) | (bits == 1)).all())
            found.append("".join(map(str, bits.tolist())) if whole else None)
        return found

    @property
    def answer_symbols(self) -> tuple[str, ...]:
        return ("0", "1")

    @property
    def answers_in_places(self) -> bool:
        return True

    def read_answer(self, text: str) -> str | None:
        text = "".join(text.split())
        return text if text and not text.strip("01") else None

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        """Every number of this many bits, the smallest first."""
        if length:
            yield from product((BIT, BIT + 1), repeat=length)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "SquareRoot":
        return cls(Place(data).fields(("kind", "name"))["name"].text())

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ValueError(f"name: expected {NAME_IN_WORDS}, found {show(self.name)}")


@cache
def compute_sqrt() -> SquareRoot:
    """The square root of a binary number, as in the Chomsky-hierarchy benchmark."""
    return SquareRoot("compute-sqrt")


SQUARE_ROOTS: Mapping[str, Callable[[], SquareRoot]] = {"compute-sqrt": compute_sqrt}
