"""Problems to learn from and to be tested on: depth 1 and 2, as in the paper, and deeper ones."""

from collections.abc import Sequence

from exactformer.domains.algebra import Algebra
from exactformer.domains.plain import listed
from exactformer.problems.draw import Problem, problems

TRAINING = (1, 2)  # the depths to learn from


def splits(
    algebra: Algebra, depths: Sequence[int], count: int, seed: int, *, balanced: bool
) -> dict[str, list[Problem]]:
    """`test` is what `problems` gives; `validation` has other expressions of the same depths."""
    if shallow := [depth for depth in depths if depth <= TRAINING[-1]]:
        raise ValueError(
            f"expected depths of {TRAINING[-1] + 1} or more, found {shallow[0]}: "
            f"those of depth {listed([str(d) for d in TRAINING], 'and')} are to learn from"
        )
    train, test, other = (
        list(problems(algebra, each, count, each_seed, balanced=balanced))
        for each, each_seed in ((TRAINING, seed), (depths, seed), (depths, seed + 1))
    )
    tested = {problem.expression for problem in test}
    validation = [problem for problem in other if problem.expression not in tested]
    return {"train": train, "validation": validation, "test": test}
