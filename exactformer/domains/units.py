"""Units that condense any number of operands into one small whole number, rule by rule.

A unit adds up a whole number for each operand, by its index among the values and by its slot, and a
bias; then it either cuts the sum u off, to min(max(u, 0), cap), or takes it modulo a period. (With
rectified units: relu(u) - relu(u - cap).) The units' results, each times its `code`, add up to the
operator's code, and `readout` has the index of the result for each code. Neither grows with the
number of operands: bags are never listed.

Slot 0 holds the first operand, slot 1 the second and so on; the last slot holds all that are left.
An algebra that ignores order has one slot, with everything in it. Below, k operands a_1 ... a_k are
indices of n values, and #[...] counts operands.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.bounds import MOST_NUMBERS, require


@dataclass(frozen=True)
class Unit:
    weights: tuple[tuple[int, ...], ...]  # what an operand adds: by slot, then by its index
    bias: int = 0
    cap: int = 0  # upper bound of the sum, if there is no period
    period: int = 0
    code: int = 1


@dataclass(frozen=True)
class Units:
    """The units of an operator, and the index of the result for each code."""

    units: tuple[Unit, ...]
    readout: tuple[int, ...]


def slots_of(algebra: Algebra) -> int:
    """Number of slots: one for each operand of the widest ordered operator, or two (the first
    operand and all others) if that takes any number; one if order does not matter.
    """
    ordered = [op for op in algebra.operators if op.ordered]
    return max([1, *(max(op.arities[-1], 2 if op.unbounded else 1) for op in ordered)])


def units_of(algebra: Algebra, operator: Operator) -> Units:
    """The units of an operator; a ValueError that names the operator if it has none."""
    n, slots = len(algebra.values), slots_of(algebra)
    where = f"operator {operator.symbol!r} of {algebra.name!r}"
    if operator.rule is None:
        raise ValueError(f"{where} has a table and no named rule, so it has no units")
    if operator.rule == "last" and operator.unbounded:
        raise ValueError(
            f"{where} takes {operator.counts} operands: the last of any number of operands has no "
            f"slot of its own; give it a bound"
        )
    # A bound on the weights of all operators' units, counted before they are made.
    counts = (slots * n if op.rule == "last" else 2 * n for op in algebra.operators)
    numbers = sum(counts) * slots * len(algebra.vocabulary)
    require(f"{where}, numbers of all units", numbers, MOST_NUMBERS)
    try:
        return UNITS[operator.rule](n, slots)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _counts(slots: int, weights: Iterable[int], **form: int) -> Unit:
    """A unit that weighs operands by their index alone, in every slot alike."""
    return Unit((tuple(weights),) * slots, **form)


def _steps(
    n: int, slots: int, weight: Callable[[int, int], int], bias: int = 0
) -> tuple[Unit, ...]:
    """Units that say for each v from 1 to n-1 whether the weight(a, v) of the operands and the bias
    add up to 1 or more.
    """
    return tuple(
        _counts(slots, [weight(a, v) for a in range(n)], bias=bias, cap=1) for v in range(1, n)
    )


def _max(n: int, slots: int) -> Units:
    """max >= v where #[a >= v] >= 1; the code counts the v from 1 to n-1 where that is so."""
    return Units(_steps(n, slots, lambda a, v: int(a >= v)), tuple(range(n)))


def _min(n: int, slots: int) -> Units:
    """min < v where #[a < v] >= 1; the code counts these v: n-1-min."""
    return Units(_steps(n, slots, lambda a, v: int(a < v)), tuple(range(n))[::-1])


def _complement_of(rule: Callable[[int, int], Units]) -> Callable[[int, int], Units]:
    def units(n: int, slots: int) -> Units:
        condensed = rule(n, slots)
        return Units(condensed.units, tuple(n - 1 - place for place in condensed.readout))

    return units


def _below(n: int, slots: int, bias: int) -> tuple[Unit, ...]:
    """Units that say for each v whether #[a < v] - #[a >= v] + bias >= 1."""
    return _steps(n, slots, lambda a, v: 1 if a < v else -1, bias)


def _median(n: int, slots: int) -> Units:
    """The lower median is the ceil(k/2)-th smallest: it is < v where #[a < v] >= ceil(k/2), that is
    where #[a < v] >= #[a >= v]. The code counts these v: n-1-median.
    """
    return Units(_below(n, slots, bias=1), tuple(range(n))[::-1])


