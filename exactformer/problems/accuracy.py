"""Accuracy by depth of anything that predicts, on problems it has not seen."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.data import show
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw

RESAMPLES = 4000  # of a bootstrap


class Predictor(Protocol):
    """A model that can be evaluated: it takes expressions and returns the symbol of a value, or
    None, for each.
    """

    def predict(self, expressions: Sequence[Expression], /) -> Sequence[str | None]: ...


def interval(correct: float, total: int) -> tuple[float, float]:
    """Wilson's 95% interval of the accuracy, which is valid near 0 and 1, too."""
    if not total:
        return 0.0, 1.0
    z2 = 1.959964**2
    centre = (correct + z2 / 2) / (total + z2)
    reach = (z2 * (correct * (total - correct) / total + z2 / 4)) ** 0.5 / (total + z2)
    return max(0.0, centre - reach), min(1.0, centre + reach)


def interval_in_words(correct: float, total: int, digits: int = 2) -> str:
    return in_words(interval(correct, total), digits)


def in_words(ends: tuple[float, float], digits: int = 2) -> str:
    low, high = ends
    return f"{low:.{digits}f} to {high:.{digits}f}"


WILSON = "Wilson's over the problems"
BOOTSTRAP = (
    f"a percentile bootstrap over seeds and problems ({RESAMPLES:,} resamples, each of one seed "
    "fewer than there are and of all problems), never narrower than Wilson's over the problems"
)


def interval_over_seeds(right: NDArray[np.bool_]) -> tuple[float, float]:
    """The 95% interval of the mean accuracy of several seeds that answer the same problems, from
    whether each seed (row) is right on each problem (column).

    Seeds and problems are both drawn anew with replacement. One seed fewer is drawn than there
    are: otherwise the variance between S seeds would come out (S - 1)/S of what it is. Where all
    answers agree the bootstrap knows no spread, so that the interval is widened to Wilson's for
    the problems, which are as many for several seeds as for one.
    """
    seeds, problems = right.shape
    if seeds == 1 or not problems:
        return interval(int(right.sum()), problems)
    # Problems on which the same seeds are right are interchangeable: their number is drawn.
    patterns, counts = np.unique(right, axis=1, return_counts=True)
    rng = np.random.default_rng(0)
    chosen = rng.multinomial(seeds - 1, np.full(seeds, 1 / seeds), RESAMPLES) / (seeds - 1)
    means = np.empty(RESAMPLES)
    at_once = max(1, 1_000_000 // len(counts))
    for first in range(0, RESAMPLES, at_once):
        part = slice(first, first + at_once)
        drawn = rng.multinomial(problems, counts / problems, len(means[part])) / problems
        means[part] = (drawn @ patterns.T * chosen[part]).sum(1)
    return _widened(means, float(right.sum()) / seeds, problems)


def interval_of_counts(right: Sequence[int], problems: int) -> tuple[float, float]:
    """Interval over seeds and problems where only each seed's count is known. All seeds are taken
    to be wrong on the same problems, which is the most that sharing problems can widen it.
    """
    if len(right) == 1 or not problems:
        return interval(right[0], problems)
    rng = np.random.default_rng(0)
    fewer = len(right) - 1
    chosen = rng.multinomial(fewer, np.full(len(right), 1 / len(right)), RESAMPLES)
    shares = np.clip(chosen @ np.array(right) / (fewer * problems), 0, 1)
    means = rng.binomial(problems, shares) / problems
    return _widened(means, sum(right) / len(right), problems)


def _widened(means: NDArray[np.float64], correct: float, problems: int) -> tuple[float, float]:
    """The middle 95% of resampled means, and whatever of Wilson's interval is outside of it."""
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    wilson = interval(correct, problems)
    return min(low, wilson[0]), max(high, wilson[1])


def ask(
    predictor: Predictor, problems: Sequence[Expression], name: str = "the predictor"
) -> Sequence[str | None]:
    """The predictor's answers; an error unless there is one for each problem, and each is text or
    None.
    """
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
    """Number of problems answered correctly; the problems are divided among the predictors."""
    right = 0
    for i, predictor in enumerate(predictors):
        share = slice(i, None, len(predictors))
        answers = ask(predictor, problems[share])
        right += sum(a == b for a, b in zip(answers, values[share], strict=True))
    return right


def commonest(values: Iterable[str]) -> int:
    """Count of the commonest value, which is what answering it always would get right."""
    return max(Counter(values).values(), default=0)


@dataclass(frozen=True)
class DepthScore:
    """Result for the problems of one depth: how many came out right, and the tokens of each."""

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
