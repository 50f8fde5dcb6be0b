"""Reads a file of lines once, a line at a time, and reports bad lines together.

A file can be split into parts that are read separately; their bad lines add up.
"""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.errors import ExpressionError

SHOWN_PROBLEMS = 10  # bad lines of a file that are shown one by one
LONGEST_LINE = 1 << 24  # bytes; a longer line is refused before it fills the memory
PART = 1 << 20  # approximate bytes of a part
LINES_AT_ONCE = 1 << 23  # bytes of short lines that are read together

T = TypeVar("T")


class Part(NamedTuple):
    """Some whole lines of a file; `str(part)` is the file's name in error messages."""

    name: str
    first_line: int
    data: bytes

    def __str__(self) -> str:
        return self.name


def opened(path: Path | Part) -> AbstractContextManager[BinaryIO]:
    """Open a file for reading bytes; `-` is standard input, which is not closed at the end."""
    if isinstance(path, Part):
        return BytesIO(path.data)
    return nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb")


def first_line_of(path: Path | Part) -> int:
    return path.first_line if isinstance(path, Part) else 1


def size_of(file: BinaryIO) -> int | None:
    """Size of a file in bytes; None if it is not known before all is read."""
    if isinstance(file, BytesIO):
        return len(file.getbuffer())
    try:
        facts = os.fstat(file.fileno())
    except OSError:
        return None
    return facts.st_size if stat.S_ISREG(facts.st_mode) else None


class Lines:
    """A file that is read line by line, once; `-` is standard input."""

    def __init__(self, name: str, file: BinaryIO, first_line: int = 1) -> None:
        self.name, self.file, self.first_line = name, file, first_line
        self.number = first_line  # number of the next line that `blocks` yields
        self.done = 0  # bytes read so far
        self._first = self._next(first_line)
        if first_line == 1:
            self._first = self._first.removeprefix(b"\xef\xbb\xbf")

    @classmethod
    @contextmanager
    def of(cls, path: Path | Part) -> Iterator["Lines"]:
        with opened(path) as file:
            yield cls(str(path), file, first_line_of(path))

    @property
    def header(self) -> bytes:
        """The first line without its line end; it may already be a row."""
        return self._first.rstrip(b"\r\n")

    @property
    def size(self) -> int | None:
        return size_of(self.file)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """Yield each line with its number."""
        number, line = self.first_line, self._first
        while line:
            yield number, line.removesuffix(b"\n")
            number += 1
            line = self._next(number)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Yield blocks of whole lines, the first of which has the number `self.number`: the caller
        adds the number of lines it has read. A block is valid until the next one is requested.
        """
        buffer, size = bytearray(self._first), len(self._first)
        more = True
        while more:
            if len(buffer) < size + LINES_AT_ONCE:
                buffer = buffer + bytearray(size + LINES_AT_ONCE - len(buffer))
            room = memoryview(buffer)[size : size + LINES_AT_ONCE]
            more = self.file.readinto(room)  # pyright: ignore[reportAttributeAccessIssue]
            self.done += more
            size += more
            self._require_short(self.number, buffer.find(b"\n", 0, size) + 1 or size)
            end = buffer.rfind(b"\n", 0, size) + 1 if more else size
            if end:
                yield np.frombuffer(buffer, dtype=np.uint8, count=end)
                buffer[: size - end] = buffer[end:size]
                size -= end

    def _next(self, number: int) -> bytes:
        line = self.file.readline(LONGEST_LINE + 1)
        self._require_short(number, len(line))
        self.done += len(line)
        return line

    def _require_short(self, number: int, length: int) -> None:
        if length > LONGEST_LINE:
            raise _too_long(self.name, number)

    def read(self, read: Callable[[bytes, int], T], first: int = 1) -> Iterator[T]:
        """`read` of each line from the first on, and its number, up to the first bad line; at the
        end, one error is raised for all bad lines.
        """
        checked = Checked(self.name)
        for result in self.read_on(read, checked, first):
            if result is not None and not checked.bad:
                yield result
        checked.require_right()

    def read_on(
        self, read: Callable[[bytes, int], T], checked: "Checked", first: int = 1
    ) -> Iterator[T | None]:
        """`read` of each line, None for each bad one, which `checked` then knows of."""
        for number, line in self:
            if number >= first:
                result = None
                try:
                    result = read(line, number)
                except ExpressionError as error:
                    checked.add(1, 1, [error])
                else:
                    checked.add(1)
                yield result


def _too_long(name: str, line: int) -> ValueError:
    return ValueError(
        f"{name}: line {line}: expected at most {LONGEST_LINE - 1:,} bytes, found a longer line"
    )


def parts(path: Path) -> Iterator[Part]:
    """Split a file into parts of at least two lines, since the first line may be a header. An empty
    file has one empty part.
    """

    def and_a_line(data: bytes) -> bytes:
        """The data completed to a whole line; or with one more, if it ends with a whole one."""
        begun = len(data) - 1 - data.rfind(b"\n")
        rest = file.readline(LONGEST_LINE + 1 - begun)
        if begun + len(rest) > LONGEST_LINE:
            raise _too_long(str(path), number + data.count(b"\n"))
        return data + rest

    number = 1
    with opened(path) as file:
        while (data := file.read(PART)) or number == 1:
            part = Part(str(path), number, and_a_line(and_a_line(data)))
            yield part
            number += max(1, part.data.count(b"\n"))


class BadLines(ValueError):
    """A file with bad lines: their number, and the problems of the first few. `place` is the
    position of the first error.
    """

    def __init__(
        self, name: str, problems: Sequence[str], count: int, place: dict[str, int]
    ) -> None:
        more = [f"and {count - len(problems)} more bad lines"] if count > len(problems) else []
        super().__init__(f"{name}: " + "\n".join([*problems, *more]))
        self.name, self.problems, self.count, self.place = name, problems, count, place

    def __reduce__(self) -> tuple[type["BadLines"], tuple[object, ...]]:
        return BadLines, (self.name, self.problems, self.count, self.place)

    def __add__(self, later: "BadLines") -> "BadLines":
        """The bad lines of two parts of a file together, `later` being the second part."""
        problems = [*self.problems, *later.problems][:SHOWN_PROBLEMS]
        return BadLines(self.name, problems, self.count + later.count, self.place)


class Checked:
    """Counts of the lines of a file and of the bad ones, with the problems of the first few."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines = self.bad = 0
        self.problems: list[str] = []  # as text: an error would keep its frames, and these the file
        self.place: dict[str, int] = {}

    def add(self, lines: int, bad: int = 0, errors: Iterable[ExpressionError] = ()) -> None:
        self.lines += lines
        self.bad += bad
        for error in islice(errors, SHOWN_PROBLEMS - len(self.problems)):
            self.problems.append(str(error))
            self.place = self.place or error.place

    def require_right(self) -> None:
        """Raise one error for all bad lines, or for an empty file."""
        if self.bad:
            raise BadLines(self.name, self.problems, self.bad, self.place)
        if not self.lines:
            raise ValueError(
                f"{self.name}: expected an expression on each line, found an empty file"
            )
