"""Prove, in exact arithmetic, that weights compute an algebra at every depth and length.

This is the file for a sceptic to read: it uses neither torch nor the model's code, only numpy, the
algebra's own tables and the reader of weights files. Numbers are whole numbers or exact fractions;
nothing here rounds.

Why a finite check suffices. With the gate +1 on `(`, -1 on `)` and 0 elsewhere, the depth counts
pick exactly the deepest spans, and spans never touch (infix: an operator lies between them; prefix:
a zero vector follows each `)`). Such a span holds one operator, values, its two parentheses and
zero vectors left by earlier reductions. Attention adds up, so what a position of it receives
depends only on its own token and on the bag of tokens in the span, of which there are finitely
many. If for each bag the operator's position becomes the right value and every other position
becomes zero, one iteration evaluates all deepest spans and keeps the rest: the expression keeps its
value and loses one level, whatever its size (the paper's two theorems). If moreover every output
stays farther from the threshold than rounding can move it, in any order of summation, the same
holds on every device. Attention adds whole numbers small enough for float16 and bfloat16; the
feedforward runs in IEEE float32, not in a format such as TF32 that goes by its name.

Where order matters there is a second gate, G_R. A token's rank is the sum of this gate over the
tokens of its span up to itself, and its rank selects the slot in which it is added up. Without its
zero vectors, a span is a known sequence of tokens: `( a op b )`, `( op a )` or `( op a b ... )`.
Zero vectors add nothing to a rank, wherever they stand; and a span that was reduced earlier has
left exactly one value, at its operator's position, so between the operands before it and those
after it. So the slots, and with them what each position receives, depend only on the operator and
the tuple of its operands, again one of finitely many: each tuple is a case, with the slots that
this very gate gives it.

Units (`domains/units.py`) take any number of operands, so their cases have no end. There the check
is structural. With a gate of the rank that is 1 on values and 0 elsewhere and the paper's routing,
an operator receives its own token once and each operand once, the i-th in slot i and the last slot
with all that are left; all other positions receive nothing. The units are then held against those
that each operator's rule needs, whole number by whole number; why they compute the rule, for any
number of operands, is said there rule by rule. What they read out is gated by the operator's own
token: where that is missing, so at every other position, the output is zero, and no operator sees
another's units. What remains is that numbers are whole and exact: counts of operands, as far as the
number format goes (`most_operands`; the model refuses a longer span), and the units' sums in
float64.
"""

import json
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.catalog import find_algebra
from exactformer.domains.plain import read_bytes
from exactformer.domains.syntax import operands_before
from exactformer.domains.units import slots_of, units_of
from exactformer.weightfile import UNITS, Arrays, WeightFile

UNIT = Fraction(1, 2**24)  # float32's unit roundoff
TINY = Fraction(1, 2**126)  # float32's smallest normal number: what an underflow can lose
HUGE = 2**127  # below float32's largest number
NO_BOUND = Fraction(2**1000)  # above any output, where float32 may overflow
EXACT_INTEGER = 2**24  # whole numbers up to here are exact in float32,
EXACT_NARROW = 2**8  # and up to here in bfloat16 and float16 too
LARGE_VECTOR = 2**7  # dense vectors with entries below this do not overflow in float16,
LARGE_SUM = 2**15  # nor with sums of their products below this
MOST_OPERANDS = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8}  # counted exactly
EXACT_DOUBLE = 2**53  # whole numbers up to here are exact in float64
SMALLEST_UNIT = 2**100  # multiples of one over this do not underflow


@dataclass(frozen=True)
class Findings:
    """Each condition of the proof with its outcome, and the numbers behind the last one."""

    algebra: str
    conditions: dict[str, bool]
    rows: int
    wrong_rows: tuple[str, ...]
    smallest_margin: Fraction  # least distance of an output from the threshold, over all rows
    rounding_bound: Fraction  # most that float32 can move an output
    most_operands: dict[str, int] | None = None  # of one span, by format; None: all that may come
    checked: str = "rows"  # or units, which are not rows of cases

    @property
    def exact(self) -> bool:
        return all(self.conditions.values())


