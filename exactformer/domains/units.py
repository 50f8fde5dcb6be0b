"""How a rule condenses any number of operands into one small whole number, unit by unit.

A unit adds up a whole number for each operand, by its index among the values and by its slot, and a
bias; then it either cuts the sum u off, to min(max(u, 0), cap), or takes it modulo a period. (With
rectified units: relu(u) - relu(u - cap).) The units' results, each times its `code`, add up to the
operator's code, and `readout` has the index of the result for each code. Neither grows with the
number of operands: bags are never listed.

Slot 0 holds the first operand, slot 1 the second and so on; the last slot holds all that are left.
An algebra that ignores order has one slot, with everything in it. Below, k operands a_1 ... a_k are
indices of n values, and #[...] counts operands.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.bounds import MOST_NUMBERS, require


@dataclass(frozen=True)
class Unit:
    weights: tuple[tuple[int, ...], ...]  # what an operand adds: by slot, then by its index
    bias: int = 0
    cap: int = 0  # of the sum, where no period is given
    period: int = 0
    code: int = 1


@dataclass(frozen=True)
class Units:
    """What an operator needs: its units, and the index of the result for each code."""

    units: tuple[Unit, ...]
    readout: tuple[int, ...]


def slots_of(algebra: Algebra) -> int:
    """One for each operand of the widest ordered operator; two, for the first and for all others,
    if that takes any number; one in all where order does not matter.
    """
    ordered = [op for op in algebra.operators if op.ordered]
    return max([1, *(max(op.arities[-1], 2 if op.unbounded else 1) for op in ordered)])


def units_of(algebra: Algebra, operator: Operator) -> Units:
    """The units of an operator; a ValueError that names it if there are none."""
    n, slots = len(algebra.values), slots_of(algebra)
    where = f"operator {operator.symbol!r} of {algebra.name!r}"
    if operator.rule is None:
        raise ValueError(f"{where} has a table and no named rule, so it has no units")
    if operator.rule == "last" and operator.unbounded:
        raise ValueError(
            f"{where} takes {operator.counts} operands: the last of any number of operands has no "
            f"slot of its own; give it a bound"
        )
    require(f"{where}, numbers of all units", _numbers(algebra), MOST_NUMBERS)
    try:
        return UNITS[operator.rule](n, slots)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None


def _numbers(algebra: Algebra) -> int:
    """A bound on the weights of all operators' units, counted before they are made."""
    n, slots = len(algebra.values), slots_of(algebra)
    counts = (slots * n if op.rule == "last" else 2 * n for op in algebra.operators)
    return sum(counts) * slots * len(algebra.vocabulary)


def _counts(n: int, slots: int, weight: Callable[[int], int], **form: int) -> Unit:
    """A unit that weighs operands by their index alone, whatever their slot."""
    return Unit(tuple(tuple(weight(place) for place in range(n)) for _ in range(slots)), **form)


def _max(n: int, slots: int) -> Units:
    """max >= v where #[a >= v] >= 1; the code counts the v from 1 to n-1 where that is so."""
    steps = [_counts(n, slots, lambda a, v=v: int(a >= v), cap=1) for v in range(1, n)]
    return Units(tuple(steps), tuple(range(n)))


def _min(n: int, slots: int) -> Units:
    """min < v where #[a < v] >= 1; the code counts these v: n-1-min."""
    steps = [_counts(n, slots, lambda a, v=v: int(a < v), cap=1) for v in range(1, n)]
    return Units(tuple(steps), tuple(range(n))[::-1])


def _complement_of(rule: Callable[[int, int], Units]) -> Callable[[int, int], Units]:
    def units(n: int, slots: int) -> Units:
        condensed = rule(n, slots)
        return Units(condensed.units, tuple(n - 1 - place for place in condensed.readout))

    return units


def _below(n: int, slots: int, bias: int) -> list[Unit]:
    """For each v, whether #[a < v] - #[a >= v] + bias >= 1."""
    return [
        _counts(n, slots, lambda a, v=v: 1 if a < v else -1, bias=bias, cap=1) for v in range(1, n)
    ]


