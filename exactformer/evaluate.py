"""Accuracy by depth of anything that predicts, on problems it has not seen."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw


class Predictor(Protocol):
    """What can be evaluated: expressions in, the symbol of a value or None out for each."""

    def predict(self, expressions: Sequence[Expression], /) -> Sequence[str | None]: ...


class Count(NamedTuple):
    correct: int
    total: int


def accuracy_by_depth(
    predictor: Predictor,
    algebra: Algebra,
    depths: Iterable[int],
    count: int,
    rng: np.random.Generator,
) -> dict[int, Count]:
    """How many of `count` random problems of each depth come out right.

    An answer of None is wrong. The same `rng` gives every predictor the same problems.
    """
    counts: dict[int, Count] = {}
    for depth in depths:
        problems = draw(algebra, depth, count, rng)
        answers = predictor.predict(problems)
        if len(answers) != count:
            raise ValueError(
                f"expected an answer to each of {count} problems, found {len(answers)}"
            )
        correct = sum(a == evaluate(p) for a, p in zip(answers, problems, strict=True))
        counts[depth] = Count(correct, count)
    return counts
