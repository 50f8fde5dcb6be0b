"""Accuracy by depth, of anything with `predict`."""

import numpy as np
import pytest

from exactformer.domains.catalog import boolean
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.problems.accuracy import accuracy_by_depth


class Oracle:
    def predict(self, expressions):
        return [evaluate(expression) for expression in expressions]


class Shallow:
    """Right to depth 2, no answer beyond."""

    def predict(self, expressions):
        return [evaluate(e) if e.depth <= 2 else None for e in expressions]


class Constant:
    def predict(self, expressions):
        return ["1" for _ in expressions]


def test_the_oracle_is_always_right(task):
    scores = accuracy_by_depth(Oracle(), task, [1, 4, 9], 20, np.random.default_rng(0))
    assert {depth: score.correct for depth, score in scores.items()} == {1: 20, 4: 20, 9: 20}
    assert {len(score.lengths) for score in scores.values()} == {20}


def test_counts_by_depth_and_no_answer_is_wrong(task):
    scores = accuracy_by_depth(Shallow(), task, [2, 3], 10, np.random.default_rng(0))
    assert (scores[2].correct, scores[3].correct) == (10, 0)


def test_the_generator_decides_the_problems():
    def right(seed: int) -> int:
        rng = np.random.default_rng(seed)
        score = accuracy_by_depth(Constant(), boolean(), [5], 200, rng)[5]
        return score.correct

    assert right(3) == right(3)
    assert len({right(seed) for seed in range(4)}) > 1
    assert 50 < right(3) < 150


def test_problems_are_shared_out_among_predictors():
    rng, again = np.random.default_rng(0), np.random.default_rng(0)
    score = accuracy_by_depth([Oracle(), Shallow()], boolean(), [3], 25, rng)[3]
    assert score.correct == 13  # the first of each pair
    assert score.lengths == [len(problem) for problem in draw(boolean(), 3, 25, again)]


def test_too_few_answers_are_an_error():
    class Short:
        def predict(self, expressions):
            return []

    with pytest.raises(ValueError, match="each of 5 problems, found 0"):
        accuracy_by_depth(Short(), boolean(), [1], 5, np.random.default_rng(0))
