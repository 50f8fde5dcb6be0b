"""Files of labelled rows, as published and as `sample` writes them. Every error is located.

nangia   label <TAB> expression in Nangia and Bowman's notation, n-ary or binarised
lra      the Long Range Arena's: a header, then expression <TAB> label in the same notation
bowman   relation <TAB> formula <TAB> formula
tsv      expression <TAB> value in the native notation; the value may come first instead
"""

import os
import pickle
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Generic, Literal, NamedTuple, NoReturn, TypeVar

from exactformer.domains.algebra import Algebra
from exactformer.domains.logic import RELATIONS, Formula, read_formula
from exactformer.domains.long_range import HEADER
from exactformer.domains.nangia import DIGITS, Reading, read_nangia
from exactformer.domains.syntax import Expression, ExpressionError, decode, parse

Format = Literal["nangia", "lra", "bowman", "tsv"]

SHOWN_PROBLEMS = 10  # bad lines of a file that are told one by one
LONGEST_LINE = 1 << 24  # bytes; what never ends is refused before it fills the memory
MOST_AT_ONCE = 1 << 15  # items of a block, however small
KEPT_IN_MEMORY = 1 << 26  # bytes; what is more is kept on disk

T = TypeVar("T")


class Row(NamedTuple, Generic[T]):
    """One line of a file: its number, what it says the answer is, and what that is asked of."""

    line: int
    label: str
    content: T


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


def in_blocks(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Items in lists, each of about this size in all."""
    block: list[T] = []
    room = most
    for item in items:
        block.append(item)
        room -= size(item)
        if room <= 0 or len(block) == MOST_AT_ONCE:
            yield block
            block, room = [], most
    if block:
        yield block


class Kept(Generic[T]):
    """Plain data that waits in blocks, most of it on disk, until a whole file has been read."""

    def __init__(self) -> None:
        self.file = SpooledTemporaryFile(KEPT_IN_MEMORY)  # noqa: SIM115 (closed at the exit)
        self.count = 0

    def __enter__(self) -> "Kept[T]":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def keep(self, blocks: Iterable[list[T]]) -> None:
        for block in blocks:
            pickle.dump(block, self.file)
            self.count += len(block)

    def __iter__(self) -> Iterator[list[T]]:
        end = self.file.tell()
        self.file.seek(0)
        while self.file.tell() < end:
            yield pickle.load(self.file)  # nobody else can open it: it has no name


def guess_format(domain: Algebra, header: bytes) -> Format:
    """By the first line: the Long Range Arena's files have a header; pairs of formulas have a third
    field; Nangia's operators have a bracket; and native text in two fields is as `sample` writes.
    """
    if header == HEADER.encode():
        return "lra"
    two_fields = header.count(b"\t") == 1
    if domain.name == "boolean":
        return "tsv" if two_fields else "bowman"
    native = two_fields and b"(" in header and b"[" not in header
    return "nangia" if domain.name.split("-")[0] == "listops" and not native else "tsv"


def read_nangia_rows(file: Lines) -> Iterator[Row[Reading]]:
    def read(line: bytes, number: int) -> Row[Reading]:
        row = _Fields(line, number, ("label", "expression"))
        return Row(number, row.one_of(0, DIGITS), row.read(1, read_nangia))

    return file.read(read)


def read_lra_rows(file: Lines) -> Iterator[Row[Reading]]:
    def read(line: bytes, number: int) -> Row[Reading]:
        row = _Fields(line, number, ("expression", "label"))
        return Row(number, row.one_of(1, DIGITS), row.read(0, read_nangia))

    if file.header != HEADER.encode():
        raise ValueError(
            f"{file.name}: expected {HEADER!r} as the first line, found {file.header[:40]!r}"
        )
    return file.read(read, first=2)


def read_bowman_rows(file: Lines) -> Iterator[Row[tuple[Formula, Formula]]]:
    def read(line: bytes, number: int) -> Row[tuple[Formula, Formula]]:
        row = _Fields(line, number, ("relation", "formula", "formula"))
        relation = row.one_of(0, RELATIONS)
        return Row(number, relation, (row.read(1, read_formula), row.read(2, read_formula)))

    return file.read(read)


def read_tsv_rows(file: Lines, algebra: Algebra) -> Iterator[Row[Expression]]:
    """Two bare values may be read either way: the row is right only if they are the same."""
    ids = {symbol: i for symbol, i in algebra.token_ids.items() if i in algebra.value_ids}

    def read(line: bytes, number: int) -> Row[Expression]:
        row = _Fields(line, number, ("expression", "value"))
        first, second = (field.strip() in ids for field in row.fields)
        place = 0 if first and not second else 1
        label = algebra.vocabulary[ids[row.one_of(place, ids)]]
        return Row(number, label, row.read(1 - place, lambda text: parse(algebra, text)))

    return file.read(read)


class _Fields:
    """The parts of a line between tabs; an error in one of them is located in the whole line."""

    def __init__(self, line: bytes, number: int, names: tuple[str, ...]) -> None:
        self.text, self.number = decode(line, number).rstrip("\r"), number
        self.fields = self.text.split("\t")
        if len(self.fields) != len(names):
            self._fail(
                len(self.text) if len(self.fields) < len(names) else self._start(len(names)) - 1,
                f"expected {' <TAB> '.join(names)}, found {len(self.fields)} "
                f"{'field' if len(self.fields) == 1 else 'fields'}",
            )

    def one_of(self, place: int, allowed: Iterable[str]) -> str:
        word = self.fields[place].strip()
        if word not in set(allowed):
            found = repr(word if len(word) <= 20 else word[:17] + "...") if word else "nothing"
            self._fail(self._start(place), f"expected one of {' '.join(allowed)}, found {found}")
        return word

    def read(self, place: int, read: Callable[[str], T]) -> T:
        try:
            return read(self.fields[place])
        except ExpressionError as error:
            self._fail(self._start(place) + error.offset, error.problem)

    def _start(self, place: int) -> int:
        return sum(len(field) + 1 for field in self.fields[:place])

    def _fail(self, offset: int, problem: str) -> NoReturn:
        raise ExpressionError(problem, self.text, offset, self.number) from None
