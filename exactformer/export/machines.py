"""The layers of machines as graphs: what `model/machine.py` and `model/span_machine.py` compute,
with fixed shapes.

Their docstrings have the glossaries. Every token is tried with every state, whatever is in the
text: D times W rows of the feedforward. A position that is not read hands on the state that
arrives. The scan is the one of the logarithmic layer, which starts at the right end; where a text
is read from the left, it is turned around.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

from exactformer.api import Model
from exactformer.domains.machines import Machine
from exactformer.domains.span_machines import SpanMachine
from exactformer.export.graph import IterationGraph, before, behind
from exactformer.export.spans import scan_from_right
from exactformer.model.encode import encode


class Tried(NamedTuple):
    """The feedforward's outputs for each token in each state."""

    given: Tensor  # (D, W, D)   tokens, of 0 and 1
    F: Tensor  # (D, W+1)        the next state; W for one that is not known


class _StatesGraph(IterationGraph):
    """The common part of both."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.W = model.weights.W

    def tried(self, X: Tensor) -> Tried:
        """The feedforward's tables, in the types of X."""
        D, W = self.D, self.W
        rows = torch.arange(D * W, device=X.device)
        asked = torch.cat([one_hot(rows // W, D), one_hot(rows % W, W)], 1)
        positive = (self.f(asked.to(X.dtype)) > 0).view(D, W, D + W)
        ahead = positive[..., D:].long()
        F = torch.where(ahead.sum(-1) == 1, ahead.argmax(-1), W)
        return Tried(positive[..., :D].to(X.dtype), pad(F, (0, 1), value=W))

    def same(self, F: Tensor) -> Tensor:
        """The map of a position that is not read, as one row more."""
        return torch.arange(self.W + 1, device=F.device).unsqueeze(0)


class MachineGraph(_StatesGraph):
    def __init__(self, model: Model) -> None:
        super().__init__(model)
        assert isinstance(model.domain, Machine)
        self.backwards = model.domain.read == "right"

    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        P = inside & (X.sum(-1) > 0)
        token = torch.where(P, X.argmax(-1), self.D)  # D is for a position without one
        given, F = self.tried(X)
        maps = torch.cat([F, self.same(F)])[token]
        u = behind(scan_from_right(maps, 0)) if self.backwards else from_left(maps)
        Y = pad(given, (0, 0, 0, 1, 0, 1))  # nothing for W, and none for D
        return torch.where(P.unsqueeze(-1), Y[token, u], X)  # Eq. 13


class SpanMachineGraph(_StatesGraph):
    def __init__(self, model: Model) -> None:
        super().__init__(model)
        assert isinstance(model.domain, SpanMachine)
        self.end = model.domain.end

    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        (B, n, D), W = X.shape, self.W
        forward, backward = self.counts(X)
        own = torch.maximum(forward, backward)
        matched = (forward >= 0).all(-1, keepdim=True) & (forward[:, -1:] == 0)
        live = inside & matched & (X.sum(-1) > 0) & (own > 0)
        gate = (X @ self.get_buffer("G_PE")).to(torch.int64) * live.to(torch.int64)
        opens, closes = gate > 0, gate < 0

        # Brackets by depth and place, each `(` right before its `)`; what is none comes last.
        place = torch.arange(n, device=X.device).expand(B, n)
        key = torch.where(opens | closes, own * n + place, n * (n + 1) + place)
        order = key.sort(-1).indices
        opened = torch.zeros_like(order).scatter(1, order, before(order))

        given, F = self.tried(X)
        at_end = given[self.end]  # (W, D)
        V = torch.where(at_end.sum(-1) == 1, at_end.argmax(-1), -1)
        back = torch.where((V >= 0).unsqueeze(-1), F[V.clamp(min=0)], W).T[:W]  # by c, then by q
        start, unknown = torch.zeros_like(F[:1]), torch.full_like(F[:1], W)
        maps = torch.cat([F, start, unknown, self.same(F), pad(back, (0, 1), value=W)])
        first = torch.where(opens, D, torch.where(closes, D + 1, X.argmax(-1)))
        first = torch.where(live, first, D + 2)

        c = torch.where(closes, from_left(maps[first]).gather(1, opened), W)
        returns = closes & (c < W) & (own > 1)
        u = from_left(maps[torch.where(returns, D + 3 + c, first)])
        value = torch.where(closes & (u < W), V[u.clamp(max=W - 1)], -1)
        known = (value >= 0).to(torch.int64)
        around = torch.zeros_like(place).scatter_add(1, opened, known).cumsum(-1)
        around = around - before(known.cumsum(-1))  # finished spans around each position
        top = (value >= 0) & (around == 1)
        rows = encode(torch.where(top, value, -1), D, X.dtype)
        return torch.where((around > 0).unsqueeze(-1), rows, X)  # Eq. 13


def from_left(maps: Tensor) -> Tensor:
    """The state that arrives at each position, (B, n), from its map, (B, n, W+1)."""
    return before(scan_from_right(maps.flip(1), 0).flip(1))
