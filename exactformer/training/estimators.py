"""Four ways to move the gate's logits by what depth-2 expressions show, for many seeds together.

The paper leaves open how the hard mask passes a gradient to the gate; `exactformer reproduce
estimators` compares these readings. A step has one seed's logits, random numbers and a `memory`,
which holds named tensors that it wants back at the next one, and returns new logits. Two ask for
nothing but the errors of gates (ASKING), so they move the rank gate and that of levels as well.
They ask by yielding the gates, so that those of many seeds can be tried together: first for the
present gate alone, and for others only where that one is wrong. The others follow a gradient
through the seed's own layer (BY_GRADIENT).

Many gates are tried where the seeds are trained, all at once; what their errors do to the logits is
a few numbers for each seed, and stays on the CPU.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.model.quantize import ternary
from exactformer.protocol.optimizer import EPSILON, update_moments
from exactformer.training.depth_two import GateProblem, gate_problem, right_of, try_gates
from exactformer.training.gates import MOVE, rotations
from exactformer.training.recipe import EstimatorName, Staged
from exactformer.training.state import NOISE, STRINGS, Memory, Seed

BETAS = (0.9, 0.99)  # of Adam on the gate's logits

Asking = Generator[Tensor, Tensor, Tensor]  # yields gates, is sent their errors, returns logits


def search(logits: Tensor, tolerance: float, rng: np.random.Generator, memory: Memory) -> Asking:
    """A discrete search, not a gradient: towards the best gate that differs from the present one
    in at most two coordinates, if it is strictly better. One coordinate is not enough: the gains
    from `(` and from `)` alone can be too small to see.
    """
    present = ternary(logits)
    goal, least = present, (yield present[None])[0]
    if least > tolerance:
        gates = ((present.long() + 1 + rotations(len(logits)).to(logits.device)) % 3 - 1).float()
        errors = yield gates
        if errors.min() < least:
            goal = gates[errors.argmin()]
    return logits + MOVE * (goal - logits)


def score(logits: Tensor, tolerance: float, rng: np.random.Generator, memory: Memory) -> Asking:
    """The score-function gradient for gates ternary(logits + noise), with antithetic draws.

    What falls is -T log E[exp(-error / T)], which is the expected error for a large temperature T
    and the least one for a small T: the expected error alone has traps, such as -1 on `(` together
    with -1 on an operator. Logits are kept where the noise can still flip them, and start again at
    zero when they stay wrong for long.
    """
    draws, spread, temperature, patience = 128, 0.4, 0.1, 20
    half = torch.from_numpy(rng.standard_normal((draws // 2, len(logits)))).float()
    noise = torch.cat([half, -half]).to(logits.device)
    if (yield ternary(logits)[None])[0] <= tolerance:
        memory.pop("wrong", None)
        return logits
    wrong = memory.get("wrong", torch.zeros(1)) + 1
    if wrong > patience:
        memory.clear()
        return torch.zeros_like(logits)
    memory["wrong"] = wrong
    errors = yield ternary(logits + spread * noise)
    weights = 1 / draws - torch.softmax(-errors / temperature, 0)
    return _adam(logits, (weights[:, None] * noise).sum(0), memory, rate=0.1, limit=0.7)


def straight_through(
    logits: Tensor, problem: GateProblem, rng: np.random.Generator, memory: Memory
) -> Tensor:
    """The paper's straight-through estimator: "as if the quantization step were the identity"."""
    logits = logits.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(_soft_loss(problem, ternary(logits)), logits)
    return _adam(logits.detach(), gradient, memory, rate=0.05, limit=1.5)


def gumbel(
    logits: Tensor, problem: GateProblem, rng: np.random.Generator, memory: Memory
) -> Tensor:
    """Straight-through Gumbel-Softmax over -1, 0 and 1, scored by their distance to the logit."""
    draws, spread, temperature = 4, 0.4, 0.5
    logits = logits.clone().requires_grad_()
    values = torch.tensor([-1.0, 0.0, 1.0], device=logits.device)
    scores = -((logits[:, None] - values) ** 2) / (2 * spread**2)
    losses = []
    for _ in range(draws):
        noise = torch.from_numpy(rng.gumbel(size=scores.shape)).float().to(logits.device)
        soft = torch.softmax((scores + noise) / temperature, -1)
        hard = torch.nn.functional.one_hot(soft.argmax(-1), 3)
        losses.append(_soft_loss(problem, (soft + (hard - soft).detach()) @ values))
    (gradient,) = torch.autograd.grad(torch.stack(losses).mean(), logits)
    return _adam(logits.detach(), gradient, memory, rate=0.05, limit=1.5)


