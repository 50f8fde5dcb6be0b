"""Weights for any algebra, written down without training (the paper's Fig. 2B).

The gates and the routing are the same for every feedforward. `closed_form` is a constructive proof
of Lemma 4: a perceptron for any finite table, with whole-number weights. `gated_units` lists no
bags: it is for operators that follow a named rule, with as many operands as they like.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import combinations_with_replacement, pairwise
from math import comb
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra, Operator
from exactformer.domains.bounds import MOST_CASES
from exactformer.domains.data import suggestion
from exactformer.domains.integers import Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machines import Machine
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SquareRoot
from exactformer.domains.units import slots_of, units_of
from exactformer.model import (
    construct_integers,
    construct_machine,
    construct_rearrange,
    construct_square_root,
)
from exactformer.model.circuit import Feedforward, Weights
from exactformer.model.feedforward import MLP, Table, Units
from exactformer.model.gated import Gated
from exactformer.model.storage import from_file
from exactformer.weights.named import read_weights, shipped_names

Codes = tuple[tuple[int, ...], ...]  # a whole number for each value, slot by slot

# Whole numbers up to here add without rounding in float32, in any order. Half of 2^24, since the
# threshold sits between the outputs 0 and 1 and so everything is a multiple of one half.
EXACT_SUM = 1 << 23

# Number of cases up to which the perceptron in closed form is tried first.
FEW_CASES = 5_000

# Number of bags beyond which the search for small codes takes too long.
SMALL_TABLE = 5_000


def feedforward(algebra: Algebra, kind: str | None) -> tuple[str, Feedforward]:
    """The feedforward of this kind, or of the first that is possible for None, with its name."""
    if kind is None:
        return _first_feedforward(algebra)
    makers = {"closed": closed_form, "units": gated_units, "table": table}
    if kind in makers:
        return kind, makers[kind](algebra)
    hint = suggestion(kind, ("closed", "units", "table", "fitted"))
    raise ValueError(f"expected feedforward closed, units, table or fitted, found {kind!r}{hint}")


def _first_feedforward(algebra: Algebra) -> tuple[str, Feedforward]:
    """A perceptron if there are few cases, else units, or a table if a rule has no units."""
    bounded = algebra.max_fan_in is not None
    cases = algebra.count_cases(every_order=slots_of(algebra) > 1) if bounded else 0
    if bounded and cases <= FEW_CASES:
        try:
            return "closed", closed_form(algebra)
        except ValueError:
            pass  # its sums are too large for float32
    try:
        return "units", gated_units(algebra)
    except ValueError as error:
        if not bounded or cases > MOST_CASES:
            raise ValueError(
                f"{error}; and its {cases or 'endless'} cases cannot be listed"
            ) from None
    return "table", table(algebra)


def assemble(algebra: Algebra, f: Feedforward) -> Weights:
    """Weights with the paper's gate and routing and this feedforward, a rank gate if the
    feedforward has slots, and the gates that the notation declares.
    """
    W_Q, W_K = routing(algebra)
    G_R = rank_gate(algebra) if f.slots > 1 else None
    weights = Weights(gate(algebra), W_Q, W_K, f, G_R=G_R)
    return declared(algebra, weights)


def declared(algebra: Algebra, weights: Weights) -> Weights:
    """Add the gates that an algebra declares for its notation, so that weights for fully
    parenthesized expressions serve one without parentheses.
    """
    gates = algebra.declared_gates.items()
    return replace(weights, **{n: torch.tensor(g, device=weights.device) for n, g in gates})


def gate(algebra: Algebra) -> Tensor:
    G_PE = torch.zeros(len(algebra.vocabulary), dtype=torch.float32)
    G_PE[OPEN], G_PE[CLOSE] = 1, -1  # Eq. 2
    return G_PE


def rank_gate(algebra: Algebra) -> Tensor:
    """The rank gate that counts operands and nothing else."""
    G_R = torch.zeros(len(algebra.vocabulary), dtype=torch.float32)
    G_R[FIRST_VALUE : algebra.first_operator] = 1
    return G_R


def routing(algebra: Algebra) -> tuple[Tensor, Tensor]:
    """W_Q and W_K: dimension 0 carries operands to operators, and each operator has a dimension
    that carries itself.
    """
    W_Q = torch.zeros(len(algebra.vocabulary), 1 + len(algebra.operators), dtype=torch.float32)
    W_K = torch.zeros_like(W_Q)
    W_K[FIRST_VALUE : algebra.first_operator, 0] = 1
    W_Q[algebra.first_operator :, 0] = 1
    for own, token in enumerate(algebra.operator_ids, start=1):
        W_Q[token, own] = W_K[token, own] = 1
    return W_Q, W_K


def bags(algebra: Algebra) -> tuple[Tensor, Tensor]:
    """The routed bag at the operator of every valid span, and the one-hot output due for it."""
    D, S = len(algebra.vocabulary), slots_of(algebra)
    blocks: list[Tensor] = []
    values: list[Tensor] = []
    for o, operands, results in algebra.case_arrays(every_order=S > 1):
        H = torch.zeros(len(operands), S, D, dtype=torch.float32)
        H[:, 0, algebra.first_operator + o] = 1
        for i, operand in enumerate(torch.from_numpy(operands).T):
            H[torch.arange(len(H)), min(i, S - 1), FIRST_VALUE + operand] += 1
        blocks.append(H.flatten(1))
        values.append(torch.from_numpy(results))
    H, outputs = torch.cat(blocks), one_hot(FIRST_VALUE + torch.cat(values), D).float()
    if S > 1:  # two orders of operands that end in the last slot are one bag
        _, first = np.unique(H.numpy(), axis=0, return_index=True)
        H, outputs = H[np.sort(first)], outputs[np.sort(first)]
    return H, outputs


def table(algebra: Algebra) -> Table:
    H, outputs = bags(algebra)
    return Table(H.to(torch.int16), outputs.to(torch.int8))


def gated_units(algebra: Algebra) -> Units:
    """The units of all operators' rules side by side; a ValueError if a rule has no units."""
    D, S, first = len(algebra.vocabulary), slots_of(algebra), algebra.first_operator
    condensed = [units_of(algebra, operator) for operator in algebra.operators]
    pairs = [(o, unit) for o, parts in enumerate(condensed) for unit in parts.units]
    W = torch.zeros(S, D, len(pairs), dtype=torch.int32)
    code = torch.zeros(len(pairs), len(condensed), dtype=torch.int32)
    for column, (o, unit) in enumerate(pairs):
        W[:, FIRST_VALUE:first, column] = torch.tensor(unit.weights)
        code[column, o] = unit.code
    width = max(len(parts.readout) for parts in condensed)
    readout = torch.full((len(condensed), width), -1, dtype=torch.int32)
    for o, parts in enumerate(condensed):
        readout[o, : len(parts.readout)] = FIRST_VALUE + torch.tensor(parts.readout)
    b, cap, period = (
        torch.tensor([getattr(unit, name) for _, unit in pairs], dtype=torch.int32)
        for name in ("bias", "cap", "period")
    )
    return Units(W.flatten(0, 1), b, cap, period, code, readout, D)


