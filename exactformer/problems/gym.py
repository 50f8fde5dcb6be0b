"""Problems without end for reinforcement learning, in the manner of reasoning-gym.

`ProblemSet(...)[i]` is a question, its answer and facts about it; `score_answer` is 1 for the right
value and 0 for anything else. It needs nothing installed. `register()` makes the same known to
reasoning-gym, as "exactformer".
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import find_algebra
from exactformer.domains.sampling import draw
from exactformer.problems.draw import VERSION, problem

NAME = "exactformer"


@dataclass
class ProblemConfig:
    """Which problems: `algebra` is the name of one that is built in."""

    algebra: str = "listops"
    min_depth: int = 1
    max_depth: int = 4
    size: int = 500
    seed: int | None = None

    def validate(self) -> None:
        find_algebra(self.algebra)
        if not 0 <= self.min_depth <= self.max_depth:
            found = f"{self.min_depth} to {self.max_depth}"
            raise ValueError(f"expected depths from 0 on, the smaller first, found {found}")
        if self.size < 1:
            raise ValueError(f"expected a size of 1 or more, found {self.size}")


def entry(algebra: Algebra, min_depth: int, max_depth: int, seed: int, i: int) -> dict[str, Any]:
    """The i-th problem of a seed: its depth is uniform, its expression as `draw` has it."""
    rng = np.random.default_rng([seed, i])
    depth = int(rng.integers(min_depth, max_depth + 1))
    (expression,) = draw(algebra, depth, 1, rng)
    row = problem(expression, f"v{VERSION}-{algebra.name}-gym{seed}-{i}")
    facts = {"source_dataset": NAME, "source_index": i, "id": row.id, "expression": row.expression}
    facts |= {"difficulty": {"depth": depth}, "depth": depth, "tokens": row.tokens}
    return {"question": row.prompt, "answer": row.value, "metadata": facts}


def score(algebra: Algebra, answer: str | None, right: str) -> float:
    """1 if the answer is the value, in any spelling; else 0. There is nothing in between."""
    token = algebra.token_ids.get((answer or "").strip())
    return float(token is not None and algebra.vocabulary[token] == right)


class ProblemSet:
    """A list of problems that are drawn when they are asked for; the same seed, the same list."""

    def __init__(
        self,
        algebra: Algebra,
        min_depth: int = 1,
        max_depth: int = 4,
        size: int = 500,
        seed: int = 0,
    ) -> None:
        ProblemConfig("boolean", min_depth, max_depth, size, seed).validate()
        self.algebra, self.size, self.seed = algebra, size, seed
        self.depths = (min_depth, max_depth)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, i: int) -> dict[str, Any]:
        if not 0 <= i < self.size:
            raise IndexError(f"expected a problem from 0 to {self.size - 1}, found {i}")
        return entry(self.algebra, *self.depths, self.seed, i)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[i] for i in range(self.size))

    def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
        return score(self.algebra, answer, entry["answer"])


def register() -> str:
    """Make the problems known to reasoning-gym; returns the name for its `create_dataset`."""
    try:
        from reasoning_gym import factory  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("this needs reasoning-gym: pip install 'exactformer[lm]'") from None

    class ExactformerDataset(factory.ProceduralDataset):
        def __init__(self, config: ProblemConfig) -> None:
            super().__init__(config=config, seed=config.seed, size=config.size)
            self.algebra = find_algebra(config.algebra)

        def __getitem__(self, idx: int) -> dict[str, Any]:
            depths = (self.config.min_depth, self.config.max_depth)
            return entry(self.algebra, *depths, self.seed, idx)

        def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
            return score(self.algebra, answer, entry["answer"])

    if NAME not in factory.DATASETS:
        factory.register_dataset(NAME, ExactformerDataset, ProblemConfig)
    return NAME