def check(algebra: Algebra, arrays: Arrays, activation: str | None) -> Findings:
    """Every condition of the argument above for the weights in `arrays`."""
    gate, W_Q, W_K = (_integers(arrays[name]) for name in ("G_PE", "W_Q", "W_K"))
    right_gate = np.zeros(len(algebra.vocabulary), dtype=int)
    right_gate[OPEN], right_gate[CLOSE] = 1, -1
    gate_is_right = bool((gate == right_gate).all())
    binary = bool(np.isin(W_Q, (0, 1)).all() and np.isin(W_K, (0, 1)).all())
    if "U_in" in arrays:
        return _check_units(algebra, arrays, W_Q @ W_K.T, gate_is_right, binary)
    G_R = _integers(arrays["G_R"]) if "G_R" in arrays else None
    first_tensor = arrays["bags"].T if "bags" in arrays else arrays["W_1"]
    slots = len(first_tensor) // len(algebra.vocabulary)
    numbers = len(first_tensor) + (arrays["W_1"].shape[1] if "W_1" in arrays else 0)
    every_order = algebra.ordered or G_R is not None
    algebra.require_listable(every_order=every_order, numbers=numbers)
    cases = _cases(algebra, G_R, slots)
    H, groups = _received(cases, W_Q @ W_K.T)
    if "bags" in arrays:
        outputs, scale, error = _look_up(H, arrays)
    else:
        outputs, scale, error = _perceptron(H, arrays, activation)
    wrong = _wrong(algebra, cases, groups, outputs > 0)
    smallest = Fraction(int(abs(outputs).min()), scale)
    if G_R is None:
        order = {"no operator depends on the order of its operands": slots_of(algebra) == 1}
    else:
        order = {"the rank gate is -1, 0 or 1": bool(np.isin(G_R, (-1, 0, 1)).all())}
    conditions = {
        **order,
        "the gate is +1 on '(', -1 on ')', 0 elsewhere": gate_is_right,
        "routed sums are whole numbers that every format holds": binary
        and max(int(H.max()), algebra.require_fan_in()) <= EXACT_NARROW,
        "every span becomes its value at the operator and zero elsewhere": not wrong,
        "every output is farther from the threshold than rounding can move it": smallest > error,
    }
    if "W_1" in arrays:
        sizes = [abs(arrays[name][arrays[name] != 0]) for name in ("W_1", "b_1", "W_2", "b_2")]
        tiny = any((size < float(TINY)).any() for size in sizes)
        conditions["no weight is so small that a device may take it for zero"] = not tiny
    if "E" in arrays:
        conditions["dense vectors read back as their tokens"] = _reads_back(arrays["E"])
    rows = 1 + sum(len(group.cases) for group in groups)  # the zero vector is one
    return Findings(algebra.name, conditions, rows, wrong, smallest, error)


def _check_units(
    algebra: Algebra, arrays: Arrays, routes: NDArray, gate_is_right: bool, binary: bool
) -> Findings:
    """The conditions where the feedforward is made of units: nothing is listed."""
    D, first = len(algebra.vocabulary), algebra.first_operator
    values, operators = np.arange(2, first), np.arange(first, D)
    right_routes = np.zeros((D, D), dtype=int)
    right_routes[np.ix_(operators, values)] = 1
    right_routes[operators, operators] = 1
    wrong = _wrong_units(algebra, arrays)
    largest = abs(arrays["U_in"].astype(int)).max() * MOST_OPERANDS["float32"]
    conditions = {
        "the gate is +1 on '(', -1 on ')', 0 elsewhere": gate_is_right,
        "an operator receives itself and its operands once, and nothing else receives": binary
        and bool((routes == right_routes).all()),
        "every operator's units are those of its rule": not wrong,
        "sums of units are whole numbers that float64 holds": bool(
            largest + abs(arrays["U_bias"].astype(int)).max() < EXACT_DOUBLE
        ),
    }
    if "G_R" in arrays:
        right_rank = (np.arange(D) >= 2) & (np.arange(D) < first)
        conditions["the rank gate is 1 on values, 0 elsewhere"] = bool(
            (_integers(arrays["G_R"]) == right_rank).all()
        )
    if "E" in arrays:
        conditions["dense vectors read back as their tokens"] = _reads_back(arrays["E"])
    unlimited = algebra.max_fan_in is None or algebra.max_fan_in > EXACT_NARROW
    most = MOST_OPERANDS if unlimited else None
    units = arrays["U_in"].shape[1]
    half, nothing = Fraction(1, 2), Fraction(0)
    return Findings(algebra.name, conditions, units, wrong, half, nothing, most, "units")


