"""The layer as training end to end sees it: hard values forwards, soft gradients backwards.

Forwards it is `model/circuit.py`. Backwards each discrete step has the gradient of a soft one:

    gate              as `gates.py` says
    W_Q, W_K          as `model/quantize.py` says
    P                 that of s(A - max A), where s is exp, a sigmoid or a line
    Y                 that of sigmoid(Z / temperature)

What decides whether the gate learns; `exactformer reproduce estimators` has the counts. The mask
has its gradient in the residual. The maximum takes part in it, so that a token's depth counts
relative to the deepest one. The cross entropy is taken of probabilities squeezed into [margin,
1 - margin], so that it neither explodes on a wrong token nor, as with a clamp, has no gradient
there. The temperature, which keeps the sigmoid from being flat where the feedforward is sure of
itself, matters less.
"""

from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad, softplus

from exactformer.model.quantize import binary
from exactformer.training.recipe import EndToEnd


class ProblemTensors(NamedTuple):
    """Expressions of one depth. The leading axis is the seeds', or 1: the same for all."""

    X: Float[Tensor, "M B n D"]  # one-hot
    inside: Bool[Tensor, "M B n"]
    target: Float[Tensor, "M B n D"]  # the value at the outermost operator, zero elsewhere
    weight: Float[Tensor, "M B"]  # of each problem, with a mean of 1


class Constants:
    """The numbers of a recipe, some of which may differ from seed to seed."""

    def __init__(self, recipe: EndToEnd, varied: dict[str, Tensor] | None = None) -> None:
        self.recipe, self.varied = recipe, varied or {}

    def __call__(self, name: str, axes: int = 0) -> Any:
        """A constant of the recipe: a number, or one for each seed followed by `axes` axes of 1."""
        if name in self.varied:
            return self.varied[name].view(-1, *[1] * axes)
        return getattr(self.recipe, name)


SURROGATES: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "sigmoid": lambda x: torch.sigmoid(x + 0.5),
    "linear": lambda x: (1 + x).clamp(min=0),
}


