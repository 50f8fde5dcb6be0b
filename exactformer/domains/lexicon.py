"""Defines what a token is; everything that reads text is made from this one definition.

    white space   separates tokens and means nothing else
    word          a run of letters, digits and underscores of any script, as long as it goes: `12`
                  and `MAXI` are one token each, even where `1` and `MAX` are symbols
    mark          any symbol that is no word, the longest one that stands there; one that ends like
                  a word, as `-1` does, only where no word goes on after it
    other         any other character, which is no token of any algebra

A text is compared character by character: an accented letter written in two ways is two symbols.

The parser's scanner is this as a regular expression. Readers that see bytes instead of characters
have what they look up made from the same symbols and classes of bytes; `by_bytes` says whether they
can read the same language, and where they cannot they leave the text to the parser.
"""

import re
from collections.abc import Container, Mapping

MOST_TOKENS = 250  # of a vocabulary whose token ids, and a few more numbers, fit into a byte

BLANK, WORD, MARK = range(3)  # classes of bytes; from 128 on, a byte is part of any character
SPACES = tuple(char for char in map(chr, range(0x3001)) if re.match(r"\s", char))


def _class_of(byte: int) -> int:
    if byte < 128 and re.match(r"\s", chr(byte)):
        return BLANK
    return WORD if byte < 128 and re.match(r"\w", chr(byte)) else MARK


BYTE_CLASSES = tuple(map(_class_of, range(256)))


def is_word(symbol: str) -> bool:
    return re.fullmatch(r"\w+", symbol) is not None


class Lexicon:
    """The symbols of an algebra, each with its token id, as words and as marks.

    marks    tokens that readers of bytes know as marks alone, as they do parentheses.
    """

    def __init__(self, token_ids: Mapping[str, int], marks: Container[int] = ()) -> None:
        self.words = {s: token for s, token in token_ids.items() if is_word(s)}
        self.marks = {s: token for s, token in token_ids.items() if s not in self.words}
        longest_first = sorted(self.marks, key=len, reverse=True)
        self.mark_patterns = [re.escape(mark) + _no_word_after(mark) for mark in longest_first]
        self.scanner = re.compile("|".join([*self.mark_patterns, r"\w+", r"\S"]))
        # Bytes distinguish ASCII words from marks in which no byte belongs to a word.
        self.by_bytes = (
            all(word.isascii() for word in self.words)
            and not any(re.search(r"\w", mark) for mark in self.marks)
            and not any(token in marks for token in self.words.values())
            and len(set(token_ids.values())) <= MOST_TOKENS
        )


class Characters(Lexicon):
    """The symbols of a domain in which each is one character, so that words have one, too."""

    def __init__(self, token_ids: Mapping[str, int]) -> None:
        super().__init__(token_ids)
        self.scanner = re.compile(r"\S")
        self.by_bytes = False  # the readers of bytes know longer words


def _no_word_after(mark: str) -> str:
    return r"(?!\w)" if re.search(r"\w\Z", mark) else ""
