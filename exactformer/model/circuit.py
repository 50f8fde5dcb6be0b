"""The transformer of the paper's Section 3: one layer, applied until no parenthesis is left.

Glossary
    D, d_h      size of the vocabulary; width of queries and keys
    n           positions; "..." are any leading axes (seeds, batch), broadcast against the weights'
    X           (..., n, D)  state: a one-hot row for a token, a zero row for an empty position
    S           slots of a routed bag: 1 in the paper, more where the order of operands matters
    G_PE        (..., D)     the diagonal of the paper's gate matrix, in {-1, 0, 1}
    G_R         (..., D)     the gate of the rank, in {-1, 0, 1}; none in the paper
    W_Q, W_K    (..., D, d_h)  routing, in {0, 1}; W_V is the identity
    A           (..., n, 2)  depth counts, forwards and backwards, in integers
    P           (..., n)     reduction mask: the deepest spans
    ids         (..., n)     number of the cluster, from 1; 0 outside the mask
    R           (..., n)     rank: the gated tokens of the cluster up to here; none in the paper
    H           (..., n, S*D)  routed bags, slot by slot
    Z, Y        (..., n, D)  the feedforward's outputs; the same after the threshold

The paper's attention adds operands up, so it cannot tell `5-3` from `3-5`. With a second gate it
can: a count of the same kind as the one that finds the depth, restarted in each cluster, gives a
token its rank, the rank selects a slot, and tokens add up slot by slot.

X, Q, K and H hold small whole numbers only, so float32, bfloat16 and float16 all give them exactly,
and so does any library's matrix product of one-hot rows. Real numbers come up in two places, the
feedforward and dense vectors; both are computed in float64 as `exact.py` says.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.algebra import OPEN
from exactformer.model.exact import RowByRow, product, wants_gradient
from exactformer.model.gated import Gated
from exactformer.model.remembered import remembered


@runtime_checkable
class Feedforward(Protocol):
    """The local map f: a routed bag in, D numbers out; the positive ones are the output."""

    @property
    def slots(self) -> int: ...

    def __call__(self, H: Float[Tensor, "... n SD"]) -> Float[Tensor, "... n D"]: ...

    def to(self, device: torch.device | str) -> "Feedforward": ...


@dataclass(frozen=True)
class Weights(Gated):
    """Everything that is learned or written down. `E`, if any, has the dense vector of each token
    as a row; its rows are orthonormal. `G_R` is there if `f` has more than one slot. `G_L` and
    `directions` are for plain notation (`levels.py`), `G_A` and `side` for Polish (`polish.py`).
    """

    G_PE: Tensor
    W_Q: Tensor
    W_K: Tensor
    f: Feedforward
    E: Tensor | None = None
    G_R: Tensor | None = None
    G_L: Tensor | None = None
    directions: Tensor | None = None
    G_A: Tensor | None = None
    side: Tensor | None = None

    def __post_init__(self) -> None:
        if (self.G_R is None) != (self.f.slots == 1):
            slots = "1 slot" if self.f.slots == 1 else f"{self.f.slots} slots"
            gate = "no rank gate" if self.G_R is None else "a rank gate"
            raise ValueError(f"a feedforward of {slots} does not go with {gate}")
        if (self.G_L is None) != (self.directions is None):
            raise ValueError("expected a gate of levels with directions, or neither")
        if (self.G_A is None) != (self.side is None):
            raise ValueError("expected a gate of arities with a side, or neither")

    def to_dense(self, Y: Float[Tensor, "... n D"]) -> Float[Tensor, "... n D"]:
        """One-hot rows times E, in float64."""
        if self.E is None:
            return Y
        if wants_gradient(self._dense_vectors):  # which no copy of E would be given
            return RowByRow(self._dense)(Y)
        return self._to_dense(Y)

    def to_one_hot(self, X: Float[Tensor, "... n D"]) -> Float[Tensor, "... n D"]:
        """One-hot rows of dense ones: 1 where a row times E^T, in float64, exceeds one half."""
        return X if self.E is None else self._to_one_hot(X)

    @remembered
    def _to_dense(self) -> RowByRow:
        return RowByRow(self._dense)

    @remembered
    def _to_one_hot(self) -> RowByRow:
        return RowByRow(lambda X: (product(X, self._dense_vectors.mT) > 0.5).float())

    @remembered
    def kinds(self) -> dict[torch.dtype, Any]:
        """The cache of `kinds.py` for these weights, by data type."""
        return {}

    def _dense(self, Y: Tensor) -> Tensor:
        return product(Y, self._dense_vectors).float()

    @property
    def _dense_vectors(self) -> Tensor:
        assert self.E is not None
        return self.E


@dataclass(frozen=True)
class Tap:
    """Is passed each intermediate by its name; the iteration goes on with what `see` returns.

    pattern   whether to compute the attention pattern too, which takes n times n numbers.
    """

    see: Callable[[str, Tensor], Tensor]
    pattern: bool = False

    def __call__(self, name: str, value: Tensor) -> Tensor:
        return self.see(name, value)


NO_TAP = Tap(lambda name, value: value)


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    A: Tensor
    P: Tensor
    ids: Tensor
    R: Tensor | None
    H: Tensor
    Z: Tensor
    Y: Tensor
    X: Tensor


def gated(X: Float[Tensor, "... n D"], G: Float[Tensor, "... D"]) -> Int[Tensor, "... n"]:
    """The number that each position adds to a count."""
    return (X @ G.to(X.dtype).unsqueeze(-1)).squeeze(-1).to(torch.int8)


def depth_counts(
    X: Float[Tensor, "... n D"], G_PE: Float[Tensor, "... D"]
) -> Int[Tensor, "... n 2"]:
    gate = gated(X, G_PE)  # Eq. 2
    A_1 = gate.cumsum(-1, dtype=torch.int64)  # Eq. 3
    A_2 = A_1 - gate - A_1[..., -1:]  # Eq. 3: minus the sum from here to the end
    return torch.stack((A_1, A_2), dim=-1)  # Eq. 4


def reduction_mask(
    A: Int[Tensor, "... n 2"], inside: Bool[Tensor, "... n"]
) -> Bool[Tensor, "... n"]:
    """The mask of the positions of largest depth; `inside` excludes padding and sequences that have
    halted.
    """
    deepest = torch.maximum(A[..., 0], A[..., 1]).masked_fill(~inside, torch.iinfo(A.dtype).min)
    return (deepest == deepest.amax(-1, keepdim=True)) & inside  # Eq. 5


def clusters(P: Bool[Tensor, "... n"]) -> Int[Tensor, "... n"]:
    before = torch.nn.functional.pad(P, (1, 0))[..., :-1]
    starts = P & ~before  # Eq. 6: where the difference is positive
    return P * starts.cumsum(-1)  # Eq. 7; Eqs. 8 and 9 name the sets that these numbers define


def ranks(
    X: Float[Tensor, "... n D"], ids: Int[Tensor, "... n"], G_R: Float[Tensor, "... D"]
) -> Int[Tensor, "... n"]:
    """Rank of each position in its cluster: the count of Eq. 3 by the rank gate, restarted in each
    cluster.
    """
    gate = gated(X, G_R)
    count = gate.cumsum(-1, dtype=torch.int64)
    starts = ids > torch.nn.functional.pad(ids, (1, 0))[..., :-1]
    places = torch.arange(ids.shape[-1], device=ids.device)
    start = (starts * places).cummax(-1).values
    return count - (count - gate).gather(-1, start.expand_as(count))


def typed_attention(
    X: Float[Tensor, "... n D"],
    ids: Int[Tensor, "... n"],
    W_Q: Float[Tensor, "... D h"],
    W_K: Float[Tensor, "... D h"],
    R: Int[Tensor, "... n"] | None = None,
    S: int = 1,
) -> Float[Tensor, "... n SD"]:
    """Linear attention within each cluster, for all clusters at once, in O(n).

    Positions of one cluster add into one row of a table of sums, so neither an n-by-n matrix nor a
    loop over clusters is needed; the loop is over the d_h <= 1 + number of operators dimensions.
    With ranks, a cluster has a row for each of its S slots. The token of rank r goes to the r-th;
    what comes before the first joins it there, and what comes after the last, the last.
    """
    n, D = X.shape[-2:]
    n_clusters = ids.amax(-1).flatten()
    first = n_clusters.cumsum(0) - n_clusters  # so that no two sequences share a row of sums
    # Zero vectors neither send nor receive anything, and later spans consist mostly of them.
    where = ((ids > 0) & (X @ X.new_ones(D) > 0)).flatten().nonzero().squeeze(-1)
    cluster = ids.flatten()[where] - 1 + first[where // n]
    into = cluster
    if R is not None:
        into = cluster * S + (R.flatten()[where] - 1).clamp(0, S - 1)
    V = X.reshape(-1, D)[where]
    Q, K = (
        (V @ W if W.dim() == 2 else (X @ W).reshape(-1, W.shape[-1])[where]).to(X.dtype)
        for W in (W_Q.to(X.dtype), W_K.to(X.dtype))  # Eqs. 10 and 11
    )
    routed = V.new_zeros(len(V), S * D)
    for q, k in zip(Q.split(1, dim=-1), K.split(1, dim=-1), strict=True):
        sums = V.new_zeros(int(n_clusters.sum()) * S, D).index_add_(0, into, k * V)
        routed = torch.addcmul(routed, q, sums.view(-1, S * D)[cluster])  # Eq. 12, as Q (K^T X)
    return X.new_zeros(ids.numel(), S * D).index_copy_(0, where, routed).view(*ids.shape, S * D)


def attention_pattern(
    X: Float[Tensor, "... n D"],
    ids: Int[Tensor, "... n"],
    W_Q: Float[Tensor, "... D h"],
    W_K: Float[Tensor, "... D h"],
) -> Float[Tensor, "... n n"]:
    """Q K^T within each cluster, zero elsewhere: how much each position receives of each other."""
    Q, K = (X @ W.to(X.dtype) for W in (W_Q, W_K))  # Eqs. 10 and 11
    together = (ids.unsqueeze(-1) == ids.unsqueeze(-2)) & (ids > 0).unsqueeze(-1)
    return Q @ K.mT * together


def attend_by_pattern(
    pattern: Float[Tensor, "... n n"],
    X: Float[Tensor, "... n D"],
    R: Int[Tensor, "... n"] | None = None,
    S: int = 1,
) -> Float[Tensor, "... n SD"]:
    """Routed bags as (Q K^T) X, equal to `typed_attention`, for a pattern that may be changed."""
    slot = torch.zeros_like(X[..., 0]) if R is None else (R - 1).clamp(0, S - 1)
    return torch.cat([pattern @ (X * (slot == s).unsqueeze(-1)) for s in range(S)], -1)  # Eq. 12


def evaluate_clusters(
    tokens: Float[Tensor, "... n D"],
    ids: Int[Tensor, "... n"],
    weights: Weights,
    tap: Tap = NO_TAP,
) -> tuple[Int[Tensor, "... n"] | None, Float[Tensor, "... n SD"], Float[Tensor, "... n D"]]:
    """R, H and Z of each position: its rank, the bag that it receives, and the feedforward's
    outputs. The proof covers this function, for whichever spans the clusters are.
    """
    W_Q, W_K, S = weights.W_Q, weights.W_K, weights.f.slots
    R = None if weights.G_R is None else tap("R", ranks(tokens, ids, weights.G_R))
    if tap.pattern:
        pattern = tap("pattern", attention_pattern(tokens, ids, W_Q, W_K))
        H = attend_by_pattern(pattern, tokens, R, S)
    else:
        H = typed_attention(tokens, ids, W_Q, W_K, R, S)
    H = tap("H", H)
    return R, H, tap("Z", weights.f(H))


def gated_residual(
    X: Float[Tensor, "... n D"], P: Bool[Tensor, "... n"], Y: Float[Tensor, "... n D"]
) -> Float[Tensor, "... n D"]:
    return torch.where(P.unsqueeze(-1), Y, X)  # Eq. 13


def halted(A: Int[Tensor, "... n 2"]) -> Bool[Tensor, "..."]:
    """Whether no parenthesis is left, so that every count is zero."""
    return ~A.flatten(-2).any(-1)


def iterate(
    X: Float[Tensor, "... n D"],
    weights: Weights,
    inside: Bool[Tensor, "... n"],
    A: Int[Tensor, "... n 2"] | None = None,
    tap: Tap = NO_TAP,
) -> Step:
    """One iteration; A are the depth counts of X, if they are known."""
    tokens = tap("tokens", read_tokens(X, weights))
    A = tap("A", depth_counts(tokens, weights.G_PE) if A is None else A)
    P = tap("P", reduction_mask(A, inside))
    ids = tap("ids", clusters(P))
    R, H, Z = evaluate_clusters(tokens, ids, weights, tap)
    Y = tap("Y", (Z > 0).to(X.dtype))
    X = tap("X", gated_residual(X, P, write_tokens(Y, weights)))
    return Step(A, P, ids, R, H, Z, Y, X)


def run(
    X: Float[Tensor, "... n D"], weights: Weights, inside: Bool[Tensor, "... n"]
) -> tuple[Float[Tensor, "... n D"], Int[Tensor, "..."]]:
    """Iterate until every sequence has halted. Returns the last state and each one's iterations."""
    return finish(X, steps(X, weights, inside))


