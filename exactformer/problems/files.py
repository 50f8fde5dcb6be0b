"""Files of problems: JSON lines, tab-separated values with a header, or Parquet."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, Literal

from exactformer.domains.data import Place, read_json, show
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError, decode
from exactformer.domains.formats.lines import Lines
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.host.atomic import new_file
from exactformer.problems.draw import VERSION, Problem

FileFormat = Literal["jsonl", "tsv", "parquet"]
COLUMNS = tuple(field.name for field in fields(Problem))
HEADER = "\t".join(COLUMNS)
ROWS_AT_ONCE = 10_000  # of a Parquet file's groups
NO_PARQUET = "Parquet needs pyarrow: pip install 'exactformer[data]'"


def write_problems(problems: Iterable[Problem], path: Path, format: FileFormat) -> int:
    """Write a file, which gets its name when it is complete; returns the number of rows."""
    with new_file(path) as unfinished:
        if format == "parquet":
            return _write_parquet(problems, unfinished)
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            return write_lines(problems, file, format)


def write_lines(problems: Iterable[Problem], file: IO[str], format: FileFormat) -> int:
    """Write problems to an open text file, in a format of lines; returns their number."""
    if format == "parquet":
        raise ValueError("Parquet is no text: expected a file for it, with --out")
    rows = iter(problems)
    some = list(islice(rows, 1))  # before anything is written: it may be refused
    if format == "tsv":
        file.write(f"{HEADER}\n")
    count = 0
    for problem in chain(some, rows):
        row = problem.to_dict()
        text = json.dumps(row, ensure_ascii=False)
        file.write((text if format == "jsonl" else "\t".join(map(str, row.values()))) + "\n")
        count += 1
    return count


def _write_parquet(problems: Iterable[Problem], path: Path) -> int:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        from pyarrow import parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError(NO_PARQUET) from None
    types = {"depth": pyarrow.int64(), "tokens": pyarrow.int64()}
    columns = [(name, types.get(name, pyarrow.string())) for name in COLUMNS]
    about = {"exactformer": f"problems {VERSION}"}
    count, rows = 0, iter(problems)
    with parquet.ParquetWriter(path, pyarrow.schema(columns, metadata=about)) as writer:
        while some := [problem.to_dict() for problem in islice(rows, ROWS_AT_ONCE)]:
            writer.write_table(pyarrow.Table.from_pylist(some, writer.schema))
            count += len(some)
    return count


def read_problems(path: Path, domain: Domain) -> list[Problem]:
    """Read the rows of a file in any of the formats. Each must be an expression of the domain with
    its right value.
    """
    with Lines.of(path) as file:
        if file.header.startswith(b"PAR1"):
            rows = [_parquet_row(path, *row, domain) for row in enumerate(_parquet(path), start=1)]
        else:
            read, first = (_tsv_line, 2) if file.header == HEADER.encode() else (json_line, 1)
            rows = list(file.read(lambda line, n: _located(*read(line, n), n, domain), first))
    require_different(path, (row.id for row in rows))
    return rows


def is_rows(header: bytes) -> bool:
    """Whether a file with this first line is a file of problems."""
    return header == HEADER.encode() or header.startswith((b"PAR1", b'{"id":'))


def require_different(path: Path, ids: Iterable[str]) -> None:
    seen: set[str] = set()
    for id in ids:
        if id in seen:
            raise ValueError(f"{path}: the id {show(id)} is there twice")
        seen.add(id)


def json_line(line: bytes, number: int) -> tuple[str, Place]:
    """The text of a line, and its JSON value; an error shows the line and its number."""
    text = decode(line, number).rstrip("\r")
    try:
        return text, Place(read_json(text))
    except json.JSONDecodeError as error:
        problem = f"expected a JSON object: {error.msg}"
        raise ExpressionError(problem, text, min(error.pos, len(text)), number) from None
    except ValueError as error:
        raise ExpressionError(str(error), text, 0, number) from None


def _tsv_line(line: bytes, number: int) -> tuple[str, Place]:
    text = decode(line, number).rstrip("\r")
    words = text.split("\t")
    if len(words) != len(COLUMNS):
        problem = f"expected {' <TAB> '.join(COLUMNS)}, found {len(words)} fields"
        raise ExpressionError(problem, text, len(text), number)
    row = dict(zip(COLUMNS, words, strict=True))
    numbers = {k: int(row[k]) if row[k].isdecimal() else row[k] for k in ("depth", "tokens")}
    return text, Place(row | numbers)


def _located(text: str, row: Place, number: int, domain: Domain) -> Problem:
    """Read a row; an error in its expression has a caret at its place in the line."""
    try:
        return _problem(row, domain)
    except ExpressionError as error:
        start = max(0, text.find(row.value["expression"]))
        raise ExpressionError(error.problem, text, start + error.offset, number) from None
    except ValueError as error:
        raise ExpressionError(str(error), text, 0, number) from None


def _parquet(path: Path) -> Iterator[dict[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError(NO_PARQUET) from None
    try:
        for batch in parquet.ParquetFile(path).iter_batches(ROWS_AT_ONCE):
            yield from batch.to_pylist()
    except (ArrowException, OSError) as error:
        raise ValueError(f"{path}: expected a Parquet file: {error}") from None


def _parquet_row(path: Path, number: int, row: dict[str, Any], domain: Domain) -> Problem:
    try:
        return _problem(Place(row), domain)
    except ValueError as error:
        raise ValueError(f"{path}: row {number}: {error}") from None


def _problem(row: Place, domain: Domain) -> Problem:
    """A checked row: its depth, its tokens and its value must be those of its expression."""
    found = row.fields(COLUMNS)
    expression = parse(domain, found["expression"].text())
    facts = {"depth": expression.depth, "tokens": len(expression), "value": evaluate(expression)}
    for name, fact in facts.items():
        if found[name].value != fact:
            raise found[name].unexpected(repr(fact))
    id, text, prompt = (found[name].text() for name in ("id", "expression", "prompt"))
    return Problem(id, text, expression.depth, len(expression), facts["value"], prompt)
