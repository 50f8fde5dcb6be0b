"""Scores a certified model on the rows of a labelled file.

For `listops` the algebra is picked from the file: the one that covers its operators and numbers of
operands. Any other domain, and weights that are given, must cover the file themselves, and weights
must mean by each operator what the labels do. Whatever is outside is refused by name, never
guessed.

A file is read once, whatever its size, and refused if any line of it is bad. Native text goes
through the engine as it is read; other rows wait as tokens, most of them on disk, for the weights
that the file turned out to need. Those of published ListOps are never objects of their own.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.catalog import Median, boolean, listops
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.domains.formats import bowman, nangia
from exactformer.domains.formats.blocks import Kept, in_blocks
from exactformer.domains.formats.labelled import (
    Format,
    Row,
    agrees,
    guess_format,
    read_bowman_row,
    read_tsv_row,
)
from exactformer.domains.formats.lines import SHOWN_PROBLEMS, Lines
from exactformer.domains.formats.nangia import Use
from exactformer.engine.choice import EngineName, EngineUsed
from exactformer.evaluation.values import TOKENS_AT_ONCE, Evaluator
from exactformer.problems.files import is_rows
from exactformer.weights.named import find_weights, is_constructed, read_weights

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine
    from exactformer.engine.nangia_rows import Readings
    from exactformer.engine.rows import Numbers
    from exactformer.host.progress import Tell

PUBLISHED_MEDIAN: Median = "mean"  # of every published ListOps file
SHOWN_ROWS = 10  # wrong ones that are listed

# Some rows, as they are kept: what has an answer is token ids, or both formulas of a pair.
Block: TypeAlias = "list[Row[NDArray[np.int16]]] | list[Row[tuple[bytes, bytes]]] | Readings"
Uses = dict[Use, int]  # the line in which each use of an operator is first seen


@dataclass(frozen=True)
class Wrong:
    """A row whose value differs from its label."""

    line: int
    expected: str
    found: str


@dataclass(frozen=True)
class Tally:
    """Rows of a file that were compared with their labels."""

    correct: int = 0
    total: int = 0
    wrong: tuple[Wrong, ...] = ()  # the first of them

    def __add__(self, later: "Tally") -> "Tally":
        wrong = (self.wrong + later.wrong)[:SHOWN_ROWS]
        return Tally(self.correct + later.correct, self.total + later.total, wrong)


@dataclass(frozen=True, kw_only=True)
class Score(Tally):
    """The score of all rows of a file, by weights that are exact."""

    task: "Task"
    domain: Domain
    engine: EngineUsed

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.task.file),
            "format": self.task.format,
            "algebra": self.domain.name,  # the name is older than other kinds of domains
            "operators": self.domain.operator_counts,
            "median": self.task.median,
            "weights": self.task.weights,
            "verdict": "exact",
            "engine": self.engine,
            "correct": self.correct,
            "total": self.total,
            "wrong": [vars(row) for row in self.wrong],
        }

    def __str__(self) -> str:
        task, median = self.task, self.task.median
        operators = self.domain.operator_counts
        lines = [f"{self.correct} of {self.total} rows right"]
        lines.append(f"  file     {task.file} ({task.format})")
        uses = ", ".join(f"{symbol} of {counts}" for symbol, counts in operators.items())
        lines.append(f"  {self.domain.kind:<8} {self.domain.name}{': ' if uses else ''}{uses}")
        if median and "MED" in operators:
            middle = {"lower": "the lower of the middle two", "mean": "the floor of their mean"}
            published = ", as published" if median == PUBLISHED_MEDIAN else ""
            lines.append(f"  median   of an even number: {middle[median]}{published}")
        lines.append(f"  weights  {task.weights}: exact")
        what = {"fast": "tables of certified weights", "model": "the transformer itself"}
        lines.append(f"  engine   {self.engine}: {what[self.engine]}")
        for row in self.wrong:
            lines.append(f"  line {row.line}: expected {row.expected}, found {row.found}")
        if more := self.total - self.correct - len(self.wrong):
            lines.append(f"  and {more} more")
        return "\n".join(lines)


def score(task: "Task", progress: "Tell" = lambda unit, done, total: None) -> Score:
    """Evaluate every row of a file and compare with its label."""
    with Lines.of(task.file) as file:
        task = task.settled(file)
        uses: Uses = {}
        evaluator = task.evaluator(uses) if task.format == "tsv" else None
        tally = Tally()
        if evaluator and evaluator.fast:
            tally = score_lines(evaluator.fast, file, progress)
        else:
            with Kept[Block]() as kept:
                for block in task.blocks(file, uses):
                    kept.keep([block])
                    progress("bytes", file.done, file.size)
                evaluator = evaluator or task.evaluator(uses)
                for block in kept:
                    for some in task.tallies(evaluator, block):
                        tally += some
                        progress("rows", tally.total, kept.count)
    return task.score(evaluator, tally)


def score_lines(
    engine: "CpuEngine", file: Lines, progress: "Tell" = lambda unit, done, total: None
) -> Tally:
    """Score native text: labels are compared as lines are read, many at a time."""
    from exactformer.engine.rows import Rows, all_right

    def blocks() -> Iterator[Rows]:
        for lines in file.blocks():
            rows = engine.rows(lines, file.number, SHOWN_PROBLEMS, labelled=True)
            file.number += rows.lines
            yield rows
            progress("bytes", file.done, file.size)

    tally = Tally()
    for values, labels, _ in all_right(file.name, blocks()):
        tally += compared(engine.algebra, file.first_line + tally.total, values, labels)
    return tally


def compared(algebra: Algebra, first_line: int, values: "Numbers", labels: "Numbers") -> Tally:
    """Tally lines by comparing the value indices with those of the labels."""
    wrong, symbols = np.flatnonzero(values != labels), algebra.values
    shown = [
        Wrong(first_line + i, symbols[labels[i]], symbols[values[i]])
        for i in wrong[:SHOWN_ROWS].tolist()
    ]
    return Tally(len(values) - len(wrong), len(values), tuple(shown))


@dataclass(frozen=True)
class Task:
    """The user's choices of what to score and with what, by the names of the command line. Once it
    is settled, `format` is not None, and `median` is None only if there is no such choice.
    """

    domain: Domain
    file: Path
    format: Format | None = None
    weights: str = "constructed"
    median: Median | None = None  # what the labels take for MED
    engine: EngineName = "auto"
    most_work: int | None = None  # that the transformer may spend on one expression

    def settled(self, file: Lines) -> "Task":
        """The task with the format of a file and its rule for the median filled in."""
        domain, median = self.domain, self.median
        if file.first_line == 1 and is_rows(file.header):
            raise ValueError(
                f"{file.name}: expected labels, found problems as `sample --out` writes them: "
                f"--predictions FILE scores a model's answers to them"
            )
        if file.first_line == 1 and file.header.startswith(b'[{"'):
            raise ValueError(f"{file.name}: expected lines, as `sample` without --json, found JSON")
        format = self.format or guess_format(domain, file.header)
        published = format in ("nangia", "lra")
        if median is not None and not published:
            raise ValueError(
                f"a rule for the median is for published ListOps files, not for {format}"
            )
        if median is not None and domain != listops():
            raise ValueError(
                f"a rule for the median is for the domain listops; {domain.name!r} has its own"
            )
        median = median or PUBLISHED_MEDIAN if published and domain == listops() else None
        if format == "bowman" and domain != boolean():
            raise ValueError(f"pairs of formulas are for the domain boolean, not {domain.name!r}")
        return replace(self, format=format, median=median)

    def blocks(self, file: Lines, uses: Uses) -> Iterator[Block]:
        """Yield the rows of a file in blocks. `uses` is filled while a file in Nangia's notation is
        read.
        """
        if self.format in ("nangia", "lra"):
            from exactformer.engine.nangia_rows import read_published

            for block in read_published(file, self.format):
                for use, line in block.uses.items():
                    uses.setdefault(use, line)
                yield block
        elif self.format == "bowman":
            yield from in_blocks(file.read(read_bowman_row), _size, TOKENS_AT_ONCE)
        else:
            rows = file.read(partial(read_tsv_row, self.domain))
            ids = (Row(line, label, expression.ids) for line, label, expression in rows)
            yield from in_blocks(ids, _size, TOKENS_AT_ONCE)

    def evaluator(self, uses: Uses) -> Evaluator:
        """The evaluator for the file. Weights that do not cover it, or are not exact, are refused;
        for a published ListOps file, constructed ones cover all that it uses.
        """
        weights, domain = self.weights, self.domain
        if self.median and is_constructed(weights):
            domain = nangia.covering(uses, self.median)
        elif self.median:
            weights = find_weights(weights, domain.name)
            domain = read_weights(weights).algebra
        if self.format in ("nangia", "lra"):
            self._require_covered(algebra_of(domain), uses)
        found = Evaluator(domain, weights, self.engine, most_work=self.most_work)
        if found.verdict != "exact":
            raise ValueError(
                f"the weights {self.weights} are not certified ({found.verdict}): "
                f"`exactformer certify` says why"
            )
        return found

    def _require_covered(self, algebra: Algebra, uses: Uses) -> None:
        """Refuse an algebra that does not cover what the file uses, or means something else."""
        weights, median = self.weights, self.median
        nangia.require_digits(algebra)
        if missing := nangia.uncovered(algebra, uses):
            places = ", ".join(f"{nangia.describe(use)} (line {uses[use]})" for use in missing)
            raise ValueError(f"{weights}: weights for {algebra.name!r} do not cover {places}")
        for use in sorted(uses):
            if median and (difference := nangia.difference(algebra, use, median)):
                rule = f" with --median {median}" if use[0] == "MED" else ""
                raise ValueError(
                    f"{weights}: {use[0]} of {algebra.name!r} is not that of ListOps{rule} "
                    f"(line {uses[use]}): {difference}"
                )

    def tallies(self, evaluator: Evaluator, block: Block) -> Iterator[Tally]:
        """Yield tallies of the rows that waited for their weights or for the transformer, in
        blocks.
        """
        if evaluator.fast and not isinstance(block, list):
            labels = block.label_numbers(evaluator.algebra)
            values = block.values(evaluator.fast)
            yield compared(evaluator.algebra, block.first_line, values, labels)
            return
        evaluate = partial(evaluator.values, place=f"{self.file}: ")
        rows = block if isinstance(block, list) else block.rows(evaluator.algebra)
        for some in in_blocks(rows, _size, TOKENS_AT_ONCE):
            contents: list[Any] = [row.content for row in some]
            if self.format == "bowman":
                answers = _relations(evaluate, contents)
            else:
                answers = evaluate([Expression(evaluator.domain, ids) for ids in contents])
            wrong = [
                Wrong(row.line, row.label, answer)
                for row, answer in zip(some, answers, strict=True)
                if not agrees(evaluator.domain, answer, row.label)
            ]
            yield Tally(len(some) - len(wrong), len(some), tuple(wrong[:SHOWN_ROWS]))

    def score(self, evaluator: Evaluator, tally: Tally) -> Score:
        return Score(**vars(tally), task=self, domain=evaluator.domain, engine=evaluator.runs)


def _size(row: Row[Any]) -> int:
    """Approximate number of tokens to evaluate."""
    if isinstance(row.content, tuple):
        return bowman.ASSIGNMENTS * sum(map(len, row.content))
    return len(row.content)


def _relations(
    evaluate: Callable[[list[Expression]], list[str]],
    pairs: Sequence[tuple[bowman.Formula, bowman.Formula]],
) -> list[str]:
    """The relation of each pair, from the values of both formulas under all assignments.

    Different formulas have many circuits in common; each is evaluated once.
    """
    formulas = {formula: bowman.circuits(formula) for pair in pairs for formula in pair}
    different = {circuit: None for circuits in formulas.values() for circuit in circuits}
    value: dict[bowman.Circuit, str] = {}
    for circuits in in_blocks(different, len, TOKENS_AT_ONCE):
        answers = evaluate([bowman.expression(circuit) for circuit in circuits])
        value |= zip(circuits, answers, strict=True)
    truth = {
        formula: bowman.truth([value[circuit] for circuit in circuits])
        for formula, circuits in formulas.items()
    }
    return [bowman.relation(truth[left], truth[right]) for left, right in pairs]
