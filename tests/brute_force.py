"""Ground truth for the certificate: models beside the oracle, on whole depths and samples."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from exactformer.api import Model, construct
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_depth
from exactformer.model.circuit import Weights, run
from exactformer.model.construct import bags
from exactformer.model.encode import initial_state, read_values
from exactformer.model.feedforward import MLP

NOT = Algebra(
    "not",
    ("1", "0"),
    (Operator.from_rule("~", [1], lambda a: "0" if a == "1" else "1", ("1", "0")),),
    "infix",
)
ONE, ZERO, TILDE = 2, 3, 4


def constructed(algebra: Algebra, kind: str) -> Model:
    if kind == "dense":
        return construct(algebra, dense=True)
    return construct(algebra, kind)  # pyright: ignore[reportArgumentType]


class Truth(NamedTuple):
    """Expressions with their values, in a few batches of similar length."""

    algebra: Algebra
    expressions: list[Expression]
    values: list[int]


def truth_of(algebra: Algebra, depth_2: int | None, samples: int) -> list[Truth]:
    rng = np.random.default_rng(1)
    expressions = [*enumerate_depth(algebra, 0), *enumerate_depth(algebra, 1)]
    if depth_2 is None:
        expressions += enumerate_depth(algebra, 2)
    else:
        expressions += draw(algebra, 2, depth_2, rng)
    deep = [e for d in range(3, 7) for e in draw(algebra, d, samples, rng) if len(e) < 60]
    index = {value: i for i, value in enumerate(algebra.values)}
    return [
        Truth(algebra, part, [index[evaluate(e)] for e in part]) for part in (expressions, deep)
    ]


def stacked(models: Sequence[Weights]) -> Weights:
    """Weights with a leading axis for the models and one for the batch."""

    def stack(tensors: list[torch.Tensor]) -> torch.Tensor:
        return torch.stack(tensors).unsqueeze(1)

    fs = [weights.f for weights in models]
    assert all(isinstance(f, MLP) for f in fs)
    names = ("W_1", "b_1", "W_2", "b_2")
    parts = [stack([getattr(f, name).double() for f in fs]) for name in names]
    routing = [stack([getattr(w, name) for w in models]) for name in ("G_PE", "W_Q", "W_K")]
    return Weights(*routing, MLP(*parts, fs[0].activation))  # pyright: ignore


@torch.no_grad()
def brute_force(models: Sequence[Weights], truths: list[Truth]) -> list[list[Expression]]:
    """The expressions each model gets wrong. Small models run side by side, large ones in turn."""
    wrong: list[list[Expression]] = [[] for _ in models]
    if truths[0].algebra.name != "boolean":
        for row, weights in enumerate(models):
            for algebra, expressions, values in truths:
                found = Model(algebra, weights).predict(expressions)
                wrong[row] += [
                    expression
                    for expression, value, answer in zip(expressions, values, found, strict=True)
                    if answer != algebra.values[value]
                ]
        return wrong
    weights = stacked(models)
    for algebra, expressions, values in truths:
        X, inside = initial_state(expressions, models[0])
        X, _ = run(X.expand(len(models), *X.shape), weights, inside)
        differ = read_values(X, weights, algebra) != torch.tensor(values)
        for row, column in differ.nonzero().tolist():
            wrong[row].append(expressions[column])
    return wrong


@torch.no_grad()
def smallest_outputs(algebra: Algebra, weights: Weights) -> torch.Tensor:
    """For each output the least positive one over all bags, and the least negative one's size."""
    rows = bags(algebra)[0]
    rows = torch.cat([torch.zeros_like(rows[:1]), rows])
    Z = weights.f(rows)
    far = torch.full_like(Z, 1e4)
    above = torch.where(Z > 0, Z, far).amin(0)
    below = torch.where(Z > 0, far, -Z).amin(0)
    return torch.stack([above, below], dim=1)
