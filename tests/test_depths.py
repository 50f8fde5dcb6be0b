"""A few problems at every depth from 1 to 30; `benchmarks/depths.py` has the paper's hundred."""

import numpy as np
import pytest
import torch

from exactformer.api import construct
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.circuit import run
from exactformer.model.encode import initial_state, read_values
from tests.algebras import TASKS

PROBLEMS = 5
LONGEST = 600  # tokens: enough for every depth, and quick


@pytest.mark.parametrize("algebra", TASKS, ids=lambda algebra: algebra.name)
@torch.no_grad()
def test_depths_1_to_30(algebra):
    weights = construct(algebra).weights
    rng = np.random.default_rng(30)
    for depth in range(1, 31):
        leaf = None if depth < 10 else 0.9
        drawn = [e for e in draw(algebra, depth, 6 * PROBLEMS, rng, leaf) if len(e) <= LONGEST]
        problems = drawn[:PROBLEMS]
        assert len(problems) == PROBLEMS
        X, inside = initial_state(problems, weights)
        X, iterations = run(X, weights, inside)
        assert iterations.tolist() == [depth] * PROBLEMS
        values = [algebra.values[i] for i in read_values(X, weights, algebra).tolist()]
        assert values == [evaluate(problem) for problem in problems]