def closed_form(algebra: Algebra) -> MLP:
    """A perceptron of rectified units that computes the algebra's tables exactly.

    Give each value a whole-number code such that the sum s of an operator's operand codes
    determines its result; where order matters, a code for each value in each slot. As s grows, the
    result changes at certain sums c; the step from 0 to 1 at c is relu(s - c + 1) - relu(s - c), so
    two units for each change add up to the right output. The units of an operator see its own token
    with a weight that switches them off for every other. Powers of (fan-in + 1) always are such
    codes, for the sum's digits then count the operands, and powers of (values + 1) by slot, for its
    digits then are the operands: that proves the lemma. Smaller codes keep the numbers within what
    float32 adds exactly; where none are small enough, this raises a ValueError and the table is
    left.
    """
    D, S, first = len(algebra.vocabulary), slots_of(algebra), algebra.first_operator
    algebra.require_listable(every_order=S > 1)
    columns: list[tuple[Tensor, int, Tensor]] = []  # weights in, bias, weights out of each unit
    for o, operator in enumerate(algebra.operators):
        codes = min(_codes(algebra, operator), key=partial(_largest_sum, algebra, operator))
        if _largest_sum(algebra, operator, codes) > EXACT_SUM:
            raise ValueError(
                f"operator {operator.symbol!r} of {algebra.name!r} has too many bags for a closed "
                f"form within the precision of float32: use the table instead"
            )
        reach = _reach(algebra, codes) + 1
        weights_in = torch.zeros(S, D, dtype=torch.float32)
        weights_in[:, FIRST_VALUE:first] = torch.tensor(codes, dtype=torch.float32)
        weights_in[0, first + o] = reach
        for c, before, after in _changes(algebra, operator, codes):
            change = torch.zeros(D, dtype=torch.float32)
            change[FIRST_VALUE + after] += 1
            if before is not None:
                change[FIRST_VALUE + before] -= 1
            columns.append((weights_in.flatten(), 1 - c - reach, change))
            columns.append((weights_in.flatten(), -c - reach, -change))
    return MLP(
        W_1=torch.stack([weights_in for weights_in, _, _ in columns], dim=1),
        b_1=torch.tensor([bias for _, bias, _ in columns], dtype=torch.float32),
        W_2=torch.stack([weights_out for _, _, weights_out in columns]),
        b_2=torch.full((D,), -0.5, dtype=torch.float32),
        activation="relu",
    )


def _reach(algebra: Algebra, codes: Codes) -> int:
    """The largest sum of codes of any operator's operands: one a slot, the rest in the last."""
    left = algebra.require_fan_in() - len(codes) + 1
    return sum(map(max, codes[:-1])) + left * max(codes[-1])


