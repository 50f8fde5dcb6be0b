"""The paper's layer as a graph: what `model/circuit.py` computes, with fixed shapes."""

import torch
from torch import Tensor
from torch.nn.functional import pad

from exactformer.export.graph import AlgebraGraph, before

LOWEST = -(1 << 40)  # below every depth


class DepthGraph(AlgebraGraph):
    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        tokens = self.read(X)
        depth = torch.where(inside, torch.maximum(*self.counts(tokens)), LOWEST)  # Eq. 4
        deepest = pad(depth, (0, 1), value=LOWEST).amax(-1, keepdim=True)  # if n = 0
        P = (depth == deepest) & inside  # Eq. 5
        mask = P.to(torch.int64)
        starts = mask * (1 - before(mask))  # Eq. 6
        ids = mask * starts.cumsum(-1)  # Eq. 7
        H = self.attention(tokens * mask.unsqueeze(-1), ids, starts)
        Y = (self.f(H) > 0).to(X.dtype)
        return torch.where(P.unsqueeze(-1), self.write(Y), X)  # Eq. 13

    def running(self, X: Tensor) -> Tensor:
        forward, backward = self.counts(self.read(X))
        return ((forward != 0) | (backward != 0)).any(-1)
