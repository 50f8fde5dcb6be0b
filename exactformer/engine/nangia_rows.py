"""Files in Nangia and Bowman's notation, many lines at a time and without an object for each.

Which weights a published file needs is known when all of it has been read: until then its rows wait
as codes. Where the algebra is given, lines have their values at once. What the compiled pass does
not take goes through the parser, line by line.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.labelled import Row, read_nangia_row, require_lra_header
from exactformer.domains.formats.lines import SHOWN_PROBLEMS, Lines
from exactformer.domains.formats.nangia import (
    DIGIT_CODES,
    OPERATOR_CODES,
    SYMBOLS,
    Use,
    parse_nangia,
    require_digits,
    token_ids,
)
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.readers import Bytes
from exactformer.engine.rows import Numbers, Rows, all_right, in_parts, line_of, read_tokens
from exactformer.engine.scan_nangia import (
    LABEL_FIRST,
    LABEL_LAST,
    MOST_OPERANDS,
    NEWLINE,
    NO_LABEL,
    NangiaTables,
    Transcript,
    nangia_tables,
    transcribe,
)
from exactformer.engine.scan_rows import count_rows, next_row


@dataclass(frozen=True)
class Readings:
    """Labelled lines of a file, each with its expression as codes."""

    first_line: int
    codes: NDArray[np.uint8]  # of all, those of one after the other's
    ends: NDArray[np.int32]  # by line, among the codes
    labels: NDArray[np.uint8]  # by line, a code as well
    uses: dict[Use, int]  # the line in which each use of an operator is first seen
    bad: int
    errors: dict[int, ExpressionError]  # of the first few bad ones, by line from 0

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lines(self) -> int:
        return len(self.ends)

    def rows(self, algebra: Algebra) -> Iterator[Row[NDArray[np.int16]]]:
        """Yield the rows one by one, with token ids of an algebra that covers `uses`."""
        ids, begin = token_ids(algebra)[self.codes], 0
        for i, end in enumerate(self.ends.tolist()):
            yield Row(self.first_line + i, SYMBOLS[self.labels[i]], ids[begin:end])
            begin = end

    def values(self, engine: CpuEngine) -> Numbers:
        """The value index of every row, by an engine whose algebra covers `uses`."""
        return engine.token_numbers(self.codes, self.ends, token_ids(engine.algebra))

    def label_numbers(self, algebra: Algebra) -> Numbers:
        return token_ids(algebra)[self.labels] - np.int16(FIRST_VALUE)


def read_published(file: Lines, format: Literal["nangia", "lra"]) -> Iterator[Readings]:
    """Yield all lines of a file of labelled rows in blocks. Bad lines are reported at the end."""
    if format == "lra":
        require_lra_header(file)

    def blocks() -> Iterator[Readings]:
        for lines in file.blocks():
            header = format == "lra" and file.number == 1
            begin = int(next_row(lines, 1, NEWLINE)) if header else 0
            readings = read_labelled(lines[begin:], file.number + header, format)
            file.number += header + readings.lines
            yield readings

    return all_right(file.name, blocks())


def read_labelled(text: Bytes, first_line: int, format: Literal["nangia", "lra"]) -> Readings:
    """Read labelled lines; the last one need not end with a newline."""
    found = read_text(text, LABEL_FIRST if format == "nangia" else LABEL_LAST)
    names = [word[1:] for word in OPERATOR_CODES]
    first_rows = found.uses.reshape(len(names), -1)
    uses = {
        (names[operator], operands): first_line + int(first_rows[operator, operands])
        for operator, operands in np.argwhere(first_rows >= 0).tolist()
    }
    counts, labels, bad = found.counts, found.labels, 0
    errors: dict[int, ExpressionError] = {}
    parsed: dict[int, bytes] = {}
    for i in np.flatnonzero(counts < 0).tolist():
        try:
            line = line_of(text, found.begins, i)
            number, label, reading = read_nangia_row(line, first_line + i, format)
        except ExpressionError as error:
            bad += 1
            if len(errors) < SHOWN_PROBLEMS:
                errors[i] = error
            continue
        parsed[i], labels[i] = reading.codes, DIGIT_CODES[label]
        for use in reading.uses:
            uses[use] = min(number, uses.get(use, number))
    counts[counts < 0] = 0
    ends, codes = np.cumsum(counts, dtype=np.int32), found.codes
    if parsed:
        sizes = np.array([len(some) for some in parsed.values()])
        places, inserted = np.repeat(ends[list(parsed)], sizes), b"".join(parsed.values())
        codes = np.insert(codes, places, np.frombuffer(inserted, dtype=np.uint8))
        counts[list(parsed)] = sizes
        ends = np.cumsum(counts, dtype=np.int32)
    return Readings(first_line, codes, ends, labels, uses, bad, errors)


def values_of_file(
    engine: CpuEngine, file: Lines, *, keep_going: bool = False
) -> Iterator[Numbers]:
    """The values of a file's lines, many at a time. The bad ones are told at the end; with
    `keep_going` they have negative numbers, and lines behind them have their values.
    """

    def blocks() -> Iterator[Rows]:
        for lines in file.blocks():
            require_digits(engine.algebra)
            rows = read_lines(engine, lines, file.number)
            file.number += rows.lines
            yield rows

    return (rows.values for rows in all_right(file.name, blocks(), keep_going=keep_going))


def read_lines(engine: CpuEngine, text: Bytes, first_line: int = 1) -> Rows:
    """Read lines without labels; the last one need not end with a newline."""
    found = read_text(text, NO_LABEL)
    ends = np.cumsum(np.maximum(found.counts, 0), dtype=np.int32)
    values = read_tokens(engine.tables, found.codes, ends, token_ids(engine.algebra))
    errors: dict[int, ExpressionError] = {}
    for i in np.flatnonzero(values < 0).tolist():
        try:
            line = line_of(text, found.begins, i)
            expression = parse_nangia(engine.algebra, line, first_line=first_line + i)
            (values[i],) = engine.numbers([expression])
        except ExpressionError as error:
            if len(errors) < SHOWN_PROBLEMS:
                errors[i] = error
    return Rows(values, np.empty(0, dtype=np.int16), errors)


def read_text(text: Bytes, label: int) -> Transcript:
    """Read all rows of a text, with two readers if it is long."""

    def read(begin: int, end: int) -> Transcript:
        return _read_part(text, begin, end, label)

    blocks = in_parts(len(text), lambda i: int(next_row(text, i, NEWLINE)), read)
    before, uses = 0, np.full_like(blocks[0].uses, -1)
    for block in blocks:
        here = np.where(block.uses >= 0, before + block.uses, -1)
        uses, before = np.where(uses >= 0, uses, here), before + len(block.counts)
    joined = Transcript(*map(np.concatenate, zip(*blocks, strict=True)))
    return joined._replace(uses=uses)


def _read_part(text: Bytes, begin: int, end: int, label: int) -> Transcript:
    """Read the rows of text[begin:end] with one reader. A row has at most as many codes as bytes,
    and three bytes or more for each open span.
    """
    size, count = end - begin, count_rows(text, begin, end, NEWLINE)
    found = Transcript(
        codes=np.empty(size, dtype=np.uint8),
        counts=np.empty(count, dtype=np.int32),
        labels=np.zeros(0 if label == NO_LABEL else count, dtype=np.uint8),
        begins=np.empty(count, dtype=np.int32),
        uses=np.full(len(OPERATOR_CODES) * (MOST_OPERANDS + 1), -1, dtype=np.int64),
    )
    stack = np.empty(size // 3 + 1, dtype=np.uint64)
    written = transcribe(text, begin, end, label, _tables(label), stack, found)
    return found._replace(codes=found.codes[:written])


@cache
def _tables(label: int) -> NangiaTables:
    return nangia_tables(b"\n" if label == NO_LABEL else b"\t\n")