def _results(algebra: Algebra, operator: Operator, codes: Codes) -> dict[int, int] | None:
    """The result for each sum of codes; None where a sum does not determine it."""
    results: dict[int, int] = {}
    last = len(codes) - 1
    for operands, value in operator.cases(len(algebra.values), every_order=last > 0):
        total = sum(codes[min(i, last)][operand] for i, operand in enumerate(operands))
        if results.setdefault(total, value) != value:
            return None
    return results


def _changes(
    algebra: Algebra, operator: Operator, codes: Codes
) -> list[tuple[int, int | None, int]]:
    """The sums of codes at which the result changes, each with the result before and after."""
    results = _results(algebra, operator, codes)
    assert results is not None
    steps: list[tuple[int, int | None]] = [(-1, None), *sorted(results.items())]
    return [
        (c, old, new) for (_, old), (c, new) in pairwise(steps) if new is not None and new != old
    ]


def _largest_sum(algebra: Algebra, operator: Operator, codes: Codes) -> int:
    """An upper bound, over all bags, on the sum of absolute values that make up one output."""
    largest = _reach(algebra, codes)
    into = [0] * len(algebra.values)  # sum from the units whose changes concern each value
    for c, before, after in _changes(algebra, operator, codes):
        units = 2 * max(0, largest - c) + 1
        into[after] += units
        if before is not None:
            into[before] += units
    return max(into) + 1


def _codes(algebra: Algebra, operator: Operator) -> Iterator[Codes]:
    """Codes whose sums determine the operator's result; the last ones yielded always do."""
    n_values, fan_in, S = len(algebra.values), operator.arities[-1], slots_of(algebra)
    ladder = [0]  # a step exceeds all operands below it together: right for maxima
    while len(ladder) < n_values:
        ladder.append(fan_in * ladder[-1] + 1)
    count = tuple(range(n_values))
    tried: list[Codes] = [(codes,) * S for codes in (count, tuple(ladder), tuple(ladder[::-1]))]
    if operator.ordered:
        away, none = tuple(n_values - i for i in range(n_values)), (0,) * n_values
        tried.append((count, *[away] * (S - 1)))  # right for differences
        tried.append((count, *[none] * (S - 1)))  # right for the first operand
    yield from (codes for codes in tried if _results(algebra, operator, codes) is not None)
    if operator.ordered:
        bases = [(n_values + 1) ** slot for slot in range(S)]
        digits = tuple(tuple((1 + i) * base for i in range(n_values)) for base in bases)
        yield digits[::-1]
        yield digits
    else:
        if comb(n_values + fan_in, fan_in) <= SMALL_TABLE:
            yield (_distinct_sums(n_values, fan_in),) * S
        yield (tuple((fan_in + 1) ** i for i in range(n_values)),) * S


@cache
def _distinct_sums(count: int, most: int) -> tuple[int, ...]:
    """The smallest whole numbers, chosen greedily, of which all sums of up to `most` differ."""
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
    """Weights that act on dense vectors, through a random orthogonal map of the tokens."""
    D = weights.D
    E, _ = torch.linalg.qr(torch.randn(D, D, dtype=torch.float64, generator=generator))
    return replace(weights, E=E.to(torch.float32))


def _for_algebra(algebra: Algebra, kind: str | None, is_dense: bool) -> tuple[str, Weights]:
    if kind == "fitted":
        made, weights = kind, _fitted(algebra)
    else:
        made, f = feedforward(algebra, kind)
        weights = assemble(algebra, f)
    return made, dense(weights, torch.Generator().manual_seed(0)) if is_dense else weights


def _fitted(algebra: Algebra) -> Weights:
    """The weights shipped with a fitted perceptron; a ValueError if there are none."""
    if "fitted" not in shipped_names(algebra.name):
        raise ValueError(
            f"no fitted perceptron is shipped for {algebra.name!r}; with the paper's routing "
            f"none can exist for arithmetic (docs/why.md says why): use closed or table"
        )
    file = read_weights(f"{algebra.name}/fitted")
    if file.domain != algebra:
        raise ValueError(f"the fitted perceptron is for another algebra named {algebra.name!r}")
    return from_file(file)


# Writes weights down, by the kind of domain: takes the domain, the name of a feedforward (None: the
# first that is possible) and whether vectors are dense; gives the feedforward's name and weights.
MAKERS: dict[str, Callable[[Any, str | None, bool], tuple[str, Gated]]] = {
    Algebra.kind: _for_algebra,
    Machine.kind: construct_machine.for_texts,
    SpanMachine.kind: construct_machine.for_spans,
    Integers.kind: construct_integers.made,
    LittleEndian.kind: construct_integers.made,
    Rearrangement.kind: construct_rearrange.made,
    SquareRoot.kind: construct_square_root.made,
}
