"""The layer of rearrangements: one iteration, in which each token is written where counts say.

Glossary, beyond that of `circuit.py`
    G_K     (D,)       the gate of the key: positive on tokens that are brought to a row
    G_C     (D,)       what is counted besides: the class of a token in the order sorted, its step
                       up or down in the order stack; there is none in other orders
    K, C    (B, n)     both gates at each position; K is 1 or 0
    A       (B, n)     the count that the order goes by
    key     (c, B, n)  rows that each token is brought to, from 0 on, once for each of c copies; -1
                       where it is brought to none
    H, Y    (B, n, D)  the bag of each row: the sum of its tokens; the token written there
    P       (B, n)     reduction mask: all positions of the text

The iteration
    A, key = what `ORDERS` says of K and C, by running sums and minima (Eq. 3)
    H      = for each key, the sum of the tokens that have it: Eqs. 10 to 12 with keys for clusters
    Y      = what the feedforward gives for H, above the threshold
    X      : Eq. 13, row k at the k-th position

The orders
    same, reversed   A = tokens brought up to here, or from here on;     key = A - 1
    twice            A = tokens brought up to here;   key = A - 1, and A - 1 + (all of them)
    halves           A = tokens brought up to here;   key = A - 1 modulo half of them
    alternate        A = that count modulo 2, the state of a parity machine; key by class A
    sorted           A = C; key by class A
    stack            A = height of the stack: the running sum of C, less its running minimum where
                     that is below zero. What is not below the least height that follows stays:
                     key = tokens from here on that stay, less 1
By class: the tokens of lower classes, and those of its own class up to here, less 1. That is a
stable counting sort.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.rearrangements import Rearrangement
from exactformer.model.circuit import (
    NO_TAP,
    Tap,
    gated,
    gated_residual,
    read_tokens,
    write_tokens,
)
from exactformer.model.feedforward import MLP, Table
from exactformer.model.gated import Gated
from exactformer.model.reading import distinct


@dataclass(frozen=True)
class RearrangeWeights(Gated):
    """The gate of the key, that of what is counted besides, if the order needs it, and a
    feedforward.
    """

    G_K: Tensor
    f: MLP | Table
    G_C: Tensor | None = None


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    P: Tensor
    A: Tensor
    key: Tensor
    H: Tensor
    Y: Tensor
    X: Tensor


Numbers = Int[Tensor, "B n"]


@dataclass(frozen=True)
class Order:
    """How the count is made of K and C, and the keys of the count and K."""

    count: Callable[[Numbers, Numbers], Numbers]
    keys: Callable[[Numbers, Numbers], Int[Tensor, "c B n"]]


def up_to_here(K: Numbers) -> Numbers:
    return K.cumsum(-1)


def from_here_on(K: Numbers) -> Numbers:
    return K.flip(-1).cumsum(-1).flip(-1)


def height(C: Numbers) -> Numbers:
    """The height of a stack from which nothing is taken where it is empty."""
    total = C.cumsum(-1)
    return total - total.cummin(-1).values.clamp(max=0)


def by_class(A: Numbers, K: Numbers) -> Numbers:
    key, lower = torch.zeros_like(A), torch.zeros_like(A[..., :1])
    for number in A[K > 0].unique().tolist():
        gate = K * A.eq(number)
        rank = up_to_here(gate)
        key += gate * (lower + rank - 1)
        lower = lower + rank[..., -1:]
    return key


def on_the_stack(A: Numbers, K: Numbers) -> Numbers:
    least = A.flip(-1).cummin(-1).values.flip(-1)
    stays = K * A.le(least)
    return torch.where(stays > 0, from_here_on(stays) - 1, -1)


def halves(A: Numbers, K: Numbers) -> Numbers:
    half = K.sum(-1, keepdim=True) // 2
    return (A - 1).remainder(half.clamp(min=1))


ORDERS: dict[str, Order] = {
    "same": Order(lambda K, C: up_to_here(K), lambda A, K: (A - 1)[None]),
    "reversed": Order(lambda K, C: from_here_on(K), lambda A, K: (A - 1)[None]),
    "twice": Order(
        lambda K, C: up_to_here(K),
        lambda A, K: torch.stack([A - 1, A - 1 + K.sum(-1, keepdim=True)]),
    ),
    "alternate": Order(lambda K, C: up_to_here(K).remainder(2), lambda A, K: by_class(A, K)[None]),
    "sorted": Order(lambda K, C: C, lambda A, K: by_class(A, K)[None]),
    "stack": Order(lambda K, C: height(C), lambda A, K: on_the_stack(A, K)[None]),
    "halves": Order(lambda K, C: up_to_here(K), lambda A, K: halves(A, K)[None]),
}


def bags(tokens: Float[Tensor, "B n D"], key: Int[Tensor, "c B n"]) -> Float[Tensor, "B n D"]:
    """The sum of the tokens of each key (Eq. 12). Keys beyond the last position have no row."""
    B, n, D = tokens.shape
    H = tokens.new_zeros(B * n, D)
    for copy in key:
        sequence, place = ((copy >= 0) & (copy < n)).nonzero(as_tuple=True)
        H.index_add_(0, sequence * n + copy[sequence, place], tokens[sequence, place])
    return H.view(B, n, D)


def iterate(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    weights: RearrangeWeights,
    order: Order,
    tap: Tap = NO_TAP,
) -> Step:
    """The one iteration."""
    tokens = tap("tokens", read_tokens(X, weights))
    P = tap("P", inside)
    K = (gated(tokens, weights.G_K) > 0).long()
    C = K
    if weights.G_C is not None:
        C = torch.where(tokens.sum(-1) > 0, weights.G_C[tokens.argmax(-1)], 0)
    A = tap("A", order.count(K, C))
    key = tap("key", order.keys(A, K).masked_fill(K == 0, -1))
    H = tap("H", bags(tokens, key))
    rows, kind = distinct(H[P])
    Y = H.new_zeros(H.shape)
    Y[P] = (weights.f(rows) > 0).to(H.dtype)[kind]
    Y = tap("Y", Y)
    X = tap("X", gated_residual(X, P, write_tokens(Y, weights)))
    return Step(P, A, key, H, Y, X)


def steps(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    weights: RearrangeWeights,
    domain: Rearrangement,
    tap: Tap = NO_TAP,
) -> Iterator[Step]:
    """The one iteration of texts that are rearranged."""
    yield iterate(X, inside, weights, ORDERS[domain.order], tap)