def _median(n: int, slots: int) -> Units:
    """The lower median is the ceil(k/2)-th smallest: it is < v where #[a < v] >= ceil(k/2), that is
    where #[a < v] >= #[a >= v]. The code counts these v: n-1-median.
    """
    return Units(tuple(_below(n, slots, bias=1)), tuple(range(n))[::-1])


def _median_mean(n: int, slots: int) -> Units:
    """The upper median is the (floor(k/2)+1)-th smallest: it is < v where #[a < v] > #[a >= v].
    The code is 2(n-1) less the sum of the two medians.
    """
    steps = _below(n, slots, bias=1) + _below(n, slots, bias=0)
    return Units(tuple(steps), tuple(total // 2 for total in range(2 * n - 1))[::-1])


def _sum(n: int, slots: int) -> Units:
    return Units((_counts(n, slots, lambda a: a, period=n),), tuple(range(n)))


def _saturating_sum(n: int, slots: int) -> Units:
    return Units((_counts(n, slots, lambda a: a, cap=n - 1),), tuple(range(n)))


def _product(n: int, slots: int) -> Units:
    """By the Chinese remainder theorem, n = p^e at a time. There each index is p^i g^j for a
    generator g of the units modulo p^e: exponents i add up, up to e, where the product is zero;
    exponents j add up modulo the number of units.
    """
    units: list[Unit] = []
    results: list[dict[int, int]] = []  # for each power of a prime, code to remainder
    powers: list[int] = []
    size = 1  # of the codes so far
    for p, e in _prime_powers(n):
        q = p**e
        order = q - q // p
        g = next((g for g in range(1, q) if _order(g, q) == order), None)
        if g is None:
            raise ValueError(f"products modulo {n} have no units, since 8 divides {n}")
        logarithm = {pow(g, j, q): j for j in range(order)}

        def split(a: int, p: int = p, e: int = e, q: int = q) -> tuple[int, int]:
            i = next((i for i in range(e) if a % p ** (i + 1)), e)
            return i, a // p**i % q if i < e else 1

        exponents = {a: split(a) for a in range(n)}
        units.append(_counts(n, slots, lambda a, x=exponents: x[a][0], cap=e, code=size))
        units.append(
            _counts(
                n,
                slots,
                lambda a, x=exponents, log=logarithm: log[x[a][1]],
                period=order,
                code=size * (e + 1),
            )
        )
        codes = product(range(order), range(e + 1))
        results.append({j * (e + 1) + i: p**i * pow(g, j, q) % q for j, i in codes})
        powers.append(q)
        size *= (e + 1) * order
    places = {tuple(a % q for q in powers): a for a in range(n)}
    readout = []
    for code in range(size):
        remainders = []
        for result in results:
            code, digit = divmod(code, len(result))
            remainders.append(result[digit])
        readout.append(places[tuple(remainders)])
    return Units(tuple(units), tuple(readout))


def _prime_powers(n: int) -> Iterator[tuple[int, int]]:
    p = 2
    while n > 1:
        e = 0
        while n % p == 0:
            n, e = n // p, e + 1
        if e:
            yield p, e
        p += 1


def _order(g: int, q: int) -> int | None:
    """The least j > 0 with g^j = 1 modulo q."""
    power = g % q
    for j in range(1, q + 1):
        if power == 1 % q:
            return j
        power = power * g % q
    return None


def _difference(n: int, slots: int) -> Units:
    """The first operand less the others; a second unit sees whether there are others, and where
    there are none the result is the negative.
    """
    first, others = tuple(range(n)), tuple(-a for a in range(n))
    value = Unit((first, *[others] * (slots - 1)), period=n)
    more = Unit(((0,) * n, *[(1,) * n] * (slots - 1)), cap=1, code=n)
    return Units((value, more), (*(-a % n for a in range(n)), *range(n)))


def _first(n: int, slots: int) -> Units:
    """Slot 0 holds one operand."""
    return Units((Unit((tuple(range(n)), *[(0,) * n] * (slots - 1)), cap=n - 1),), tuple(range(n)))


def _last(n: int, slots: int) -> Units:
    """The last operand is the one with nothing in the next slot: a unit for each slot and place."""
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
