"""The common part of the graphs of all layers: the transformer written with operations of fixed
shapes, for compilers of graphs.

Graphs compute what `model/` does, and are a second account of it: tests compare the two state by
state. Clusters add up in a table with n + 1 rows (row 0 for what is in none), each with a part for
every slot, since how many clusters there are is not known beforehand. Products in float64 are those
of the runtime: a proof holds for any order of summation.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from exactformer.api import Model
from exactformer.certify import require_exact
from exactformer.domains.algebra import FIRST_VALUE
from exactformer.model.feedforward import MLP, Units
from exactformer.model.remembered import fixed
from exactformer.weights.tensors import CONTENTS


class IterationGraph(nn.Module):
    """One iteration of a layer as a graph: from the state (B, n, D) in float32 and its mask (B, n)
    to the next state.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        weights = fixed(model.weights)  # what is certified here is what the graph is made of
        require_exact(model.domain, weights)
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
        for name in CONTENTS[model.domain.kind].gates:
            gate = weights.gates.get(name)
            self.register_buffer(name, None if gate is None else gate.float().clone())
        self.D = len(model.domain.vocabulary)

    def counts(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Eqs. 2 and 3: depths counted from the left end, and from the right."""
        gate = (tokens @ self.get_buffer("G_PE")).to(torch.int64)
        count = gate.cumsum(-1)
        return count, count - gate - count[:, -1:]


class AlgebraGraph(IterationGraph):
    """The common part of the graphs of layers that read an algebra's expressions."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.slots, self.first_operator = model.weights.f.slots, model.algebra.first_operator
        self.V = self.first_operator - FIRST_VALUE

    def running(self, X: Tensor) -> Tensor:
        """Whether each sequence has not halted, (B,)."""
        raise NotImplementedError

    def attention(self, V: Tensor, ids: Tensor, starts: Tensor) -> Tensor:
        """Eqs. 10 to 12 within each cluster, slot by slot. The members of a cluster stand side by
        side; `starts` is 1 at the first.
        """
        B, n, D = V.shape
        S = self.slots
        slot = torch.zeros_like(ids)
        if self.G_R is not None:
            gate = (V @ self.get_buffer("G_R")).to(torch.int64)
            slot = (restarted(gate, ids, starts) - 1).clamp(0, S - 1)
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


def before(x: Tensor) -> Tensor:
    """The neighbour on the left of each position, of (B, n); 0 at the first."""
    return pad(x, (1, 0), value=0)[:, :-1]


def behind(x: Tensor, value: int = 0) -> Tensor:
    """The neighbour on the right of each position, of (B, n); `value` at the last."""
    return pad(x, (0, 1), value=value)[:, 1:]


def add_up(numbers: Tensor, ids: Tensor, rows: int) -> Tensor:
    """The sum of the whole numbers of each cluster, in a table of `rows`."""
    sums = torch.zeros(*ids.shape[:-1], rows, dtype=torch.int64, device=ids.device)
    return sums.scatter_add(-1, ids, numbers.to(torch.int64))


def restarted(numbers: Tensor, ids: Tensor, starts: Tensor) -> Tensor:
    """The sum of the whole numbers from the start of each one's cluster up to there."""
    count = numbers.cumsum(-1)
    left = add_up(starts * (count - numbers), ids, ids.shape[1] + 1)
    return count - left.gather(1, ids)


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
