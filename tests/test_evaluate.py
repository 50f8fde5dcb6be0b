"""Accuracy by depth, of anything with `predict`."""

import numpy as np
import pytest

from exactformer.domains.catalog import boolean
from exactformer.domains.reference import evaluate
from exactformer.evaluate import accuracy_by_depth


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
    counts = accuracy_by_depth(Oracle(), task, [1, 4, 9], 20, np.random.default_rng(0))
    assert counts == {1: (20, 20), 4: (20, 20), 9: (20, 20)}


def test_counts_by_depth_and_no_answer_is_wrong(task):
    counts = accuracy_by_depth(Shallow(), task, [2, 3], 10, np.random.default_rng(0))
    assert counts[2].correct == 10
    assert counts[3] == (0, 10)


def test_the_generator_decides_the_problems():
    def right(seed: int) -> int:
        rng = np.random.default_rng(seed)
        return accuracy_by_depth(Constant(), boolean(), [5], 200, rng)[5].correct

    assert right(3) == right(3)
    assert len({right(seed) for seed in range(4)}) > 1
    assert 50 < right(3) < 150


def test_too_few_answers_are_an_error():
    class Short:
        def predict(self, expressions):
            return []

    with pytest.raises(ValueError, match="each of 5 problems, found 0"):
        accuracy_by_depth(Short(), boolean(), [1], 5, np.random.default_rng(0))