def _wrong_units(algebra: Algebra, arrays: Arrays) -> tuple[str, ...]:
    """What differs from the units that the operators' rules need."""
    D, slots = len(algebra.vocabulary), slots_of(algebra)
    try:
        needed = [units_of(algebra, operator) for operator in algebra.operators]
    except ValueError as error:
        return (str(error),)
    pairs = [(o, unit) for o, parts in enumerate(needed) for unit in parts.units]
    W, bias, cap, period, code, readout = (arrays[name] for name in UNITS)
    if W.shape != (slots * D, len(pairs)) or readout.shape[1] < max(
        len(parts.readout) for parts in needed
    ):
        return (f"expected {len(pairs)} units in {slots} slots, with a read-out of every code",)
    wrong: list[str] = []
    for column, (o, unit) in enumerate(pairs):
        weights = np.zeros((slots, D), dtype=int)
        weights[:, 2 : algebra.first_operator] = unit.weights
        codes = np.arange(len(needed)) == o
        same = (
            (W[:, column] == weights.reshape(-1)).all()
            and (bias[column], cap[column], period[column]) == (unit.bias, unit.cap, unit.period)
            and (code[column] == codes * unit.code).all()
        )
        if not same:
            wrong.append(f"unit {column} of {algebra.operators[o].symbol}")
    for o, parts in enumerate(needed):
        if readout[o, : len(parts.readout)].tolist() != [2 + place for place in parts.readout]:
            wrong.append(f"the read-out of {algebra.operators[o].symbol}")
    return tuple(wrong)


class ProofRejected(Exception):
    """The proof file claims what the weights do not bear out."""


def _built_in(algebra: Algebra) -> Algebra:
    """The algebra that this one's name belongs to; itself where the name is nobody's."""
    try:
        return find_algebra(algebra.name)
    except ValueError:
        return algebra


