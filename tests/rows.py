"""Rows with their values and errors one by one, to be compared with what was expected."""

from collections.abc import Iterable
from typing import Any, BinaryIO

from exactformer.domains.errors import ExpressionError
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.rows import Rows
from exactformer.engine.stream import rows_of_file


def listed(engine: CpuEngine, blocks: Iterable[Rows]) -> list[str | ExpressionError | None]:
    """The value of each row, or its error; None for a bad one that nobody looked at."""
    return [
        engine.algebra.values[number] if number >= 0 else rows.errors.get(i)
        for rows in blocks
        for i, number in enumerate(rows.values.tolist())
    ]


def line_values(
    engine: CpuEngine, file: BinaryIO, *arguments: Any, **more: Any
) -> list[str | ExpressionError | None]:
    """The value or the error of each line of a file."""
    return listed(engine, rows_of_file(engine, file, *arguments, **more))
