"""Units for any number of operands: those of each operator's rule, right on thousands of lists."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import FIRST_VALUE, Algebra, Operator
from exactformer.domains.expression import span_expression
from exactformer.domains.rules import operand_keys
from exactformer.domains.units import slots_of, units_of
from exactformer.verify.rows import Fault
from exactformer.weights.tensors import FEEDFORWARDS, Arrays

SHORT_LISTS = 2_000  # of operands, of each operator: all there are, from the shortest on
LONG_LISTS = 200  # random ones of up to LONGEST operands
LONGEST = 1_000


def wrong_units(algebra: Algebra, arrays: Arrays) -> tuple[Fault, ...]:
    """The differences between these units and those that the operators' rules need."""
    D, slots = len(algebra.vocabulary), slots_of(algebra)
    try:
        needed = [units_of(algebra, operator) for operator in algebra.operators]
    except ValueError as error:
        return (Fault(str(error)),)
    pairs = [(o, unit) for o, parts in enumerate(needed) for unit in parts.units]
    W, bias, cap, period, code, readout = (arrays[name] for name in FEEDFORWARDS["units"])
    if W.shape != (slots * D, len(pairs)) or readout.shape[1] < max(
        len(parts.readout) for parts in needed
    ):
        expected = f"{len(pairs)} units in {slots} slots"
        return (Fault(f"expected {expected}, with a read-out of every code"),)
    wrong: list[str] = []
    for column, (o, unit) in enumerate(pairs):
        weights = np.zeros((slots, D), dtype=int)
        weights[:, FIRST_VALUE : algebra.first_operator] = unit.weights
        codes = np.arange(len(needed)) == o
        same = (
            (W[:, column] == weights.reshape(-1)).all()
            and (bias[column], cap[column], period[column]) == (unit.bias, unit.cap, unit.period)
            and (code[column] == codes * unit.code).all()
        )
        if not same:
            wrong.append(f"unit {column} of {algebra.operators[o].symbol}")
    for o, parts in enumerate(needed):
        tokens = [FIRST_VALUE + value for value in parts.readout]
        if readout[o, : len(tokens)].tolist() != tokens:
            wrong.append(f"the read-out of {algebra.operators[o].symbol}")
    return tuple(map(Fault, wrong))


def wrong_lists(algebra: Algebra, arrays: Arrays) -> tuple[Fault, ...]:
    """Lists of operands for which the units in the file do not give what the rule does."""
    wrong: list[Fault] = []
    for o, operator in enumerate(algebra.operators):
        token = algebra.first_operator + o
        for operands in _lists(algebra, operator):
            if _evaluate(algebra, arrays, o, operands) != FIRST_VALUE + operator(operands):
                shown = " ".join(algebra.values[i] for i in operands[:10])
                more = " ..." if operands[10:] else ""
                shows = span_expression(algebra, token, [FIRST_VALUE + i for i in operands])
                label = f"{operator.symbol} of {shown}{more}"
                wrong.append(Fault(label, tuple(shows.ids.tolist())))
    return tuple(wrong)


def _evaluate(algebra: Algebra, arrays: Arrays, o: int, operands: tuple[int, ...]) -> int:
    """The token that operator o gives, by the numbers in the file alone; -1 for none."""
    U_in, U_bias, U_cap, U_period, U_code, U_readout = (
        arrays[name].astype(np.int64) for name in FEEDFORWARDS["units"]
    )
    D = len(algebra.vocabulary)
    slots = len(U_in) // D
    sums = U_bias.copy()
    for i, operand in enumerate(operands):
        sums += U_in[min(i, slots - 1) * D + FIRST_VALUE + operand]
    sums += U_in[algebra.first_operator + o]  # the operator itself, in the first slot
    results = np.where(U_period > 0, sums % np.maximum(U_period, 1), np.clip(sums, 0, U_cap))
    code = int(results @ U_code[:, o])
    return int(U_readout[o, code]) if 0 <= code < U_readout.shape[1] else -1


def _lists(algebra: Algebra, operator: Operator) -> Iterator[tuple[int, ...]]:
    """Lists of operands that the operator takes, short ones first, then long ones at random."""
    n = len(algebra.values)
    more = range(operator.arities[-1] + 1, LONGEST if operator.unbounded else 0)
    lengths = [*operator.arities, *more]
    yield from islice(operand_keys(n, lengths, operator.ordered), SHORT_LISTS)
    rng = np.random.default_rng(0)
    for length in rng.choice(lengths, LONG_LISTS):
        # Few of the values at a time: a long list of all of them always has the last as its max.
        some = rng.choice(n, rng.integers(1, n + 1), replace=False)
        operands: NDArray = rng.choice(some, length)
        yield tuple((operands if operator.ordered else np.sort(operands)).tolist())