@runtime_checkable
class Reduced(Protocol):
    """An iteration of any of the layers: its mask, and the state after it."""

    @property
    def P(self) -> Tensor: ...

    @property
    def X(self) -> Tensor: ...


def finish(
    X: Float[Tensor, "... n D"],
    steps: Iterable[Reduced],
    observe: Callable[[], None] = lambda: None,
) -> tuple[Float[Tensor, "... n D"], Int[Tensor, "..."]]:
    """The state after the iterations `steps` of any layer from X, and the number of iterations in
    which each sequence took part. `observe` is called after each iteration.
    """
    iterations = torch.zeros(X.shape[:-2], dtype=torch.int64, device=X.device)
    for step in steps:
        X, iterations = step.X, iterations + step.P.any(-1)
        observe()
    return X, iterations


def steps(
    X: Float[Tensor, "... n D"],
    weights: Weights,
    inside: Bool[Tensor, "... n"],
    tap: Tap = NO_TAP,
) -> Iterator[Step]:
    """Yield the iterations of `run` one by one.

    An expression has at most as many levels as `(`: weights that go on longer than that are wrong
    and would never stop, so their sequences are left as they are.
    """
    limit = (read_tokens(X, weights)[..., OPEN] > 0).sum(-1)
    iteration = 0
    while True:
        A = depth_counts(read_tokens(X, weights), weights.G_PE)
        running = ~halted(A) & (iteration < limit)
        if not running.any():
            return
        step = iterate(X, weights, inside & running.unsqueeze(-1), A, tap)
        yield step
        X, iteration = step.X, iteration + 1


def read_tokens(X: Tensor, weights: Gated) -> Tensor:
    """One-hot rows of a state, which may consist of dense vectors."""
    return weights.to_one_hot(X).to(X.dtype)


def write_tokens(Y: Tensor, weights: Gated) -> Tensor:
    return weights.to_dense(Y).to(Y.dtype)
