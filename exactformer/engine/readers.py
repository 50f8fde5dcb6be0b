"""Reads a text with one reader, or with two that share it.

The first reader comes from the left. The second takes parts from the right end, whenever it really
runs; it does not know the spans around a part: what it finds at their level it keeps as tokens, the
residue, and the first one's state then reads those. Parts get smaller as what is left does, so that
both meet with little left to wait for; and the first never waits: what the second has not finished
it reads itself. So a second core that is busy costs nothing. Where much is left over (a comb), the
second reader gives up.
"""

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import OPEN
from exactformer.engine.scan import (
    DEPTH,
    END,
    POSITION,
    REASON,
    RESIDUE,
    ROW,
    STACK_FULL,
    feed,
    scan,
)
from exactformer.engine.tables import Tables

Bytes = NDArray[np.uint8]
T = TypeVar("T")

FIRST_ROOM = 1 << 14  # open spans before the stack grows
WORTH_SHARING = 1 << 20  # bytes; below, a second reader would hardly get to run
SMALLEST_PART = 1 << 18  # bytes that a reader takes at once, at least
RESIDUE_ROOM = 1 << 11  # tokens; a second reader with more left over gives up
NEAR = 1 << 12  # bytes that are searched for a bracket, to cut a text there
NOTHING = np.empty(0, dtype=np.uint32)


class Reader:
    """The state of one pass: where it is, and the spans around it."""

    def __init__(self, tables: Tables, row: int) -> None:
        self.tables = tables
        self.state = np.array([row, 0, 0, END, 0], dtype=np.uint64)
        self.stack = _stack(FIRST_ROOM, tables.step.dtype)
        self.closers = np.empty(FIRST_ROOM if tables.square else 0, dtype=np.uint8)

    @property
    def row(self) -> int:
        return int(self.state[ROW])

    @property
    def depth(self) -> int:
        return int(self.state[DEPTH])

    @property
    def position(self) -> int:
        return int(self.state[POSITION])

    @property
    def reason(self) -> int:
        return int(self.state[REASON])

    def read(
        self,
        text: Bytes,
        begin: int,
        stop: int,
        residue: NDArray[np.uint32] = NOTHING,
        *,
        end: int | None = None,
    ) -> int:
        """Read the tokens that begin in text[begin:stop]; returns why it stopped. Where the text
        does not end there, and there may be no boundary of tokens either, `end` is how far it is
        known.
        """
        end = stop if end is None else end
        while True:
            scan(text, begin, stop, end, self.tables, self.state, self.stack, self.closers, residue)
            if self.reason != STACK_FULL:
                return self.reason
            self.grow(4 * len(self.stack))
            begin = self.position

    def read_tokens(self, tokens: NDArray[np.uint32]) -> int:
        ids = own_ids(self.tables)
        while True:
            feed(tokens, ids, self.tables, self.state, self.stack, self.closers)
            if self.reason != STACK_FULL:
                return self.reason
            self.grow(4 * len(self.stack))
            tokens = tokens[self.position :]

    def join(self, inner: "Reader", residue: NDArray[np.uint32]) -> bool:
        """Continue where another reader ended that began where this one stands without knowing the
        spans around it. If they do not fit together, nothing changes.
        """
        before = self.state.copy()
        fits = self.read_tokens(residue) == END
        # A span that is still open must be allowed to begin here.
        if not fits or (inner.depth and self.tables.step[self.row + OPEN] == self.tables.no):
            self.state[:] = before  # the stack still is as it was: a residue begins no span
            return False
        depth = self.depth + inner.depth
        if depth > len(self.stack):
            self.grow(2 * depth)
        if inner.depth:
            self.stack[self.depth : depth] = inner.stack[: inner.depth]
            self.stack[self.depth] = self.row  # where the inner reader had the row `unknown`
            if self.tables.square:
                self.closers[self.depth : depth] = inner.closers[: inner.depth]
            self.state[ROW] = inner.row
        self.state[DEPTH], self.state[POSITION] = depth, inner.position
        return True

    def grow(self, room: int) -> None:
        stack, closers = self.stack, self.closers
        self.stack = _stack(room, stack.dtype)
        self.stack[: len(stack)] = stack
        if self.tables.square:
            self.closers = np.empty(room, dtype=np.uint8)
            self.closers[: len(closers)] = closers


