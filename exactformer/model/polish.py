"""The layer for Polish and reverse Polish notation: `+ 1 * 2 3`, with no brackets at all.

It is the logarithmic layer (`speculate.py`) on the expression with the parentheses that the arities
of operators imply. One more gate finds these: a number for each token, how many operands it takes,
less one. So a value counts -1, and an operator 0, 1, 2, ...; a running sum of these says how many
operands are still missing, less one.

Glossary, beyond those of `circuit.py` and `speculate.py`
    G_A         (D,)      the arity gate; a token opens a span iff its number is 0 or more
    side        (1,)      > 0: read from the left, operators first; else from the right
    t           tokens that are left, of all sequences together, each sequence from its side on
    at          (t,)      position of a token in the batch laid out flat
    g           (t,)      its number by the gate
    h           (t,)      height: the sum of g over all tokens of the sequence read before it
    opened      (t,)      number of parentheses opened before a token: 1 if g >= 0, else 0
    closed      (t,)      number of parentheses closed after it
    N           tokens of the longest sequence with the parentheses that are counted

Which sequences are expressions. Those in which g adds up to -1 over the whole sequence and to 0 or
more over each shorter beginning. The others stay as they are, and are left out before anything is
sorted, so that no sequence depends on its neighbours.

Where spans end. If an operator of a operands has the height h, its k-th operand has the height
h + a - k, and all else inside of that one a larger height. So the last operand has the operator's
own height: in the order of heights, and of places among equal ones, a sequence reads

    operators, value, operators, value, ...

where each operator has the next one, or the value, for its last operand. So the value ends as many
spans as there are operators right before it in that order. One sort, which is stable, finds the
spans of every depth.

One iteration
    g, h    : the gate, and its running sum
    opened, closed, A : as above, and the depth counts of the parentheses that are counted
    entries : as `speculate.py` says. Read from the right, a span has its operands in the wrong
              order: they are turned around, so that weights see `( op a b )` in both notations
    F, u, top : as there; of two spans, the one inside is read right after the other's operator
    X       : the value of a span in `top` at its operator; zero in the rest of it

A span thus becomes a value in one place, and the heights of all other tokens stay as they are: its
numbers add up to -1, and so does the value's. So an expression takes as many iterations as its
Horton-Strahler number is, as by the logarithmic layer, at most 1 + log2(its values).

What it costs. Time in proportion to n V for an iteration: two sorts by whole numbers beside what
the logarithmic layer takes.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from exactformer.domains.algebra import FIRST_VALUE
from exactformer.model.circuit import (
    NO_TAP,
    Tap,
    Weights,
    depth_counts,
    read_tokens,
)
from exactformer.model.encode import encode
from exactformer.model.implied import Written, put_values, write_out
from exactformer.model.levels import counts_parentheses
from exactformer.model.scan import scan_from_right
from exactformer.model.speculate import Entries, count_holes, enter, outermost, speculate


class Remaining(NamedTuple):
    """The remaining tokens of the expressions that are not finished, each from its side on."""

    at: Int[Tensor, " t"]
    token: Int[Tensor, " t"]
    sequence: Int[Tensor, " t"]
    g: Int[Tensor, " t"]
    h: Int[Tensor, " t"]


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    reading: Remaining
    written: Written
    A: Tensor
    entries: Entries
    holes: Tensor
    F: Tensor
    u: Tensor
    top: Tensor
    P: Tensor
    X: Tensor


def read(tokens: Float[Tensor, "B n D"], weights: Weights) -> Remaining:
    """Find the heights of all tokens. Left out are sequences with a single token, sequences that no
    expression leads to, and those in which the depth gate counts anything but parentheses.
    """
    assert weights.G_A is not None
    B, n = tokens.shape[:2]
    at = tokens.any(-1).flatten().nonzero().squeeze(-1)
    if from_right(weights):
        at = at.flip(0)  # the sequences, too: each is one run all the same
    token, sequence = tokens.flatten(0, 1)[at].argmax(-1), at // n
    g = weights.G_A.long()[token]
    total = torch.zeros(B, dtype=torch.int64, device=g.device).index_add_(0, sequence, g)
    lengths = torch.bincount(sequence, minlength=B)
    begins = sequence != pad(sequence, (1, 0), value=-1)[:-1]
    before = g.cumsum(0) - g
    start = torch.zeros_like(total).index_copy_(0, sequence[begins], before[begins])
    h = before - start[sequence]
    counted = counts_parentheses(weights.G_PE)[token]
    fitting = (h >= 0) & (token >= FIRST_VALUE) & counted
    unfit = torch.bincount(sequence[~fitting], minlength=B) > 0
    kept = ((total == -1) & (lengths > 1) & ~unfit)[sequence].nonzero().squeeze(-1)
    return Remaining(*(part[kept] for part in (at, token, sequence, g, h)))


def from_right(weights: Weights) -> bool:
    """Whether sequences are read from the right."""
    assert weights.side is not None
    return int(weights.side) <= 0


def ends(reading: Remaining) -> Int[Tensor, " t"]:
    """The number of spans that end with each token."""
    _, _, sequence, g, h = reading
    group = sequence * (h.amax() + 1) + h
    order = group.sort(stable=True).indices
    is_value = g[order] < 0
    values = is_value.nonzero().squeeze(-1)
    opened = (~is_value).cumsum(0)[values]
    closed = torch.zeros_like(g)
    return closed.index_copy_(0, order[values], opened - pad(opened, (1, 0))[:-1])


def in_order(entries: Entries, m: int) -> Entries:
    """The entries of spans that were read from the right, with the operands of each turned around:
    it has a `(`, an operator, its operands and a `)`.
    """
    size = torch.bincount(entries.ids - 1, minlength=m)
    begins = entries.ids != pad(entries.ids, (1, 0))[:-1]
    place = torch.arange(len(entries.ids), device=size.device)
    start = torch.zeros_like(size).index_copy_(0, entries.ids[begins] - 1, place[begins])
    first, last = (start + 2)[entries.ids - 1], (start + size - 2)[entries.ids - 1]
    turned = torch.where((first <= place) & (place <= last), first + last - place, place)
    return Entries(*(part[turned] for part in entries))


def iterate(
    X: Float[Tensor, "B n D"], weights: Weights, V: int, reading: Remaining, tap: Tap = NO_TAP
) -> Step:
    """One iteration of a state that has spans; `reading` are its tokens."""
    D = weights.D
    _, token, sequence, g, _ = reading
    written = write_out(token, sequence, (g >= 0).long(), ends(reading), len(X))
    tokens = encode(written.ids, D, X.dtype)
    A = tap("A", depth_counts(tokens, weights.G_PE))
    entries = enter(tokens, A)
    holes = count_holes(entries)
    shown = in_order(entries, len(holes)) if from_right(weights) else entries
    F = tap("F", speculate(shown, holes, weights, V))
    u = tap("u", scan_from_right(F, V))
    top = tap("top", outermost(u, holes, V))
    token_of = reading.at[written.source]  # where in X each place was put
    P, X = put_values(X, entries, token_of, u, top, weights, V, tap)
    return Step(reading, written, A, shown, holes, F, u, top, P, X)


def steps(X: Float[Tensor, "B n D"], weights: Weights, V: int, tap: Tap = NO_TAP) -> Iterator[Step]:
    """Iterations until every sequence has halted; each leaves fewer tokens.

    A sequence that no expression leads to, or that is left with spans of no value, stays as it is,
    and so does one in which the gate counts anything but parentheses: no weights with a proof do.
    """
    while True:
        reading = read(read_tokens(X, weights), weights)
        if not len(reading.at):
            return
        step = iterate(X, weights, V, reading, tap)
        if not step.P.any():
            return
        yield step
        X = step.X
