"""The gates of many seeds, moved together: one step of an estimator for each, on expressions of its
own. Many gates are tried where the seeds are trained, all at once; what their errors do to the
logits is a few numbers for each seed, and stays on the CPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.model.circuit import Weights
from exactformer.model.quantize import ternary
from exactformer.training.depth_two import GateProblem, gate_problem, right_of, try_gates
from exactformer.training.estimators import ASKING, ESTIMATORS
from exactformer.training.parameters import NOISE, STRINGS, generator
from exactformer.training.recipe import EstimatorName
from exactformer.training.state import Seed


@dataclass
class Mover:
    """One seed's gate, while it is moved."""

    seed: Seed
    weights: Weights
    logits: Tensor  # on the CPU
    tolerance: float
    strings: np.random.Generator = field(init=False)
    noise: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        which = (self.seed.seed, self.seed.attempt)
        self.strings = generator(*which, STRINGS, self.seed.step)
        self.noise = generator(*which, NOISE, self.seed.step)


def move_gates(
    algebra: Algebra,
    movers: Sequence[Mover],
    name: EstimatorName,
    steps: int,
    strings: int,
    device: str = "cpu",
) -> None:
    """A few steps for each, on fresh depth-2 expressions, until all of them come out right: then
    there is no error to learn from.
    """
    for _ in range(steps):
        if not movers:
            return
        problems = [
            gate_problem(algebra, m.weights, strings, m.tolerance, m.strings) for m in movers
        ]
        move = _ask_together if name in ASKING else _one_by_one
        right = move(movers, problems, name, device)
        for mover, count in zip(movers, right, strict=True):
            mover.seed.depth_two = count
        movers = [m for m, count in zip(movers, right, strict=True) if count < strings]


def _ask_together(
    movers: Sequence[Mover], problems: Sequence[GateProblem], name: EstimatorName, device: str
) -> list[int]:
    """How many expressions come out right then. Most gates are right and stay: those are tried
    once, since what an estimator asks first is the present gate.
    """
    asking = [ASKING[name](m.logits, m.tolerance, m.noise, m.seed.memory) for m in movers]
    gates = {row: next(step) for row, step in enumerate(asking)}
    right: dict[int, int] = {}
    moved: list[int] = []
    while gates:
        found = try_gates([problems[row] for row in gates], list(gates.values()), device)
        for row, (errors, counts) in zip(list(gates), found, strict=True):
            right.setdefault(row, int(counts[0]))
            try:
                gates[row] = asking[row].send(errors)
            except StopIteration as stop:
                if not torch.equal(ternary(stop.value), ternary(movers[row].logits)):
                    moved.append(row)
                movers[row].logits = stop.value
                del gates[row]
    goals = [ternary(movers[row].logits) for row in moved]
    tried = right_of([problems[row] for row in moved], goals, device)
    right |= zip(moved, tried, strict=True)
    return [right[row] for row in range(len(movers))]


def _one_by_one(
    movers: Sequence[Mover], problems: Sequence[GateProblem], name: EstimatorName, device: str
) -> list[int]:
    """By a gradient through each seed's own layer, on the CPU."""
    for mover, problem in zip(movers, problems, strict=True):
        with torch.enable_grad():
            mover.logits = ESTIMATORS[name](mover.logits, problem, mover.noise, mover.seed.memory)
    return right_of(problems, [ternary(mover.logits) for mover in movers], device)
