"""The conditions of the argument, each with its outcome for given weights."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.domain import Domain
from exactformer.domains.integers import Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machines import Machine
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SquareRoot
from exactformer.domains.units import slots_of
from exactformer.verify import integers, machine, rearrangements, square_roots
from exactformer.verify.arities import check_arities
from exactformer.verify.findings import Findings
from exactformer.verify.levels import check_levels
from exactformer.verify.rounding import EXACT_INTEGER, SUBNORMAL, Outputs, perceptrons, reads_back
from exactformer.verify.rows import every_case, every_receipt, look_up, wrong_rows
from exactformer.verify.units import wrong_lists, wrong_units
from exactformer.weights.tensors import FEEDFORWARDS, Arrays, feedforward_of

EXACT_NARROW = 2**8  # whole numbers up to here are exact in bfloat16, float16 and float32
MOST_OPERANDS = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}  # counted exactly


def check(domain: Domain, arrays: Arrays, activation: str | None) -> Findings:
    """Every condition of the argument for the weights in `arrays`."""
    return check_all(domain, [(arrays, activation)])[0]


def check_all(domain: Domain, weights: Sequence[tuple[Arrays, str | None]]) -> list[Findings]:
    """Every condition for many weights of one domain."""
    return CHECKS[domain.kind](domain, weights)


def _check_algebra(
    algebra: Algebra, weights: Sequence[tuple[Arrays, str | None]]
) -> list[Findings]:
    """Perceptrons behind the same routing receive the same rows, so they are computed together."""
    alike: dict[tuple, list[int]] = {}
    for i, (arrays, activation) in enumerate(weights):
        routing = (arrays.get(name, np.zeros(0)).tobytes() for name in ("W_Q", "W_K", "G_R"))
        shape = arrays["W_1"].shape if "W_1" in arrays else i  # others are checked by themselves
        alike.setdefault((*routing, shape, activation), []).append(i)
    found: dict[int, Findings] = {}
    for which in alike.values():
        some = [weights[i][0] for i in which]
        W_Q, W_K = (some[0][name].astype(np.int64) for name in ("W_Q", "W_K"))
        if feedforward_of(some[0]) == "units":
            parts = [_check_units(algebra, arrays, W_Q, W_K) for arrays in some]
        else:
            parts = _check_rows(algebra, some, weights[which[0]][1], W_Q, W_K)
        for i, arrays, findings in zip(which, some, parts, strict=True):
            found[i] = _with_the_rest(algebra, arrays, findings)
    return [found[i] for i in range(len(weights))]


def _with_the_rest(algebra: Algebra, arrays: Arrays, findings: dict) -> Findings:
    """Add the conditions that do not depend on the kind of feedforward."""
    for name in sorted(algebra.declared_gates.keys() - arrays.keys()):  # else none checks it
        raise ValueError(f"tensor {name}: {algebra.notation} notation, and there is none")
    gate = arrays["G_PE"].astype(np.int64)
    right_gate = np.zeros(len(algebra.vocabulary), dtype=np.int64)
    right_gate[OPEN], right_gate[CLOSE] = 1, -1
    conditions = {"the gate is +1 on '(', -1 on ')', 0 elsewhere": bool((gate == right_gate).all())}
    conditions |= findings.pop("conditions")
    if "E" in arrays:
        conditions["dense vectors read back as their tokens"] = reads_back(arrays["E"])
    if "G_L" in arrays:
        findings["grouping"] = check_levels(algebra, arrays)
        name = "operators group as declared, or otherwise without a difference"
        conditions[name] = not findings["grouping"].wrong
    if "G_A" in arrays:
        counted, findings["wrong_counts"] = check_arities(algebra, arrays)
        conditions |= counted
    return Findings(algebra, conditions, **findings)


def _check_rows(
    algebra: Algebra, some: Sequence[Arrays], activation: str | None, W_Q: NDArray, W_K: NDArray
) -> list[dict]:
    """The conditions for weights with the same routing, of which every span is listed as a case."""
    arrays = some[0]
    G_R = arrays["G_R"].astype(np.int64) if "G_R" in arrays else None
    first_tensor = arrays["bags"].T if "bags" in arrays else arrays["W_1"]
    slots = len(first_tensor) // len(algebra.vocabulary)
    numbers = len(first_tensor) + (arrays["W_1"].shape[1] if "W_1" in arrays else 0)
    every_order = algebra.ordered or G_R is not None
    algebra.require_listable(every_order=every_order, numbers=numbers)
    cases = every_case(algebra, G_R, slots)
    H, groups = every_receipt(cases, W_Q @ W_K.T)
    if "bags" in arrays:
        positive = look_up(H, arrays["bags"], arrays["outputs"])
        every = [Outputs(positive, smallest=Fraction(1, 2), error=Fraction(0))]
    else:
        tensors = [(a["W_1"], a["b_1"], a["W_2"], a["b_2"]) for a in some]
        every = perceptrons(H, tensors, str(activation))
    # Sums of sizes bound every partial sum, whatever its order and whatever cancels.
    signed = (W_Q < 0).any() or (W_K < 0).any()
    sums = every_receipt(cases, abs(W_Q) @ abs(W_K).T)[0] if signed else H
    keys = (cases.bags.sum(axis=1) @ abs(W_K)).max()
    shared = {
        "routed sums are whole numbers that every format holds": int(max(sums.max(), keys))
        <= EXACT_NARROW
    }
    if G_R is None:
        name = "no operator depends on the order of its operands"
        last = {name: slots_of(algebra) == 1}
    else:
        last = {"the rank gate is -1, 0 or 1": bool(np.isin(G_R, (-1, 0, 1)).all())}
    found = []
    for arrays, outputs in zip(some, every, strict=True):
        wrong = wrong_rows(algebra, cases, groups, outputs.positive)
        conditions = shared | {
            "every span becomes its value in one position and zero elsewhere": not wrong,
            "every output is farther from the threshold than rounding can move it": outputs.smallest
            > outputs.error,
        }
        conditions |= last
        if "W_1" in arrays:
            numbers = (arrays[name] for name in FEEDFORWARDS["perceptron"])
            tiny = any((abs(part[part != 0]) < SUBNORMAL).any() for part in numbers)
            conditions["no weight is so small that a device may take it for zero"] = not tiny
        found.append(
            {
                "conditions": conditions,
                "rows": 1 + sum(len(group.cases) for group in groups),  # the zero vector is one
                "wrong_rows": wrong,
                "smallest_margin": outputs.smallest,
                "rounding_bound": outputs.error,
            }
        )
    return found


def _check_units(algebra: Algebra, arrays: Arrays, W_Q: NDArray, W_K: NDArray) -> dict:
    """The conditions for a feedforward of units, whose cases cannot all be listed."""
    D, values, operators = len(algebra.vocabulary), algebra.value_ids, algebra.operator_ids
    right_routes = np.zeros((D, D), dtype=np.int64)
    right_routes[np.ix_(operators, values)] = 1
    right_routes[operators, operators] = 1
    binary = bool(np.isin(W_Q, (0, 1)).all() and np.isin(W_K, (0, 1)).all())
    wrong = wrong_units(algebra, arrays)
    lists = wrong_lists(algebra, arrays) if not wrong else ()
    largest = abs(arrays["U_in"].astype(np.int64)).max() * MOST_OPERANDS["float32"]
    conditions = {
        "an operator receives itself and its operands once, and nothing else receives": binary
        and bool((right_routes == W_Q @ W_K.T).all()),
        "every operator's units are those of its rule": not wrong,
        "on thousands of lists of operands the units give what the rule does": not wrong
        and not lists,
        "sums of units are whole numbers that float64 holds": bool(
            largest + abs(arrays["U_bias"].astype(np.int64)).max() < EXACT_INTEGER
        ),
    }
    if "G_R" in arrays:
        right_rank = np.isin(np.arange(D), values)
        conditions["the rank gate is 1 on values, 0 elsewhere"] = bool(
            (arrays["G_R"] == right_rank).all()
        )
    unlimited = algebra.max_fan_in is None or algebra.max_fan_in > EXACT_NARROW
    return {
        "conditions": conditions,
        "rows": arrays["U_in"].shape[1],
        "wrong_rows": wrong or lists[:1],
        "smallest_margin": Fraction(1, 2),
        "rounding_bound": Fraction(0),
        "most_operands": MOST_OPERANDS if unlimited else None,
        "checked": "units",
    }


# The check of many weights, each with the activation of its perceptron, by the kind of domain.
CHECKS: dict[str, Callable[[Any, Sequence[tuple[Arrays, str | None]]], list[Findings]]] = {
    Algebra.kind: _check_algebra,
    Machine.kind: machine.check,
    SpanMachine.kind: machine.check_spans,
    Integers.kind: integers.check,
    LittleEndian.kind: integers.check,
    Rearrangement.kind: rearrangements.check,
    SquareRoot.kind: square_roots.check,
}
