"""The ids of tokens, and checks that names and symbols can be distinguished by a reader."""

import re
import unicodedata
from collections.abc import Sequence

from exactformer.domains.bounds import LONGEST_NAME, LONGEST_SYMBOL
from exactformer.domains.data import show

# Token ids of every vocabulary, as in the paper's Sigma: `(`, `)`, the values, the operators.
OPEN, CLOSE, FIRST_VALUE = 0, 1, 2
EMPTY = -1  # the id of a position that holds the zero vector instead of a token

NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")
NAME_IN_WORDS = f"1 to {LONGEST_NAME} letters a-z, digits, hyphens and underscores"

# Letters and marks that are invisible, although Unicode counts them as printable.
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)


def is_name(name: object) -> bool:
    return isinstance(name, str) and NAME.fullmatch(name) is not None


def symbol_fault(symbol: str) -> str | None:
    """Why this cannot be a symbol; None if it can."""
    if not symbol or re.search(r"\s", symbol):
        return "is empty or has white space in it"
    if len(symbol) > LONGEST_SYMBOL:
        return f"has {len(symbol)} characters: expected {LONGEST_SYMBOL} at most"
    if not symbol.isprintable() or INVISIBLE.search(symbol):
        return "has characters in it that cannot be seen"
    if unicodedata.category(symbol[0]).startswith("M"):
        return "begins with a mark that combines with the character before it"
    return None


def require_distinct(name: str, words: Sequence[str]) -> None:
    """Raise a ValueError unless the words of a field can be seen, and none is there twice."""
    seen: set[str] = set()
    for i, word in enumerate(words):
        if not word or len(word) > LONGEST_SYMBOL or not word.isprintable():
            raise ValueError(
                f"{name}[{i}]: expected 1 to {LONGEST_SYMBOL} characters that can be seen, "
                f"found {show(word)}"
            )
        if word in seen:
            raise ValueError(f"{name}[{i}]: {show(word)} is there twice")
        seen.add(word)
