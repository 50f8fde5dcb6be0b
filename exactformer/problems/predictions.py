"""How many predictions of anybody's model are right, by depth."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.lines import Lines
from exactformer.domains.plain import show
from exactformer.evaluate import commonest, interval, interval_in_words
from exactformer.problems.files import json_line, read_problems, require_different


@dataclass(frozen=True)
class DepthCount:
    """Predictions for the problems of one depth."""

    depth: int
    correct: int
    total: int
    majority: int  # how many the commonest value of this depth would have right
    no_value: int  # predictions that are none of the algebra's values

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.correct, self.total)


@dataclass(frozen=True)
class PredictionScore:
    algebra: Algebra
    rows: Path
    predictions: Path
    depths: tuple[DepthCount, ...]

    @property
    def correct(self) -> int:
        return sum(depth.correct for depth in self.depths)

    @property
    def total(self) -> int:
        return sum(depth.total for depth in self.depths)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": str(self.rows),
            "predictions": str(self.predictions),
            "algebra": self.algebra.name,
            "correct": self.correct,
            "total": self.total,
            "interval": list(interval(self.correct, self.total)),
            "depths": [vars(depth) | {"interval": list(depth.interval)} for depth in self.depths],
        }

    def __str__(self) -> str:
        whole = interval_in_words(self.correct, self.total, digits=3)
        lines = [f"{self.correct} of {self.total} predictions right ({whole})"]
        lines.append("  depth  right    of  95% interval    commonest value  no value")
        for d in self.depths:
            own = interval_in_words(d.correct, d.total, digits=3)
            lines.append(
                f"  {d.depth:>5}  {d.correct:>5} {d.total:>5}  {own}"
                f"  {d.majority:>15}  {d.no_value:>8}"
            )
        return "\n".join(lines)


def score_predictions(algebra: Algebra, rows: Path, predictions: Path) -> PredictionScore:
    """Compare a file of predictions with the problems they are about: one for each, by its id.

    A prediction is right if it is the value in any spelling, with white space around it or not.
    """
    problems = read_problems(rows, algebra)
    with Lines.of(predictions) as file:
        found = list(file.read(_prediction))
    require_different(predictions, (id for id, _ in found))
    given = dict(found)
    known = {problem.id for problem in problems}
    for name, ids in (
        ("there is no prediction for", known - given.keys()),
        ("there is no problem with the id", given.keys() - known),
    ):
        if ids:
            more = f", and {len(ids) - 1} more" if len(ids) > 1 else ""
            raise ValueError(f"{predictions}: {name} {show(min(ids))}{more}")
    values = {
        s: algebra.vocabulary[i] for s, i in algebra.token_ids.items() if i in algebra.value_ids
    }
    depths = []
    for depth in sorted({problem.depth for problem in problems}):
        asked = [problem for problem in problems if problem.depth == depth]
        answers = [values.get(given[problem.id].strip()) for problem in asked]
        depths.append(
            DepthCount(
                depth,
                correct=sum(a == problem.value for a, problem in zip(answers, asked, strict=True)),
                total=len(asked),
                majority=commonest(problem.value for problem in asked),
                no_value=answers.count(None),
            )
        )
    return PredictionScore(algebra, rows, predictions, tuple(depths))


def _prediction(line: bytes, number: int) -> tuple[str, str]:
    """An id, and what was predicted: text, a whole number, or null for no answer."""
    text, row = json_line(line, number)
    try:
        fields = row.fields(("id", "prediction"))
        found = fields["prediction"]
        if found.value is None:
            return fields["id"].text(), ""
        return fields["id"].text(), str(found.whole()) if type(found.value) is int else found.text()
    except ValueError as error:
        raise ExpressionError(str(error), text, 0, number) from None
