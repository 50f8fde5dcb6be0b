"""The layer as training end to end sees it: hard values forwards, soft gradients backwards.

Forwards it is `model/circuit.py`. Backwards each discrete step has the gradient of a soft one:

    gate, W_Q, W_K    as `model/quantize.py` says
    P                 that of exp(A - max A), the maximum included; in the residual only
    Y                 that of sigmoid(Z / temperature)

Three things decide whether the gate learns; `exactformer reproduce estimators` has the counts.
The maximum takes part in the gradient, so that a token's depth counts relative to the deepest one.
The temperature keeps the sigmoid from being flat where the feedforward is sure of itself. And the
cross entropy is taken of probabilities squeezed into [margin, 1 - margin], so that it neither
explodes on a wrong token nor, as with a clamp, has no gradient there.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import pad, softplus

from exactformer.model.quantize import binary, ternary


class Problems(NamedTuple):
    """Expressions of one depth. The leading axis is the seeds', or 1: the same for all."""

    X: Float[Tensor, "M B n D"]  # one-hot
    inside: Bool[Tensor, "M B n"]
    target: Float[Tensor, "M B n D"]  # the value at the outermost operator, zero elsewhere
    weight: Float[Tensor, "M B"]  # of each problem, with a mean of 1


class Layer:
    """One layer for each of M seeds, with the parameters as `parameters.py` lays them out; their
    padding stays out of it.
    """

    def __init__(self, tensors: dict[str, Tensor], activation: str, temperature: float) -> None:
        self.activation, self.temperature = activation, temperature
        self.gate = ternary(tensors["gate"])
        D = self.gate.shape[-1]
        W_Q, W_K = binary(tensors["bits"][:, :, :D]).unbind(1)
        self.scores = W_Q @ W_K.mT
        self.W_1, self.b_1 = tensors["W_1"][:, 0, :D], tensors["b_1"]
        self.W_2, self.b_2 = tensors["W_2"][..., :D], tensors["b_2"][..., :D]

    def __call__(
        self, X: Float[Tensor, "M B n D"], inside: Bool[Tensor, "M B n"]
    ) -> tuple[Float[Tensor, "M B n"], Float[Tensor, "M B n D"], Float[Tensor, "M B n D"]]:
        """P, Z and the state after the iteration."""
        P = self._mask(X, inside)
        Z = self._feedforward(self._routed(X, P.detach()))
        soft = torch.sigmoid(Z / self.temperature)
        Y = soft + ((Z > 0).to(Z.dtype) - soft).detach()
        P_ = P.unsqueeze(-1)
        return P, Z, (1 - P_) * X + P_ * Y

    def _mask(self, X: Tensor, inside: Tensor) -> Tensor:
        move = (X @ self.gate[:, None, :, None]).squeeze(-1) * inside
        A_1 = move.cumsum(-1)
        A = torch.maximum(A_1, A_1 - move - A_1[..., -1:])
        A = A.masked_fill(~inside, -torch.inf)
        below = A - A.amax(-1, keepdim=True)
        soft = torch.exp(below)
        return soft + ((below == 0).to(soft.dtype) - soft).detach()

    def _routed(self, X: Tensor, P: Tensor) -> Tensor:
        """Typed attention within each cluster; expressions are short, so it is a matrix."""
        starts = P * (1 - pad(P, (1, 0))[..., :-1])
        number = starts.cumsum(-1) * P
        same = (number[..., :, None] == number[..., None, :]) * P[..., None]
        return (X @ self.scores[:, None] @ X.mT * same) @ X

    def _feedforward(self, H: Tensor) -> Tensor:
        seeds = len(self.scores)
        rows = H.expand(seeds, *H.shape[1:]).reshape(seeds, -1, H.shape[-1])
        hidden = torch.baddbmm(self.b_1, rows, self.W_1)
        hidden = hidden.square() if self.activation == "square" else hidden.relu()
        return torch.baddbmm(self.b_2, hidden, self.W_2).view(seeds, *H.shape[1:])


def losses(
    layer: Layer, problems: Problems, depth: int, margin: float
) -> tuple[Float[Tensor, " M"], Float[Tensor, " M"]]:
    """The cross entropies of the last iteration's outputs and of the state that it leaves, averaged
    over tokens and the vocabulary.
    """
    before, target = problems.X, problems.target
    for _ in range(depth - 1):
        _, _, before = layer(before, problems.inside)
    P, Z, _ = layer(before, problems.inside)
    P, inside = P.unsqueeze(-1), problems.inside.unsqueeze(-1)
    weight = problems.weight[..., None, None] * inside
    weight = weight / (inside.sum((1, 2, 3), keepdim=True) * Z.shape[-1])
    outputs = target * softplus(-Z) + (1 - target) * softplus(Z)
    blend = (1 - P) * before + P * torch.sigmoid(Z / layer.temperature)
    blend = margin + (1 - 2 * margin) * blend
    state = -(target * blend.log() + (1 - target) * (1 - blend).log())
    return (outputs * (P.detach() * weight)).sum((1, 2, 3)), (state * weight).sum((1, 2, 3))
