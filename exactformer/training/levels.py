"""Learns the level gate from short texts: which operators belong together, and how.

Texts of at most five tokens are shown with their values, nothing else. Weights for spans of one
operator are trained before, on fully parenthesized expressions, as ever; then the gate starts from
random logits, and an estimator that asks for nothing but the errors of gates moves them.

A level is a number in base three with digits -1, 0 and 1, a logit for each digit, and as many as
give each binary operator a level of its own if need be: one digit for up to three of them. That is
too few where a prefix operator is looser than all of these, which takes one level more: so where
the steps end with texts still wrong, and there are prefix operators, the gate starts again with as
many digits as give them a level, too. A level has a logit for its direction, positive for from the
right. Which gates are harmless, as `verify/levels.py` knows, is not used.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from exactformer.certify import certify
from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.host.threads import one_thread
from exactformer.model.circuit import Weights
from exactformer.model.levels import levels_of
from exactformer.model.predict import predict
from exactformer.model.quantize import ternary
from exactformer.training.estimators import ASKING, answered
from exactformer.training.recipe import Staged
from exactformer.training.state import LEVELS, Memory, Trained, generator

LONGEST_TEXT = 5  # tokens


@dataclass(frozen=True)
class LevelProblem:
    """The problem of finding a level gate under which short texts come out right. Errors are
    relative to that of the gate with all operators on one level, grouping from the left, since most
    texts are right under any gate.
    """

    algebra: Algebra
    weights: Weights
    texts: list[Expression]
    values: list[str]
    digits: int  # of a level
    # Texts that come out wrong, by gate, and by how a gate acts: many act alike.
    wrong: dict[tuple[float, ...], int] = field(default_factory=dict)
    wrong_by_levels: dict[str, int] = field(default_factory=dict)

    @cached_property
    def uses(self) -> Tensor:
        """Whether each token needs a level as a prefix and as a binary operator: (2, D)."""
        return torch.from_numpy(self.algebra.declared_levels > 0)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of logits of levels, and of directions."""
        return int(self.uses.sum()) * self.digits, 3**self.digits

    def gated(self, gate: Tensor) -> Weights:
        """The weights with the levels and directions that a gate of -1, 0 and 1 encodes."""
        levels, directions = self.unpacked(gate)
        G_L = (levels.long() * 3 ** torch.arange(self.digits)).sum(-1)
        G_L = torch.where(self.uses, G_L + (3**self.digits + 1) // 2, 0)
        return replace(self.weights, G_L=G_L, directions=directions.long())

    def unpacked(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers of a gate: digits of each use, (2, D, digits), and one for each level."""
        of_levels, of_directions = numbers.split(self.shape)
        levels = torch.zeros(*self.uses.shape, self.digits)
        levels[self.uses] = of_levels.view(-1, self.digits)
        return levels, torch.cat([torch.zeros(1), of_directions])  # there is no level 0

    def errors(self, gates: Tensor) -> Tensor:
        most = max(1, self.count_wrong(torch.zeros(sum(self.shape))))
        return torch.tensor([self.count_wrong(gate) / most for gate in gates])

    def count_wrong(self, gate: Tensor) -> int:
        """Number of texts that come out wrong under a gate."""
        key = tuple(gate.tolist())
        if key not in self.wrong:
            weights = self.gated(gate)
            acting = str([part.tolist() for part in levels_of(weights)[:4]])
            if acting not in self.wrong_by_levels:
                found = predict(self.algebra, weights, self.texts)
                wrong = sum(a != b for a, b in zip(found, self.values, strict=True))
                self.wrong_by_levels[acting] = wrong
            self.wrong[key] = self.wrong_by_levels[acting]
        return self.wrong[key]


def level_problem(
    algebra: Algebra, weights: Weights, most: int, rng: np.random.Generator
) -> LevelProblem:
    """The problem with `most` of the texts of up to LONGEST_TEXT tokens, or all if fewer."""
    texts = [e for length in range(1, LONGEST_TEXT + 1) for e in enumerate_length(algebra, length)]
    if len(texts) > most:
        texts = [texts[i] for i in rng.choice(len(texts), most, replace=False)]
    values = [evaluate(text) for text in texts]
    return LevelProblem(algebra, weights, texts, values, _digits(algebra, loose_prefix=False))


def _digits(algebra: Algebra, *, loose_prefix: bool) -> int:
    """Ternary digits of a level: as many as give each binary operator a level of its own; with
    `loose_prefix`, also one below all of them to the prefix operators, if there are any.
    """
    prefix, binary = (algebra.declared_levels > 0).sum(1).tolist()
    levels = binary + (1 if loose_prefix and prefix else 0)
    return next(digits for digits in count(1) if 3**digits >= levels)


def _find_gate(
    problem: LevelProblem, recipe: Staged, rng: np.random.Generator, learning: bool = True
) -> tuple[Tensor, int]:
    """The logits of a gate from random ones, and after how many steps of the estimator. They are
    as they were drawn if nothing is to be learned.
    """
    logits = torch.from_numpy(recipe.spread * rng.standard_normal(sum(problem.shape))).float()
    memory: Memory = {}
    steps = 0
    with one_thread():
        while learning and steps < recipe.level_steps and problem.count_wrong(ternary(logits)):
            asking = ASKING[recipe.estimator](logits, 0.0, rng, memory)
            logits = answered(asking, problem.errors)
            steps += 1
    return logits, steps


def learn_levels(algebra: Algebra, trained: Trained, recipe: Staged) -> Trained:
    """Learn a level gate for a seed whose spans of one operator are exact, and certify the result.
    It ends when all texts come out right.
    """
    assert isinstance(trained.weights, Weights)
    seed, started = trained.seed, perf_counter()
    rng = generator(seed.seed, seed.attempt, LEVELS)
    problem = level_problem(algebra, trained.weights, recipe.level_texts, rng)
    logits, steps = _find_gate(problem, recipe, rng, trained.exact)
    enough = _digits(algebra, loose_prefix=True)
    if trained.exact and enough > problem.digits and problem.count_wrong(ternary(logits)):
        problem = replace(problem, digits=enough, wrong={})
        logits, more = _find_gate(problem, recipe, rng)
        steps += more
    weights = problem.gated(ternary(logits))
    learned = dict(zip(("G_L", "directions"), problem.unpacked(logits), strict=True))
    return replace(
        trained,
        weights=weights,
        certificate=certify(algebra, weights),
        logits=trained.logits | learned,
        seconds=trained.seconds + perf_counter() - started,
        counts={"level_steps": steps},
    )
