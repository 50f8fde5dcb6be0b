"""How many rows of a labelled file a certified model gets right.

For `listops` the algebra is picked from the file: the one that covers its operators and numbers of
operands. Any other domain, and weights that are given, must cover the file themselves. Whatever is
outside is refused by name, never guessed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from exactformer.api import Model, find, look_up
from exactformer.domains import logic
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import Median, boolean, listops
from exactformer.domains.formats import (
    Format,
    Lines,
    Row,
    guess_format,
    read_bowman_rows,
    read_lra_rows,
    read_nangia_rows,
    read_tsv_rows,
)
from exactformer.domains.nangia import Reading, Use, covering, describe, require_digits, uncovered
from exactformer.domains.syntax import Expression
from exactformer.evaluate import Count

PUBLISHED_MEDIAN: Median = "mean"  # of every published ListOps file
TOKENS_AT_ONCE = 1 << 19  # between two looks at the progress
SHOWN_ROWS = 10  # wrong ones that are told one by one

EngineName = Literal["fast", "model"]
Evaluate = Callable[[Sequence[Expression]], Sequence[str | None]]
Progress = Callable[[int, int], None]  # how much of how much is done


@dataclass(frozen=True)
class Wrong:
    """A row that came out otherwise than its label says."""

    line: int
    expected: str
    found: str | None


@dataclass(frozen=True)
class Score:
    file: Path
    format: Format
    algebra: Algebra
    median: Median | None  # what the labels take for MED; None where there is no such choice
    weights: str
    verdict: str
    engine: EngineName
    count: Count
    wrong: tuple[Wrong, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.file),
            "format": self.format,
            "algebra": self.algebra.name,
            "operators": {op.symbol: op.counts for op in self.algebra.operators},
            "median": self.median,
            "weights": self.weights,
            "verdict": self.verdict,
            "engine": self.engine,
            "correct": self.count.correct,
            "total": self.count.total,
            "wrong": [vars(row) for row in self.wrong],
        }

    def __str__(self) -> str:
        operators = ", ".join(f"{op.symbol} of {op.counts}" for op in self.algebra.operators)
        lines = [f"{self.count.correct} of {self.count.total} rows right"]
        lines.append(f"  file     {self.file} ({self.format})")
        lines.append(f"  algebra  {self.algebra.name}: {operators}")
        if self.median and any(op.symbol == "MED" for op in self.algebra.operators):
            middle = {"lower": "the lower of the middle two", "mean": "the floor of their mean"}
            published = ", as published" if self.median == PUBLISHED_MEDIAN else ""
            lines.append(f"  median   of an even number: {middle[self.median]}{published}")
        lines.append(f"  weights  {self.weights}: {self.verdict}")
        lines.append(f"  engine   {self.engine}")
        for row in self.wrong[:SHOWN_ROWS]:
            lines.append(f"  line {row.line}: expected {row.expected}, found {row.found}")
        if (more := len(self.wrong) - SHOWN_ROWS) > 0:
            lines.append(f"  and {more} more")
        return "\n".join(lines)


def score(
    domain: Algebra,
    path: Path,
    format: Format | None = None,
    weights: str = "constructed",
    median: Median | None = None,
    engine: EngineName | None = None,
    progress: Progress = lambda done, total: None,
) -> Score:
    """Evaluate every row of a file and compare with its label: by the engine, by the transformer,
    or, unless `engine` says which, by the engine if it has tables for these weights.
    """
    file = Lines.of(path)
    format = format or guess_format(domain, file)
    rows: Sequence[Row]
    if format in ("nangia", "lra"):
        readings = read_nangia_rows(file) if format == "nangia" else read_lra_rows(file)
        median = _median(domain, median)
        model = _listops_model(domain, readings, weights, median)
        rows = [replace(row, content=row.content.expression(model.algebra)) for row in readings]
    elif median is not None:
        raise ValueError(f"a rule for the median is for published ListOps files, not for {format}")
    elif format == "tsv":
        rows, model = read_tsv_rows(file, domain), find(domain, weights)
    elif domain == boolean():
        rows, model = read_bowman_rows(file), find(domain, weights)
    else:
        raise ValueError(f"pairs of formulas are for the domain boolean, not {domain.name!r}")
    verdict = model.certify().verdict
    if verdict != "exact":
        raise ValueError(
            f"the weights {weights} are not certified ({verdict}): `exactformer certify` says why"
        )
    fast = model.fast if engine is None else model.engine if engine == "fast" else None
    evaluate: Evaluate = fast.values if fast else model.predict
    contents: list[Any] = [row.content for row in rows]
    find_answers = _relations if format == "bowman" else _values
    found = find_answers(evaluate, contents, progress)
    wrong = tuple(
        Wrong(row.line, row.label, answer)
        for row, answer in zip(rows, found, strict=True)
        if answer != row.label
    )
    count = Count(len(rows) - len(wrong), len(rows))
    used = "fast" if fast else "model"
    return Score(path, format, model.algebra, median, weights, verdict, used, count, wrong)


def _median(domain: Algebra, median: Median | None) -> Median | None:
    if domain == listops():
        return median or PUBLISHED_MEDIAN
    if median is not None:
        raise ValueError(
            f"a rule for the median is for the domain listops; {domain.name!r} has its own"
        )
    return None


def _listops_model(
    domain: Algebra, rows: Sequence[Row[Reading]], weights: str, median: Median | None
) -> Model:
    """Weights that cover the operators and numbers of operands of all rows."""
    first: dict[Use, int] = {}  # the line in which each use is first seen
    for row in rows:
        for use in row.content.uses:
            first.setdefault(use, row.line)
    if median is None:
        algebra = domain
    elif weights.split("/")[0] == "constructed":
        algebra = covering(first, median)
    else:
        algebra = look_up(domain.name, weights).algebra
    require_digits(algebra)
    if missing := uncovered(algebra, first):
        places = ", ".join(f"{describe(use)} (line {first[use]})" for use in missing)
        raise ValueError(f"{weights}: weights for {algebra.name!r} do not cover {places}")
    used = {symbol for symbol, _ in first}
    for operator in algebra.operators:
        if median is not None and operator.symbol in used:
            (published,) = listops(algebra.max_fan_in, median, (operator.symbol,)).operators
            if operator != published:
                rule = f" with --median {median}" if operator.symbol == "MED" else ""
                raise ValueError(
                    f"{weights}: {operator.symbol} of {algebra.name!r} is not that of ListOps{rule}"
                )
    return find(algebra, weights)


def _values(
    evaluate: Evaluate, expressions: Sequence[Expression], progress: Progress
) -> list[str | None]:
    """All values, some expressions at a time."""
    values: list[str | None] = []
    start, tokens = 0, 0
    for end, expression in enumerate(expressions, start=1):
        tokens += len(expression)
        if tokens >= TOKENS_AT_ONCE or end == len(expressions):
            values += evaluate(expressions[start:end])
            start, tokens = end, 0
            progress(end, len(expressions))
    return values


def _relations(
    evaluate: Evaluate, pairs: Sequence[tuple[logic.Formula, logic.Formula]], progress: Progress
) -> list[str]:
    """The relation of each pair, from the values of both formulas under all assignments.

    Different formulas have many circuits in common; each is evaluated once.
    """
    formulas = {formula: logic.circuits(formula) for pair in pairs for formula in pair}
    different = list({circuit: None for circuits in formulas.values() for circuit in circuits})
    answers = _values(evaluate, [logic.expression(circuit) for circuit in different], progress)
    value = dict(zip(different, answers, strict=True))
    truth = {
        formula: logic.truth([value[circuit] for circuit in circuits])
        for formula, circuits in formulas.items()
    }
    return [logic.relation(truth[left], truth[right]) for left, right in pairs]
