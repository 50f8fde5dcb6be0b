"""Named rules: functions from the indices of operands among the values to the index of a result.

With n values, a rule maps indices from 0 to n-1 to an index. An operator that names its rule needs
no table written out, so it may take ten operands, or any number of them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import comb

Key = tuple[int, ...]  # operands, as indices of values


@dataclass(frozen=True)
class Rule:
    """A rule for an operator. `apply` takes the number of values and the operands; `fewest` and
    `most` bound the number of operands, `odd` requires an odd number, and `n_values` requires that
    many values.
    """

    says: str
    apply: Callable[[int, Sequence[int]], int]
    ordered: bool = False
    fewest: int = 1
    most: int | None = None
    odd: bool = False
    n_values: int | None = None


def _median(n: int, places: Sequence[int]) -> int:
    return sorted(places)[(len(places) - 1) // 2]


def _median_mean(n: int, places: Sequence[int]) -> int:
    ranked = sorted(places)
    return (ranked[(len(ranked) - 1) // 2] + ranked[len(ranked) // 2]) // 2


def _product(n: int, places: Sequence[int]) -> int:
    result = 1 % n
    for place in places:
        result = result * place % n
    return result


def _difference(n: int, places: Sequence[int]) -> int:
    first = places[0] if len(places) > 1 else -places[0]
    return (first - sum(places[1:])) % n


RULES: dict[str, Rule] = {
    "max": Rule("the last of its operands in the order of the values", lambda n, p: max(p)),
    "min": Rule("the first of its operands in the order of the values", lambda n, p: min(p)),
    "median": Rule("the middle operand; of an even number, the lower middle one", _median),
    "median-mean": Rule(
        "the middle operand; of an even number, the floor of the mean of the middle two",
        _median_mean,
    ),
    "majority": Rule(
        "what most operands are: two values, an odd number of operands",
        _median,
        odd=True,
        n_values=2,
    ),
    "sum": Rule("the sum modulo the number of values", lambda n, p: sum(p) % n),
    "product": Rule("the product modulo the number of values", _product),
    "saturating-sum": Rule(
        "the sum, or the last value where that is less", lambda n, p: min(sum(p), n - 1)
    ),
    "difference": Rule(
        "the first operand minus all others, modulo the number of values; of one, its negative",
        _difference,
        ordered=True,
    ),
    "first": Rule("the first operand", lambda n, p: p[0], ordered=True),
    "last": Rule("the last operand", lambda n, p: p[-1], ordered=True),
    "complement": Rule(
        "the value as far from the end as the operand is from the start",
        lambda n, p: n - 1 - p[0],
        most=1,
    ),
    "nand": Rule("the complement of the min", lambda n, p: n - 1 - min(p)),
    "nor": Rule("the complement of the max", lambda n, p: n - 1 - max(p)),
    "implies": Rule(
        "the max of the first operand's complement and the second operand",
        lambda n, p: max(n - 1 - p[0], p[1]),
        ordered=True,
        fewest=2,
        most=2,
    ),
}


def operand_keys(n_values: int, arities: Iterable[int], ordered: bool) -> Iterator[Key]:
    """Every key of a total table of these arities, in a fixed order."""
    for arity in arities:
        if ordered:
            yield from product(range(n_values), repeat=arity)
        else:
            yield from combinations_with_replacement(range(n_values), arity)


def count_keys(n_values: int, arities: Iterable[int], ordered: bool) -> int:
    """Number of `operand_keys`, computed without listing them."""
    return sum(n_values**k if ordered else comb(n_values + k - 1, k) for k in arities)


@dataclass(frozen=True)
class RuleTable(Mapping[Key, int]):
    """The table of a rule, computed when it is read. With `unbounded`, it also accepts every number
    of operands above the listed ones; such a table can be looked up but not listed.
    """

    rule: str
    n_values: int
    arities: tuple[int, ...]
    unbounded: bool = False

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ValueError(f"expected one of the rules {', '.join(RULES)}, found {self.rule!r}")
        rule = RULES[self.rule]
        limits = f"the rule {self.rule!r} takes"
        if rule.n_values is not None and self.n_values != rule.n_values:
            raise ValueError(f"{limits} {rule.n_values} values, found {self.n_values}")
        for arity in self.arities:
            if rule.odd and arity % 2 == 0:
                raise ValueError(f"{limits} an odd number of operands, found {arity}")
            if arity < rule.fewest or arity > (rule.most or arity):
                most = "or more" if rule.most is None else f"to {rule.most}"
                counts = rule.fewest if rule.fewest == rule.most else f"{rule.fewest} {most}"
                raise ValueError(f"{limits} {counts} operands, found {arity}")
        if self.unbounded and (rule.most or rule.odd):
            raise ValueError(f"{limits} no unbounded number of operands")

    def __getitem__(self, key: Key) -> int:
        if not self.takes(len(key)) or not all(0 <= place < self.n_values for place in key):
            raise KeyError(key)
        rule = RULES[self.rule]
        if not rule.ordered and list(key) != sorted(key):
            raise KeyError(key)
        return rule.apply(self.n_values, key)

    def takes(self, count: int) -> bool:
        return count in self.arities or (self.unbounded and count > self.arities[-1])

    def __iter__(self) -> Iterator[Key]:
        self._require_bound()
        return operand_keys(self.n_values, self.arities, RULES[self.rule].ordered)

    def __len__(self) -> int:
        self._require_bound()
        return count_keys(self.n_values, self.arities, RULES[self.rule].ordered)

    def _require_bound(self) -> None:
        if self.unbounded:
            raise ValueError(f"a table of {self.rule!r} for any number of operands has no end")