def verify(proof_path: Path, weights_path: Path) -> Findings:
    """Check a proof file against a weights file; raises ProofRejected where they disagree."""
    try:
        proof = json.loads(read_bytes(proof_path))
        claims = {name: proof[name] for name in ("weights_sha256", "verdict", "conditions", "rows")}
        margins = [proof[name] for name in ("smallest_margin", "rounding_bound")]
        algebra = Algebra.from_dict(proof["algebra"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(f"{proof_path}: expected a proof file, found none: {error}") from None
    file = WeightFile.read(weights_path)
    if algebra != _built_in(algebra):
        raise ProofRejected(
            f"{proof_path} is about another algebra than the {algebra.name} it names"
        )
    if claims["weights_sha256"] != file.sha256:
        raise ProofRejected(f"{proof_path} is about other weights than {weights_path}")
    if algebra != file.algebra:
        raise ProofRejected(f"{proof_path} is about another algebra than {weights_path}")
    try:
        findings = check(algebra, file.arrays, file.activation)
    except ValueError as error:
        raise ValueError(f"{weights_path}: {error}") from None
    found = {"verdict": "exact", "rows": findings.rows, "conditions": findings.conditions}
    if not findings.exact:
        failed = [name for name, holds in findings.conditions.items() if not holds]
        raise ProofRejected(f"{weights_path}: not proved exact: {'; '.join(failed)}")
    for name, value in found.items():
        if claims[name] != value:
            raise ProofRejected(f"{proof_path} claims {name} {claims[name]!r}, but found {value!r}")
    if proof.get("most_operands") != findings.most_operands:
        raise ProofRejected(f"{proof_path}: its bounds on operands are not those of the weights")
    if margins != [str(findings.smallest_margin), str(findings.rounding_bound)]:
        raise ProofRejected(f"{proof_path}: its margins are not those of the weights")
    return findings


@dataclass(frozen=True)
class _Cases:
    """Every span there can be: its tokens by slot, its operator's token and its value's."""

    bags: NDArray  # (cases, slots, D)
    operator: NDArray
    value: NDArray
    shown: list[tuple[int, ...]]  # its operands


def _cases(algebra: Algebra, G_R: NDArray | None, slots: int) -> _Cases:
    D = len(algebra.vocabulary)
    bags, operators, values, shown = [], [], [], []
    for o, operands, results in algebra.case_arrays(every_order=algebra.ordered or G_R is not None):
        n, arity = operands.shape
        before = operands_before(algebra, arity)
        parts = [operands[:, :before] + 2, operands[:, before:] + 2]
        opened, operator, closed = (
            np.full((n, 1), token) for token in (OPEN, algebra.first_operator + o, CLOSE)
        )
        span = np.hstack([opened, parts[0], operator, parts[1], closed])
        ranks = np.ones_like(span) if G_R is None else np.cumsum(G_R[span], axis=1)
        slot = np.clip(ranks - 1, 0, slots - 1)
        bag = np.zeros((n, slots, D), dtype=np.int16)
        for place in range(span.shape[1]):
            bag[np.arange(n), slot[:, place], span[:, place]] += 1
        bags.append(bag)
        operators.append(operator[:, 0])
        values.append(2 + results)
        shown += map(tuple, operands.tolist())
    joined = [np.concatenate(parts) for parts in (bags, operators, values)]
    return _Cases(*joined, shown=shown)


@dataclass(frozen=True)
class _Group:
    """The positions that hold one token: the cases they are in, and what each receives."""

    token: int
    cases: NDArray
    received: NDArray  # rows of all that is ever received


def _received(cases: _Cases, routes: NDArray) -> tuple[NDArray, list[_Group]]:
    """All that is ever received, nothing first, and which position of which case receives it.

    `routes[a, b]` is how often a position that holds token a receives each token b of its span.
    """
    slots, D = cases.bags.shape[1:]
    distinct = [np.zeros((1, slots * D), dtype=int)]
    groups = []
    for token in range(D):
        where = np.flatnonzero(cases.bags[:, :, token].any(axis=1))
        back = np.zeros(len(where), dtype=int)
        if routes[token].any() and len(where):
            H = (cases.bags[where] * routes[token]).reshape(len(where), -1)
            found, back = np.unique(H, axis=0, return_inverse=True)
            back = back.reshape(-1) + sum(map(len, distinct))
            distinct.append(found)
        groups.append(_Group(token, where, back))
    return np.concatenate(distinct), groups


def _wrong(
    algebra: Algebra, cases: _Cases, groups: list[_Group], positive: NDArray
) -> tuple[str, ...]:
    """The rows that do not give the value at the operator and zero elsewhere."""
    wrong: list[tuple[int, int]] = []
    for group in groups:
        here = cases.operator[group.cases] == group.token
        expected = np.where(here, cases.value[group.cases], -1)
        right = positive[group.received] == (np.arange(positive.shape[1]) == expected[:, None])
        wrong += [(int(case), group.token) for case in group.cases[~right.all(axis=1)]]
    labels = ["the zero vector"] if positive[0].any() else []
    for case, token in sorted(wrong):
        operands = " ".join(algebra.values[i] for i in cases.shown[case])
        operator = algebra.vocabulary[cases.operator[case]]
        labels.append(f"{algebra.vocabulary[token]} in {operator} of {operands}")
    return tuple(labels)


def _look_up(H: NDArray, arrays: Arrays) -> tuple[NDArray, int, Fraction]:
    """Outputs 1/2 and -1/2 as whole numbers over two; nothing rounds."""
    bags, outputs = arrays["bags"].tolist(), arrays["outputs"].astype(int)
    table = {tuple(bag): output for bag, output in zip(bags, outputs, strict=True)}
    nothing = np.zeros(outputs.shape[1], dtype=int)
    found = np.array([table.get(tuple(row), nothing) for row in H.tolist()])
    return 2 * (found > 0) - 1, 2, Fraction(0)


def _perceptron(
    H: NDArray, arrays: Arrays, activation: str | None
) -> tuple[NDArray, int, Fraction]:
    """Outputs act(H W_1 + b_1) W_2 + b_2 times a whole number, that number, and the rounding bound.

    Every float is a whole number divided by a power of two, so scaled outputs are whole numbers.
    """
    (W_1, b_1), unit_1 = _scaled(arrays["W_1"], arrays["b_1"])
    (W_2, b_2), unit_2 = _scaled(arrays["W_2"], arrays["b_2"])
    # Python's integers never overflow; machine integers are quicker where they cannot either.
    power = 2 if activation == "square" else 1
    widest = (int(H.sum(1).max()) * int(abs(W_1).max()) + int(abs(b_1).max())) ** power
    widest = widest * len(W_2) * int(abs(W_2).max()) + int(abs(b_2).max()) * unit_1**power
    widest = max(widest, *(int(abs(array).max()) for array in (W_1, b_1, W_2, b_2)))
    kind = np.int64 if widest < 2**62 else object
    H, W_1, b_1, W_2, b_2 = (array.astype(kind) for array in (H, W_1, b_1, W_2, b_2))

    hidden = H @ W_1 + b_1
    terms = int((H @ abs(W_1) + abs(b_1)).max())
    error = _sum_error(terms, unit_1, H.shape[1] + 1)
    if activation == "square":
        top = Fraction(int(abs(hidden).max()), unit_1) + error
        hidden, unit_h = hidden**2, unit_1**2
        if top**2 >= HUGE:
            error = NO_BOUND
        elif error or int(hidden.max()) > EXACT_INTEGER or unit_h > SMALLEST_UNIT:
            error = 2 * top * error + UNIT * top**2 + TINY
    else:
        hidden, unit_h = np.maximum(hidden, 0), unit_1
        error = error + TINY if error else error  # a hidden value may be taken for zero, too

    outputs = hidden @ W_2 + b_2 * unit_h
    if error >= NO_BOUND:
        return outputs, unit_h * unit_2, NO_BOUND
    terms = int((hidden @ abs(W_2) + abs(b_2) * unit_h).max())
    spread = error * Fraction(int(abs(W_2).sum(0).max()), unit_2)
    rounding = _sum_error(terms, unit_h * unit_2, len(W_2) + 1, inexact=spread)
    return outputs, unit_h * unit_2, spread + rounding


def _sum_error(terms: int, unit: int, count: int, inexact: Fraction | None = None) -> Fraction:
    """Most that adding `count` products can err in float32, in any order, fused or not.

    `terms` / `unit` bounds the sum of the products' absolute values. If each is a multiple of
    1 / `unit` and all partial sums fit, nothing rounds. Otherwise n roundings lose at most
    n u / (1 - n u) <= n u (1 + 2 n u) of it. `inexact` is an error that the products carry already.
    """
    size = Fraction(terms, unit) + (inexact or 0)
    if size >= HUGE or count * UNIT > Fraction(1, 2):
        return NO_BOUND
    if not inexact and terms <= EXACT_INTEGER and unit <= SMALLEST_UNIT:
        return Fraction(0)
    return count * UNIT * (1 + 2 * count * UNIT) * size + count * TINY


def _scaled(*arrays: NDArray) -> tuple[list[NDArray], int]:
    """Float arrays as whole numbers over one common power of two."""
    exact = [np.array([Fraction(float(x)) for x in array.flat], dtype=object) for array in arrays]
    unit = max(x.denominator for part in exact for x in part)
    whole = [np.array([int(x * unit) for x in part], dtype=object) for part in exact]
    return [part.reshape(array.shape) for part, array in zip(whole, arrays, strict=True)], unit


def _integers(array: NDArray) -> NDArray:
    whole = array.astype(np.int64)
    if (whole != array).any():
        raise ValueError("expected whole numbers in the gate and the routing")
    return whole


def _reads_back(E: NDArray) -> bool:
    """Each token's dense vector gives more than 1/2 with itself, less with all others.

    In bfloat16, the coarsest format: storing an entry and each step of a sum may lose 2^-8 of it.
    """
    D = len(E)
    (whole,), unit = _scaled(E)
    products = whole @ whole.T
    sizes = abs(whole) @ abs(whole.T)
    loss = (1 + Fraction(1, 2**8)) ** (D + 3) - 1
    distance = np.where(np.eye(D, dtype=bool), 2 * products - unit**2, unit**2 - 2 * products)
    apart = all(d > 2 * loss * s for d, s in zip(distance.flat, sizes.flat, strict=True))
    return apart and bool((abs(E) < LARGE_VECTOR).all()) and sizes.max() < LARGE_SUM * unit**2
