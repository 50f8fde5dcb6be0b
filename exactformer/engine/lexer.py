"""The lexicon of an algebra as tables by byte, for the compiled pass.

A byte that is a token whatever stands beside it is looked up at once; for the rest there is a trie.
"""

from collections.abc import Mapping
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


# For symbols that bytes do not tell apart: only tokens are read, never text.
NO_LEXER = Lexer(
    token=np.full(256, LONGER, np.uint8),
    is_word=np.zeros(256, np.uint8),
    trie=np.zeros(256, np.uint16),
    trie_token=np.full(1, NONE, np.uint8),
    words={},
    look_ahead=0,
)


def trie_of(
    spelt: Mapping[bytes, int], root: int, first: int
) -> tuple[dict[tuple[int, int], int], dict[int, int]]:
    """The node after each node and byte, and the token of each node that is the end of one. Nodes
    have the numbers from `first` on, in the order in which they are made.
    """
    nodes: dict[tuple[int, int], int] = {}
    tokens: dict[int, int] = {}
    for spelling, token in spelt.items():
        node = root
        for byte in spelling:
            node = nodes.setdefault((node, byte), first + len(nodes))
        tokens[node] = token
    return nodes, tokens


def lexer_of(algebra: Algebra, separators: str = "") -> Lexer:
    """The lexer of an algebra; NO_LEXER if bytes do not distinguish its symbols or its trie is too
    large: such texts go through the parser. Separators of rows and fields are no white space.
    """
    lexicon = algebra.lexicon
    if not lexicon.by_bytes:
        return NO_LEXER
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

    following, tokens = trie_of(symbols | spaces, root=0, first=1)
    nodes = 1 + len(following)
    if nodes > MOST_NODES:
        return NO_LEXER
    trie = np.zeros((nodes, 256), dtype=np.uint16)
    for place, node in following.items():
        trie[place] = node
    trie_token = np.full(nodes, NONE, dtype=np.uint8)
    trie_token[list(tokens)] = list(tokens.values())
    return Lexer(
        token,
        np.array(is_word, dtype=np.uint8),
        trie.ravel(),
        trie_token,
        {word.encode(): lexicon.words[word] for word in sorted(lexicon.words) if len(word) > 1},
        # What follows a symbol, which may be a word of which an error shows the beginning; one that
        # is much longer than all symbols is like none of them.
        4 * max(map(len, symbols)) + 100,
    )
