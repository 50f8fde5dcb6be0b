"""One reader that goes through a text, and two that share one.

The first reader comes from the left. The second takes parts from the right end, whenever it really
runs; it does not know the spans around a part: what it finds at their level it keeps as tokens, the
residue, and the first one's state then reads those. Parts get smaller as what is left does, so that
both meet with little left to wait for; and the first never waits: what the second has not finished
it reads itself. So a second core that is busy costs nothing. Where much is left over (a comb), the
second reader gives up.
"""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock

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
    scan_lines,
)
from exactformer.engine.tables import Tables

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]

FIRST_ROOM = 1 << 14  # open spans before the stack grows
WORTH_SHARING = 1 << 20  # bytes; below, a second reader would hardly get to run
SMALLEST_PART = 1 << 18  # bytes that a reader takes at once, at least
RESIDUE_ROOM = 1 << 11  # tokens; a second reader with more left over gives up
NEAR = 1 << 12  # bytes in which a parenthesis is looked for, to cut a text there
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
        while True:
            feed(tokens, self.tables, self.state, self.stack, self.closers)
            if self.reason != STACK_FULL:
                return self.reason
            self.grow(4 * len(self.stack))
            tokens = tokens[self.position :]

    def join(self, inner: "Reader", residue: NDArray[np.uint32]) -> bool:
        """Go on where a reader ended that began where this one stands, not knowing the spans around
        it. Where they do not fit together, nothing changes.
        """
        before = self.state.copy()
        fits = self.read_tokens(residue) == END
        # A span that is still open must be allowed to begin here.
        if fits and (not inner.depth or self.tables.step[self.row + OPEN] != self.tables.no):
            self._enter(inner)
            return True
        self.state[:] = before  # the stack still is as it was: a residue begins no span
        return False

    def _enter(self, inner: "Reader") -> None:
        depth = self.depth + inner.depth
        if depth > len(self.stack):
            self.grow(2 * depth)
        if inner.depth:
            self.stack[self.depth : depth] = inner.stack[: inner.depth]
            self.stack[self.depth] = self.row  # the inner one only knew that it did not know it
            if self.tables.square:
                self.closers[self.depth : depth] = inner.closers[: inner.depth]
            self.state[ROW] = inner.row
        self.state[DEPTH], self.state[POSITION] = depth, inner.position

    def grow(self, room: int) -> None:
        stack, closers = self.stack, self.closers
        self.stack = _stack(room, stack.dtype)
        self.stack[: len(stack)] = stack
        if self.tables.square:
            self.closers = np.empty(room, dtype=np.uint8)
            self.closers[: len(closers)] = closers


def _stack(room: int, dtype: np.dtype) -> NDArray:
    """With a place before its first: the quick way may look there before it sees that it must not
    close a span.
    """
    return np.empty(room + 1, dtype=dtype)[1:]


class Parts:
    """What two readers have yet to take of a range, one from the left and one from the right.
    `cut` moves a place on to where the range can be cut.
    """

    def __init__(self, begin: int, end: int, cut: Callable[[int], int]) -> None:
        self.left, self.right, self.cut = begin, end, cut
        self.lock = Lock()
        self.shared = True  # until the second reader gives up
        self.taken: list[tuple[int, int]] = []  # from the right, in that order

    def _size(self) -> int:
        return max(SMALLEST_PART, (self.right - self.left) // 3)

    def from_left(self) -> tuple[int, int] | None:
        with self.lock:
            begin = self.left
            self.left = (
                min(self.cut(begin + self._size()), self.right) if self.shared else self.right
            )
            return (begin, self.left) if begin < self.left else None

    def from_right(self) -> tuple[int, int] | None:
        with self.lock:
            begin, end = self.cut(max(self.left, self.right - self._size())), self.right
            if begin >= end:
                return None
            self.right = begin
            self.taken.append((begin, end))
            return begin, end

    def close(self) -> None:
        """Nothing more is to be taken."""
        with self.lock:
            self.right = self.left


def read_shared(reader: Reader, text: Bytes, begin: int, end: int) -> None:
    """Read text[begin:end], by two readers if that is long."""
    if end - begin < WORTH_SHARING:
        reader.read(text, begin, end)
        return
    parts = Parts(begin, end, lambda place: _bracket_near(text, place, end))
    part = parts.from_left()  # before the second reader can take it all
    found: dict[int, tuple[Reader, NDArray[np.uint32]]] = {}

    def read_ahead() -> None:
        residue = np.empty(RESIDUE_ROOM, dtype=np.uint32)
        while taken := parts.from_right():
            second = Reader(reader.tables, reader.tables.unknown)
            if second.read(text, *taken, residue) != END:
                parts.shared = False
                return
            found[taken[0]] = second, residue[: int(second.state[RESIDUE])].copy()

    second_core().submit(read_ahead)
    while part:
        if reader.read(text, *part) != END:
            parts.close()
            return
        part = parts.from_left()
    for part in reversed(parts.taken):
        joined = part[0] in found and reader.join(*found[part[0]])
        if not joined and reader.read(text, *part) != END:
            return


def read_lines(
    tables: Tables, row: int, text: Bytes, begins: Places, ends: Places
) -> NDArray[np.int64]:
    """The number of the value of each text[begin:end], or -1; by two readers if that is long."""

    def numbers(begin: int, end: int) -> NDArray[np.int64]:
        """Of the lines that begin between these places."""
        some = slice(*np.searchsorted(begins, [begin, end]))
        reader, done = Reader(tables, row), 0
        values = np.empty(some.stop - some.start, dtype=np.int64)
        while True:
            done = scan_lines(
                text, begins[some], ends[some], tables, values, done, reader.stack, reader.closers
            )
            if done == len(values):
                return values
            reader.grow(4 * len(reader.stack))

    end = len(text) + 1  # an empty line may begin where the text ends
    if end <= WORTH_SHARING:
        return numbers(0, end)
    cuts = np.append(begins, end)
    parts = Parts(0, end, lambda place: int(cuts[np.searchsorted(begins, place)]))
    part = parts.from_left()
    found: dict[int, NDArray[np.int64]] = {}

    def read_ahead() -> None:
        while taken := parts.from_right():
            found[taken[0]] = numbers(*taken)

    second_core().submit(read_ahead)
    values = []
    while part:
        values.append(numbers(*part))
        part = parts.from_left()
    for part in reversed(parts.taken):
        values.append(found[part[0]] if part[0] in found else numbers(*part))
    return np.concatenate(values)


@cache
def second_core() -> ThreadPoolExecutor:
    """Compiled passes release the interpreter's lock, so a thread is a core."""
    return ThreadPoolExecutor(1, thread_name_prefix="exactformer")


def _bracket_near(text: Bytes, place: int, end: int) -> int:
    """The first parenthesis from a place on; `end` where none is near."""
    near = re.search(rb"[()\[\]]", text[place : min(end, place + NEAR)].tobytes())
    return place + near.start() if near else end
