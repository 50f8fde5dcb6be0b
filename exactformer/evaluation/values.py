"""Values of expressions, of texts and of files: the one place that decides which engine gives them.

Certified weights have tables. Where they are known to be certified, these are built without torch,
which takes longer to import than most expressions take to evaluate; otherwise they are read off the
weights. Where there are none, or on request, the transformer runs; what it would take hours for is
refused, unless there is no bound on its work. A file is read a block at a time, whatever its size.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.data import show, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.formats.blocks import in_blocks
from exactformer.domains.formats.lines import Checked, Lines, Part, first_line_of, opened, size_of
from exactformer.domains.formats.syntaxes import READERS, Syntax
from exactformer.domains.syntax import parse
from exactformer.engine.automaton import REFUSED, SpanAutomaton
from exactformer.engine.choice import EngineName, EngineUsed, soon_made
from exactformer.engine.kept import find_tables, keep_certified
from exactformer.model.iterations import Iterations, check_iterations, work

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine
    from exactformer.engine.loaded import Loaded
    from exactformer.engine.rows import Numbers
    from exactformer.model.predict import Outcome

TOKENS_AT_ONCE = 1 << 19  # between two reports of progress
MANY = 1 << 16  # characters of texts; more are not parsed before there is an engine to read them

Text = str | bytes | Expression
Tell = Callable[[float], None]  # is called with the fraction that is done


def expression_of(domain: Domain, text: Text) -> Expression:
    """The expression that a text is; one that was parsed must be of the domain."""
    expression = text if isinstance(text, Expression) else parse(domain, text)
    if expression.domain is not domain and expression.domain != domain:
        raise ValueError(
            f"expected an expression of {domain.name!r}, found one of {expression.domain.name!r}"
        )
    return expression


def expressions_of(domain: Domain, texts: Sequence[Text]) -> list[Expression]:
    """Parse several texts; an error says which one it is in."""
    if isinstance(texts, Text):
        raise TypeError(f"expected a list of expressions, found {show(texts)}")
    expressions: list[Expression] = []
    for number, text in enumerate(texts, start=1):
        try:
            expressions.append(expression_of(domain, text))
        except ExpressionError as error:
            if len(texts) > 1:
                error.add_note(f"in text {number} of {len(texts)}")
            raise
    return expressions


def spelt(numbers: "Numbers", words: Sequence[str]) -> str:
    """The word of each number, one after the other, without an object for each. The last word is
    that of every negative number.
    """
    table = np.array([word.encode() for word in words])  # shorter ones end with zeros
    return table[np.maximum(numbers, -1)].tobytes().replace(b"\0", b"").decode()


def _bar(path: Path | Part | None = None) -> Any:
    from exactformer.host.progress import bar, is_typed  # rich takes a while to import

    return bar(shown=not is_typed(str(path)))


@dataclass(frozen=True)
class Evaluator:
    """Weights, and the choices of how to evaluate with them, by the names of the command line."""

    domain: Domain
    weights: "str | Path | Loaded" = "constructed"
    engine: EngineName = "auto"
    iterations: Iterations | None = None  # of the transformer; as many as the depth if not given
    most_work: int | None = None  # that the transformer may spend on one expression
    device: str = "cpu"  # for weights given by their name
    keep_going: bool = False  # whether lines behind a bad one are evaluated

    def __post_init__(self) -> None:
        if self.iterations is not None:
            check_iterations(self.iterations)
        if self.iterations is not None and self.engine != "model":
            raise ValueError(
                f"iterations ({self.iterations}) are the transformer's: expected the engine model, "
                f"found {self.engine}"
            )
        if self.engine not in get_args(EngineName):
            hint = suggestion(self.engine, get_args(EngineName))
            raise ValueError(f"engine: expected auto, fast or model, found {self.engine!r}{hint}")

    @property
    def algebra(self) -> Algebra:
        return algebra_of(self.domain)

    @property
    def runs(self) -> EngineUsed:
        """Name of the engine that gives the values: tables, or the transformer itself."""
        return "fast" if self._tables or self.fast else "model"

    @cached_property
    def fast(self) -> "CpuEngine | None":
        """The engine that looks up tables; None if the transformer is to run."""
        if self._tables:
            from exactformer.engine.cpu import CpuEngine  # numba takes a while to import

            return CpuEngine(self._tables, self.algebra)
        loaded = self.loaded
        if self.engine == "model" or (self.engine == "auto" and not soon_made(self.domain)):
            return None
        if not isinstance(loaded.engine, str):
            if isinstance(self.weights, str | Path) and self.device == "cpu":
                keep_certified(self.domain, self.weights, loaded.sha256)
            return loaded.engine
        if self.engine == "fast":
            raise ValueError(loaded.engine)
        return None

    @cached_property
    def _tables(self) -> SpanAutomaton | None:
        """The tables of weights that are known to be certified. A GPU has others."""
        if isinstance(self.weights, str | Path) and self.engine != "model" and self.device == "cpu":
            return find_tables(self.domain, self.weights)
        return None

    @cached_property
    def loaded(self) -> "Loaded":
        """The weights in memory, on the device that was asked for."""
        if not isinstance(self.weights, str | Path):
            return self.weights
        from exactformer.engine.loaded import Loaded, named
        from exactformer.model.remembered import fixed

        domain, weights, _ = named(self.weights, self.domain)
        return Loaded(domain, fixed(weights.to(self.device)))

    @property
    def verdict(self) -> str:
        """The verdict on the weights, as in their certificate."""
        return "exact" if self._tables else self.loaded.certificate.verdict

    # Values of expressions and texts

    def answer(self, expression: Expression) -> dict[str, Any]:
        """The value of one expression and the engine that gave it, with the iterations that the
        transformer took, of which a bar shows the progress.
        """
        if self._tables:  # for one expression these need no numba, either
            number = self._tables.run(expression.ids.tolist())
            assert number is not None, "an expression is well formed, and such tables are total"
            return {"engine": "fast", "value": self.algebra.values[number]}
        if self.fast:
            return {"engine": "fast", "value": self.fast.values([expression])[0]}
        total = work(expression, self.iterations or "depth")
        with _bar() as tell:
            found = self.outcomes([expression], None, lambda s: tell("positions", s * total, total))
        return {"engine": "model", **found[0]._asdict()}

    def values(
        self, expressions: Sequence[Expression], tell: Tell = lambda share: None, place: str = ""
    ) -> list[str]:
        """The value of each expression. `place` begins an error about one, before the expression;
        `tell` is called while the transformer runs.
        """
        if self.fast:
            return self.fast.values(expressions)
        places = [f"{place}{e!r}: " for e in expressions] if place else None
        return [str(outcome.value) for outcome in self.outcomes(expressions, places, tell)]

    def outcomes(
        self,
        expressions: Sequence[Expression],
        places: Sequence[str] | None = None,
        tell: Tell = lambda share: None,
    ) -> "list[Outcome]":
        """The transformer's value of each expression, with its iterations. `places` begin an error
        about each.
        """
        from exactformer.model.predict import require_outcomes

        by, loaded = self.iterations or "depth", self.loaded
        loaded.require_exact(by)
        most = self.most_work
        return require_outcomes(self.domain, loaded.weights, expressions, places, most, tell, by)

    def texts(self, texts: Sequence[Text], tell: Tell = lambda share: None) -> list[str]:
        """The value of each text. Raises `ExpressionError`, which says which one it is in."""
        unparsed = all(issubclass(kind, str | bytes) for kind in set(map(type, texts)))
        if unparsed and not (self._tables or "engine" in vars(self.loaded)):
            unparsed = sum(map(len, texts)) > MANY  # mistakes first: tables take a while
        if unparsed and self.fast:
            return self.fast.texts(cast("Sequence[str | bytes]", texts))
        return self.values(expressions_of(self.domain, texts), tell)

    # Values of the lines of a file

    def line_values(self, path: Path | Part, syntax: Syntax = "native") -> "Iterator[Numbers]":
        """The values of a file's lines (`-` is standard input) by tables, up to the first bad line,
        many at a time, as numbers; with `keep_going`, of all lines, a negative number for each bad
        one. At the end, the bad lines are reported as `BadLines`, a ValueError.
        """
        on, fast = self.keep_going, self.fast
        assert fast is not None, "`runs` says which of the two ways it is"
        if syntax == "native":
            from exactformer.engine.rows import all_right
            from exactformer.engine.stream import rows_of_file, window_size

            with opened(path) as file, _bar(path) as tell:
                size = size_of(file)
                window = window_size(fast, size)
                told, first = (lambda done: tell("bytes", done, size)), first_line_of(path)
                blocks = rows_of_file(fast, file, told, window, first)
                yield from (rows.values for rows in all_right(str(path), blocks, keep_going=on))
        elif syntax == "nangia":
            from exactformer.engine.nangia_rows import values_of_file

            with Lines.of(path) as file, _bar(path) as tell:
                for numbers in values_of_file(fast, file, keep_going=on):
                    yield numbers
                    tell("bytes", file.done, file.size)
        else:
            for block, right, _, _ in self._blocks(path, syntax):
                values = np.full(len(block), REFUSED, dtype=np.int16)
                values[[expression is not None for expression in block]] = fast.numbers(right)
                yield values

    def line_outcomes(
        self, path: Path | Part, syntax: Syntax = "native"
    ) -> "Iterator[list[Outcome | None]]":
        """The values of lines by the transformer, each with its iterations; None for a bad line."""
        for block, right, places, told in self._blocks(path, syntax):
            outcomes = iter(self.outcomes(right, places, told))
            yield [None if e is None else next(outcomes) for e in block]

    def _blocks(
        self, path: Path | Part, syntax: Syntax
    ) -> Iterator[tuple[list[Expression | None], list[Expression], list[str], Tell]]:
        """Expressions of a file, None for a bad line if it keeps going; the right ones alone, with
        what begins an error about each; and what to call with the fraction that is done.
        """
        read = READERS[syntax]
        with Lines.of(path) as file, _bar(path) as tell:

            def parsed(line: bytes, number: int) -> Expression:
                return read(self.domain, line, first_line=number)

            checked = Checked(str(path))
            lines = file.read_on(parsed, checked) if self.keep_going else file.read(parsed)
            number, before = file.first_line, 0
            for block in in_blocks(lines, lambda e: len(e) if e else 1, TOKENS_AT_ONCE):

                def told(share: float, before: int = before) -> None:
                    tell("bytes", before + share * (file.done - before), file.size)

                right = {n: e for n, e in enumerate(block, start=number) if e is not None}
                yield block, [*right.values()], [f"{path}: line {n}: " for n in right], told
                told(1)
                number, before = number + len(block), file.done
            if self.keep_going:
                checked.require_right()
