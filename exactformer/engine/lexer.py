"""How the bytes of a text are told apart into tokens, as tables for a compiled pass.

The same rules as the parser's: a word is a maximal run of letters, digits and underscores and is
never split; other symbols are marks, the longest of them first; white space is free. A byte that
is a token whatever stands beside it is looked up at once; for the rest there is a trie.
"""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra

SPACE, LONGER = 254, 255  # instead of a token id: white space, and "ask the trie"
NONE = 255  # a place in the trie that is the end of no token
MOST_TOKENS = 250  # of a vocabulary, so that an id fits into a byte


@dataclass(frozen=True)
class Lexer:
    """Tables by byte. The trie's root is 0, which also stands for "no such way"."""

    token: NDArray[np.uint8]  # (256,): token id, SPACE or LONGER
    is_word: NDArray[np.uint8]  # (256,): may belong to a word
    trie: NDArray[np.uint16]  # (places * 256,): the place after one more byte
    trie_token: NDArray[np.uint8]  # (places,): token id, SPACE or NONE
    words: dict[bytes, int]  # of more than one byte, with their token ids
    guarded: bool  # whether values are tokens by themselves only if no word goes on after them


def lexer_of(algebra: Algebra) -> Lexer | None:
    """None for symbols that a byte at a time does not tell apart: words in other scripts, marks
    with letters in them, very large vocabularies. Their texts go through the parser.
    """
    words = {symbol for symbol in algebra.token_ids if re.fullmatch(r"[A-Za-z0-9_]+", symbol)}
    marks = algebra.token_ids.keys() - words
    if len(algebra.vocabulary) > MOST_TOKENS or any(re.search(r"\w", mark) for mark in marks):
        return None
    # Between two values of infix text stands an operator. If no operator is a word, then words
    # that touch are an error for the grammar, too, and need not be looked for.
    guarded = algebra.notation == "prefix" or any(op.symbol in words for op in algebra.operators)

    token = np.full(256, LONGER, dtype=np.uint8)
    for symbol, number in algebra.token_ids.items():
        longer = any(s != symbol and s.startswith(symbol) for s in algebra.token_ids)
        is_value = 2 <= number < algebra.first_operator
        if len(symbol.encode()) == 1 and not longer and (symbol in marks or is_value):
            token[ord(symbol)] = number
    is_word = [byte >= 128 or re.match(r"\w", chr(byte)) is not None for byte in range(256)]

    places: list[dict[int, int]] = [{}]
    ends: list[int] = [NONE]
    spaces = {chr(code): SPACE for code in range(0x3001) if chr(code).isspace()}
    for symbol, number in {**algebra.token_ids, **spaces}.items():
        place = 0
        for byte in symbol.encode():
            if byte not in places[place]:
                places[place][byte] = len(places)
                places.append({})
                ends.append(NONE)
            place = places[place][byte]
        ends[place] = number
        if number == SPACE and len(symbol.encode()) == 1:
            token[ord(symbol)] = SPACE
    trie = np.zeros((len(places), 256), dtype=np.uint16)
    for place, ways in enumerate(places):
        for byte, there in ways.items():
            trie[place, byte] = there
    return Lexer(
        token,
        np.array(is_word, dtype=np.uint8),
        trie.ravel(),
        np.array(ends, dtype=np.uint8),
        {word.encode(): algebra.token_ids[word] for word in sorted(words) if len(word) > 1},
        guarded,
    )
