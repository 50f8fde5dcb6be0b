"""The depth-2 expressions that teach the gate, run through the real model with hard decisions."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.circuit import Weights, iterate
from exactformer.model.encode import encode, pad_slots
from exactformer.model.feedforward import MLP


@dataclass(frozen=True)
class GateProblem:
    """One seed's weights and a few depth-2 expressions: which gate makes them come out right?"""

    weights: Weights
    X: Tensor  # (s, n, D)
    inside: Tensor  # (s, n)
    target: Tensor  # (s, n, D): the value at the outermost operator, zero elsewhere
    tolerance: float  # the error that the right gate may have, as long as depth 1 is not all right

    def outputs(self, gates: Tensor) -> Tensor:
        """What two iterations make of the expressions under each gate: (K, D) to (K, s, n, D)."""
        weights = replace(self.weights, G_PE=gates.unsqueeze(1))
        X = self.X.expand(len(gates), *self.X.shape)
        inside = self.inside.expand(len(gates), *self.inside.shape)
        for _ in range(2):
            X = iterate(X, weights, inside).X
        return X

    @torch.no_grad()
    def errors(self, gates: Tensor) -> Tensor:
        """Balanced error of each gate: the fraction of ones missed plus the fraction of zeros that
        became ones. Unbalanced, an output of zeros alone would seem nearly right.
        """
        distinct, back = torch.unique(gates, dim=0, return_inverse=True)
        found, wanted = self.outputs(distinct) > 0, self.target > 0
        missed = (~found & wanted).sum((1, 2, 3)) / wanted.sum()
        false = (found & ~wanted).sum((1, 2, 3)) / (~wanted).sum()
        return (missed + false)[back]

    @torch.no_grad()
    def right(self, gate: Tensor) -> int:
        """How many of the expressions come out right in every position."""
        return int((self.outputs(gate[None])[0] == self.target).flatten(1).all(1).sum())


def gate_problem(
    algebra: Algebra, weights: Weights, count: int, tolerance: float, rng: np.random.Generator
) -> GateProblem:
    expressions = draw(algebra, 2, count, rng)
    ids, inside = pad_slots(expressions)
    D, device = len(algebra.vocabulary), weights.W_Q.device
    target = torch.zeros(*ids.shape, D)
    for row, expression in enumerate(expressions):
        target[row, expression.root, algebra.token_ids[evaluate(expression)]] = 1
    X, inside, target = (t.to(device) for t in (encode(ids, D), inside, target))
    return GateProblem(_quick(weights), X, inside, target, tolerance)


def _quick(weights: Weights) -> Weights:
    """The same with a feedforward in float32, as training has it: nothing here is a proof."""
    f = weights.f
    if not isinstance(f, MLP):
        return weights
    parts = (tensor.unsqueeze(0) for tensor in (f.W_1, f.b_1, f.W_2, f.b_2))
    return replace(weights, f=MLP(*parts, activation=f.activation))
