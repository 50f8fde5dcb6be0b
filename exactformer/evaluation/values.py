"""The value of an expression, or of each line of a file, for the command line.

A file is read a block at a time, whatever its size. What the transformer would take hours for is
refused, unless there is no bound on its work. The tables of weights that are known to be certified
need no torch, which takes longer to import than most expressions take to evaluate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.formats.blocks import in_blocks
from exactformer.domains.formats.lines import Checked, Lines, Part, first_line_of, opened, size_of
from exactformer.domains.formats.syntaxes import READERS, Syntax
from exactformer.engine.automaton import REFUSED, SpanAutomaton
from exactformer.engine.choice import EngineName, EngineUsed, require_transformer
from exactformer.engine.kept import find_tables, keep_certified
from exactformer.model.iterations import MOST_WORK, Iterations, work

if TYPE_CHECKING:
    from exactformer.api import Model
    from exactformer.engine.cpu import CpuEngine
    from exactformer.engine.rows import Numbers
    from exactformer.model.predict import Outcome

TOKENS_AT_ONCE = 1 << 19

Tell = Callable[[float], None]  # is called with the fraction that is done


def spelt(numbers: "Numbers", words: Sequence[str]) -> str:
    """The word of each number, one after the other, without an object for each. The last word is
    that of every negative number.
    """
    table = np.array([word.encode() for word in words])  # shorter ones end with zeros
    return table[np.maximum(numbers, -1)].tobytes().replace(b"\0", b"").decode()


@dataclass(frozen=True)
class Evaluator:
    """The user's choices of what to evaluate with, by the names of the command line."""

    algebra: Algebra
    weights: str = "constructed"
    engine: EngineName = "auto"
    device: str = "cpu"
    no_limit: bool = False  # whether the transformer may take hours
    iterations: Iterations | None = None  # of the transformer; as many as the depth if not given
    keep_going: bool = False  # whether lines behind a bad one are evaluated

    def __post_init__(self) -> None:
        require_transformer(self.iterations, self.engine)

    @property
    def runs(self) -> EngineUsed:
        """Name of the engine that gives the values: tables, or the transformer itself."""
        return "fast" if self._tables or self._model.fast_engine(self.engine) else "model"

    def value(self, expression: Expression) -> str:
        if self._tables:
            number = self._tables.run(expression.ids.tolist())
            assert number is not None, "an expression is well formed, and such tables are total"
            return self.algebra.values[number]
        if fast := self._model.fast_engine(self.engine):
            return fast.values([expression])[0]
        return str(self.outcome(expression).value)

    def outcome(self, expression: Expression) -> "Outcome":
        """The transformer's value of an expression, with its iterations."""
        from exactformer.host.progress import bar

        total = work(expression, self.iterations or "depth")
        with bar() as tell:
            return self._run([expression], [""], lambda s: tell("positions", s * total, total))[0]

    def line_values(self, path: Path | Part, syntax: Syntax = "native") -> "Iterator[Numbers]":
        """The values of a file's lines (`-` is standard input) up to the first bad one, many at a
        time, as numbers; with `keep_going`, of all lines, a negative number for each bad one. At
        the end, the bad lines are reported as `BadLines`, a ValueError.
        """
        on = self.keep_going
        fast = self.fast_engine()
        if fast and syntax == "native":
            from exactformer.engine.rows import all_right
            from exactformer.engine.stream import rows_of_file, window_size
            from exactformer.host.progress import bar, is_typed

            with opened(path) as file, bar(shown=not is_typed(str(path))) as tell:
                size = size_of(file)
                window = window_size(fast, size)
                told, first = (lambda done: tell("bytes", done, size)), first_line_of(path)
                blocks = rows_of_file(fast, file, told, window, first)
                yield from (rows.values for rows in all_right(str(path), blocks, keep_going=on))
        elif fast and syntax == "nangia":
            from exactformer.engine.nangia_rows import values_of_file
            from exactformer.host.progress import bar, is_typed

            with Lines.of(path) as file, bar(shown=not is_typed(str(path))) as tell:
                for numbers in values_of_file(fast, file, keep_going=on):
                    yield numbers
                    tell("bytes", file.done, file.size)
        elif fast:
            for block, _, _ in self._blocks(path, syntax):
                values = np.full(len(block), REFUSED, dtype=np.int16)
                right = [expression is not None for expression in block]
                values[right] = fast.numbers([e for e in block if e is not None])
                yield values
        else:
            numbers = {value: number for number, value in enumerate(self.algebra.values)}
            for outcomes in self._outcomes(path, syntax):
                values = (numbers[str(o.value)] if o else REFUSED for o in outcomes)
                yield np.fromiter(values, dtype=np.int16)

    def line_outcomes(
        self, path: Path | Part, syntax: Syntax = "native"
    ) -> "Iterator[Outcome | None]":
        """The values of lines by the transformer, each with its iterations; None for a bad line."""
        return chain.from_iterable(self._outcomes(path, syntax))

    def _outcomes(self, path: Path | Part, syntax: Syntax) -> "Iterator[list[Outcome | None]]":
        for block, places, told in self._blocks(path, syntax):
            right = [place for place, e in zip(places, block, strict=True) if e is not None]
            outcomes = iter(self._run([e for e in block if e is not None], right, told))
            yield [None if e is None else next(outcomes) for e in block]

    def _blocks(
        self, path: Path | Part, syntax: Syntax
    ) -> Iterator[tuple[list[Expression | None], list[str], Tell]]:
        """Expressions of a file, None for a bad line if it keeps going; what begins an error about
        each, and what to call with the fraction of them that is done.
        """
        from exactformer.host.progress import bar, is_typed

        read = READERS[syntax]
        with Lines.of(path) as file, bar(shown=not is_typed(str(path))) as tell:

            def parsed(line: bytes, number: int) -> Expression:
                return read(self.algebra, line, first_line=number)

            checked = Checked(str(path))
            lines = file.read_on(parsed, checked) if self.keep_going else file.read(parsed)
            number, before = file.first_line, 0
            for block in in_blocks(lines, lambda e: len(e) if e else 1, TOKENS_AT_ONCE):

                def told(share: float, before: int = before) -> None:
                    tell("bytes", before + share * (file.done - before), file.size)

                yield block, [f"{path}: line {number + i}: " for i in range(len(block))], told
                told(1)
                number, before = number + len(block), file.done
            if self.keep_going:
                checked.require_right()

    def _run(self, expressions: list[Expression], places: list[str], tell: Tell) -> "list[Outcome]":
        return self._model.outcomes(
            expressions,
            self.iterations or "depth",
            places=places,
            most_work=None if self.no_limit else MOST_WORK,
            tell=tell,
        )

    def fast_engine(self) -> "CpuEngine | None":
        """The engine to evaluate with, made if it does not exist yet; None if that is the
        transformer.
        """
        if self._tables is None:
            return self._model.fast_engine(self.engine)
        from exactformer.engine.cpu import CpuEngine  # numba takes a while to import

        return CpuEngine(self._tables, self.algebra)

    @cached_property
    def _tables(self) -> SpanAutomaton | None:
        """The tables, if they can be had without the model; None for a GPU, which has its own."""
        if self.engine == "model" or self.device != "cpu":
            return None
        return find_tables(self.algebra, self.weights)

    @cached_property
    def _model(self) -> "Model":
        """The model. If its fast engine is to run, its weights are certified: that is kept."""
        from exactformer.api import load

        model = load(self.weights, self.algebra).to(self.device)
        if self.device == "cpu" and model.fast_engine(self.engine):
            keep_certified(self.algebra, self.weights, model.sha256)
        return model
