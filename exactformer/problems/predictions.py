"""Scores the predictions of any model, by depth."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import Place, show
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.lines import Lines
from exactformer.problems.accuracy import commonest, interval, interval_in_words
from exactformer.problems.answers import RULES
from exactformer.problems.files import json_line, read_problems
from exactformer.problems.prompts import has_numerals, instruction, spellings

Rule = Literal["reasoned", "alone"]
LOGS = "samples_*.jsonl"  # what lm-evaluation-harness writes with --log_samples


@dataclass(frozen=True)
class DepthCount:
    """Predictions for the problems of one depth."""

    depth: int
    correct: int
    total: int
    majority: int  # how many the commonest value of this depth would have right
    no_value: int  # predictions that are none of the domain's values

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.correct, self.total)


@dataclass(frozen=True)
class PredictionScore:
    domain: Domain
    rows: Path
    predictions: Path
    rule: Rule
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
            "algebra": self.domain.name,
            "rule": self.rule,
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


def score_predictions(
    domain: Domain, rows: Path, predictions: Path, rule: Rule = "reasoned"
) -> PredictionScore:
    """Compare replies with the problems they are about: one for each, by its id.

    predictions   a file of JSON lines with `id` and `prediction`, or of samples that
                  lm-evaluation-harness has logged; or a folder with such logs.
    rule          how the answer is found in a reply (`problems/answers.py`).
    """
    require_capability("problems", domain)
    instruction(domain)  # or there is no way to ask: this says why
    problems = read_problems(rows, domain)
    given = read_predictions(predictions)
    known = {problem.id for problem in problems}
    for name, ids in (
        ("there is no prediction for", known - given.keys()),
        ("there is no problem with the id", given.keys() - known),
    ):
        if ids:
            more = f", and {len(ids) - 1} more" if len(ids) > 1 else ""
            raise ValueError(f"{predictions}: {name} {show(min(ids))}{more}")
    find, values, numerals = RULES[rule], spellings(domain), has_numerals(domain)
    depths = []
    for depth in sorted({problem.depth for problem in problems}):
        asked = [problem for problem in problems if problem.depth == depth]
        answers = [find(given[problem.id], values, numerals) for problem in asked]
        depths.append(
            DepthCount(
                depth,
                correct=sum(a == problem.value for a, problem in zip(answers, asked, strict=True)),
                total=len(asked),
                majority=commonest(problem.value for problem in asked),
                no_value=answers.count(None),
            )
        )
    return PredictionScore(domain, rows, predictions, rule, tuple(depths))


def read_predictions(path: Path) -> dict[str, str]:
    """The reply to each problem by its id, from a file or from every log of a folder."""
    files = sorted(path.rglob(LOGS)) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"{path}: expected a folder with {LOGS}, found no such file in it")
    given: dict[str, str] = {}
    for file in files:
        with Lines.of(file) as lines:
            found = list(lines.read(_prediction))
        # A task with several filters logs each sample once for each of them.
        for id, reply, filter in found:
            if id in given and not (filter and given[id] == reply):
                raise ValueError(f"{file}: the id {show(id)} is there twice")
            given[id] = reply
    return given


def _prediction(line: bytes, number: int) -> tuple[str, str, str]:
    """An id, the reply (empty for none), and the filter of the harness that logged it, if any."""
    text, row = json_line(line, number)
    try:
        if isinstance(row.value, dict) and "resps" in row.value:
            return _logged(row)
        return *_predicted(row), ""
    except ValueError as error:
        raise ExpressionError(str(error), text, 0, number) from None


def _logged(row: Place) -> tuple[str, str, str]:
    """A sample as lm-evaluation-harness logs it: the problem is its `doc`."""
    sample = row.fields(("doc", "resps"), row.value)
    doc = sample["doc"]
    problem = doc.fields(("id",), doc.value if isinstance(doc.value, dict) else ())
    (reply,) = sample["resps"].items(1)
    if isinstance(reply.value, list):
        (reply,) = reply.items(1)
    return problem["id"].text(), reply.text(), str(row.value.get("filter", "none"))


def _predicted(row: Place) -> tuple[str, str]:
    """The prediction of a row: text, a whole number, or null for no answer."""
    fields = row.fields(("id", "prediction"))
    found = fields["prediction"]
    if found.value is None:
        return fields["id"].text(), ""
    return fields["id"].text(), str(found.whole()) if type(found.value) is int else found.text()
