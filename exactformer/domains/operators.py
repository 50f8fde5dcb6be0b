"""One operator: a symbol, and its value for each choice of operands it takes."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from types import MappingProxyType

from exactformer.domains.bounds import LARGEST_ARITY, MOST_ENTRIES, require
from exactformer.domains.data import Place
from exactformer.domains.rules import RULES, RuleTable, count_keys, operand_keys

# A rule declared free of order is tried in every order if that takes at most this many calls.
ORDER_CHECK_LIMIT = 100_000


@dataclass(frozen=True)
class Operator:
    """A symbol, the numbers of operands it takes, and its value for each of them.

    `table` maps operands, as indices into the algebra's values, to the index of the result.
    Operators that ignore the order of their operands have one entry for each multiset, keyed by
    the ascending tuple; ordered ones have one for each tuple. Operators made by `named` follow a
    rule, and their table computes its entries when they are read.
    """

    symbol: str
    arities: tuple[int, ...]
    table: Mapping[tuple[int, ...], int]
    ordered: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "arities", _arities(self.symbol, self.arities))
        if not isinstance(self.table, RuleTable):
            object.__setattr__(self, "table", MappingProxyType(dict(self.table)))

    def __repr__(self) -> str:
        by = f", by the rule {self.rule}" if self.rule else ""
        return f"Operator({self.symbol} of {self.counts}{', in order' if self.ordered else ''}{by})"

    @classmethod
    def from_rule(
        cls,
        symbol: str,
        arities: Iterable[int],
        rule: Callable[..., str],
        values: Sequence[str],
        *,
        ordered: bool = False,
    ) -> "Operator":
        """Expand `rule`, a function of value symbols, into a table, checking each result."""
        arities = _arities(symbol, arities)
        require(
            f"operator {symbol!r}, entries of its table",
            count_keys(len(values), arities, ordered),
            MOST_ENTRIES,
            "name a rule instead",
        )
        index = {value: i for i, value in enumerate(values)}

        def apply(key: tuple[int, ...]) -> int:
            operands = [values[i] for i in key]
            result = rule(*operands)
            if result not in index:
                raise ValueError(
                    f"operator {symbol!r} on {', '.join(operands)}: "
                    f"expected one of {', '.join(values)}, found {result!r}"
                )
            return index[result]

        table = {key: apply(key) for key in operand_keys(len(values), arities, ordered)}
        tried = [] if ordered else [k for k in arities if len(values) ** k <= ORDER_CHECK_LIMIT]
        for key in operand_keys(len(values), tried, ordered=True):
            if apply(key) != table[tuple(sorted(key))]:
                raise ValueError(
                    f"operator {symbol!r} is declared free of order, "
                    f"but its rule is not on {', '.join(values[i] for i in key)}"
                )
        return cls(symbol, arities, table, ordered)

    @classmethod
    def named(
        cls,
        symbol: str,
        rule: str,
        arities: Iterable[int],
        n_values: int,
        *,
        unbounded: bool = False,
    ) -> "Operator":
        """An operator that follows one of `rules.RULES` on `n_values` values.

        With `unbounded` it also takes every number of operands above the largest of `arities`.
        """
        arities = _arities(symbol, arities)
        try:
            table = RuleTable(rule, n_values, arities, unbounded)
        except ValueError as error:
            raise ValueError(f"operator {symbol!r}: {error}") from None
        return cls(symbol, arities, table, RULES[rule].ordered)

    @property
    def rule(self) -> str | None:
        """Name of the operator's rule; None if its table is written out."""
        return self.table.rule if isinstance(self.table, RuleTable) else None

    @property
    def unbounded(self) -> bool:
        """Whether it takes every number of operands from the largest of its arities on."""
        return isinstance(self.table, RuleTable) and self.table.unbounded

    @property
    def counts(self) -> str:
        """The numbers of operands in words: `2 or 3`, `2 to 10`, `2 or more`."""
        first, last = self.arities[0], self.arities[-1]
        whole = self.arities == tuple(range(first, last + 1))
        if self.unbounded and whole:
            return f"{first} or more"
        if whole and last > first + 1:
            return f"{first} to {last}"
        return " or ".join(map(str, self.arities)) + (" or more" if self.unbounded else "")

    def takes(self, count: int) -> bool:
        return count in self.arities or (self.unbounded and count > self.arities[-1])

    def key(self, operands: Iterable[int]) -> tuple[int, ...]:
        return tuple(operands) if self.ordered else tuple(sorted(operands))

    def __call__(self, operands: Iterable[int]) -> int:
        return self.table[self.key(operands)]

    def agrees_with(self, other: "Operator") -> bool:
        """Whether the other operator gives all that this one does: on more numbers of operands,
        perhaps, but the same wherever this one has a value.
        """
        if self == other:
            return True
        if self.unbounded or not all(map(other.takes, self.arities)):
            return False
        if self.rule is not None and self.rule == other.rule:
            return True
        orders = permutations if other.ordered > self.ordered else lambda key: [key]
        return all(
            other(operands) == value
            for key, value in self.table.items()
            for operands in orders(key)
        )

    def cases(self, n_values: int, *, every_order: bool) -> Iterator[tuple[tuple[int, ...], int]]:
        """Every choice of operands with its result: every order, or each multiset once."""
        if every_order == self.ordered:
            yield from self.table.items()
            return
        for operands in operand_keys(n_values, self.arities, every_order):
            yield operands, self(operands)


