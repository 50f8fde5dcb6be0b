"""The problems on which every model of a comparison is tried: the same ones for all of them.

At each depth there are two sets. "natural" is drawn by the law of `domains/sampling.py`; "balanced"
has each value as the answer equally often, so that no constant answer does better than chance. Past
the depths of the paper's tables there are fewer problems and the natural ones only: attention takes
time with the square of their tokens.
"""

from functools import lru_cache

import numpy as np

from exactformer.domains.catalog import CATALOG
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, draw_balanced

DRAWINGS = {"natural": draw, "balanced": draw_balanced}
TEST_SEED = 0
TABLE_DEPTHS = range(1, 11)
DEEP = range(11, 31)


def count_at(depth: int) -> int:
    """Number of problems of a depth."""
    return 1000 if depth in TABLE_DEPTHS else 100 if depth <= 20 else 10


@lru_cache(maxsize=4)
def asked_problems(
    task: str, drawing: str, depth: int, count: int | None = None
) -> tuple[list[Expression], list[str]]:
    """The problems of a depth, and their values."""
    rng = np.random.default_rng([TEST_SEED, list(DRAWINGS).index(drawing), depth])
    count = count_at(depth) if count is None else count
    problems = DRAWINGS[drawing](CATALOG[task](), depth, count, rng)
    return problems, [evaluate(problem) for problem in problems]
