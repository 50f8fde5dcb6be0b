"""The layer of machines over spans: each span is read by a machine, with inner spans for symbols.

In the paper's layer a span is a bag of tokens. Here it is read from the left, symbol by symbol, in
the states of a machine, so order matters and there may be any number of symbols; and, as in the
logarithmic layer, spans that wait for one inner span are maps.

Glossary, beyond those of `circuit.py`, `speculate.py` and `reading.py`
    e, m    tokens and spans, of all sequences together, in the order of the text
    opened  (e,)       index of the `(` of the span that ends at each `)`
    V       (W,)       the value that `)` gives in each state, as a token; -1 if it gives none
    c       (e,)       at `)`: the state before the `(` of its span; W where that is not known
    top     (e,)       at `)`: whether the span is worth something, and no span around it is
    P       (B, n)     reduction mask: all spans that are worth something

One iteration, from the depth counts A (Eqs. 2 to 4). Both scans go through all tokens in the order
of the text; a symbol leads from a state to the next one, and `(` forgets the state: the start
follows.
    scan 1   after `)` no state is known. So c is known if `(` begins the first inner span
    scan 2   `)` of a span with c known leads from q to what the symbol V[q] leads to from c; after
             any other `)` no state is known
    u        the state before each token in scan 2; at `)`, the span is worth V[u]
    X        : Eq. 13, with V[u] at the `)` of spans in `top`, and zero elsewhere in them

Why that is exact. A span whose inner spans are all known is read as if each were one symbol, its
value: scan 2 goes through an inner span from its own start, and at its `)` returns to where the
span around it was. With one inner span that waits, it is a map by itself; with two, it waits.

How many iterations. As many as the Horton-Strahler number (`domains/strahler.py`), for the same
reason as in `speculate.py`: at most 1 + log2(innermost spans).

What it costs. Time in proportion to n W: two scans, and a sort of parentheses to match them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.span_machines import SpanMachine
from exactformer.model.circuit import (
    NO_TAP,
    Tap,
    depth_counts,
    gated,
    halted,
    read_tokens,
    write_tokens,
)
from exactformer.model.encode import encode
from exactformer.model.feedforward import MLP, Table
from exactformer.model.reading import WithStates, arriving, try_states
from exactformer.model.speculate import matched


@dataclass(frozen=True)
class SpanMachineWeights(WithStates):
    """The gate of the depth, and a feedforward of tokens and states."""

    G_PE: Tensor
    f: MLP | Table


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    A: Tensor
    position: Tensor  # (e,) of each token in the batch laid out flat
    opened: Tensor
    F: Tensor
    c: Tensor
    u: Tensor
    top: Tensor
    value: Tensor  # (e,) at `)`: the token that the span is worth; -1 for none
    P: Tensor
    X: Tensor


def match_brackets(
    gate: Int[Tensor, " e"], depth: Int[Tensor, " e"], sequence: Int[Tensor, " e"]
) -> Int[Tensor, " e"]:
    """At each `)`, the index of its `(`; elsewhere the index of the token itself. In the order of
    sequence, depth and place, every `(` comes right before its `)`.
    """
    brackets = gate.nonzero().squeeze(-1)
    group = sequence[brackets] * (depth.amax() + 1) + depth[brackets]
    opens, closes = brackets[group.sort(stable=True).indices].view(-1, 2).T
    return torch.arange(len(gate), device=gate.device).index_copy_(0, closes, opens)


def values_at_close(given: Bool[Tensor, "W D"]) -> Int[Tensor, " W"]:
    """The one token that is given in each state; -1 if there is none, or several."""
    return torch.where(given.sum(-1) == 1, given.long().argmax(-1), -1)


def iterate(
    X: Float[Tensor, "B n D"],
    weights: SpanMachineWeights,
    A: Int[Tensor, "B n 2"],
    close: int,
    tap: Tap = NO_TAP,
) -> Step:
    """One iteration of a state that has spans; A are its depth counts."""
    (B, n), D, W = A.shape[:2], X.shape[-1], weights.W
    A = tap("A", A)
    tokens = tap("tokens", read_tokens(X, weights))
    own = A.amax(-1)
    live = (tokens.sum(-1) > 0) & (own > 0) & matched(A).unsqueeze(-1)
    position = live.flatten().nonzero().squeeze(-1)
    H = tap("H", tokens.flatten(0, 1)[position])
    gate = gated(H, weights.G_PE).long()
    opens, closes = gate > 0, gate < 0
    opened = match_brackets(gate, own.flatten()[position], position // n)

    # Every symbol is tried, too, since a value stands for a span that is not there any more.
    tried = try_states(torch.cat([H, torch.eye(D, dtype=H.dtype, device=H.device)]), weights.f, W)
    F = tap("F", tried.F)
    kind, symbols = tried.kind[:-D], tried.kind[-D:]
    V = values_at_close(tried.O[symbols[close]])

    # Maps beside those of tokens: the start follows; none is known; back to the span around, by c.
    start, unknown = F.new_zeros(1, W + 1), F.new_full((1, W + 1), W)
    back = torch.where((V >= 0).unsqueeze(-1), F[symbols[V]], W).T[:-1]  # (W, W), by c and q
    maps = torch.cat([F, start, unknown, torch.nn.functional.pad(back, (0, 1), value=W)])
    after_open, after_close, by_c = len(F), len(F) + 1, len(F) + 2
    nowhere = torch.zeros_like(opens)

    first = torch.where(opens, after_open, torch.where(closes, after_close, kind))
    before = arriving(maps, first, nowhere)
    c = tap("c", torch.where(closes & (opened > 0), before[opened], W))
    outermost = own.flatten()[position] == 1
    returns = closes & (c < W) & ~outermost
    u = tap("u", arriving(maps, torch.where(returns, by_c + c, first), nowhere))

    value = torch.where(closes & (u < W), V[u.clamp(max=W - 1)], -1)
    known = value >= 0
    ends = position.new_zeros(B * n + 1)
    ends.index_add_(0, position[opened[known]], torch.ones_like(position[known]))
    ends.index_add_(0, position[known] + 1, -torch.ones_like(position[known]))
    around = ends.cumsum(0)[:-1]  # finished spans around each position
    P = tap("P", (around > 0).view(B, n))
    top = tap("top", known & (around[position] == 1))
    Y = tap("Y", encode(value[top], D, X.dtype))
    rows = X.flatten(0, 1).masked_fill(P.flatten().unsqueeze(-1), 0)
    rows = rows.index_copy(0, position[top], write_tokens(Y, weights))
    return Step(A, position, opened, F, c, u, top, value, P, tap("X", rows.view_as(X)))


def steps(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    weights: SpanMachineWeights,
    domain: SpanMachine,
    tap: Tap = NO_TAP,
) -> Iterator[Step]:
    """Iterations until every sequence has halted; each leaves fewer spans. A sequence that is left
    with spans of no value stays as it is: no text leads there.
    """
    while True:
        A = depth_counts(read_tokens(X, weights), weights.G_PE)
        if not (matched(A) & ~halted(A)).any():
            return
        step = iterate(X, weights, A, domain.end, tap)
        if not step.P.any():
            return
        yield step
        X = step.X
