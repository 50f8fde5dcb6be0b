"""The gate of levels, learned from short texts: which operators belong together, and from which side.

Texts of at most five tokens are shown with their values, nothing else. Weights for spans of one
operator are trained before, on fully parenthesized expressions, as ever; then the gate starts from
random logits, and an estimator that asks for nothing but the errors of gates moves them.

A level is a number in base three with digits -1, 0 and 1, one logit for each digit, as many as give
each binary operator a level of its own if need be: one digit for up to three. Each level has a logit
for its direction, positive for from the right. What is harmless (`verify/levels.py`) is never told.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from exactformer.certify import certify
from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.model.circuit import Weights
from exactformer.model.predict import predict
from exactformer.model.quantize import ternary
from exactformer.training.estimators import RANK_ESTIMATORS
from exactformer.training.parameters import generator
from exactformer.training.recipe import Recipe
from exactformer.training.state import Memory, Trained

LONGEST_TEXT = 5  # tokens


@dataclass(frozen=True)
class LevelProblem:
    """Which gate makes short texts come out right? Errors are relative to that of the gate that has
    all operators on one level, from the left: of a few texts that matter, most do not.
    """

    algebra: Algebra
    weights: Weights
    texts: list[Expression]
    tolerance: float = 0.0
    _known: dict[tuple[float, ...], float] = field(default_factory=dict)

    @property
    def size(self) -> int:
        return self._digits * int((self.algebra.declared_levels > 0).sum()) + 3**self._digits

    @property
    def _digits(self) -> int:
        binary = int((self.algebra.declared_levels[1] > 0).sum())
        return next(digits for digits in range(1, 10) if 3**digits >= binary)

    def gated(self, gate: Tensor) -> Weights:
        """The weights with the levels and directions that a gate of -1, 0 and 1 stands for."""
        used = torch.from_numpy(self.algebra.declared_levels > 0)
        n_levels = 3**self._digits
        digits = gate[:-n_levels].long().view(-1, self._digits)
        G_L = torch.zeros(used.shape, dtype=torch.int64)
        G_L[used] = (n_levels + 1) // 2 + (digits * 3 ** torch.arange(self._digits)).sum(-1)
        directions = torch.cat([torch.zeros(1), gate[-n_levels:]]).long()
        return replace(self.weights, G_L=G_L, directions=directions)

    def errors(self, gates: Tensor) -> Tensor:
        nothing = self._error(torch.zeros(self.size))
        found = [self._error(gate) for gate in gates]
        return torch.tensor(found) / max(nothing, 1 / len(self.texts))

    def _error(self, gate: Tensor) -> float:
        """The fraction of texts that come out wrong: each gate is tried once."""
        key = tuple(gate.tolist())
        if key not in self._known:
            found = predict(self.algebra, self.gated(gate), self.texts)
            wrong = sum(a != evaluate(text) for a, text in zip(found, self.texts, strict=True))
            self._known[key] = wrong / len(self.texts)
        return self._known[key]
