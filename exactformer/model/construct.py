"""Weights for any order-free algebra, written down without training (the paper's Fig. 2B).

The gate and the routing are the same for every feedforward. `closed_form` is a constructive proof
of Lemma 4: a perceptron for any finite table, with whole-number weights.
"""

from collections.abc import Iterator
from functools import cache
from itertools import combinations_with_replacement, pairwise
from math import comb

import torch
from torch import Tensor

from exactformer.domains.algebra import CLOSE, OPEN, Algebra, Operator
from exactformer.model.circuit import Feedforward, Weights
from exactformer.model.feedforward import MLP, Table

Codes = tuple[int, ...]

# Whole numbers up to here add without rounding in float32, in any order. Half of 2^24, since the
# threshold sits between the outputs 0 and 1 and so everything is a multiple of one half.
EXACT_SUM = 1 << 23

# Beyond this many bags the search for small codes is slower than it is worth.
SMALL_TABLE = 5_000


def assemble(algebra: Algebra, f: Feedforward) -> Weights:
    """The paper's gate and routing around a feedforward."""
    W_Q, W_K = routing(algebra)
    return Weights(gate(algebra), W_Q, W_K, f)


def gate(algebra: Algebra) -> Tensor:
    G_PE = torch.zeros(len(algebra.vocabulary))
    G_PE[OPEN], G_PE[CLOSE] = 1, -1  # Eq. 2
    return G_PE


def routing(algebra: Algebra) -> tuple[Tensor, Tensor]:
    """Dimension 0 carries operands to operators; each operator has one that carries itself."""
    _require_order_free(algebra)
    W_Q = torch.zeros(len(algebra.vocabulary), 1 + len(algebra.operators))
    W_K = torch.zeros_like(W_Q)
    W_K[2 : algebra.first_operator, 0] = 1
    W_Q[algebra.first_operator :, 0] = 1
    for i in range(len(algebra.operators)):
        W_Q[algebra.first_operator + i, 1 + i] = 1
        W_K[algebra.first_operator + i, 1 + i] = 1
    return W_Q, W_K


def bags(algebra: Algebra) -> tuple[Tensor, Tensor]:
    """The routed bag of every valid span at its operator, and the one-hot output it must give."""
    _require_order_free(algebra)
    D = len(algebra.vocabulary)
    rows = [
        (o, key, value) for o, op in enumerate(algebra.operators) for key, value in op.table.items()
    ]
    H, outputs = torch.zeros(len(rows), D), torch.zeros(len(rows), D)
    for row, (o, key, value) in enumerate(rows):
        H[row, algebra.first_operator + o] = 1
        for operand in key:
            H[row, 2 + operand] += 1
        outputs[row, 2 + value] = 1
    return H, outputs


def table(algebra: Algebra) -> Table:
    H, outputs = bags(algebra)
    return Table(H.to(torch.int16), outputs.to(torch.int8))


def closed_form(algebra: Algebra) -> MLP:
    """A perceptron of rectified units that computes the algebra's tables exactly.

    Give each value a whole-number code such that the sum s of an operator's operand codes
    determines its result. As s grows, the result changes at certain sums c; the step from 0 to 1
    at c is relu(s - c + 1) - relu(s - c), so two units for each change add up to the right output.
    The units of an operator see its own token with a weight that switches them off for every other.
    Powers of (fan-in + 1) always are such codes, for the sum's digits then count the operands:
    that proves the lemma. Smaller codes keep the numbers within what float32 adds exactly; where
    none are small enough, this raises a ValueError and the table is left.
    """
    _require_order_free(algebra)
    D = len(algebra.vocabulary)
    columns: list[tuple[Tensor, int, Tensor]] = []  # weights in, bias, weights out of each unit
    for o, operator in enumerate(algebra.operators):
        codes = min(
            _codes(algebra, operator), key=lambda codes: _largest_sum(algebra, operator, codes)
        )
        if _largest_sum(algebra, operator, codes) > EXACT_SUM:
            raise ValueError(
                f"operator {operator.symbol!r} of {algebra.name!r} has too many bags for a closed "
                f"form within the precision of float32: use the table instead"
            )
        reach = algebra.require_fan_in() * max(codes) + 1
        weights_in = torch.zeros(D)
        weights_in[2 : algebra.first_operator] = torch.tensor(codes, dtype=torch.float32)
        weights_in[algebra.first_operator + o] = reach
        for c, before, after in _changes(operator, codes):
            change = torch.zeros(D)
            change[2 + after] += 1
            if before is not None:
                change[2 + before] -= 1
            columns.append((weights_in, 1 - c - reach, change))
            columns.append((weights_in, -c - reach, -change))
    return MLP(
        W_1=torch.stack([weights_in for weights_in, _, _ in columns], dim=1),
        b_1=torch.tensor([bias for _, bias, _ in columns], dtype=torch.float32),
        W_2=torch.stack([weights_out for _, _, weights_out in columns]),
        b_2=torch.full((D,), -0.5),
        activation="relu",
    )


