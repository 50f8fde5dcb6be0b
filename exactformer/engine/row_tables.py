"""The tables by which `rows.cu` reads texts: the lexicon of an algebra and its automaton.

The lexer is an automaton as well, with a node for what was read of a lexeme. A lexeme is known when
the byte after it has been seen: then its token is given, and the next lexeme begins with that byte.
A word goes on as long as word bytes follow, a mark as long as some mark goes on like that. What is
no symbol is refused, as the token UNKNOWN. What only others can read is the token LOST: a mark that
breaks off, where a shorter one could be read, and a bracket of another kind than those before it in
the row.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.lexicon import BLANK, BYTE_CLASSES, SPACES, WORD
from exactformer.engine.automaton import TOP, SpanAutomaton
from exactformer.engine.layout import CELLS, SHARED_TABLE, whole_lines
from exactformer.engine.tensor import Words

MALFORMED, LEFT = 255, 254  # instead of the index of a value: no expression; to be read by others
MOST_ENTRIES = 1 << 24  # of the lexer: a state is a number of 24 bits
BRACKETS = {b"(": "()", b")": "()", b"[": "[]", b"]": "[]"}


class LexerState(NamedTuple):
    """A state of the lexer."""

    read: bytes  # bytes of a symbol read so far; empty if no lexeme may go on
    token: int  # token of these bytes if they end here
    brackets: str = ""  # which ones the row has had, where there are two kinds


class RowTables:
    """The tables, and the constants that the kernels are compiled with."""

    def __init__(self, automaton: SpanAutomaton, algebra: Algebra) -> None:
        tokens = len(algebra.vocabulary)
        self.space, self.unknown, self.lost, self.end = range(tokens, tokens + 4)
        self.words = Words(algebra)
        # Else a byte is a token whatever stands beside it.
        self.has_lexer = self.words.has_longer or not self.words.bytes_suffice
        self._spaces = {space.encode() for space in SPACES}
        longer = (*self.words.spellings, *self._spaces)
        self._prefixes = {s[:i] for s in longer for i in range(1, len(s) + 1)}
        self.table = self._table(automaton)
        self.lexer, _ = self._lexer(ord("\n")) if algebra.lexicon.by_bytes else _NO_LEXER
        self.readable = algebra.lexicon.by_bytes and self.lexer.size < MOST_ENTRIES

    def classes(self, separator: int) -> NDArray[np.uint8]:
        """The class of each byte, which the kernels look up first, for rows that end with a
        separator.
        """
        return self._lexer(separator)[1].astype(np.uint8)

    @property
    def constants(self) -> dict[str, int | str]:
        return {
            "OPEN": OPEN,
            "CLOSE": CLOSE,
            "SPACE": self.space,
            "END": self.end,
            "WIDTH": self.table.shape[1],
            "CELL": CELLS[self.table.dtype.type],
            "LEFT": LEFT,
            "MALFORMED": MALFORMED,
            "NODES": len(self.lexer),
            "CLASSES": self.lexer.shape[1],
            "TABLE_BYTES": len(padded(self.table)),
            "TABLE_SHARED": int(_is_small(self.table)),
            "LEXER_BYTES": len(padded(self.lexer)),
            "LEXER_SHARED": int(_is_small(self.lexer)),
        }

    @property
    def shared_bytes(self) -> int:
        return 256 + sum(len(padded(part)) for part in (self.lexer, self.table) if _is_small(part))

    def _table(self, automaton: SpanAutomaton) -> NDArray[np.unsignedinteger]:
        """The next state by state and token; a span's value, as a token, if the span closes, and a
        row's code if the row ends. Two states are added: `wrong`, from which no value can come, and
        `lost`, from which only the code LEFT can come.
        """
        is_group, final, automaton = automaton.is_group, automaton.final, automaton.spans
        if is_group:  # a row begins and ends as a group does; what was open is told by the heights
            final = automaton.value
        states, tokens = automaton.step.shape
        wrong, lost = states, states + 1
        cell = next(t for t in CELLS if lost < 1 << 8 * np.dtype(t).itemsize)
        width = tokens + 4
        table = np.vstack([automaton.total(self.unknown, width), np.full(width, lost)])
        table[:, OPEN] = automaton.start  # whether a span may stand here is seen when it closes
        table[lost, CLOSE] = self.lost
        table[:, self.space] = np.arange(states + 2)
        table[:, self.lost] = lost
        table[:states, self.end] = np.where(final < 0, MALFORMED, final)
        table[wrong:, self.end] = MALFORMED, LEFT
        if is_group:
            table[TOP] = table[automaton.start]
        return table.astype(cell)

    def _lexer(self, separator: int) -> tuple[NDArray[np.uint32], NDArray[np.integer]]:
        """By node and class, (index of the next node's first entry) << 8 | token; and the classes
        of bytes. Only these depend on the separator.
        """
        if not self.has_lexer:
            tokens = self.words.byte_tokens(self.space, self.unknown)
            tokens[128:] = self.lost  # it may be white space
            tokens[separator] = self.end
            return _NO_LEXER[0], tokens
        nodes = [LexerState(b"", self.space), LexerState(b"", self.end)]
        numbers = {node: i for i, node in enumerate(nodes)}
        rows: list[list[int]] = []
        for node in nodes:  # grows while it is gone through
            row: list[int] = []
            for byte in range(256):
                token, following = self._read(node, byte, separator)
                if following not in numbers:
                    numbers[following] = len(nodes)
                    nodes.append(following)
                row.append(numbers[following] << 8 | token)
            rows.append(row)
        columns, classes = np.unique(np.array(rows), axis=1, return_inverse=True)
        lexer = (columns >> 8) * columns.shape[1] << 8 | columns & 255
        return lexer.astype(np.uint32), classes.reshape(-1)

    def _read(self, node: LexerState, byte: int, separator: int) -> tuple[int, LexerState]:
        """The token that a byte ends, and what the lexer goes on with."""
        this, brackets = bytes([byte]), "" if node.token == self.end else node.brackets
        if node.read:
            if node.read + this in self._prefixes:
                return self.space, self._node(node.read + this, brackets)
            if BYTE_CLASSES[node.read[-1]] == BYTE_CLASSES[byte] == WORD:
                return self.space, LexerState(b"", self.unknown, brackets)
        if byte == separator:
            return node.token, LexerState(b"", self.end)
        if BYTE_CLASSES[byte] == BLANK:
            return node.token, LexerState(b"", self.space, brackets)
        if b"[" in self.words.spellings and this in BRACKETS:
            if brackets not in ("", BRACKETS[this]):
                return node.token, LexerState(b"", self.lost, brackets)
            brackets = BRACKETS[this]
        if this in self._prefixes:
            return node.token, self._node(this, brackets)
        return node.token, LexerState(b"", self.unknown, brackets)

    def _node(self, read: bytes, brackets: str) -> LexerState:
        spellings = self.words.spellings
        if read in self._spaces:
            return LexerState(b"", self.space, brackets)
        if read in spellings:
            return LexerState(read, spellings[read], brackets)
        is_word = BYTE_CLASSES[read[0]] == WORD
        shorter = not is_word and any(read[:i] in spellings for i in range(1, len(read)))
        return LexerState(read, self.lost if shorter else self.unknown, brackets)


_NO_LEXER = np.zeros((0, 0), dtype=np.uint32), np.zeros(256, dtype=np.uint8)


def padded(table: NDArray[np.generic]) -> NDArray[np.uint8]:
    """A table as bytes, padded so that they can be copied sixteen at a time."""
    return np.frombuffer(whole_lines(table.tobytes()), np.uint8)


def _is_small(table: NDArray[np.generic]) -> bool:
    return table.nbytes <= SHARED_TABLE
