"""The value of an expression, or of each line of a file, for the command line.

A file is read a block at a time, whatever its size. What the transformer would take hours for is
refused, unless there is no bound on its work. Tables that were kept are all that the fast engine
needs; torch takes longer to import than most expressions take to evaluate.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.formats.blocks import in_blocks
from exactformer.domains.formats.lines import Lines, all_right, opened, size_of
from exactformer.domains.formats.syntaxes import READERS, Syntax
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.choice import EngineName
from exactformer.engine.kept import find_tables, keep_tables

if TYPE_CHECKING:
    from exactformer.api import Model
    from exactformer.engine.cpu import CpuEngine

TOKENS_AT_ONCE = 1 << 19


@dataclass(frozen=True)
class Evaluator:
    """What a user chose to evaluate with, by the names of the command line."""

    algebra: Algebra
    weights: str = "constructed"
    engine: EngineName = "auto"
    device: str = "cpu"
    no_limit: bool = False  # whether the transformer may take hours

    def value(self, expression: Expression) -> str:
        if self._tables:
            number = self._tables.run(expression.ids.tolist())
            assert number is not None, "an expression is well formed, and such tables are total"
            return self.algebra.values[number]
        from exactformer.model.predict import work
        from exactformer.progress import bar

        model, total = self._model, work(expression)
        with bar() as tell:
            return model.evaluate(
                expression,
                self.engine,
                most_work=self._most_work,
                tell=lambda share: tell("positions", share * total, total),
            )

    def line_values(self, path: Path, syntax: Syntax = "native") -> Iterator[str]:
        """The values of a file's lines (`-` is standard input) up to the first bad one; at the end,
        the bad lines are reported as a ValueError.
        """
        from exactformer.progress import bar, is_typed

        fast = self._fast_engine()
        if fast and syntax == "native":
            from exactformer.engine.stream import line_values, window_size

            with opened(path) as file, bar(shown=not is_typed(path)) as tell:
                size = size_of(file)
                window = window_size(fast, size)
                values = line_values(fast, file, lambda done: tell("bytes", done, size), window)
                yield from all_right(str(path), values)
            return
        read = READERS[syntax]
        with Lines.of(path) as file, bar(shown=not is_typed(path)) as tell:
            lines = file.read(lambda line, number: read(self.algebra, line, first_line=number))
            number, before = 1, 0
            for block in in_blocks(lines, len, TOKENS_AT_ONCE):

                def told(share: float, before: int = before) -> None:
                    tell("bytes", before + share * (file.done - before), file.size)

                if fast:
                    yield from fast.values(block)
                else:
                    from exactformer.model.predict import require_values

                    weights, most = self._model.weights, self._most_work
                    places = [f"{path}: line {number + i}: " for i in range(len(block))]
                    yield from require_values(self.algebra, weights, block, places, most, told)
                told(1)
                number, before = number + len(block), file.done

    @property
    def _most_work(self) -> int | None:
        from exactformer.model.predict import MOST_WORK

        return None if self.no_limit else MOST_WORK

    def _fast_engine(self) -> "CpuEngine | None":
        if self._tables is None:
            return self._model.fast_engine(self.engine)
        from exactformer.engine.cpu import CpuEngine  # numba takes a while to import

        return CpuEngine(self._tables, self.algebra)

    @cached_property
    def _tables(self) -> SpanAutomaton | None:
        """Those that were kept; a GPU has its own."""
        if self.engine == "model" or self.device != "cpu":
            return None
        return find_tables(self.algebra, self.weights)

    @cached_property
    def _model(self) -> "Model":
        """The model; the tables of its fast engine, if that is to run, are kept."""
        from exactformer.api import load

        model = load(self.weights, self.algebra).to(self.device)
        if self.device == "cpu" and (fast := model.fast_engine(self.engine)):
            keep_tables(self.algebra, self.weights, fast.automaton)
        return model
