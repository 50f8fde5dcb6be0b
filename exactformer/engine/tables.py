"""The tables of the compiled pass, made from the automaton and the lexer.

A state is the number of its row times the row's width, so that a step is one addition and one load.
"""

from collections.abc import Mapping
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.lexer import SPACE, Lexer

MOST_PAIRS = 255
SMALL_VOCABULARY = 16  # tables by three tokens then have 4096 entries


class WordTables(NamedTuple):
    """Words that are known by their first two bytes, and then compared."""

    word: NDArray[np.uint8]  # (65536,): by two bytes, number of the word from 1, or 0
    word_bytes: NDArray[np.uint64]  # by number: its bytes, up to eight,
    word_mask: NDArray[np.uint64]  # and which of eight bytes these are; word 0 is never the same
    word_length: NDArray[np.uint8]
    word_token: NDArray[np.uint8]


class Tables(NamedTuple):
    """All that a pass looks up. Columns of a row of `step`: `(`: the row of START if a span may
    begin; `)`: the token of the span's value; each other token: the next row. Then, from column
    `closing` on, for each value before a `)` the token of the span's value; from `ending` on the
    same for pairs of tokens; from `chaining` on the row that this value leads to from START.
    """

    token: NDArray[np.uint8]
    is_word: NDArray[np.uint8]
    trie: NDArray[np.uint16]
    trie_token: NDArray[np.uint8]
    packed: bool  # whether tokens come one byte each, most of the time
    step: NDArray[np.unsignedinteger]
    no: int  # the entry of `step` that means there is none
    width: int
    start: int
    final: NDArray[np.int32]  # by state, not row: number of the value if a text may end there
    unknown: int  # the row of a span of which the beginning was not seen
    closing: int
    ending: int
    chaining: int
    pair: NDArray[np.uint8]  # (65536,): by two bytes, number of the pair from 1, or 0
    opening: NDArray[np.unsignedinteger]  # by two tokens: the row of `(xy`, or `no`
    brief: NDArray[np.uint8]  # by two tokens: the token of the value of `(xy)`, or 0
    whole: NDArray[np.uint8]  # by three tokens: the token of the value of `(xyz)`, or 0
    word: NDArray[np.uint8]  # this and the next four: `WordTables`, each with a space behind it; a
    word_bytes: NDArray[np.uint64]  # tuple within this one would take longer to hand over
    word_mask: NDArray[np.uint64]
    word_length: NDArray[np.uint8]
    word_token: NDArray[np.uint8]
    square: bool  # whether `[` may stand for `(`


def tables_of(automaton: SpanAutomaton, lexer: Lexer, *, packed: bool, square: bool) -> Tables:
    """The tables of the pass. `packed`: expect text without spaces; `square`: `[` is a bracket."""
    states, n_tokens = automaton.step.shape
    is_word = lexer.is_word.astype(bool)
    # Bytes that are a value or an operator by themselves, and pairs of them that are two tokens.
    plain = [b for b in range(256) if FIRST_VALUE <= lexer.token[b] < SPACE]
    neighbours = [(x, y) for x, y in product(plain, repeat=2) if not (is_word[x] and is_word[y])]
    pairs: dict[tuple[int, int], NDArray[np.int32]] = {}  # by bytes: the columns from `ending` on
    value_token = np.append(np.where(automaton.value >= 0, FIRST_VALUE + automaton.value, -1), -1)
    step = np.vstack([automaton.step, np.full((1, n_tokens), -1, dtype=np.int32)])  # -1: refused
    for x, y in neighbours:
        column = value_token[step[step[:states, lexer.token[x]], lexer.token[y]]]
        if (column >= 0).any():
            pairs[x, y] = column
    if len(pairs) > MOST_PAIRS:
        pairs = {}
    closing, ending = n_tokens, 2 * n_tokens
    chaining = ending + 1 + len(pairs)
    width = chaining + 1 + len(pairs)

    kind = np.uint16 if (states + 1) * width < 1 << 16 else np.uint32  # a small table is quicker
    no = np.int64(np.iinfo(kind).max)  # a plain int would have to fit beside an int32

    def entries(found: NDArray[np.integer]) -> NDArray[np.integer]:
        return np.where(found >= 0, found, no)

    table = np.full((states + 1, width), no, dtype=kind)
    table[:states, :n_tokens] = np.where(step[:states] >= 0, step[:states] * width, no)
    table[:states, OPEN] = np.where(step[:states, FIRST_VALUE] >= 0, automaton.start * width, no)
    table[:states, CLOSE] = entries(value_token[:states])
    table[states, OPEN] = automaton.start * width
    value_ids = FIRST_VALUE + np.arange(automaton.n_values)
    table[:states, closing + value_ids] = entries(value_token[step[:states, value_ids]])
    pair = np.zeros(65536, dtype=np.uint8)
    for number, ((x, y), column) in enumerate(pairs.items(), start=1):
        pair[x | y << 8] = number
        table[:states, ending + number] = entries(column)
        table[:states, chaining + number] = np.where(
            column >= 0, table[automaton.start, np.maximum(column, 0)], no
        )

    side = SMALL_VOCABULARY
    small = n_tokens <= side - 2  # the codes of other bytes are then no tokens modulo 16
    opening = np.full(side**2 if small else 0, no, dtype=kind)
    brief = np.zeros(side**2 if small else 0, dtype=np.uint8)
    whole = np.zeros(side**3 if small else 0, dtype=np.uint8)
    for x, y in neighbours if small else []:
        a, b = int(lexer.token[x]), int(lexer.token[y])
        row = step[step[automaton.start, a], b]
        if row >= 0 and step[row, FIRST_VALUE] >= 0:
            opening[a * side + b] = row * width
        brief[a * side + b] = max(0, value_token[row])
        for z in (z for z in plain if not (is_word[y] and is_word[z])):
            c = int(lexer.token[z])
            whole[(a * side + b) * side + c] = max(0, value_token[step[row, c]])
    # A word with the space after it: what begins like it and goes on is another.
    words = words_of({w + b" ": t for w, t in lexer.words.items() if len(w) < 8})
    return Tables(
        token=lexer.token,
        is_word=lexer.is_word,
        trie=lexer.trie,
        trie_token=lexer.trie_token,
        packed=small and packed,
        step=table.ravel(),
        no=int(no),
        width=width,
        start=automaton.start * width,
        final=automaton.final,
        unknown=states * width,
        closing=closing,
        ending=ending,
        chaining=chaining,
        pair=pair,
        opening=opening,
        brief=brief,
        whole=whole,
        **words._asdict(),
        square=square,
    )


def words_of(tokens: Mapping[bytes, int], first: int = 0) -> WordTables:
    """The tables of words of up to eight bytes, with their tokens."""
    number = np.zeros(65536, dtype=np.uint8)
    for i, spelling in enumerate(tokens, start=1):
        two = spelling[first] | spelling[first + 1] << 8
        number[two] = i if number[two] == 0 and i < 255 else 255  # 255: not told apart
    number[number == 255] = 0
    return WordTables(
        number,
        word_bytes=np.array([1, *(int.from_bytes(w, "little") for w in tokens)], np.uint64),
        word_mask=np.array([0, *((1 << 8 * len(w)) - 1 for w in tokens)], np.uint64),
        word_length=np.array([0, *map(len, tokens)], np.uint8),
        word_token=np.array([0, *tokens.values()], np.uint8),
    )
