"""Endless problems for reinforcement learning, with the interface of reasoning-gym."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from exactformer.domains.capabilities import require_capability
from exactformer.domains.catalog import find_domain
from exactformer.domains.domain import Domain
from exactformer.domains.kinds import load_domain
from exactformer.domains.sampling import DRAWN, require_drawable
from exactformer.problems.answers import reasoned
from exactformer.problems.draw import VERSION, problem
from exactformer.problems.prompts import has_numerals, instruction, spellings

NAME = "exactformer"
LEVELS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 30)  # greatest depth at each level of the curriculum


@dataclass
class ProblemConfig:
    """The settings of a data set: `algebra` is the name of one that is built in, the path of a
    `.toml` file that defines one, or an algebra or another domain itself.
    """

    algebra: str | Domain = "listops"
    min_depth: int = 1
    max_depth: int = 4
    size: int = 500
    seed: int | None = None

    def validate(self) -> None:
        require_capability("problems", self.find())
        instruction(self.find())  # or there is no way to ask: this says why
        if not 0 <= self.min_depth <= self.max_depth:
            found = f"{self.min_depth} to {self.max_depth}"
            raise ValueError(f"expected depths from 0 on, the smaller first, found {found}")
        if self.size < 1:
            raise ValueError(f"expected a size of 1 or more, found {self.size}")

    def find(self) -> Domain:
        if not isinstance(self.algebra, str):
            return self.algebra
        if self.algebra.endswith(".toml"):
            return load_domain(self.algebra)
        return find_domain(self.algebra)


def entry(algebra: Domain, min_depth: int, max_depth: int, seed: int, i: int) -> dict[str, Any]:
    """The i-th problem of a seed: its depth is uniform, its expression is drawn by its law."""
    rng = np.random.default_rng([seed, i])
    depth = int(rng.integers(min_depth, max_depth + 1))
    require_drawable(algebra, depth, 1)
    (expression,) = DRAWN[algebra.kind].draw(algebra, depth, 1, rng)
    row = problem(expression, f"v{VERSION}-{algebra.name}-gym{seed}-{i}")
    facts = {"source_dataset": NAME, "source_index": i, "id": row.id, "expression": row.expression}
    facts |= {"difficulty": {"depth": depth}, "depth": depth, "tokens": row.tokens}
    return {"question": row.prompt, "answer": row.value, "metadata": facts}


def score(algebra: Domain, answer: str | None, right: str) -> float:
    """1 if the reply's answer is the value, in any spelling; else 0: nothing in between."""
    return float(reasoned(answer or "", spellings(algebra), has_numerals(algebra)) == right)


class ProblemSet:
    """A list of problems that are drawn on access; equal seeds give equal lists."""

    def __init__(
        self,
        algebra: Domain,
        min_depth: int = 1,
        max_depth: int = 4,
        size: int = 500,
        seed: int = 0,
    ) -> None:
        ProblemConfig(algebra, min_depth, max_depth, size, seed).validate()
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
    """Make the problems and their curriculum known to reasoning-gym; returns the name for its
    `create_dataset` and `create_curriculum`.
    """
    try:
        from reasoning_gym import coaching, factory  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("this needs reasoning-gym: pip install 'exactformer[lm]'") from None

    class ExactformerDataset(factory.ProceduralDataset):
        def __init__(self, config: ProblemConfig) -> None:
            super().__init__(config=config, seed=config.seed, size=config.size)
            self.algebra = config.find()

        def __getitem__(self, idx: int) -> dict[str, Any]:
            depths = (self.config.min_depth, self.config.max_depth)
            return entry(self.algebra, *depths, self.seed, idx)

        def score_answer(self, answer: str | None, entry: dict[str, Any]) -> float:
            return score(self.algebra, answer, entry["answer"])

    class ExactformerCurriculum(coaching.BaseCurriculum):
        """Deeper from level to level; the algebra is among the defaults of a configuration."""

        def __init__(self) -> None:
            super().__init__(ExactformerCurriculum.__name__, ProblemConfig)
            depth = coaching.RangeAttributeDefinition(
                name="depth",
                levels=list(LEVELS),
                lower_field_name="min_depth",
                upper_field_name="max_depth",
                description="How deep the expressions are.",
            )
            self._define_attributes(depth)

    if NAME not in factory.DATASETS:
        factory.register_dataset(NAME, ExactformerDataset, ProblemConfig, ExactformerCurriculum)
    return NAME
