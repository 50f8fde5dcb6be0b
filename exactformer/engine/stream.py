"""Expressions from a file or a pipe, one a line, whatever their number and size.

No more than a few buffers are held in memory, besides the spans that are open and the values. A
line that does not fit into the buffer is read a piece at a time; errors in it are located by byte.
"""

from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from exactformer.domains.errors import ExpressionError, no_text
from exactformer.domains.formats.lines import LINES_AT_ONCE, SHOWN_PROBLEMS
from exactformer.engine.automaton import REFUSED
from exactformer.engine.cpu import CONTEXT, Bytes, CpuEngine
from exactformer.engine.rows import Rows
from exactformer.engine.scan import END

BUFFER = 1 << 26  # bytes
LONGEST_BAD_LINE = 1 << 28  # bytes; after that, the rest of the file is not read


class Window:
    """A window on a file: what has been read and not yet been used is bytes[begin:end]."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file = file
        self.bytes = bytearray(size)
        self.array: Bytes = np.frombuffer(self.bytes, dtype=np.uint8)
        self.begin = self.end = 0
        self.skipped = 0  # bytes of the file before the window
        self.ended = False

    def fill(self, keep: int = 0) -> None:
        """Read on until the window is full or the file ends: a pipe gives little at a time. What
        was used goes, but for the last `keep` bytes.
        """
        first = max(0, self.begin - keep)
        self.array[: self.end - first] = self.array[first : self.end].copy()
        self.skipped += first
        self.begin, self.end = self.begin - first, self.end - first
        view = memoryview(self.bytes)
        while self.end < len(view) and not self.ended:
            count = self.file.readinto(view[self.end :])  # pyright: ignore[reportAttributeAccessIssue]
            self.ended = not count
            self.end += count or 0

    def grow(self) -> None:
        """Double the size of the window."""
        self.bytes = self.bytes + bytearray(len(self.bytes))
        self.array = np.frombuffer(self.bytes, dtype=np.uint8)
        self.fill()


def window_size(engine: CpuEngine, file_size: int | None) -> int:
    """Size of the window in bytes: the whole file for a GPU, which takes a line as a whole."""
    whole = BUFFER if file_size is None else file_size + 1
    return max(BUFFER, whole) if engine.takes_whole_lines else min(BUFFER, whole)


def rows_of_file(
    engine: CpuEngine,
    file: BinaryIO,
    progress: Callable[[int], None] = lambda done: None,
    size: int = BUFFER,
    first_line: int = 1,
) -> Iterator[Rows]:
    """Yield the values of all lines, many at a time, with the errors of the first few bad ones.
    `progress` gets the number of bytes used so far.
    """
    window, number = Window(file, size + 2 * engine.look_ahead), first_line
    window.fill()
    if first_line == 1 and window.bytes.startswith(BOM_UTF8):
        window.begin = len(BOM_UTF8)
    while True:
        stop = _end_of_lines(window)
        if stop is None:
            window.fill()
            stop = _end_of_lines(window)
        while stop is None and not engine.reads_bytes and len(window.bytes) < LONGEST_BAD_LINE:
            window.grow()  # the parser takes a line whole
            stop = _end_of_lines(window)
        if window.begin == window.end:
            return
        if stop is None:
            line = _long_line(engine, window, number, progress)
            errors = {0: line} if isinstance(line, ExpressionError) else {}
            value = REFUSED if errors else engine.algebra.values.index(str(line))
            rows = Rows(np.array([value], np.int16), np.empty(0, np.int16), errors)
        else:
            rows = engine.rows(window.array[window.begin : stop], number, SHOWN_PROBLEMS)
            window.begin = stop
        yield rows
        number += len(rows.values)
        progress(window.skipped + window.begin)


def _end_of_lines(window: Window) -> int | None:
    """Index after some whole lines, not too many at once; None if the window has no whole line."""
    enough = min(window.end, window.begin + LINES_AT_ONCE)
    newline = window.bytes.rfind(b"\n", window.begin, enough)
    if newline < 0:
        newline = window.bytes.find(b"\n", enough, window.end)
    if newline >= 0:
        return newline + 1
    return window.end if window.ended else None


def _long_line(
    engine: CpuEngine, window: Window, number: int, progress: Callable[[int], None]
) -> str | ExpressionError:
    """Evaluate a line that begins in the window and does not end in it. Leaves the window after the
    line, or at the end of the file if the line is bad and very long.
    """
    reader, begun = engine.reader(), window.skipped + window.begin
    failure: ExpressionError | None = None
    if not engine.reads_bytes:
        most, start = len(window.bytes), window.bytes[window.begin : window.begin + CONTEXT]
        problem = f"expected at most {most:,} bytes for {engine.algebra.name!r}, found more"
        failure = ExpressionError(problem, start.decode("utf-8", "replace"), 0, number)
    rest = getincrementaldecoder("utf-8")()  # of what comes after an error
    visible = window.skipped + window.begin
    while True:
        newline = window.bytes.find(b"\n", window.begin, window.end)
        end = window.end if newline < 0 else newline
        final = newline >= 0 or window.ended
        begin = window.begin
        if not failure:
            engine.read(reader, window.array, begin, end, final=final)
            visible = _visible_end(window, begin, reader.position) or visible
            if reader.reason != END or (final and engine.result(reader) is None):
                failure = engine.error(reader, window.array[:end], 1, window.skipped, visible)
                begin = reader.position
        window.begin = end if failure else reader.position
        if failure:  # the rest of the line is only passed over; bytes that are no text go first
            undecoded = len(rest.getstate()[0])
            try:
                rest.decode(window.bytes[begin:end], final)
            except UnicodeDecodeError as error:
                at = begin - undecoded + error.start
                text = bytes(window.bytes[:end])
                failure = no_text(text[:at], text[at:], byte=window.skipped + at)
                rest = getincrementaldecoder("utf-8")("ignore")
        progress(window.skipped + window.begin)
        if failure and window.skipped + window.begin - begun > LONGEST_BAD_LINE:
            window.begin, window.ended = window.end, True
            return failure
        if final:
            window.begin = min(end + 1, window.end)
            return failure or str(engine.result(reader))
        window.fill(keep=min(CONTEXT, len(window.bytes) // 4))


def _visible_end(window: Window, begin: int, end: int) -> int | None:
    """The byte of the file after the last one in bytes[begin:end] that can be seen."""
    while end > begin:
        start = max(begin, end - CONTEXT)
        while start > begin and window.bytes[start] & 0xC0 == 0x80:  # within a character
            start -= 1
        seen = window.bytes[start:end].decode("utf-8", "replace").rstrip()
        if seen:
            return window.skipped + start + len(seen.encode())
        end = start
    return None