def _arities(symbol: str, arities: Iterable[int]) -> tuple[int, ...]:
    """Check arities and return them in ascending order without duplicates."""
    listed = tuple(islice(arities, LARGEST_ARITY + 1))
    if not listed or not all(type(arity) is int and arity >= 1 for arity in listed):
        raise ValueError(f"operator {symbol!r}: expected arities of 1 or more, found {listed[:5]}")
    require(f"operator {symbol!r}, arity", max(listed), LARGEST_ARITY, "a rule may take any number")
    return tuple(sorted(set(listed)))


def read_operator(place: Place, values: tuple[str, ...]) -> Operator:
    """Read an operator from an entry of `operators` in plain data, with a rule or a table."""
    named = isinstance(place.value, dict) and "rule" in place.value
    definition = ("rule", "arities") if named else ("table",)
    fields = place.fields(("symbol", "ordered", *definition), ("unbounded",) if named else ())
    symbol, ordered = fields["symbol"].text(), fields["ordered"].flag()
    if not named:
        return _tabled(symbol, fields["table"], values, ordered)
    name, arities = fields["rule"].one_of(RULES), fields["arities"].items(LARGEST_ARITY)
    unbounded = "unbounded" in fields and fields["unbounded"].flag()
    counts = [arity.whole(1, LARGEST_ARITY) for arity in arities]
    if counts != sorted(set(counts)):
        raise fields["arities"].fault("expected ascending numbers, each once")
    try:
        operator = Operator.named(symbol, name, counts, len(values), unbounded=unbounded)
    except ValueError as error:
        raise place.fault(str(error)) from None
    if operator.ordered != ordered:
        order = "ordered" if operator.ordered else "free of order"
        raise fields["ordered"].fault(f"the rule {name!r} is {order}")
    return operator


def _tabled(symbol: str, rows: Place, values: tuple[str, ...], ordered: bool) -> Operator:
    index = {value: i for i, value in enumerate(values)}
    table: dict[tuple[int, ...], int] = {}
    for row in rows.items(MOST_ENTRIES):
        entry = []
        for item in row.items(LARGEST_ARITY + 1, least=2):
            if item.text() not in index:
                raise item.unexpected("one of the values")
            entry.append(index[item.value])
        *operands, result = entry
        if tuple(operands) in table:
            raise row.fault("these operands are there twice")
        table[tuple(operands)] = result
    return Operator(symbol, tuple({len(key) for key in table}), table, ordered)
