"""The transformer written with operations of fixed shapes, for compilers of graphs.

It computes what `model/circuit.py` does, and is a second account of it: tests compare the two state
by state. Clusters add up in a table with n + 1 rows (row 0 for what is outside the mask), each with
a part for every slot, since how many clusters there are is not known beforehand. Products in
float64 are those of the runtime: a proof holds for any order of summation.
"""

import torch
from torch import Tensor, nn

from exactformer.api import Model
from exactformer.certify import require_exact
from exactformer.domains.algebra import FIRST_VALUE, OPEN
from exactformer.domains.capabilities import require_capability
from exactformer.domains.expression import EMPTY
from exactformer.model.encode import NO_VALUE
from exactformer.model.feedforward import MLP, Units
from exactformer.model.remembered import fixed
from exactformer.weights.tensors import ALGEBRA_GATES

LOWEST = -(1 << 40)  # below every depth


class IterationGraph(nn.Module):
    """One iteration as a graph: from the state (B, n, D) in float32 and its mask (B, n) to the next
    state.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        require_capability("graph", model.domain)
        weights = fixed(model.weights)  # what is certified here is what the graph is made of
        require_exact(model.algebra, weights)
        f = weights.f
        if isinstance(f, MLP):
            self.f = _Perceptron(f)
        elif isinstance(f, Units):
            self.f = _UnitsGraph(f)
        else:
            raise ValueError(
                f"a feedforward of the kind {type(f).__name__!r} cannot be expressed as a graph: "
                f"expected a perceptron (closed, fitted or learned) or units"
            )
        for name in ALGEBRA_GATES:
            gate = weights.gates.get(name)
            self.register_buffer(name, None if gate is None else gate.float().clone())
        self.slots = f.slots
        self.D, self.first_operator = len(model.algebra.vocabulary), model.algebra.first_operator

    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        tokens = self.read(X)
        depth = torch.where(inside, torch.maximum(*self.counts(tokens)), LOWEST)  # Eq. 4
        deepest = nn.functional.pad(depth, (0, 1), value=LOWEST).amax(-1, keepdim=True)  # if n = 0
        P = (depth == deepest) & inside  # Eq. 5
        mask = P.to(torch.int64)
        starts = mask * (1 - nn.functional.pad(mask, (1, 0))[:, :-1])  # Eq. 6
        ids = mask * starts.cumsum(-1)  # Eq. 7
        H = self.attention(tokens * mask.unsqueeze(-1), ids, starts)
        Y = (self.f(H) > 0).to(X.dtype)
        return torch.where(P.unsqueeze(-1), self.write(Y), X)  # Eq. 13

    def counts(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Eqs. 2 and 3: depths counted from the left end, and from the right."""
        gate = (tokens @ self.get_buffer("G_PE")).to(torch.int64)
        count = gate.cumsum(-1)
        return count, count - gate - count[:, -1:]

    def attention(self, V: Tensor, ids: Tensor, starts: Tensor) -> Tensor:
        """Eqs. 10 to 12 within each cluster, slot by slot."""
        B, n, D = V.shape
        S = self.slots
        slot = torch.zeros_like(ids)
        if self.G_R is not None:
            gate = (V @ self.get_buffer("G_R")).to(torch.int64)
            count = gate.cumsum(-1)
            before = torch.zeros(B, n + 1, dtype=torch.int64, device=V.device)
            before = before.scatter_add(1, ids, starts * (count - gate))  # where each starts
            slot = (count - before.gather(1, ids) - 1).clamp(0, S - 1)
        into = (ids * S + slot).unsqueeze(-1).expand(B, n, D)
        rows = ids.unsqueeze(-1).expand(B, n, S * D)
        Q, K = V @ self.get_buffer("W_Q"), V @ self.get_buffer("W_K")
        H = torch.zeros(B, n, S * D, dtype=V.dtype, device=V.device)
        for h in range(Q.shape[-1]):
            sums = torch.zeros(B, (n + 1) * S, D, dtype=V.dtype, device=V.device)
            sums = sums.scatter_add(1, into, K[..., h : h + 1] * V).view(B, n + 1, S * D)
            H = H + Q[..., h : h + 1] * sums.gather(1, rows)
        return H

    def read(self, X: Tensor) -> Tensor:
        """Tokens of dense vectors, as in `circuit.read_tokens`."""
        if self.E is None:
            return X
        return (X.double() @ self.get_buffer("E").double().T > 0.5).to(X.dtype)

    def write(self, Y: Tensor) -> Tensor:
        return Y if self.E is None else (Y.double() @ self.get_buffer("E").double()).to(Y.dtype)