def _median_mean(n: int, slots: int) -> Units:
    """The upper median is the (floor(k/2)+1)-th smallest: it is < v where #[a < v] > #[a >= v].
    The code is 2(n-1) less the sum of the two medians.
    """
    steps = _below(n, slots, bias=1) + _below(n, slots, bias=0)
    return Units(steps, tuple(total // 2 for total in range(2 * n - 1))[::-1])


def _sum(n: int, slots: int) -> Units:
    return Units((_counts(slots, range(n), period=n),), tuple(range(n)))


def _saturating_sum(n: int, slots: int) -> Units:
    return Units((_counts(slots, range(n), cap=n - 1),), tuple(range(n)))


def _product(n: int, slots: int) -> Units:
    """By the Chinese remainder theorem, n = p^e at a time. There each index is p^i g^j for a
    generator g of the units modulo p^e: exponents i add up, up to e, where the product is zero;
    exponents j add up modulo the number of units.
    """
    units: list[Unit] = []
    results: list[list[int]] = []  # for each power of a prime, the remainder by its part of a code
    moduli: list[int] = []
    size = 1  # number of codes so far
    for p, e in _prime_powers(n):
        q = p**e
        order = q - q // p
        of_each = ({pow(g, j, q): j for j in range(order)} for g in range(1, q) if g % p)
        logarithm = next((powers for powers in of_each if len(powers) == order), None)
        if logarithm is None:
            raise ValueError(f"products modulo {n} have no units, since 8 divides {n}")
        exponents = [next((i for i in range(e) if a % p ** (i + 1)), e) for a in range(n)]
        units.append(_counts(slots, exponents, cap=e, code=size))
        logarithms = [logarithm[a // p**i % q] if i < e else 0 for a, i in enumerate(exponents)]
        units.append(_counts(slots, logarithms, period=order, code=size * (e + 1)))
        results.append([p**i * unit % q for unit, i in product(logarithm, range(e + 1))])
        moduli.append(q)
        size *= (e + 1) * order
    places = {tuple(a % q for q in moduli): a for a in range(n)}
    codes = product(*reversed(results))  # the first part counts fastest
    return Units(tuple(units), tuple(places[remainders[::-1]] for remainders in codes))


def _prime_powers(n: int) -> Iterator[tuple[int, int]]:
    p = 2
    while n > 1:
        e = 0
        while n % p == 0:
            n, e = n // p, e + 1
        if e:
            yield p, e
        p += 1


def _difference(n: int, slots: int) -> Units:
    """The first operand minus the others. A second unit tells whether there are others; if there
    are none, the result is the negative.
    """
    first, others = tuple(range(n)), tuple(-a for a in range(n))
    value = Unit((first, *[others] * (slots - 1)), period=n)
    more = Unit(((0,) * n, *[(1,) * n] * (slots - 1)), cap=1, code=n)
    return Units((value, more), (*(-a % n for a in range(n)), *range(n)))


def _first(n: int, slots: int) -> Units:
    """The first operand is the one in slot 0."""
    return Units((Unit((tuple(range(n)), *[(0,) * n] * (slots - 1)), cap=n - 1),), tuple(range(n)))


def _last(n: int, slots: int) -> Units:
    """The last operand is the one before an empty slot: there is a unit for each slot and index."""
    units = []
    for slot, place in product(range(slots), range(1, n)):
        weights = [(0,) * n for _ in range(slots)]
        weights[slot] = tuple(int(a == place) for a in range(n))
        if slot + 1 < slots:
            weights[slot + 1] = (-1,) * n
        units.append(Unit(tuple(weights), cap=1, code=place))
    return Units(tuple(units), tuple(range(n)))


def _implies(n: int, slots: int) -> Units:
    """The result is >= v where n-1-a_1 >= v or a_2 >= v."""
    nothing = [(0,) * n] * (slots - 2)
    steps = []
    for v in range(1, n):
        first = tuple(int(n - 1 - a >= v) for a in range(n))
        second = tuple(int(a >= v) for a in range(n))
        steps.append(Unit((first, second, *nothing), cap=1))
    return Units(tuple(steps), tuple(range(n)))


UNITS: dict[str, Callable[[int, int], Units]] = {
    "max": _max,
    "min": _min,
    "median": _median,
    "median-mean": _median_mean,
    "majority": _median,
    "sum": _sum,
    "product": _product,
    "saturating-sum": _saturating_sum,
    "difference": _difference,
    "first": _first,
    "last": _last,
    "complement": _complement_of(_max),
    "nand": _complement_of(_min),
    "nor": _complement_of(_max),
    "implies": _implies,
}
