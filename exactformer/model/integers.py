"""The layer of integers: an iteration computes all deepest spans, digit by digit.

Glossary, beyond those of `circuit.py` and `reading.py`
    numeral   the digits of an operand, which need not stand side by side: zero rows are skipped
    place     of a digit: how many digits of its numeral are to its right
    end       of a span: the position of its `)`
    kept      the accumulator of a product: digits that a position may hold beside its token
    r         positions of the mask P, of all sequences together; each is a row of both readings
    G_N       (D,)     the gate of numerals: 1 on what they consist of, -1 on what ends them
    G_O       (D,)     the gate of operators, which are sent to the whole span and divide it
    G_F       (D,)     the gate of operators that take the right operand a digit at a time
    goes_on   (r,)     positions of spans with more digits to take than one
    H, Y      (r, 2D)  bags of the first reading, in the slots left and right; (r, D) what it writes
    H_2, Y_2           the same of the second reading, which has rows for what is written only

Depth counts, mask and clusters are the paper's (Eqs. 2 to 7). Then there are two readings. Their
rows are in no need of a query: each key is a row, whether its position holds a token or not.

First reading: arithmetic, from the lowest place, from state 0 at each `)`
    key   a digit of place p has the key end - p, in the slot of its operand; operators have all
          keys of their span. Of a span that folds, the top digit of the right operand has all keys
          instead, the other ones have none, and the accumulator's digits go one place up
    Y     at end - p, the digit of place p: of the value, or of accumulator * base + left * digit
Rows go on beyond the top digits, up to the `(`: a span is longer than any value of it.

Second reading: canonical form, from the top, from state 0 at the first position written
    key   each position written is its own; slot left, or right if none is written behind it
    Y_2   the token there, or none for a leading zero

The first reading of a span that goes on is its new accumulator; what else is in it stays, but for
the digit taken. In other spans Y_2 is all that is left (Eq. 13). So a product takes as many
iterations as its right operand has digits, and everything else takes one. After t of them, value =
accumulator * base^(digits left) + left operand * (what is left of the right one).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.integers import Integers
from exactformer.domains.symbols import FIRST_VALUE, OPEN
from exactformer.model.circuit import (
    NO_TAP,
    Tap,
    clusters,
    depth_counts,
    gated,
    halted,
    read_tokens,
    reduction_mask,
    write_tokens,
)
from exactformer.model.feedforward import MLP, Table
from exactformer.model.reading import WithStates, arriving, outputs, try_states

LEFT, RIGHT = 0, 1  # slots


@dataclass(frozen=True)
class IntegerWeights(WithStates):
    """Four gates, and a feedforward of two slots of tokens and a state."""

    G_PE: Tensor
    G_N: Tensor
    G_O: Tensor
    G_F: Tensor
    f: MLP | Table


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    A: Tensor
    P: Tensor
    ids: Tensor
    place: Tensor
    goes_on: Tensor
    H: Tensor
    F: Tensor
    u: Tensor
    Y: Tensor
    H_2: Tensor
    u_2: Tensor
    Y_2: Tensor
    X: Tensor


class Spans(NamedTuple):
    """The rows of the deepest spans: where each is, and which span it is in, from 0 up."""

    at: Int[Tensor, " r"]
    span: Int[Tensor, " r"]
    first: Int[Tensor, " s"]
    end: Int[Tensor, " s"]

    @classmethod
    def of(cls, ids: Int[Tensor, "B n"]) -> "Spans":
        at = (ids.flatten() > 0).nonzero().squeeze(-1)
        count = ids.amax(-1)
        span = ids.flatten()[at] - 1 + (count.cumsum(0) - count)[at // ids.shape[-1]]
        size = span.bincount(minlength=int(count.sum()))
        behind = size.cumsum(0)
        return cls(at, span, behind - size, behind - 1)

    def sums(self, numbers: Tensor) -> Tensor:
        """The sum over each span of what its rows have."""
        return numbers.new_zeros(len(self.end), *numbers.shape[1:]).index_add_(
            0, self.span, numbers
        )


class Digits(NamedTuple):
    """Facts about each row: whether it holds a digit, of which place and operand, and its use."""

    is_digit: Bool[Tensor, " r"]
    place: Int[Tensor, " r"]
    slot: Int[Tensor, " r"]
    taken: Bool[Tensor, " r"]  # sent to the whole span
    waits: Bool[Tensor, " r"]  # to be taken in a later iteration
    goes_on: Bool[Tensor, " r"]


def read_digits(tokens: Float[Tensor, "r D"], spans: Spans, weights: IntegerWeights) -> Digits:
    numeral, operator = gated(tokens, weights.G_N), gated(tokens, weights.G_O).long()
    is_digit = numeral > 0
    begins = numeral < 0  # another numeral behind it, or none
    begins[spans.first] = True
    number = begins.cumsum(0) - 1
    count = is_digit.cumsum(0)
    of_each = number.new_zeros(len(number)).index_add_(0, number, is_digit.long())
    place = torch.where(is_digit, of_each.cumsum(0)[number] - count, -1)
    so_far = operator.cumsum(0)
    rank = so_far - (so_far - operator)[spans.first][spans.span]
    slot = (rank > 0).long()
    right = is_digit & (slot == RIGHT)
    left_over = spans.sums(right.long())[spans.span]
    folds = (spans.sums(gated(tokens, weights.G_F).long()) > 0)[spans.span]
    taken = right & folds & (place == left_over - 1)
    goes_on = folds & (left_over > 1)
    return Digits(is_digit, place, slot, taken, right & folds & ~taken, goes_on)


def bags(
    tokens: Float[Tensor, "r D"],
    kept: Float[Tensor, "r D"],
    spans: Spans,
    digits: Digits,
    G_O: Float[Tensor, " D"],
) -> Float[Tensor, "r SD"]:
    """The bags of the first reading: Eqs. 10 to 12, once by place and once by span."""
    r, D = tokens.shape
    H = tokens.new_zeros(r * 2, D)
    placed = (digits.is_digit & ~digits.taken & ~digits.waits).nonzero().squeeze(-1)
    key = spans.end[spans.span[placed]] - digits.place[placed]
    H.index_add_(0, key * 2 + digits.slot[placed], tokens[placed])
    up = (spans.first[spans.span] < torch.arange(r, device=tokens.device)).nonzero().squeeze(-1)
    H.index_add_(0, (up - 1) * 2 + LEFT, kept[up])
    sent = ((gated(tokens, G_O) > 0) | digits.taken).unsqueeze(-1)
    H.view(r, 2, D)[:, RIGHT] += spans.sums(tokens * sent)[spans.span]
    return H.view(r, 2 * D)


def written_bags(
    Y: Float[Tensor, "r D"], written: Int[Tensor, " w"], spans: Spans
) -> tuple[Float[Tensor, "w SD"], Bool[Tensor, " w"]]:
    """The bags of the second reading, and at which of them a span starts."""
    of = spans.span[written]
    starts = torch.ones_like(of, dtype=torch.bool)
    starts[1:] = of[1:] != of[:-1]
    lowest = starts.roll(-1)
    H = Y.new_zeros(len(of), 2, Y.shape[-1])
    H[torch.arange(len(of), device=Y.device), lowest.long()] = Y[written]
    return H.flatten(1), starts


def iterate(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    A: Int[Tensor, "B n 2"],
    weights: IntegerWeights,
    domain: Integers,
    tap: Tap = NO_TAP,
) -> Step:
    """One iteration; A are the depth counts of X."""
    all_tokens = tap("tokens", read_tokens(X, weights))
    A = tap("A", A)
    P = tap("P", reduction_mask(A, inside))
    ids = tap("ids", clusters(P))
    spans = Spans.of(ids)
    tokens, D = all_tokens.flatten(0, 1)[spans.at], weights.D
    is_kept = torch.arange(D, device=X.device) >= domain.first_kept
    kept, tokens = tokens * is_kept, tokens * ~is_kept
    digits = read_digits(tokens, spans, weights)
    place, goes_on = tap("place", digits.place), tap("goes_on", digits.goes_on)
    H = tap("H", bags(tokens, kept, spans, digits, weights.G_O))
    tried = try_states(H, weights.f, weights.W)
    tried = tried._replace(F=tap("F", tried.F))
    starts = torch.zeros_like(goes_on)
    starts[spans.end] = True
    u = arriving(tried.F, tried.kind.flip(0), starts.flip(0)).flip(0)
    u = tap("u", u)
    Y = tap("Y", outputs(tried, u).to(X.dtype))
    written = (Y.any(-1) & ~goes_on).nonzero().squeeze(-1)
    H_2, starts_2 = written_bags(Y, written, spans)
    H_2 = tap("H_2", H_2)
    tried_2 = try_states(H_2, weights.f, weights.W)
    u_2 = tap("u_2", arriving(tried_2.F, tried_2.kind, starts_2))
    Y_2 = tap("Y_2", outputs(tried_2, u_2).to(X.dtype))
    after = torch.zeros_like(tokens).index_copy_(0, written, Y_2)
    on = goes_on.unsqueeze(-1)
    value = Y[:, FIRST_VALUE : FIRST_VALUE + domain.base]
    rest = tokens * ~digits.taken.unsqueeze(-1)
    rest[:, domain.first_kept :] = value
    after = torch.where(on, rest, after)
    X = X.flatten(0, 1).index_copy(0, spans.at, write_tokens(after, weights)).view_as(X)
    X = tap("X", X)  # Eq. 13
    return Step(A, P, ids, place, goes_on, H, tried.F, u, Y, H_2, u_2, Y_2, X)


def steps(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    weights: IntegerWeights,
    domain: Integers,
    tap: Tap = NO_TAP,
) -> Iterator[Step]:
    """The iterations until no parenthesis is left.

    Each depth takes no more of them than there are digits: weights that go on longer than that are
    wrong and would never stop, so their sequences are left as they are.
    """
    tokens = read_tokens(X, weights) > 0
    digits = tokens[..., FIRST_VALUE : domain.first_operator].any(-1).sum(-1)
    limit = tokens[..., OPEN].sum(-1) * digits.clamp(min=1)
    iteration = 0
    while True:
        A = depth_counts(read_tokens(X, weights), weights.G_PE)
        running = ~halted(A) & (iteration < limit)
        if not running.any():
            return
        step = iterate(X, inside & running.unsqueeze(-1), A, weights, domain, tap)
        yield step
        X, iteration = step.X, iteration + 1