def own_ids(tables: Tables) -> NDArray[np.int16]:
    """The table that maps each token id to itself, for tokens that are given as ids."""
    return np.arange(tables.closing, dtype=np.int16)


def _stack(room: int, dtype: np.dtype) -> NDArray:
    """A stack with one entry before its first: a shortcut may read that entry before it sees that
    it must not close a span.
    """
    return np.empty(room + 1, dtype=dtype)[1:]


class Parts(Generic[T]):
    """A range that two readers share, one from the left and one from the right. `cut` moves an
    index to the next place at which the range can be cut; `read_ahead` is the second reader's
    result for a part, or None if it gives up.
    """

    def __init__(
        self,
        begin: int,
        end: int,
        cut: Callable[[int], int],
        read_ahead: Callable[[int, int], T | None],
    ) -> None:
        self.left, self.right, self.cut, self.read_ahead = begin, end, cut, read_ahead
        self.lock = Lock()
        self.shared = True  # until the second reader gives up
        self.taken: list[tuple[int, int]] = []  # from the right, in that order
        self.found: dict[tuple[int, int], T] = {}

    def __iter__(self) -> Iterator[tuple[tuple[int, int], T | None]]:
        """Yield the parts in order, each with the second reader's result, or None."""
        part = self._from_left()  # before the second reader can take it all
        second_core().submit(self._read_ahead)
        try:
            while part:
                yield part, None
                part = self._from_left()
            for part in reversed(self.taken):
                yield part, self.found.get(part)
        finally:
            with self.lock:
                self.right = self.left  # nothing more is to be taken

    def _read_ahead(self) -> None:
        while taken := self._from_right():
            found = self.read_ahead(*taken)
            if found is None:
                self.shared = False
                return
            self.found[taken] = found

    def _size(self) -> int:
        return max(SMALLEST_PART, (self.right - self.left) // 3)

    def _from_left(self) -> tuple[int, int] | None:
        with self.lock:
            begin = self.left
            self.left = (
                min(self.cut(begin + self._size()), self.right) if self.shared else self.right
            )
            return (begin, self.left) if begin < self.left else None

    def _from_right(self) -> tuple[int, int] | None:
        with self.lock:
            begin, end = self.cut(max(self.left, self.right - self._size())), self.right
            if begin >= end:
                return None
            self.right = begin
            self.taken.append((begin, end))
            return begin, end


def read_shared(reader: Reader, text: Bytes, begin: int, end: int) -> None:
    """Read text[begin:end], by two readers if that is long."""
    if end - begin < WORTH_SHARING:
        reader.read(text, begin, end)
        return

    def read_ahead(begin: int, end: int) -> tuple[Reader, NDArray[np.uint32]] | None:
        residue = np.empty(RESIDUE_ROOM, dtype=np.uint32)
        second = Reader(reader.tables, reader.tables.unknown)
        if second.read(text, begin, end, residue) != END:
            return None
        return second, residue[: int(second.state[RESIDUE])]

    for part, found in Parts(begin, end, lambda i: _bracket_near(text, i, end), read_ahead):
        joined = found is not None and reader.join(*found)
        if not joined and reader.read(text, *part) != END:
            return


@cache
def second_core() -> ThreadPoolExecutor:
    """The thread of the second reader. Compiled passes release the interpreter's lock, so it uses a
    second core.
    """
    return ThreadPoolExecutor(1, thread_name_prefix="exactformer")


def _bracket_near(text: Bytes, i: int, end: int) -> int:
    """The index of the first bracket from i on; `end` where none is near."""
    near = re.search(rb"[()\[\]]", text[i : min(end, i + NEAR)].tobytes())
    return i + near.start() if near else end
