"""A file of lines that is read once, a line at a time: bad lines are reported together."""

import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import BinaryIO, TypeVar

from exactformer.domains.errors import ExpressionError

SHOWN_PROBLEMS = 10  # bad lines of a file that are shown one by one
LONGEST_LINE = 1 << 24  # bytes; what never ends is refused before it fills the memory

T = TypeVar("T")


def opened(path: Path) -> AbstractContextManager[BinaryIO]:
    """A file's bytes; `-` is standard input, which is not closed at the end."""
    return nullcontext(sys.stdin.buffer) if str(path) == "-" else path.open("rb")


def size_of(file: BinaryIO) -> int | None:
    """In bytes, where that can be known before all was read."""
    try:
        facts = os.fstat(file.fileno())
    except OSError:
        return None
    return facts.st_size if stat.S_ISREG(facts.st_mode) else None


class Lines:
    """A file that is read line by line, once; `-` is standard input."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name, self.file = name, file
        self.done = 0  # bytes so far
        self._first = self._next(1).removeprefix(b"\xef\xbb\xbf")

    @classmethod
    @contextmanager
    def of(cls, path: Path) -> Iterator["Lines"]:
        with opened(path) as file:
            yield cls(str(path), file)

    @property
    def header(self) -> bytes:
        """The first line, which may be a row already."""
        return self._first.rstrip(b"\r\n")

    @property
    def size(self) -> int | None:
        return size_of(self.file)

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """The number of each line, and the line."""
        number, line = 1, self._first
        while line:
            yield number, line.removesuffix(b"\n")
            number += 1
            line = self._next(number)

    def _next(self, number: int) -> bytes:
        line = self.file.readline(LONGEST_LINE + 1)
        if len(line) > LONGEST_LINE:
            raise ValueError(
                f"{self.name}: line {number}: expected at most {LONGEST_LINE - 1:,} bytes, "
                f"found a longer line"
            )
        self.done += len(line)
        return line

    def read(self, read: Callable[[bytes, int], T], first: int = 1) -> Iterator[T]:
        """`read` of each line from the first on, and its number; see `all_right`."""

        def attempt(line: bytes, number: int) -> T | ExpressionError:
            try:
                return read(line, number)
            except ExpressionError as error:
                return error

        lines = (attempt(line, number) for number, line in self if number >= first)
        return all_right(self.name, lines)


class BadLines(ValueError):
    """Lines of a file that are none of its format; `place` is where the first one goes wrong."""

    def __init__(self, message: str, place: dict[str, int]) -> None:
        super().__init__(message)
        self.place = place


def all_right(name: str, results: Iterable[T | ExpressionError | None]) -> Iterator[T]:
    """The results of a file's lines, up to the first bad one. At the end the bad ones are told at
    once: the first few, and how many others there are. None is a bad line that nobody looked at.
    """
    problems: list[str] = []  # as text: an error would keep its frames, and these the file
    place: dict[str, int] = {}
    good = bad = 0
    for result in results:
        if result is None or isinstance(result, ExpressionError):
            bad += 1
            if result and len(problems) < SHOWN_PROBLEMS:
                problems.append(str(result))
                place = place or result.place
        elif not bad:
            good += 1
            yield result
    if bad:
        more = [f"and {bad - len(problems)} more bad lines"] if bad > len(problems) else []
        raise BadLines(f"{name}: " + "\n".join(problems + more), place)
    if not good:
        raise ValueError(f"{name}: expected an expression on each line, found an empty file")
