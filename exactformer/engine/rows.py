"""Many texts in one buffer, a row each: one pass, and no object a row.

A value is a number, its index among the algebra's; only for a row without one is there ever an
error as text. Two readers share a long buffer as they share a long text (`readers.py`).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.lines import Checked
from exactformer.engine import readers
from exactformer.engine.automaton import TOP
from exactformer.engine.readers import NOTHING, Bytes, Parts, Reader, own_ids
from exactformer.engine.scan import STACK_FULL
from exactformer.engine.scan_rows import count_rows, feed_rows, next_row, scan_rows
from exactformer.engine.tables import Tables

Numbers = NDArray[np.int16]  # of values; negative where there is none


class Rows(NamedTuple):
    """The values found in rows, with the labels of the rows and the first few errors."""

    values: Numbers
    labels: Numbers  # empty where rows have none
    errors: dict[int, ExpressionError]  # by row, of the first few that have no value

    @property
    def lines(self) -> int:
        return len(self.values)

    @property
    def bad(self) -> int:
        return int(np.count_nonzero(self.values < 0))


class Read(NamedTuple):
    """The result of one pass over rows: values, labels if any, and the start of each row."""

    values: Numbers
    labels: Numbers
    begins: NDArray[np.int64]


class Block(Protocol):
    """Lines that were read: how many, how many of them bad, and the first errors."""

    @property
    def lines(self) -> int: ...
    @property
    def bad(self) -> int: ...
    @property
    def errors(self) -> Mapping[int, ExpressionError]: ...


T = TypeVar("T")
SomeBlock = TypeVar("SomeBlock", bound=Block)


def all_right(
    name: str, blocks: Iterable[SomeBlock], *, keep_going: bool = False
) -> Iterator[SomeBlock]:
    """The rows of a file, up to the first block with a bad one; all of them with `keep_going`. At
    the end the bad ones are told.
    """
    checked = Checked(name)
    for rows in blocks:
        checked.add(rows.lines, rows.bad, rows.errors.values())
        if keep_going or not checked.bad:
            yield rows
    checked.require_right()


def read_rows(tables: Tables, text: Bytes, separator: int, *, labelled: bool = False) -> Read:
    """Read all rows of a text, with two readers if it is long."""

    def read(begin: int, end: int) -> Read:
        return read_part(tables, text, begin, end, separator, labelled=labelled)

    parts = in_parts(len(text), lambda i: int(next_row(text, i, separator)), read)
    return Read(*map(np.concatenate, zip(*parts, strict=True)))


def in_parts(size: int, cut: Callable[[int], int], read: Callable[[int, int], T]) -> list[T]:
    """Read rows of this size in all part by part, each of whole rows; two readers share long ones.
    `cut` moves an index to where the next row begins.
    """
    if size < readers.WORTH_SHARING:
        return [read(0, size)]
    return [read(*part) if found is None else found for part, found in Parts(0, size, cut, read)]


def line_of(text: Bytes, begins: NDArray[np.integer], i: int) -> bytes:
    """The line of a text with the number i from 0, by where all of them begin."""
    end = begins[i + 1] if i + 1 < len(begins) else len(text)
    return text[begins[i] : end].tobytes().removesuffix(b"\n")


def read_part(
    tables: Tables, text: Bytes, begin: int, end: int, separator: int, *, labelled: bool = False
) -> Read:
    """Read the rows of text[begin:end] with one reader."""
    reader, done = Reader(tables, TOP), 0
    count = count_rows(text, begin, end, separator)
    values = np.empty(count, dtype=np.int16)
    labels = np.empty(count if labelled else 0, dtype=np.int16)
    found = Read(values, labels, np.empty(count, dtype=np.int64))
    while True:
        space = reader.state, reader.stack, reader.closers, NOTHING
        done = scan_rows(text, begin, end, separator, tables, done, found, space)
        if reader.reason != STACK_FULL:
            return found
        begin = reader.position
        reader.grow(4 * len(reader.stack))


def read_tokens(
    tables: Tables,
    tokens: NDArray[np.integer],
    ends: NDArray[np.integer],
    ids: NDArray[np.int16] | None = None,
) -> Numbers:
    """Evaluate rows whose tokens are known and stored one row after another; `ends` are the ends of
    the rows. Many rows are shared by two readers. `ids` maps each given code to its token id.
    """
    ids = own_ids(tables) if ids is None else ids
    if len(tokens) and not 0 <= tokens.min() <= tokens.max() < len(ids):  # nothing below asks
        raise ValueError(f"expected tokens from 0 to {len(ids) - 1}, found others")
    values = np.empty(len(ends), dtype=np.int16)

    def row_after(i: int) -> int:
        return int(np.searchsorted(ends, i, side="right"))

    def cut(i: int) -> int:
        return int(ends[min(row_after(i), len(ends) - 1)])

    def read(begin: int, end: int) -> bool:
        """Evaluate the rows of tokens[begin:end] in place."""
        reader, done, stop = Reader(tables, TOP), row_after(begin) if begin else 0, row_after(end)
        while True:
            space = reader.state, reader.stack, reader.closers
            done = int(feed_rows(tokens, ids, ends, tables, done, stop, values, *space))
            if reader.reason != STACK_FULL:
                return True
            reader.grow(4 * len(reader.stack))

    in_parts(len(tokens), cut, read)
    return values
