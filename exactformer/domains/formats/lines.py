"""A file of lines that is read once, a line at a time: bad lines are reported together.

Parts of it may be read apart, each as the file would be, and their bad lines added up.
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
LONGEST_LINE = 1 << 24  # bytes; what never ends is refused before it fills the memory
PART = 1 << 20  # bytes of a part, about
LINES_AT_ONCE = 1 << 23  # bytes of short lines that are read together; each takes a few numbers

T = TypeVar("T")


class Part(NamedTuple):
    """Whole lines of a file; `str` of it is what errors call the file."""

    name: str
    first_line: int
    data: bytes

    def __str__(self) -> str:
        return self.name


def opened(path: Path | Part) -> AbstractContextManager[BinaryIO]:
    """A file's bytes; `-` is standard input, which is not closed at the end."""
    if isinstance(path, Part):
        return BytesIO(path.data)
    return nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb")


def first_line_of(path: Path | Part) -> int:
    return path.first_line if isinstance(path, Part) else 1


def size_of(file: BinaryIO) -> int | None:
    """In bytes, where that can be known before all was read."""
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
        self.number = first_line  # of the next line of `blocks`
        self.done = 0  # bytes so far
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
        """The first line, which may be a row already."""
        return self._first.rstrip(b"\r\n")

    @property
    def size(self) -> int | None:
        return size_of(self.file)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """The number of each line, and the line."""
        number, line = self.first_line, self._first
        while line:
            yield number, line.removesuffix(b"\n")
            number += 1
            line = self._next(number)

    def blocks(self) -> Iterator[NDArray[np.uint8]]:
        """Many lines at a time, the first of which is `number`: whoever reads them adds how many
        they were. They are there until the next ones are asked for.
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
        """`read` of each line from the first on, and its number; see `all_right`."""
        return all_right(self.name, self._attempts(read, first))

    def read_on(self, read: Callable[[bytes, int], T], checked: "Checked") -> Iterator[T | None]:
        """`read` of each line, None for each bad one, which `checked` then knows of."""
        for result in self._attempts(read, 1):
            is_bad = isinstance(result, ExpressionError)
            checked.add(1, int(is_bad), [result] if is_bad else [])
            yield None if is_bad else result

    def _attempts(
        self, read: Callable[[bytes, int], T], first: int
    ) -> Iterator[T | ExpressionError]:
        """What `read` makes of each line from the first on, or its error."""

        def attempt(line: bytes, number: int) -> T | ExpressionError:
            try:
                return read(line, number)
            except ExpressionError as error:
                return error

        return (attempt(line, number) for number, line in self if number >= first)


def _too_long(name: str, line: int) -> ValueError:
    return ValueError(
        f"{name}: line {line}: expected at most {LONGEST_LINE - 1:,} bytes, found a longer line"
    )


def parts(path: Path) -> Iterator[Part]:
    """A file in parts of two lines at least: the first may be a header. An empty file has one part,
    an empty one.
    """

    def and_a_line(data: bytes) -> bytes:
        """With the rest of its last line, or with one more."""
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
    """Lines of a file that are none of its format: what is wrong with the first few, and how many
    there are. `place` is where the first one goes wrong.
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
        """Those of a part and of one behind it."""
        problems = [*self.problems, *later.problems][:SHOWN_PROBLEMS]
        return BadLines(self.name, problems, self.count + later.count, self.place)


class Checked:
    """What is known of a file's lines so far: how many there are, how many of them are bad, and
    what is wrong with the first few of those.
    """

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
        """Tell all bad lines at once."""
        if self.bad:
            raise BadLines(self.name, self.problems, self.bad, self.place)
        if not self.lines:
            raise ValueError(
                f"{self.name}: expected an expression on each line, found an empty file"
            )


def all_right(name: str, results: Iterable[T | ExpressionError]) -> Iterator[T]:
    """The results of a file's lines, up to the first bad one. At the end the bad ones are told."""
    checked = Checked(name)
    for result in results:
        if isinstance(result, ExpressionError):
            checked.add(1, 1, [result])
        else:
            checked.add(1)
            if not checked.bad:
                yield result
    checked.require_right()
