"""The layer for plain notation: `~1|0&1`, with parentheses only where one likes.

It is the logarithmic layer (`speculate.py`) on the expression with the parentheses that precedence
implies (`levels.py`). What is new is a span's shape. A level groups its operators by itself, so a
span can hold many of them, all of one level:

    x_0 o_1 x_1 ... o_k x_k,   k >= 0;  a prefix operator has no operand before it

An operand is a value or a hole. Local weights know spans of one operator, so they are shown such:
`( x o y )` and `( o x )`, with both parentheses whether these are written or not.

Glossary, beyond those of `circuit.py`, `speculate.py` and `levels.py`
    s           steps of all spans together: the first operand that is used, and each operator
    M           (s, V+1)  what each step makes of the value that the step before it gave
    start       (m,)      place of the last step of each span. Steps stand in backward order: what
                one waits for comes from its right, as with spans

One iteration
    parentheses, depth counts, entries, ids, holes: as `levels.py` and `speculate.py` say
    steps of a span : from the left, x_0, then (. o_1 x_1), ..., (. o_k x_k);
                      from the right, x_k, then (x_{k-1} o_k .), ..., (x_0 o_1 .);  o_i . for prefix
    M       : with an operator, what the weights make of it for every value; x_0 is constant
    c       = M_i(c_{i+1})                      a scan: the values before the hole, V from there on
    M'      : where the operand of a step is the hole, (c o .) or (. o c), every value tried; the
              identity where the first operand is the hole, and on all steps before the hole;
              V everywhere in spans with more than one hole
    u       = M'_i(u_{i+1})                     a scan: what each span is worth, u[start]
    top     : as there
    X       : the value of a span in `top` at its first token; zero in the rest of it

Why the two scans suffice. Steps before the hole depend on nothing but values, so the first scan has
their result c, which is then a known operand of the step with the hole. So all that is left of a
span is a chain of maps from the value in its hole; the steps before it hand that value on. A span
without a hole ends in a constant, so a chain of chains needs no marks between spans, as there.

Why that is exact. Every trial is a row of the certificate, as there, so M is right in all cases.
Spans are right if the level gate groups operators as the algebra declares, or otherwise without a
difference: `verify/levels.py` has the conditions and the argument.

How many iterations. As many as the Horton-Strahler number of the tree of spans of the *first*
iteration, with a tie of any number of holes counting once; so at most 1 + log2(values). Replacing
spans by their values takes nothing away from the spans that are left: a parenthesis that is counted
depends on the nearest operators only, and a value asks for no more of them than a group did.

What it costs. Time in proportion to n (H + V) for an iteration, for H levels: each token brings at
most 2H parentheses, and an operator with a known operand is tried once for all of its kind.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN
from exactformer.domains.expression import EMPTY
from exactformer.model.circuit import (
    NO_TAP,
    Tap,
    Weights,
    depth_counts,
    read_tokens,
)
from exactformer.model.encode import encode
from exactformer.model.implied import Written, put_values
from exactformer.model.levels import Levels, Remaining, levels_of, read, write
from exactformer.model.scan import scan_from_right
from exactformer.model.speculate import Entries, count_holes, enter, outermost, speculate

# What a step with an operator knows: the operand on its right, the one on its left, or none.
RIGHT_KNOWN, LEFT_KNOWN, PREFIX = 0, 1, 2
SIDES = 3


class Folds(NamedTuple):
    """The steps of every span in backward order; spans in the order of the text."""

    span: Int[Tensor, " s"]  # index of the span
    operator: Int[Tensor, " s"]  # token of the operator; 0 for a first operand
    side: Int[Tensor, " s"]
    known: Int[Tensor, " s"]  # value of the operand that a step brings, V for a hole
    hole: Bool[Tensor, " s"]  # whether that operand is the hole
    start: Int[Tensor, " m"]


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    reading: Remaining
    written: Written
    A: Tensor
    entries: Entries
    holes: Tensor
    folds: Folds
    c: Tensor
    M: Tensor  # M' of the second scan
    u: Tensor
    top: Tensor
    P: Tensor
    X: Tensor


def fold(entries: Entries, written: Written, reading: Remaining, levels: Levels, V: int) -> Folds:
    """The steps of every span, found from its entries."""
    symbol = torch.where(entries.hole, OPEN, written.ids.flatten()[entries.position])
    inner = (entries.hole | (symbol >= FIRST_VALUE)).nonzero().squeeze(-1)  # no parentheses
    symbol, hole, span = symbol[inner], entries.hole[inner], entries.ids[inner] - 1
    source = written.source[entries.position[inner]]
    operator = symbol >= FIRST_VALUE + V
    prefix = operator & reading.prefix[source]
    value = torch.where(hole | operator, V, symbol - FIRST_VALUE)
    m = int(entries.ids.amax())
    from_left = torch.zeros(m, dtype=torch.bool, device=span.device)
    from_left[span[operator]] = levels.from_left[reading.level[source[operator]]]
    from_left = from_left[span]

    at_ends = span != pad(span, (1, 0), value=-1)[:-1], span != pad(span, (0, 1), value=-1)[1:]
    is_first = ~operator & torch.where(from_left, *at_ends)
    which = (operator | is_first).nonzero().squeeze(-1)
    beside = torch.where(is_first, 0, torch.where(from_left, 1, -1))  # where the operand stands
    brings = (which + beside[which]).clamp(min=0)  # a prefix operator brings none
    span, from_left, prefix = span[which], from_left[which], prefix[which]
    sizes = torch.bincount(span, minlength=m)
    start = sizes.cumsum(0) - sizes
    order = torch.arange(len(span), device=span.device)
    begins = span != pad(span, (1, 0), value=-1)[:-1]
    rank = order - torch.zeros_like(start).index_copy_(0, span[begins], order[begins])[span]
    place = start[span] + torch.where(from_left, sizes[span] - 1 - rank, rank)
    back = torch.empty_like(place).index_copy_(0, place, order)
    side = torch.where(prefix, PREFIX, torch.where(from_left, RIGHT_KNOWN, LEFT_KNOWN))
    known = torch.where(prefix, 0, value[brings])
    symbol, hole = symbol[which] * operator[which], hole[brings] & ~prefix
    return Folds(span[back], symbol[back], side[back], known[back], hole[back], start)


def try_steps(
    operator: Int[Tensor, " s"],
    side: Int[Tensor, " s"],
    known: Int[Tensor, " s"],
    weights: Weights,
    V: int,
) -> Int[Tensor, "s W"]:
    """The result of each step for every value; each kind of step is tried once, as a span of its
    own. If the operand of a step is not known, its results are V, which means unknown.
    """
    D = weights.D
    kind = (operator * V + known.clamp(max=V - 1)) * SIDES + side
    present = torch.zeros(D * V * SIDES, dtype=torch.bool, device=kind.device)
    present[kind] = True
    number, kinds = present.cumsum(0) - 1, present.nonzero().squeeze(-1)
    if not len(kinds):
        return kind.new_zeros(0, V + 1)
    side, value = kinds % SIDES, FIRST_VALUE + kinds // SIDES % V
    hole = D  # a symbol that no token has
    left = torch.where(side == LEFT_KNOWN, value, torch.where(side == PREFIX, EMPTY, hole))
    right = torch.where(side == RIGHT_KNOWN, value, hole)
    opened, closed = (torch.full_like(side, token) for token in (OPEN, CLOSE))
    symbols = torch.stack([opened, left, kinds // SIDES // V, right, closed], 1).flatten()
    order = torch.arange(len(symbols), device=kind.device)
    ids = order // 5 + 1
    entries = Entries(order, symbols == hole, ids, encode(symbols, D))
    entries = Entries(*(part[symbols != EMPTY] for part in entries))
    F = speculate(entries, torch.ones_like(kinds), weights, V)
    return torch.where((known < V).unsqueeze(-1), F[number[kind]], V)


def compose(
    folds: Folds, holes: Int[Tensor, " m"], weights: Weights, V: int, tap: Tap = NO_TAP
) -> tuple[Int[Tensor, " s"], Int[Tensor, "s W"]]:
    """The results c of the first scan, and the maps M', in which a step depends on the value in its
    span's hole only.
    """
    known, span, is_first = folds.known, folds.span, folds.operator == 0
    acts = (~is_first).nonzero().squeeze(-1)
    tried = try_steps(folds.operator[acts], folds.side[acts], known[acts], weights, V)
    M = known.unsqueeze(-1).repeat(1, V + 1).index_copy_(0, acts, tried)
    c = tap("c", scan_from_right(M, V))
    before = pad(c, (0, 1), value=V)[1:]  # as it arrives at each step

    meets = (folds.hole & ~is_first & (holes[span] == 1)).nonzero().squeeze(-1)
    other = torch.where(folds.side == RIGHT_KNOWN, LEFT_KNOWN, RIGHT_KNOWN)[meets]
    tried = try_steps(folds.operator[meets], other, before[meets], weights, V)
    M = M.index_copy_(0, meets, tried)
    met = pad(folds.hole.cumsum(0), (1, 0))[:-1]  # holes to the left of each step, so after it
    hands_on = (met > met[folds.start[span]]) | (folds.hole & is_first)
    M = torch.where(hands_on.unsqueeze(-1), torch.arange(V + 1, device=M.device), M)
    return c, torch.where((holes[span] > 1).unsqueeze(-1), V, M)


def iterate(
    X: Float[Tensor, "B n D"],
    weights: Weights,
    levels: Levels,
    V: int,
    reading: Remaining,
    tap: Tap = NO_TAP,
) -> Step:
    """One iteration of a state that has spans; `reading` are its tokens."""
    D = weights.D
    written = write(reading, levels.H, len(X))
    tokens = encode(written.ids, D, X.dtype)
    A = tap("A", depth_counts(tokens, weights.G_PE))
    entries = enter(tokens, A)
    holes = count_holes(entries)
    folds = fold(entries, written, reading, levels, V)
    c, M = compose(folds, holes, weights, V, tap)
    M = tap("M", M)
    u = tap("u", scan_from_right(M, V)[folds.start])
    top = tap("top", outermost(u, holes, V))
    token_of = reading.at[written.source]  # where in X each place was put
    P, X = put_values(X, entries, token_of, u, top, weights, V, tap)
    return Step(reading, written, A, entries, holes, folds, c, M, u, top, P, X)


def steps(X: Float[Tensor, "B n D"], weights: Weights, V: int, tap: Tap = NO_TAP) -> Iterator[Step]:
    """Iterations until every sequence has halted; each leaves fewer tokens.

    A sequence that no expression leads to, or that is left with spans of no value, stays as it is,
    and so does one in which the gate counts anything but parentheses: no weights with a proof do.
    """
    levels = levels_of(weights)
    while True:
        tokens = read_tokens(X, weights)
        reading = read(tokens, depth_counts(tokens, weights.G_PE), levels, V)
        if not len(reading.at):
            return
        step = iterate(X, weights, levels, V, reading, tap)
        if not step.P.any():
            return
        yield step
        X = step.X
