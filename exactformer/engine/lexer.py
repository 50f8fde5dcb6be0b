"""The lexicon of an algebra as tables by byte, for the compiled pass.

A byte that is a token whatever stands beside it is looked up at once; for the rest there is a trie.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.lexicon import BYTE_CLASSES, SPACES, WORD

SPACE, LONGER = 254, 255  # instead of a token id: white space, and "ask the trie"
MOST_NODES = 1 << 14  # of the trie, which then takes 8 MB
NONE = 255  # a node of the trie that is the end of no token


@dataclass(frozen=True)
class Lexer:
    """Tables by byte. The trie's root is 0, which also stands for "no such node"."""

    token: NDArray[np.uint8]  # (256,): token id, SPACE or LONGER
    is_word: NDArray[np.uint8]  # (256,): may belong to a word
    trie: NDArray[np.uint16]  # (nodes * 256,): the node after one more byte
    trie_token: NDArray[np.uint8]  # (nodes,): token id, SPACE or NONE
    words: dict[bytes, int]  # of more than one byte, with their token ids
    look_ahead: int  # bytes that decide about a token, and that an error is reported from


def lexer_of(algebra: Algebra, separators: str = "") -> Lexer | None:
    """None for symbols that bytes do not tell apart, or that take too large a trie. Their texts go
    through the parser. Separators of rows and fields are no white space.
    """
    lexicon = algebra.lexicon
    if not lexicon.by_bytes:
        return None
    symbols = {symbol.encode(): number for symbol, number in algebra.token_ids.items()}
    spaces = {space.encode(): SPACE for space in SPACES if space not in separators}

    token = np.full(256, LONGER, dtype=np.uint8)
    for spelt, number in (symbols | spaces).items():
        # A word for an operator is never taken alone: the value before it may be part of the word.
        alone = spelt.decode() not in lexicon.words or number < algebra.first_operator
        longer = any(other != spelt and other.startswith(spelt) for other in symbols)
        if len(spelt) == 1 and alone and not longer:
            token[spelt[0]] = number
    is_word = [byte >= 128 or kind == WORD for byte, kind in enumerate(BYTE_CLASSES)]

    nodes: list[dict[int, int]] = [{}]
    ends: list[int] = [NONE]
    for spelt, number in (symbols | spaces).items():
        node = 0
        for byte in spelt:
            if byte not in nodes[node]:
                nodes[node][byte] = len(nodes)
                nodes.append({})
                ends.append(NONE)
            node = nodes[node][byte]
        ends[node] = number
    if len(nodes) > MOST_NODES:
        return None
    trie = np.zeros((len(nodes), 256), dtype=np.uint16)
    for node, following in enumerate(nodes):
        for byte, child in following.items():
            trie[node, byte] = child
    return Lexer(
        token,
        np.array(is_word, dtype=np.uint8),
        trie.ravel(),
        np.array(ends, dtype=np.uint8),
        {word.encode(): lexicon.words[word] for word in sorted(lexicon.words) if len(word) > 1},
        # What follows a symbol, which may be a word of which an error shows the beginning; one that
        # is much longer than all symbols is like none of them.
        4 * max(map(len, symbols)) + 100,
    )


# For symbols that bytes do not tell apart: only tokens are read, never text.
NO_LEXER = Lexer(
    np.full(256, LONGER, np.uint8),
    np.zeros(256, np.uint8),
    np.zeros(256, np.uint16),
    np.full(1, NONE, np.uint8),
    {},
    0,
)