class SoftLayer:
    """One layer for each of M seeds, with the parameters as `state.py` lays them out; their
    padding stays out of it. `gate` is one for each seed, or one for each of its problems.
    """

    def __init__(
        self,
        tensors: dict[str, Tensor],
        gate: Float[Tensor, "M G D"],
        activation: str,
        constants: Constants,
    ) -> None:
        self.gate, self.activation, self.constants = gate, activation, constants
        D = gate.shape[-1]
        W_Q, W_K = binary(tensors["bits"][:, :, :D]).unbind(1)
        self.scores = W_Q @ W_K.mT
        self.W_1, self.b_1 = tensors["W_1"][:, 0, :D], tensors["b_1"]
        self.W_2, self.b_2 = tensors["W_2"][..., :D], tensors["b_2"][..., :D]

    def __call__(
        self, X: Float[Tensor, "M B n D"], inside: Bool[Tensor, "M B n"]
    ) -> tuple[Float[Tensor, "M B n"], Float[Tensor, "M B n D"], Float[Tensor, "M B n D"]]:
        """The mask P, the outputs Z and the state after the iteration."""
        hard, gradient = self._mask(X, inside)
        P = hard + self.constants("through_residual", 2) * gradient
        Z = self._feedforward(self._routed(X, hard, gradient))
        soft = torch.sigmoid(Z / self.constants("temperature", 3))
        Y = soft + ((Z > 0).to(Z.dtype) - soft).detach()
        P_ = P.unsqueeze(-1)
        return P, Z, (1 - P_) * X + P_ * Y

    def iterated(self, X: Tensor, inside: Tensor, times: int) -> Tensor:
        """The state after a number of iterations."""
        for _ in range(times):
            X = self(X, inside)[2]
        return X

    def _mask(self, X: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """The mask P, and a zero that carries the gradient of its surrogate."""
        move = (X @ self.gate.unsqueeze(-1)).squeeze(-1) * inside
        A_1 = move.cumsum(-1)
        A = torch.maximum(A_1, A_1 - move - A_1[..., -1:])
        A = A.masked_fill(~inside, -torch.inf)
        top = A.amax(-1, keepdim=True)
        detached = self.constants("maximum_detached", 2)
        below = A - ((1 - detached) * top + detached * top.detach())
        scaled = (self.constants("slope", 2) * below).masked_fill(~inside, -1e4)
        soft = SURROGATES[self.constants.recipe.surrogate](scaled)
        return (below == 0).to(soft.dtype), soft - soft.detach()

    def _routed(self, X: Tensor, P: Tensor, gradient: Tensor) -> Tensor:
        """Typed attention within each cluster, as a matrix, since expressions are short."""
        starts = P * (1 - pad(P, (1, 0))[..., :-1])
        number = starts.cumsum(-1) * P
        same = (number[..., :, None] == number[..., None, :]) * P[..., None]
        share = self.constants("through_attention", 2)
        if isinstance(share, Tensor) or share:
            linked = 1 + share * gradient  # inside a cluster P is 1, and zero has a gradient
            same = same * linked[..., :, None] * linked[..., None, :]
        return (X @ self.scores[:, None] @ X.mT * same) @ X

    def _feedforward(self, H: Tensor) -> Tensor:
        seeds = len(self.scores)
        rows = H.expand(seeds, *H.shape[1:]).reshape(seeds, -1, H.shape[-1])
        hidden = torch.baddbmm(self.b_1, rows, self.W_1)
        hidden = hidden.square() if self.activation == "square" else hidden.relu()
        return torch.baddbmm(self.b_2, hidden, self.W_2).view(seeds, *H.shape[1:])


def losses(
    layer: SoftLayer, problems: ProblemTensors, depth: int
) -> tuple[Float[Tensor, " M"], Float[Tensor, " M"]]:
    """The cross entropies of the last iteration's outputs and of the state that it leaves, averaged
    over tokens and the vocabulary.
    """
    target, before = problems.target, layer.iterated(problems.X, problems.inside, depth - 1)
    P, Z, _ = layer(before, problems.inside)
    P, inside = P.unsqueeze(-1), problems.inside.unsqueeze(-1)
    weight = problems.weight[..., None, None] * inside
    weight = weight / (inside.sum((1, 2, 3), keepdim=True) * Z.shape[-1])
    outputs = target * softplus(-Z) + (1 - target) * softplus(Z)
    margin = layer.constants("margin", 3)
    blend = (1 - P) * before + P * torch.sigmoid(Z / layer.constants("temperature", 3))
    blend = margin + (1 - 2 * margin) * blend
    state = -(target * blend.log() + (1 - target) * (1 - blend).log())
    return (outputs * (P.detach() * weight)).sum((1, 2, 3)), (state * weight).sum((1, 2, 3))


@torch.no_grad()
def problems_right(layer: SoftLayer, problems: ProblemTensors) -> Int[Tensor, " M"]:
    """Number of problems of depth 2 that come out right, by hard decisions."""
    X = layer.iterated(problems.X, problems.inside, 2)
    right = ((X > 0) == (problems.target > 0)) | ~problems.inside.unsqueeze(-1)
    return right.flatten(2).all(2).sum(1)


@torch.no_grad()
def gate_errors(
    layer: SoftLayer, problems: ProblemTensors, gates: Float[Tensor, "M K D"]
) -> Float[Tensor, "M K"]:
    """The balanced error of each gate on depth 2, by hard decisions: the fraction of ones missed
    plus the fraction of zeros that became ones. Unbalanced, zeros alone would seem nearly right.
    """
    M, K, _ = gates.shape
    B = problems.X.shape[1]
    X, inside, target = (
        part.unsqueeze(1).expand(-1, K, *part.shape[1:]).flatten(1, 2)
        for part in (problems.X, problems.inside, problems.target > 0)
    )
    tried = copy(layer)
    tried.gate = gates.repeat_interleave(B, 1)
    found = tried.iterated(X, inside, 2) > 0
    missed = (~found & target).view(M, K, -1).sum(-1) / target.view(len(target), K, -1).sum(-1)
    zeros = ~target & inside.unsqueeze(-1)
    false = (found & zeros).view(M, K, -1).sum(-1) / zeros.view(len(zeros), K, -1).sum(-1)
    return missed + false
