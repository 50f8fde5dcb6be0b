"""The layer of square roots: an iteration finds one bit of the root, as one does on paper.

Glossary, beyond those of `circuit.py` and `reading.py`
    place       of a position: how many positions are between it and the `$`, which has place 0
    r           positions of sequences that still run, each a row of both readings
    G_T         (D,)    the gate of the bits that are still to be taken
    G_A, G_B    (D,)    the gates of the bits of the remainder, and of the root so far, which a
                        position may hold beside another token
    G_M         (D,)    the gate of the marks `^` and `$`; a sequence runs as long as it has any
    rank        (r,)    bits to be taken up to here
    taken       (r,)    whether a bit is taken now: the first two, or one where they are odd
    H, Y        (r, D)  bags of the first reading, and what it writes
    H_2, Y_2    (r, D)  the same of the second reading

First reading: the remainder less 4 * root + 1, from the lowest place up, from state 0 at the `$`
    key   the bits taken go to places 1 and 0, or one to place 0; those of the remainder and of the
          root go two places up; marks stay where they are
    Y     the difference, and at the `^` whether it is below zero
The remainder was multiplied by 4, and two bits were added. State 0 is a borrow: it is the 1 in what
is taken away.

Second reading: what is left, from the top, from state 0 at the `^`
    key   as before, but the root goes one place up; and all of Y stays where it is
    Y_2   the difference if it is not below zero, otherwise the remainder as it was, both without
          zeros in front; the root, with its new bit at the `$`; and the marks

Bits that wait stay where they are, Y_2 is added to them, and all else is cleared (Eq. 13). Where no
bit waits, the root alone is left. So before each iteration the root is that of the bits taken so
far, and remainder = those bits - root * root.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.square_roots import SquareRoot
from exactformer.model.circuit import NO_TAP, Tap, gated, read_tokens, write_tokens
from exactformer.model.feedforward import MLP, Table
from exactformer.model.integers import Spans
from exactformer.model.reading import WithStates, arriving, outputs, try_states


@dataclass(frozen=True)
class SquareRootWeights(WithStates):
    """Four gates, and a feedforward of tokens and states."""

    G_T: Tensor
    G_A: Tensor
    G_B: Tensor
    G_M: Tensor
    f: MLP | Table


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    P: Tensor
    rank: Tensor
    H: Tensor
    F: Tensor
    u: Tensor
    Y: Tensor
    H_2: Tensor
    u_2: Tensor
    Y_2: Tensor
    X: Tensor


def up(part: Float[Tensor, "r D"], places: int, spans: Spans) -> Float[Tensor, "r D"]:
    """Tokens moved this many places up; those beyond the top have no row."""
    row = torch.arange(len(part), device=part.device)
    moved = torch.zeros_like(part)
    from_ = (row - places >= spans.first[spans.span]).nonzero().squeeze(-1)
    return moved.index_copy_(0, from_ - places, part[from_])


class Taken(NamedTuple):
    """The bits to be taken up to each row, whether one is taken or waits there, and the row that it
    is taken to.
    """

    rank: Int[Tensor, " r"]
    taken: Bool[Tensor, " r"]
    waits: Bool[Tensor, " r"]
    key: Int[Tensor, " r"]


def take(tokens: Float[Tensor, "r D"], spans: Spans, G_T: Float[Tensor, " D"]) -> Taken:
    digit = (gated(tokens, G_T) > 0).long()
    count = digit.cumsum(0)
    rank = count - (count - digit)[spans.first][spans.span]
    now = (2 - spans.sums(digit) % 2)[spans.span]
    taken = (digit > 0) & (rank <= now)
    return Taken(rank, taken, (digit > 0) & ~taken, spans.end[spans.span] - (now - rank))


def iterate(
    X: Float[Tensor, "B n D"],
    P: Bool[Tensor, "B n"],
    weights: SquareRootWeights,
    tap: Tap = NO_TAP,
) -> Step:
    """One iteration of the sequences that still run, whose positions are P."""
    P = tap("P", P)
    spans = Spans.of(P.long())
    tokens = read_tokens(X, weights).flatten(0, 1)[spans.at]
    remainder, root, marks = (tokens * (G > 0) for G in (weights.G_A, weights.G_B, weights.G_M))
    bits = take(tokens, spans, weights.G_T)
    rank = tap("rank", bits.rank)
    radicand = tokens * (weights.G_T > 0)
    where = (bits.taken & (bits.key >= spans.first[spans.span])).nonzero().squeeze(-1)
    H = marks + up(remainder, 2, spans)
    H = H.index_add(0, bits.key[where], radicand[where])
    H_2 = H + up(root, 1, spans)
    H = tap("H", H + up(root, 2, spans))
    starts = torch.zeros_like(bits.taken)
    starts[spans.end] = True
    tried = try_states(H, weights.f, weights.W)
    tried = tried._replace(F=tap("F", tried.F))
    u = tap("u", arriving(tried.F, tried.kind.flip(0), starts.flip(0)).flip(0))
    Y = tap("Y", outputs(tried, u).to(X.dtype))
    H_2 = tap("H_2", H_2 + Y)
    starts = torch.zeros_like(bits.taken)
    starts[spans.first] = True
    tried_2 = try_states(H_2, weights.f, weights.W)
    u_2 = tap("u_2", arriving(tried_2.F, tried_2.kind, starts))
    Y_2 = tap("Y_2", outputs(tried_2, u_2).to(X.dtype))
    goes_on = (spans.sums(bits.waits.long()) > 0)[spans.span].unsqueeze(-1)
    after = torch.where(goes_on, Y_2, Y_2 * (weights.G_B > 0))
    after = (after + radicand * bits.waits.unsqueeze(-1)).clamp(max=1)
    X = X.flatten(0, 1).index_copy(0, spans.at, write_tokens(after, weights)).view_as(X)
    return Step(P, rank, H, tried.F, u, Y, H_2, u_2, Y_2, tap("X", X))  # Eq. 13


def steps(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    weights: SquareRootWeights,
    domain: SquareRoot,
    tap: Tap = NO_TAP,
) -> Iterator[Step]:
    """The iterations until no mark is left.

    Each takes a bit or more: weights that go on longer than there are bits are wrong, so their
    sequences are left as they are.
    """
    limit = (read_tokens(X, weights).sum(-1) > 0).sum(-1)
    iteration = 0
    while True:
        marks = gated(read_tokens(X, weights), weights.G_M) > 0
        running = (marks & inside).any(-1) & (iteration < limit)
        if not running.any():
            return
        step = iterate(X, inside & running.unsqueeze(-1), weights, tap)
        yield step
        X, iteration = step.X, iteration + 1
