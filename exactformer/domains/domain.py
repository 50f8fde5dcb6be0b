"""The base of every kind of domain: what its texts are, and what is left of one that was read.

An `Algebra` is a kind of domain, a `Machine` another; `domains/kinds.py` has them all. What
differs between kinds is asked of the domain, or found by its `kind` in a table beside the code that
needs it: how a file is read (`domains/kinds.py`), its tensors (`weights/tensors.py`,
`model/storage.py`), the oracle (`domains/reference.py`), random texts (`domains/sampling.py`),
weights written down (`model/construct.py`) and the check (`verify/conditions.py`). Others that need
an algebra call `algebra_of` (`domains/belonging.py`), which refuses any other kind.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from exactformer.domains.lexicon import Lexicon

Ids = NDArray[np.int16]
Lengths = NDArray[np.int64]
TokenType = Literal["parenthesis", "value", "operator"]


class Domain(ABC):
    """A set of texts with their meaning, as plain data. A kind of domain is a frozen subclass.

    kind         name of the kind, in tables and in files.
    name         of the domain itself.
    vocabulary   the tokens in order; a token's id is its index.
    token_ids    the id of every accepted spelling of a token.
    lexicon      how a text is cut into words.
    packs        whether texts can be read without spaces.
    max_fan_in   the largest number of tokens that one position adds up; None if there is no bound.
    """

    kind: ClassVar[str]
    name: str
    vocabulary: "cached_property[tuple[str, ...]]"
    token_ids: "cached_property[Mapping[str, int]]"
    lexicon: "cached_property[Lexicon]"
    packs: "cached_property[bool]"

    @abstractmethod
    def token_type(self, token: int) -> TokenType:
        """The part that a token plays, for its colour and its name in sentences."""

    @property
    @abstractmethod
    def max_fan_in(self) -> int | None: ...

    @abstractmethod
    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        """Index of the first token of a text that is not allowed, with the problem, in which
        `{found}` stands for what is there; None if there is none. `words` are the tokens as they
        are written; one that spells no token has the id UNKNOWN (`grammar.py`).
        """

    @abstractmethod
    def layer(self, iterations: str) -> str:
        """Name of the layer that reads its texts, for a way to iterate."""

    @abstractmethod
    def positions(self, ids: Ids, lengths: Lengths) -> tuple[Ids, Lengths]:
        """The token ids that the transformer reads of many texts, one after another, and how many
        are whose; from the ids of the texts and their lengths.
        """

    @abstractmethod
    def answers(self, tokens: NDArray[np.int64], lengths: Lengths) -> list[str | None]:
        """The answer of each of many texts, from the tokens that are left of them, one after
        another, and how many are whose; None for what is no answer.
        """

    @property
    @abstractmethod
    def answer_symbols(self) -> Collection[str]:
        """The spellings of the symbols that answers consist of."""

    @abstractmethod
    def read_answer(self, text: str) -> str | None:
        """An answer as `answers` gives it, from text that spells it; None for other text."""

    @property
    def answers_in_places(self) -> bool:
        """Whether an answer is a row of symbols, one a place, into which `lexicon` cuts it."""
        return False

    @property
    def operator_counts(self) -> dict[str, str]:
        """Number of operands of each operator, in words; empty where there are no operators."""
        return {}

    @abstractmethod
    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        """Every text of exactly this many tokens, in a fixed order."""

    def has_spans_of(self, other: "Domain") -> bool:
        """Whether weights for the other domain serve this one, too, with other gates of levels."""
        return False

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The domain as plain data, with its `kind` unless that is an algebra."""

    @classmethod
    @abstractmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Domain":
        """The domain from the data of `to_dict`, which may come from an untrusted file."""
