"""The transformer of the paper's Section 3: one layer, applied until no parenthesis is left.

Glossary
    D, d_h      size of the vocabulary; width of queries and keys
    n           positions; "..." are any leading axes (seeds, batch), broadcast against the weights'
    X           (..., n, D)  state: a one-hot row for a token, a zero row for an empty position
    G_PE        (..., D)     the diagonal of the paper's gate matrix, in {-1, 0, 1}
    W_Q, W_K    (..., D, d_h)  routing, in {0, 1}; W_V is the identity
    A           (..., n, 2)  depth counts, forwards and backwards, in integers
    P           (..., n)     reduction mask: the deepest spans
    ids         (..., n)     number of the cluster, from 1; 0 outside the mask
    H, Z, Y     (..., n, D)  routed bags; the feedforward's outputs; the same after the threshold

X, Q, K and H hold small whole numbers only, so float32, bfloat16 and float16 all give them exactly.
The feedforward is the one place with real numbers; it runs in the precision of its own weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.algebra import OPEN


@runtime_checkable
class Feedforward(Protocol):
    """The local map f: a routed bag in, D numbers out; the positive ones are the output."""

    def __call__(self, H: Float[Tensor, "... n D"]) -> Float[Tensor, "... n D"]: ...

    def to(self, device: torch.device | str) -> "Feedforward": ...


@dataclass(frozen=True)
class Weights:
    """Everything that is learned or written down. `E`, if any, has the dense vector of each token
    as a row; its rows are orthonormal.
    """

    G_PE: Tensor
    W_Q: Tensor
    W_K: Tensor
    f: Feedforward
    E: Tensor | None = None

    def to(self, device: torch.device | str) -> "Weights":
        """The same weights on another device."""
        G_PE, W_Q, W_K = (tensor.to(device) for tensor in (self.G_PE, self.W_Q, self.W_K))
        E = None if self.E is None else self.E.to(device)
        return Weights(G_PE, W_Q, W_K, self.f.to(device), E)


class Step(NamedTuple):
    """One iteration with all that happened in it; X is the state after it."""

    A: Tensor
    P: Tensor
    ids: Tensor
    H: Tensor
    Z: Tensor
    Y: Tensor
    X: Tensor


def depth_counts(
    X: Float[Tensor, "... n D"], G_PE: Float[Tensor, "... D"]
) -> Int[Tensor, "... n 2"]:
    gate = (X @ G_PE.to(X.dtype).unsqueeze(-1)).squeeze(-1).to(torch.int8)  # Eq. 2
    A_1 = gate.cumsum(-1, dtype=torch.int64)  # Eq. 3
    A_2 = A_1 - gate - A_1[..., -1:]  # Eq. 3: minus the sum from here to the end
    return torch.stack((A_1, A_2), dim=-1)  # Eq. 4


def reduction_mask(
    A: Int[Tensor, "... n 2"], inside: Bool[Tensor, "... n"]
) -> Bool[Tensor, "... n"]:
    """Where the depth is largest; `inside` leaves out padding and sequences that have halted."""
    deepest = A.amax(-1).masked_fill(~inside, torch.iinfo(A.dtype).min)
    return (deepest == deepest.amax(-1, keepdim=True)) & inside  # Eq. 5


def clusters(P: Bool[Tensor, "... n"]) -> Int[Tensor, "... n"]:
    before = torch.nn.functional.pad(P, (1, 0))[..., :-1]
    starts = P & ~before  # Eq. 6: where the difference is positive
    return P * starts.cumsum(-1)  # Eq. 7; Eqs. 8 and 9 name the sets that these numbers define


def typed_attention(
    X: Float[Tensor, "... n D"],
    ids: Int[Tensor, "... n"],
    W_Q: Float[Tensor, "... D h"],
    W_K: Float[Tensor, "... D h"],
) -> Float[Tensor, "... n D"]:
    """Linear attention within each cluster, for all clusters at once, in O(n).

    Positions of one cluster add into one row of a table of sums, so neither an n-by-n matrix nor a
    loop over clusters is needed; the loop is over the d_h <= 1 + number of operators dimensions.
    """
    n, D = X.shape[-2:]
    n_clusters = ids.amax(-1).flatten()
    first = n_clusters.cumsum(0) - n_clusters  # so that no two sequences share a row of sums
    # Zero vectors neither send nor receive anything, and later spans consist mostly of them.
    where = ((ids > 0) & X.any(-1)).flatten().nonzero().squeeze(-1)
    cluster = ids.flatten()[where] - 1 + first[where // n]
    V = X.reshape(-1, D)[where]
    Q, K = (
        V @ W if W.dim() == 2 else (X @ W).reshape(-1, W.shape[-1])[where]  # Eqs. 10 and 11
        for W in (W_Q.to(X.dtype), W_K.to(X.dtype))
    )
    routed = torch.zeros_like(V)
    for q, k in zip(Q.split(1, dim=-1), K.split(1, dim=-1), strict=True):
        sums = V.new_zeros(int(n_clusters.sum()), D).index_add_(0, cluster, k * V)
        routed = torch.addcmul(routed, q, sums[cluster])  # Eq. 12, as Q (K^T X)
    return X.new_zeros(ids.numel(), D).index_copy_(0, where, routed).view(X.shape)


def gated_residual(
    X: Float[Tensor, "... n D"], P: Bool[Tensor, "... n"], Y: Float[Tensor, "... n D"]
) -> Float[Tensor, "... n D"]:
    return torch.where(P.unsqueeze(-1), Y, X)  # Eq. 13


def halted(A: Int[Tensor, "... n 2"]) -> Bool[Tensor, "..."]:
    """No parenthesis is left: every count is zero."""
    return (A == 0).all(-1).all(-1)


def iterate(X: Float[Tensor, "... n D"], weights: Weights, inside: Bool[Tensor, "... n"]) -> Step:
    tokens = read_tokens(X, weights)
    A = depth_counts(tokens, weights.G_PE)
    P = reduction_mask(A, inside)
    ids = clusters(P)
    H = typed_attention(tokens, ids, weights.W_Q, weights.W_K)
    Z = weights.f(H)
    Y = (Z > 0).to(X.dtype)
    return Step(A, P, ids, H, Z, Y, gated_residual(X, P, write_tokens(Y, weights)))


def run(
    X: Float[Tensor, "... n D"], weights: Weights, inside: Bool[Tensor, "... n"]
) -> tuple[Float[Tensor, "... n D"], Int[Tensor, "..."]]:
    """Iterate until every sequence has halted. Returns the last state and each one's iterations."""
    iterations = torch.zeros(X.shape[:-2], dtype=torch.int64, device=X.device)
    for step in steps(X, weights, inside):
        X, iterations = step.X, iterations + step.P.any(-1)
    return X, iterations


def steps(
    X: Float[Tensor, "... n D"], weights: Weights, inside: Bool[Tensor, "... n"]
) -> Iterator[Step]:
    """The iterations of `run`, one by one.

    An expression has at most as many levels as `(`: weights that go on longer than that are wrong
    and would never stop, so their sequences are left as they are.
    """
    limit = (read_tokens(X, weights)[..., OPEN] > 0).sum(-1)
    iteration = 0
    while True:
        running = ~halted(depth_counts(read_tokens(X, weights), weights.G_PE)) & (iteration < limit)
        if not running.any():
            return
        step = iterate(X, weights, inside & running.unsqueeze(-1))
        yield step
        X, iteration = step.X, iteration + 1


def read_tokens(X: Tensor, weights: Weights) -> Tensor:
    """One-hot rows of a state of dense vectors; the map back is the transpose of E."""
    return X if weights.E is None else (X @ weights.E.to(X.dtype).mT > 0.5).to(X.dtype)


def write_tokens(Y: Tensor, weights: Weights) -> Tensor:
    return Y if weights.E is None else Y @ weights.E.to(Y.dtype)
