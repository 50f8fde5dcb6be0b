"""The logarithmic layer: uses the same weights, with iterations bounded by the logarithm of the
length.

The paper's layer evaluates the deepest spans; all others wait. Here a span that waits for one inner
span is not idle: it is a map, from the value that will come to the value that it will then have.
The layer finds the map by trying every value, with the paper's own ranks, attention and
feedforward, for all such spans at once. Maps compose, so one scan evaluates a whole chain of spans
from its innermost one outwards, however deep it is.

Glossary, beyond that of `circuit.py`
    B, V        sequences; values of the algebra. A value is a number from 0 here, and V stands for
                one that is not known yet
    own, around (B, n)    depth of the span that a token is in; at `(`, also of the span around that
    e, m        entries and spans, of all sequences together
    entry       a token, in its own span; or an inner span, as a *hole* in the span around it
    position    (e,)      of an entry in the batch laid out flat; a hole is where its `(` is
    hole        (e,)      whether the entry is one
    ids         (e,)      number of the entry's span, from 1, in the order of the text
    holes       (m,)      how many holes each span has
    F           (m, V+1)  what each span is worth, by the value in its hole
    u           (m,)      what it is worth
    top         (m,)      whether it is the outermost one of its chain
    P           (B, n)    reduction mask: all spans that are worth something

One iteration, from the paper's depth counts A (Eqs. 2 to 4)
    own    = max(A_1, A_2),  around = min(A_1, A_2)
    ids    : entries sorted by sequence, depth (own; of holes, around) and position; each `(` starts
             a span. That is Eqs. 6 and 7 at every depth, where the paper has the largest alone
    F_j(v) = what Eqs. 10 to 12 and the feedforward make of span j with v in its hole
             without a hole it is the same for every v, V included;
             with one hole, F_j(V) = V;  with more, F_j = V everywhere: the span waits
    u_j    = F_j(u_{j+1})                       a scan from the right
    top_j  = u_j < V, unless j is the hole of span j-1 and u_{j-1} < V
    X      : Eqs. 10 to 13 on the spans in `top` with u_{j+1} in their holes; zero inside of these

Why the hole of span j holds u_{j+1}. In the order of the text, a span's only inner span comes right
after it. And a span without a hole, such as the last one of a chain, of an operand or of a
sequence, does not look at what comes after it: its F is constant. So the scan needs no marks
between chains, nor between sequences.

Why that is exact. Every row that is tried is a row of the certificate: `verify/` has checked each
operator with each choice of operands, in each order if order matters, with the same tokens, ranks
and slots; and zero vectors add nothing. So F_j is right in all V cases. What is written is an
iteration of the paper's layer on some spans, which the proof is about as it is. Between iterations
the state is the paper's, of one-hot rows and zeros. Weights without a proof may leave anything of a
span, so whoever calls this refuses them. `proof/LogarithmicChecked.v` has the theorem.

How many iterations. One finishes the spans that are chains, of Horton-Strahler number 1
(`domains/strahler.py`). They become values, of number 0, and by that the number of every other span
falls by 1: the largest one among its operands does, and as many operands have it as before. So an
expression takes as many iterations as its number is, at most 1 + log2(its values).

The paper's layer is the special case in which `top` has the spans of the largest depth: they have
no holes, so there is nothing to try and nothing to compose.

What it costs. An iteration takes time in proportion to n V: the counts, a sort by depth, each value
in each kind of span (`alike.py`), and the scan of `scan.py`. (Torch sorts many whole numbers digit
by digit, so in linear time.) It is a linear-time scan, not a circuit of constant depth.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from exactformer.domains.algebra import FIRST_VALUE, OPEN
from exactformer.model.alike import first_alike
from exactformer.model.circuit import (
    NO_TAP,
    Tap,
    Weights,
    depth_counts,
    evaluate_clusters,
    halted,
    read_tokens,
    write_tokens,
)
from exactformer.model.encode import encode
from exactformer.model.scan import scan_from_right

ENTRIES_AT_ONCE = 1 << 20  # entries of all trials that run together


class Entries(NamedTuple):
    """The entries of all spans, span by span; spans by depth, then in the order of the text."""

    position: Int[Tensor, " e"]
    hole: Bool[Tensor, " e"]
    ids: Int[Tensor, " e"]
    tokens: Float[Tensor, "e D"]  # a hole has its `(` until a value is put there

    def of(self, chosen: Bool[Tensor, " m"]) -> "Entries":
        """The entries of the chosen spans only."""
        which = chosen[self.ids - 1].nonzero().squeeze(-1)
        return Entries(*(part[which] for part in self))


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    A: Tensor
    entries: Entries
    holes: Tensor
    F: Tensor
    u: Tensor
    top: Tensor
    P: Tensor
    X: Tensor


def matched(A: Int[Tensor, "B n 2"]) -> Bool[Tensor, " B"]:
    """Whether the parentheses of each sequence match, as in every state that an expression leads
    to.
    """
    return (A[..., 0] >= 0).all(-1) & (A[:, -1, 0] == 0)


def enter(tokens: Float[Tensor, "B n D"], A: Int[Tensor, "B n 2"]) -> Entries:
    """The entries of all spans; sequences whose parentheses do not match have none."""
    n, D = tokens.shape[-2:]
    A_1, A_2 = A.flatten(0, 1).unbind(-1)
    own, around = torch.maximum(A_1, A_2), torch.minimum(A_1, A_2)
    live = (tokens @ tokens.new_ones(D) > 0) & matched(A).unsqueeze(-1)
    live = live.flatten() & (own > 0)
    opens = live & (tokens[..., OPEN] > 0).flatten()
    position = torch.repeat_interleave(live.long() + (opens & (around > 0)))
    hole = position == pad(position, (1, 0), value=-1)[:-1]  # an inner `(` comes twice
    depth = torch.where(hole, around[position], own[position])
    group = position // n * (own.amax() + 1) + depth
    order = group.int().sort(stable=True).indices  # within a group, by position
    position, hole = position[order], hole[order]
    starts = opens[position] & ~hole
    in_text = opens.cumsum(0)[position[starts]]
    return Entries(position, hole, in_text[starts.cumsum(0) - 1], tokens.flatten(0, 1)[position])


def count_holes(entries: Entries) -> Int[Tensor, " m"]:
    return torch.bincount(entries.ids[entries.hole] - 1, minlength=int(entries.ids.amax()))


def try_values(
    entries: Entries, values: Int[Tensor, "h m"], weights: Weights, tap: Tap = NO_TAP
) -> Float[Tensor, "h e D"]:
    """Z of each entry in h trials: in trial i, the hole of span j holds the value values[i, j]."""
    if not len(entries.ids):
        return entries.tokens.expand(len(values), -1, -1)
    put = encode(
        FIRST_VALUE + values[:, entries.ids - 1], entries.tokens.shape[-1], entries.tokens.dtype
    )
    tokens = torch.where(entries.hole.unsqueeze(-1), put, entries.tokens)
    clusters = (entries.ids != pad(entries.ids, (1, 0))[:-1]).cumsum(0)
    return evaluate_clusters(tokens, clusters.expand(len(values), -1), weights, tap)[-1]


def span_values(
    Z: Float[Tensor, "h e D"], ids: Int[Tensor, " e"], m: int, V: int
) -> Int[Tensor, "m h"]:
    """The value that each span becomes in each trial; V if its outputs are not a single value."""
    trial, entry, token = (Z > 0).nonzero(as_tuple=True)
    place = (ids[entry] - 1) * len(Z) + trial
    outputs = torch.bincount(place, minlength=m * len(Z))
    values = torch.full_like(outputs, V).index_copy_(0, place, token - FIRST_VALUE)
    known = (outputs == 1) & (values >= 0) & (values < V)
    return torch.where(known, values, V).view(m, len(Z))


def speculate(
    entries: Entries, holes: Int[Tensor, " m"], weights: Weights, V: int
) -> Int[Tensor, "m W"]:
    """F: tries every value in the hole of every span that has one; equal spans are computed
    once.
    """
    m, D = len(holes), entries.tokens.shape[-1]
    symbols = torch.where(entries.hole, D, entries.tokens.argmax(-1))
    first = first_alike(symbols, entries.ids)
    is_first = first == torch.arange(1, m + 1, device=first.device)
    constants, maps = (entries.of(is_first & (holes == count)) for count in (0, 1))
    Z = try_values(constants, holes.new_zeros(1, m), weights)
    F = span_values(Z, constants.ids, m, V).repeat(1, V + 1)
    every = torch.arange(V, device=F.device)
    for values in every.split(max(1, ENTRIES_AT_ONCE // max(m, len(maps.ids)))):
        Z = try_values(maps, values.unsqueeze(-1).expand(-1, m), weights)
        found = span_values(Z, maps.ids, m, V)
        F[:, values] = F[:, values].minimum(found)  # V is the largest, and stands in all but one
    return F[first - 1]


def outermost(u: Int[Tensor, " m"], holes: Int[Tensor, " m"], V: int) -> Bool[Tensor, " m"]:
    """Whether each span has a value and is not the hole of a span that has one."""
    around = pad((holes == 1) & (u < V), (1, 0))[:-1]  # whether span j-1 has one hole and a value
    return (u < V) & ~around


def reduce(
    X: Float[Tensor, "B n D"],
    finished: Int[Tensor, " f"],
    entries: Entries,
    inner: Int[Tensor, " m"],
    weights: Weights,
    tap: Tap = NO_TAP,
) -> Float[Tensor, "B n D"]:
    """Write the new state: the paper's Eqs. 10 to 13 on the spans of `entries`, with the value
    `inner` in the hole of each, and zeros in all other finished positions.
    """
    Z = try_values(entries, inner.unsqueeze(0), weights, tap)[0]
    Y = tap("Y", (Z > 0).to(X.dtype))
    rows = X.flatten(0, 1).index_fill(0, finished, 0)
    return rows.index_copy_(0, entries.position, write_tokens(Y, weights)).view_as(X)


def iterate(
    X: Float[Tensor, "B n D"],
    weights: Weights,
    V: int,
    A: Int[Tensor, "B n 2"],
    tap: Tap = NO_TAP,
) -> Step:
    """One iteration of a state that has spans; A are its depth counts."""
    A = tap("A", A)
    entries = enter(read_tokens(X, weights), A)
    holes = count_holes(entries)
    F = tap("F", speculate(entries, holes, weights, V))
    u = tap("u", scan_from_right(F, V))
    top = tap("top", outermost(u, holes, V))
    finished = entries.position[(u < V)[entries.ids - 1]]
    P = torch.zeros_like(A[..., 0], dtype=torch.bool)
    P.view(-1)[finished] = True
    P = tap("P", P)
    inner = pad(u, (0, 1), value=V)[1:]
    X = tap("X", reduce(X, finished, entries.of(top), inner, weights, tap))
    return Step(A, entries, holes, F, u, top, P, X)


def steps(X: Float[Tensor, "B n D"], weights: Weights, V: int, tap: Tap = NO_TAP) -> Iterator[Step]:
    """Iterations until every sequence has halted; each leaves fewer spans.

    A sequence whose parentheses do not match, or that is left with spans of no value, stays as it
    is: no expression leads there.
    """
    while True:
        A = depth_counts(read_tokens(X, weights), weights.G_PE)
        if not (matched(A) & ~halted(A)).any():
            return
        step = iterate(X, weights, V, A, tap)
        if not step.P.any():
            return
        yield step
        X = step.X