def _changes(operator: Operator, codes: Codes) -> list[tuple[int, int | None, int]]:
    """Where the result changes as the sum of codes grows: the sum, the result before and after."""
    results = {sum(codes[i] for i in key): value for key, value in operator.table.items()}
    steps: list[tuple[int, int | None]] = [(-1, None), *sorted(results.items())]
    return [
        (c, old, new) for (_, old), (c, new) in pairwise(steps) if new is not None and new != old
    ]


def _largest_sum(algebra: Algebra, operator: Operator, codes: Codes) -> int:
    """A bound on the absolute values that add up to one output, over all bags."""
    largest = algebra.require_fan_in() * max(codes)
    into = [0] * len(algebra.values)  # from the units of the changes that concern each value
    for c, before, after in _changes(operator, codes):
        units = 2 * max(0, largest - c) + 1
        into[after] += units
        if before is not None:
            into[before] += units
    return max(into) + 1


def _codes(algebra: Algebra, operator: Operator) -> Iterator[Codes]:
    """Codes whose sums determine the operator's result; the last ones always do."""
    n_values, fan_in = len(algebra.values), operator.arities[-1]
    ladder = [0]  # a step exceeds all operands below it together: right for maxima
    while len(ladder) < n_values:
        ladder.append(fan_in * ladder[-1] + 1)
    powers = tuple((fan_in + 1) ** i for i in range(n_values))
    for codes in (tuple(range(n_values)), tuple(ladder), tuple(ladder[::-1])):
        results: dict[int, int] = {}
        sums = ((sum(codes[i] for i in key), value) for key, value in operator.table.items())
        if all(results.setdefault(total, value) == value for total, value in sums):
            yield codes
    if comb(n_values + fan_in, fan_in) <= SMALL_TABLE:
        yield _distinct_sums(n_values, fan_in)
    yield powers


@cache
def _distinct_sums(count: int, most: int) -> Codes:
    """Greedily the smallest whole numbers of which no two choices of up to `most` add up alike."""
    codes: list[int] = []
    candidate = 0
    while len(codes) < count:
        candidate += 1
        choices = combinations_with_replacement([0, *codes, candidate], most)
        sums = [sum(choice) for choice in choices]
        if len(set(sums)) == len(sums):
            codes.append(candidate)
    return tuple(codes)


def dense(weights: Weights, generator: torch.Generator) -> Weights:
    """The same weights acting on dense vectors, through a random orthogonal map of the tokens."""
    D = weights.G_PE.shape[-1]
    E, _ = torch.linalg.qr(torch.randn(D, D, dtype=torch.float64, generator=generator))
    return Weights(weights.G_PE, weights.W_Q, weights.W_K, weights.f, E.to(torch.float32))


def _require_order_free(algebra: Algebra) -> None:
    for operator in algebra.operators:
        if operator.ordered:
            raise ValueError(
                f"operator {operator.symbol!r} of {algebra.name!r} depends on the order of its "
                f"operands; the paper's attention adds them up and cannot see it"
            )