class LoopGraph(IterationGraph):
    """The whole model as a graph: from token ids (B, n), -1 for an empty position, to the value
    index of each sequence (-1 if there is none) and the number of iterations.
    """

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        from torch._higher_order_ops import while_loop

        # An empty sequence more, and an empty position: runtimes fail on tensors without elements.
        ids = nn.functional.pad(ids, (0, 1, 0, 1), value=EMPTY)
        one_hot = (ids.unsqueeze(-1) == torch.arange(self.D, device=ids.device)).float()
        limit = (ids == OPEN).to(torch.int64).sum(-1)
        start = (self.write(one_hot), torch.zeros((), dtype=torch.int64), torch.zeros_like(limit))

        def running(X: Tensor, i: Tensor) -> Tensor:
            forward, backward = self.counts(self.read(X))
            return ((forward != 0) | (backward != 0)).any(-1) & (i < limit)

        def go_on(X: Tensor, i: Tensor, taken: Tensor) -> Tensor:
            return running(X, i).any()

        def iterate(X: Tensor, i: Tensor, taken: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            acts = running(X, i)
            inside = acts.unsqueeze(-1).expand(X.shape[:2])
            return super(LoopGraph, self).forward(X, inside), i + 1, taken + acts.to(torch.int64)

        X, _, taken = while_loop(go_on, iterate, start)
        held = (self.read(X) > 0).to(torch.int64).sum(1)
        values = held[:, FIRST_VALUE : self.first_operator]
        single = (held.sum(-1) == 1) & (values.sum(-1) == 1)
        return torch.where(single, values.argmax(-1), NO_VALUE)[:-1], taken[:-1]


class _Perceptron(nn.Module):
    def __init__(self, f: MLP) -> None:
        super().__init__()
        for name, tensor in f.tensors.items():
            self.register_buffer(name, tensor.double().clone())
        self.square = f.activation == "square"

    def forward(self, H: Tensor) -> Tensor:
        hidden = H.double() @ self.get_buffer("W_1") + self.get_buffer("b_1")
        hidden = hidden * hidden if self.square else hidden.relu()
        return hidden @ self.get_buffer("W_2") + self.get_buffer("b_2")


class _UnitsGraph(nn.Module):
    """Gated units as a graph, in whole numbers that float64 holds exactly."""

    def __init__(self, f: Units) -> None:
        super().__init__()
        for name, tensor in f.tensors.items():
            self.register_buffer(name, tensor.long().clone())
        self.D = f.D

    def forward(self, H: Tensor) -> Tensor:
        W, b, cap, period, code, readout = self.buffers()
        operators, codes = readout.shape
        u = (H.double() @ W.double() + b.double()).to(torch.int64)
        cut = torch.minimum(u.clamp(min=0), cap)
        g = torch.where(period > 0, u % period.clamp(min=1), cut)
        found = (g.double() @ code.double()).to(torch.int64)  # (B, n, operators)
        known = (found >= 0) & (found < codes)
        places = found.clamp(0, codes - 1) + codes * torch.arange(operators, device=H.device)
        token = readout.flatten()[places]
        gate = H[..., self.D - operators : self.D] * (known & (token >= 0)).to(H.dtype)
        hot = (token.unsqueeze(-1) == torch.arange(self.D, device=H.device)).to(H.dtype)
        return (gate.unsqueeze(-1) * hot).sum(-2) - 0.5
