"""Files of labelled rows, as published and as `sample` writes them. Every error is located.

nangia   label <TAB> expression in Nangia and Bowman's notation, n-ary or binarised
lra      the Long Range Arena's: a header, then expression <TAB> label in the same notation
bowman   relation <TAB> formula <TAB> formula
tsv      expression <TAB> value in the native notation; the value may come first instead
"""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, NoReturn, TypeVar

from exactformer.domains.algebra import Algebra
from exactformer.domains.logic import RELATIONS, Formula, read_formula
from exactformer.domains.long_range import HEADER
from exactformer.domains.nangia import DIGITS, Reading, read_nangia
from exactformer.domains.syntax import Expression, ExpressionError, decode, parse

Format = Literal["nangia", "lra", "bowman", "tsv"]

SHOWN_PROBLEMS = 10  # bad lines of a file that are told one by one

T = TypeVar("T")


@dataclass(frozen=True)
class Row(Generic[T]):
    """One line of a file: its number, what it says the answer is, and what that is asked of."""

    line: int
    label: str
    content: T


@dataclass(frozen=True)
class Lines:
    """A file that is read line by line; `-` is standard input."""

    path: Path
    lines: list[bytes]

    @classmethod
    def of(cls, path: Path) -> "Lines":
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        return cls(path, lines if lines[-1] else lines[:-1])

    @property
    def header(self) -> bytes:
        """The first line, which may be a row already."""
        return self.lines[0].rstrip(b"\r") if self.lines else b""

    def read(self, read: Callable[[bytes, int], T], first: int = 1) -> list[T]:
        """`read` of each line from the first on, and its number; all bad lines are told at once."""

        def attempt(line: bytes, number: int) -> T | ExpressionError:
            try:
                return read(line, number)
            except ExpressionError as error:
                return error

        lines = enumerate(self.lines[first - 1 :], start=first)
        return all_right(str(self.path), (attempt(line, number) for number, line in lines))


def all_right(name: str, results: Iterable[T | ExpressionError]) -> list[T]:
    """The results of a file's lines, if none of them is an error; these are told at once."""
    right: list[T] = []
    problems: list[str] = []
    for result in results:
        if isinstance(result, ExpressionError):
            problems.append(str(result))
        else:
            right.append(result)
    if problems:
        shown = "\n".join(problems[:SHOWN_PROBLEMS])
        more = len(problems) - SHOWN_PROBLEMS
        raise ValueError(f"{name}: {shown}" + (f"\nand {more} more bad lines" if more > 0 else ""))
    if not right:
        raise ValueError(f"{name}: expected an expression on each line, found an empty file")
    return right


def guess_format(domain: Algebra, file: Lines) -> Format:
    """By the domain, and by the header that only the Long Range Arena's files have."""
    if file.header == HEADER.encode():
        return "lra"
    if domain.name == "boolean":
        return "bowman"
    return "nangia" if domain.name.split("-")[0] == "listops" else "tsv"


def read_nangia_rows(file: Lines) -> list[Row[Reading]]:
    def read(line: bytes, number: int) -> Row[Reading]:
        row = _Fields(line, number, ("label", "expression"))
        return Row(number, row.one_of(0, DIGITS), row.read(1, read_nangia))

    return file.read(read)


def read_lra_rows(file: Lines) -> list[Row[Reading]]:
    def read(line: bytes, number: int) -> Row[Reading]:
        row = _Fields(line, number, ("expression", "label"))
        return Row(number, row.one_of(1, DIGITS), row.read(0, read_nangia))

    if file.header != HEADER.encode():
        raise ValueError(
            f"{file.path}: expected {HEADER!r} as the first line, found {file.header!r}"
        )
    return file.read(read, first=2)


def read_bowman_rows(file: Lines) -> list[Row[tuple[Formula, Formula]]]:
    def read(line: bytes, number: int) -> Row[tuple[Formula, Formula]]:
        row = _Fields(line, number, ("relation", "formula", "formula"))
        relation = row.one_of(0, RELATIONS)
        return Row(number, relation, (row.read(1, read_formula), row.read(2, read_formula)))

    return file.read(read)


def read_tsv_rows(file: Lines, algebra: Algebra) -> list[Row[Expression]]:
    """Two bare values may be read either way: the row is right only if they are the same."""
    ids = {symbol: i for symbol, i in algebra.token_ids.items() if 2 <= i < algebra.first_operator}

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
