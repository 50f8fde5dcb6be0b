"""Accuracy by depth of anything that predicts, on problems it has not seen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.plain import show
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw


class Predictor(Protocol):
    """What can be evaluated: expressions in, the symbol of a value or None out for each."""

    def predict(self, expressions: Sequence[Expression], /) -> Sequence[str | None]: ...


def interval(correct: float, total: int) -> tuple[float, float]:
    """Wilson's 95% interval of the accuracy: unlike the usual one, right for 0 and for all, too."""
    if not total:
        return 0.0, 1.0
    z2 = 1.959964**2
    centre = (correct + z2 / 2) / (total + z2)
    reach = (z2 * (correct * (total - correct) / total + z2 / 4)) ** 0.5 / (total + z2)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def interval_in_words(correct: float, total: int, digits: int = 2) -> str:
    low, high = interval(correct, total)
    return f"{low:.{digits}f} to {high:.{digits}f}"


def ask(
    predictor: Predictor, problems: Sequence[Expression], name: str = "the predictor"
) -> Sequence[str | None]:
    """Its answers, if it has one to each problem and they are what can be compared with values."""
    answers = predictor.predict(problems)
    if isinstance(answers, str) or not isinstance(answers, Sequence):
        raise TypeError(f"{name}: expected a list of answers, found {show(answers)}")
    if len(answers) != len(problems):
        raise ValueError(
            f"{name}: expected an answer to each of {len(problems)} problems, found {len(answers)}"
        )
    for answer in answers:
        if answer is not None and not isinstance(answer, str):
            raise TypeError(
                f"{name}: expected the symbol of a value, as text, or None, found {show(answer)}"
            )
    return answers


def count_right(
    predictors: Sequence[Predictor], problems: Sequence[Expression], values: Sequence[str]
) -> int:
    """How many are answered with their values, the problems being shared out among predictors."""
    right = 0
    for i, predictor in enumerate(predictors):
        share = slice(i, None, len(predictors))
        answers = ask(predictor, problems[share])
        right += sum(a == b for a, b in zip(answers, values[share], strict=True))
    return right


def commonest(values: Iterable[str]) -> int:
    """How many of these the commonest one is: what answering it always would have right."""
    return max(Counter(values).values(), default=0)


@dataclass(frozen=True)
class DepthScore:
    """Problems of one depth: how many came out right, and how many tokens each of them has."""

    correct: int
    lengths: list[int] = field(repr=False)

    @property
    def total(self) -> int:
        return len(self.lengths)


def accuracy_by_depth(
    predictor: Predictor | Sequence[Predictor],
    algebra: Algebra,
    depths: Iterable[int],
    count: int,
    rng: np.random.Generator,
) -> dict[int, DepthScore]:
    """The score of each depth on `count` random problems, which several predictors share.

    An answer of None is wrong. Generators with the same seed give the same problems.
    """
    several = predictor if isinstance(predictor, Sequence) else [predictor]
    scores: dict[int, DepthScore] = {}
    for depth in depths:
        problems = draw(algebra, depth, count, rng)
        correct = count_right(several, problems, [evaluate(problem) for problem in problems])
        scores[depth] = DepthScore(correct, [len(problem) for problem in problems])
    return scores
