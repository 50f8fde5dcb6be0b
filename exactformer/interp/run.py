"""One expression, run with everything kept and with whatever patches are asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.interp.module import Cache, CircuitModule, Key, Patch
from exactformer.model.circuit import Weights
from exactformer.model.encode import initial_state


@dataclass(frozen=True)
class Run:
    """What came out, and what passed each tap: `cache[iteration, name]`, with iterations from 1.

    Tensors have no axis of a batch: A is (n, 2); P, ids and R are (n,); H is (n, S*D); Z, Y and X
    are (n, D). `cache[0, "X"]` is the state before the first iteration.
    """

    value: str | None  # None where it ends with anything but a single value
    iterations: int
    cache: Cache = field(repr=False)


@torch.no_grad()
def run(
    algebra: Algebra,
    weights: Weights,
    expression: Expression,
    patch: Mapping[Key, Patch] | None = None,
) -> Run:
    module = CircuitModule(algebra, weights)
    X, inside = initial_state([expression], weights)
    X, cache = module.run_with_cache(X[0], inside[0], patch)
    return Run(module.decode(X)[0], module.iteration, cache)