def _soft_loss(problem: GateProblem, gate: Tensor) -> Tensor:
    """Two hard iterations whose mask has the gradient of exp(A - max A), and whose outputs have
    that of the sigmoid; then binary cross entropy over all tokens, as in the paper.

    The mask enters where the paper has it: in the clusters' attention and in the residual. Strings
    are short, so attention is written out as a matrix.
    """
    X, weights, f = problem.X, problem.weights, problem.weights.f
    assert isinstance(f, MLP)
    S = weights.W_Q @ weights.W_K.mT
    for _ in range(2):
        move = (X @ gate) * problem.inside
        A_1 = move.cumsum(-1)
        A = torch.maximum(A_1, A_1 - move - A_1[:, -1:])
        below = A - A.amax(-1, keepdim=True)
        soft = torch.exp(below) * problem.inside
        hard = ((below == 0) & problem.inside).float()
        P = soft + (hard - soft).detach()
        starts = hard * (1 - torch.nn.functional.pad(hard, (1, 0))[:, :-1])
        number = starts.cumsum(-1)
        same = (number[:, :, None] == number[:, None, :]) * P[:, :, None] * P[:, None, :]
        Z = f.in_training((X @ S @ X.mT * same) @ X)
        soft = torch.sigmoid(Z)
        Y = soft + ((Z > 0).float() - soft).detach()
        X = (1 - P).unsqueeze(-1) * X + P.unsqueeze(-1) * Y
    # The state is 0 or 1 in value: its cross entropy is taken a little inside, where it is finite.
    inside = 0.001 + 0.998 * X
    return torch.nn.functional.binary_cross_entropy(inside.clamp(0.001, 0.999), problem.target)


def _adam(logits: Tensor, gradient: Tensor, memory: Memory, rate: float, limit: float) -> Tensor:
    """One step of Adam on the gate's logits, which are kept within reach of the thresholds."""
    m, v = (memory.setdefault(name, torch.zeros_like(logits)) for name in ("m", "v"))
    update_moments(m, v, gradient, BETAS)
    t = memory["t"] = memory.get("t", torch.zeros(1)) + 1
    mean, square = m / (1 - BETAS[0] ** float(t)), v / (1 - BETAS[1] ** float(t))
    return (logits - rate * (mean / (square.sqrt() + EPSILON))).clamp(-limit, limit)


def answered(asking: Asking, errors: Callable[[Tensor], Tensor]) -> Tensor:
    """The result of an asking estimator for one gate, with its questions answered at once."""
    try:
        gates = next(asking)
        while True:
            gates = asking.send(errors(gates))
    except StopIteration as stop:
        return stop.value


ASKING: dict[str, Callable[[Tensor, float, np.random.Generator, Memory], Asking]] = {
    "search": search,
    "score": score,
}
BY_GRADIENT: dict[str, Callable[[Tensor, GateProblem, np.random.Generator, Memory], Tensor]] = {
    "straight-through": straight_through,
    "gumbel": gumbel,
}


@dataclass
class Mover:
    """The state of one seed's gate while it is moved."""

    seed: Seed
    weights: Weights
    logits: Tensor  # on the CPU
    tolerance: float  # the error that the right gate may have, as long as depth 1 is not all right

    def __post_init__(self) -> None:
        self.strings, self.noise = self.seed.generator(STRINGS), self.seed.generator(NOISE)


def move_gates(algebra: Algebra, recipe: Staged, movers: Sequence[Mover], device: str) -> None:
    """Move each gate by a few steps, on fresh depth-2 expressions, until all come out right."""
    move = _ask_together if recipe.estimator in ASKING else _one_by_one
    for _ in range(recipe.gate_steps):
        if not movers:
            return
        problems = [gate_problem(algebra, m.weights, recipe.strings, m.strings) for m in movers]
        right = move(movers, problems, recipe.estimator, device)
        for mover, count in zip(movers, right, strict=True):
            mover.seed.depth_two = count
        movers = [m for m, count in zip(movers, right, strict=True) if count < recipe.strings]


def _ask_together(
    movers: Sequence[Mover], problems: Sequence[GateProblem], name: EstimatorName, device: str
) -> list[int]:
    """Move the gates, asking for all errors together; returns the number of expressions that come
    out right. Most gates are right and stay: those are tried once, since an estimator first asks
    about the present gate.
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
    """Move the gates by a gradient through each seed's own layer, on the CPU; returns the number of
    expressions that come out right.
    """
    for mover, problem in zip(movers, problems, strict=True):
        with torch.enable_grad():
            mover.logits = BY_GRADIENT[name](mover.logits, problem, mover.noise, mover.seed.memory)
    return right_of(problems, [ternary(mover.logits) for mover in movers], device)
