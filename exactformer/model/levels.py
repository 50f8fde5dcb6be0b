"""Precedence in the paper's terms: counts the parentheses that plain notation leaves out.

The paper's layer finds what belongs together by counting parentheses. In plain notation many are
left out. A second gate, G_L, gives each operator a level, and a level is a fraction of a nesting:
between two parentheses that are written there is room for one pair for each level. So the missing
ones can be put where they are due, by a rule that looks at the neighbours of a token only, and the
counts, clusters and spans are then as ever.

Glossary, beyond that of `circuit.py`
    G_L         (2, D)    level of each operator as a prefix operator and as a binary one, from 1
    directions  (K,)      by level: > 0 groups from the right; anything else, from the left
    t           tokens that are left, of all sequences together
    at          (t,)      position of a token in the batch laid out flat
    prefix      (t,)      whether it is a prefix operator
    level       (t,)      effective level of an operator; 0 for all else
    N           tokens of the longest sequence with the parentheses that are counted

Kind. An operator is a prefix operator iff no operand ends right before it: no value and no `)`.

Effective level. That of the gate, with prefix levels in between binary ones: binary level l counts
as 2l, prefix level l as 2l + 1. A prefix operator directly behind a tighter operator has to be
evaluated before that one, as in `2 ** -1`, whatever the gate says. So it goes along with it, by a
running maximum over neighbouring operators: on the same level if that groups from the right, which
a prefix level does, and on 2l + 1 if it is the binary level l and groups from the left.
Of these levels only those that can occur are kept and numbered anew, 1 to H.

Parentheses. With p and q the levels of the tokens before and after, 0 for anything but an operator:

    token            opened before it    closed after it
    value            max(p, q) - p       max(p, q) - q
    `(`              H - p
    `)`                                  H - q
    prefix operator  level - p

Why these match. Say that a level is open after a token if as many parentheses are open as it says.
At the beginning and after `(` none is. A value or a written group closes all down to the level q of
the operator that follows, which is then the level of that operator; so after each operator as many
are open as its level says, and the next operand starts from there. Before `)` and at the end q = 0.
And each pair has an operator of its level in it, or a written pair: a value alone opens no more
than the tighter one of its neighbours asks for.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN
from exactformer.model.circuit import Weights
from exactformer.model.implied import Written, write_out
from exactformer.model.speculate import matched


class Levels(NamedTuple):
    """The effective level gate, with levels numbered 1 to H; 0 if an operator has no such use."""

    prefix: Int[Tensor, " D"]
    binary: Int[Tensor, " D"]
    behind: Int[Tensor, " D"]  # least level of a prefix operator right behind this binary one
    from_left: Bool[Tensor, " H_1"]  # whether each level, from 0 on, groups from the left
    counted: Bool[Tensor, " D"]  # whether the depth gate counts a token as it should
    H: int


class Remaining(NamedTuple):
    """The remaining tokens of the expressions that are not finished."""

    at: Int[Tensor, " t"]
    token: Int[Tensor, " t"]
    sequence: Int[Tensor, " t"]
    prefix: Bool[Tensor, " t"]
    level: Int[Tensor, " t"]


def levels_of(weights: Weights) -> Levels:
    """The effective levels of the level gate of these weights."""
    assert weights.G_L is not None
    assert weights.directions is not None
    prefix_gate, binary_gate = weights.G_L.long()
    prefix = torch.where(prefix_gate > 0, 2 * prefix_gate + 1, 0)
    binary = 2 * binary_gate
    is_left = (binary > 0) & (weights.directions[binary_gate] <= 0)
    some_looser = ((prefix > 0) & (prefix < binary.unsqueeze(-1))).any(-1)
    behind = binary + (is_left & some_looser)
    steps = torch.cat([prefix.new_zeros(1), prefix, binary, behind]).unique()  # in their order
    prefix, binary, behind = (torch.searchsorted(steps, part) for part in (prefix, binary, behind))
    from_left = torch.zeros_like(steps, dtype=torch.bool)
    from_left[binary[is_left]] = True
    return Levels(
        prefix, binary, behind, from_left, counts_parentheses(weights.G_PE), len(steps) - 1
    )


def counts_parentheses(G_PE: Float[Tensor, " D"]) -> Bool[Tensor, " D"]:
    """Whether the depth gate has the right value for each token. If it is wrong for a parenthesis
    it counts as wrong for all, since every expression with an operator has implied parentheses.
    """
    due = torch.zeros_like(G_PE)
    due[OPEN], due[CLOSE] = 1, -1
    counted = due == G_PE
    return counted & counted[OPEN] & counted[CLOSE]


def read(
    tokens: Float[Tensor, "B n D"], A: Int[Tensor, "B n 2"], levels: Levels, V: int
) -> Remaining:
    """Find kinds and levels of all tokens. Left out are sequences with a single token, sequences
    that no expression leads to, and those in which the depth gate counts anything but parentheses.
    `A` are the depth counts of the parentheses that are written.
    """
    n = tokens.shape[1]
    at = tokens.any(-1).flatten().nonzero().squeeze(-1)
    token, sequence = tokens.flatten(0, 1)[at].argmax(-1), at // n
    first = sequence != pad(sequence, (1, 0), value=-1)[:-1]
    last = sequence != pad(sequence, (0, 1), value=-1)[1:]
    operator = token >= FIRST_VALUE + V
    operand_ends = ~operator & (token != OPEN)
    follows = pad(operand_ends, (1, 0))[:-1] & ~first  # an operand ends right before
    prefix, binary = operator & ~follows, operator & follows
    alone = torch.where(prefix, levels.prefix[token], levels.binary[token] * binary)
    run = (first | ~prefix).cumsum(0)  # a token and the prefix operators right behind it
    handed = torch.where(binary, levels.behind[token], alone) + run * (levels.H + 1)
    highest = handed.cummax(0).values - run * (levels.H + 1)
    level = torch.where(prefix, highest, alone)
    fitting = torch.where(operator, alone > 0, follows == (token == CLOSE)) & levels.counted[token]
    fitting &= torch.where(last, operand_ends & ~first, True)
    unfit = torch.bincount(sequence[~fitting], minlength=len(tokens)) > 0
    kept = (matched(A) & ~unfit)[sequence].nonzero().squeeze(-1)
    return Remaining(*(part[kept] for part in (at, token, sequence, prefix, level)))


def write(reading: Remaining, H: int, B: int) -> Written:
    """Write out the implied parentheses."""
    _, token, sequence, prefix, level = reading
    first = sequence != pad(sequence, (1, 0), value=-1)[:-1]
    p = pad(level, (1, 0))[:-1] * ~first
    q = pad(level * ~first, (0, 1))[1:]  # the first token of a sequence follows nothing
    value, opening, closing = token >= FIRST_VALUE, token == OPEN, token == CLOSE
    value &= level == 0
    tighter = torch.where(value, p.maximum(q), H)
    opened = torch.where(value | opening, tighter - p, torch.where(prefix, level - p, 0))
    closed = torch.where(value | closing, tighter - q, 0)
    return write_out(token, sequence, opened, closed, B)
