"""The value of an expression, or of each line of a file: by the engine or by the transformer.

A file is read a block at a time, whatever its size. What the transformer would take hours for is
refused, unless there is no bound on its work.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from exactformer.api import Model
from exactformer.domains.algebra import Algebra
from exactformer.domains.formats import Lines, all_right, in_blocks
from exactformer.domains.syntax import Expression, parse
from exactformer.model.predict import predict, require_feasible, work
from exactformer.progress import bar, is_typed

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine

TOKENS_AT_ONCE = 1 << 19


class Read(Protocol):
    """A reader of one notation, such as `parse`."""

    def __call__(
        self, algebra: Algebra, text: str | bytes, *, first_line: int = 1
    ) -> Expression: ...


def value_of(
    model: Model, fast: "CpuEngine | None", expression: Expression, most_work: int | None = None
) -> str:
    if fast:
        return fast.values([expression])[0]
    with bar() as tell:
        total = work(expression)

        def told(share: float) -> None:
            tell("positions", share * total, total)

        return _run(model, [expression], [""], most_work, told)[0]


def line_values(
    model: Model, fast: "CpuEngine | None", read: Read, path: Path, most_work: int | None = None
) -> Iterator[str]:
    """The values of a file's lines (`-` is standard input) up to the first bad one; at the end, the
    bad lines are told as a ValueError.
    """
    if fast and read is parse:
        from exactformer.engine.stream import file_values  # numba takes a while to import

        yield from all_right(str(path), file_values(fast, str(path)))
        return
    with Lines.of(path) as file, bar(shown=not is_typed(path)) as tell:
        lines = file.read(lambda line, number: read(model.algebra, line, first_line=number))
        number, before = 1, 0
        for block in in_blocks(lines, len, TOKENS_AT_ONCE):

            def told(share: float, before: int = before) -> None:
                tell("bytes", before + share * (file.done - before), file.size)

            if fast:
                yield from fast.values(block)
            else:
                places = [f"{path}: line {number + i}: " for i in range(len(block))]
                yield from _run(model, block, places, most_work, told)
            told(1)
            number, before = number + len(block), file.done


def _run(
    model: Model,
    expressions: Sequence[Expression],
    places: Sequence[str],
    most_work: int | None,
    tell: Callable[[float], None],
) -> list[str]:
    """What the transformer gives each. `tell` is told the share that is done."""
    for expression, place in zip(expressions, places, strict=True):
        require_feasible(expression, most_work, place)
    total, done = sum(map(work, expressions)), 0

    def observe(positions: int) -> None:
        nonlocal done
        done += positions
        tell(min(1.0, done / total))  # padding counts, so there may be more than was thought

    values = predict(model.algebra, model.weights, expressions, observe=observe)
    for expression, place, value in zip(expressions, places, values, strict=True):
        if value is None:
            raise ValueError(
                f"{place}{expression!r}: no single value is left: the weights are not exact"
            )
    return [str(value) for value in values]
