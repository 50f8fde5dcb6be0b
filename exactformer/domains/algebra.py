"""What can be computed: a finite ordered set of values and the operators on them.

An `Algebra` is data. Everything that differs between Boolean formulas, arithmetic modulo ten
and ListOps is in one of these; nothing else in the package knows a task by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.lexicon import symbol_problem
from exactformer.domains.rules import RuleTable, count_keys, find_rule, operand_keys

Ints = NDArray[np.int64]

OPEN, CLOSE = 0, 1  # token ids of `(` and `)` in every vocabulary, as in the paper's Sigma
BRACKETS = ("(", ")", "[", "]")

# A rule declared free of order is tried in every order, as long as that takes no more calls.
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
        object.__setattr__(self, "arities", tuple(sorted(set(self.arities))))
        if not isinstance(self.table, RuleTable):
            object.__setattr__(self, "table", MappingProxyType(dict(self.table)))
        if not self.arities or self.arities[0] < 1:
            raise ValueError(
                f"operator {self.symbol!r}: expected arities of 1 or more, found {self.arities}"
            )

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
        arities = tuple(arities)
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
        for arity in () if ordered else arities:
            if len(values) ** arity <= ORDER_CHECK_LIMIT:
                for key in product(range(len(values)), repeat=arity):
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
        arities = tuple(sorted(set(arities)))
        try:
            table = RuleTable(rule, n_values, arities, unbounded)
        except ValueError as error:
            raise ValueError(f"operator {symbol!r}: {error}") from None
        return cls(symbol, arities, table, find_rule(rule).ordered)

    @property
    def rule(self) -> str | None:
        """The name of the rule it follows; None where its table is written out."""
        return self.table.rule if isinstance(self.table, RuleTable) else None

    @property
    def unbounded(self) -> bool:
        """Whether it takes every number of operands from the largest of its arities on."""
        return isinstance(self.table, RuleTable) and self.table.unbounded

    @property
    def counts(self) -> str:
        """The numbers of operands it takes, in words: `2 or 3`, `2 to 10`, `2 or more`."""
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

    def cases(self, n_values: int, *, every_order: bool) -> Iterator[tuple[tuple[int, ...], int]]:
        """Every choice of operands with its result: in each order, or once for each multiset."""
        if every_order == self.ordered:
            yield from self.table.items()
            return
        for operands in operand_keys(n_values, self.arities, every_order):
            yield operands, self(operands)


@dataclass(frozen=True)
class Algebra:
    """Values, operators on them, and how expressions are written down.

    notation    "infix": `(a op b)` and `(op a)`, so arities 1 and 2; "prefix": `( op a b ... )`.
    spellings   other ways to write a token of the vocabulary, accepted when reading.
    """

    name: str
    values: tuple[str, ...]
    operators: tuple[Operator, ...]
    notation: Literal["infix", "prefix"]
    spellings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(self.values))
        object.__setattr__(self, "operators", tuple(self.operators))
        object.__setattr__(self, "spellings", MappingProxyType(dict(self.spellings)))
        if self.notation not in ("infix", "prefix"):
            raise ValueError(f"expected notation 'infix' or 'prefix', found {self.notation!r}")
        if not self.values or not self.operators:
            raise ValueError(f"algebra {self.name!r} needs at least one value and one operator")
        self._check_symbols()
        for operator in self.operators:
            self._check_operator(operator)

    def __hash__(self) -> int:
        return hash((self.name, self.vocabulary, self.notation))

    def _check_symbols(self) -> None:
        seen: set[str] = set(BRACKETS[:2])
        for symbol in [*self.values, *(op.symbol for op in self.operators), *self.spellings]:
            if symbol in seen:
                raise ValueError(f"algebra {self.name!r}: the symbol {symbol!r} is used twice")
            if problem := symbol_problem(symbol):
                raise ValueError(f"algebra {self.name!r}: {problem}, found {symbol!r}")
            square = symbol in ("[", "]") and symbol in self.spellings
            if not square and any(bracket in symbol for bracket in BRACKETS):
                raise ValueError(f"algebra {self.name!r}: {symbol!r} contains a bracket")
            seen.add(symbol)
        for spelling, symbol in self.spellings.items():
            if symbol not in self.vocabulary:
                raise ValueError(
                    f"algebra {self.name!r}: the spelling {spelling!r} stands for {symbol!r}, "
                    f"which is not in the vocabulary {' '.join(self.vocabulary)}"
                )
        square = {s: t for s, t in self.spellings.items() if s in BRACKETS or t in BRACKETS}
        if square and square != {"[": "(", "]": ")"}:
            raise ValueError(
                f"algebra {self.name!r}: expected '[' for '(' and ']' for ')' as the only other "
                f"brackets, found {', '.join(f'{s!r} for {t!r}' for s, t in square.items())}"
            )

    def _check_operator(self, operator: Operator) -> None:
        where = f"algebra {self.name!r}, operator {operator.symbol!r}"
        if self.notation == "infix" and operator.arities[-1] > 2:
            raise ValueError(
                f"{where}: infix notation takes 1 or 2 operands, found {operator.arities[-1]}; "
                f"use prefix notation"
            )
        if self.notation == "infix" and operator.unbounded:
            raise ValueError(
                f"{where}: infix notation takes 1 or 2 operands, found {operator.counts}; "
                f"use prefix notation"
            )
        if isinstance(operator.table, RuleTable):
            if operator.table.n_values != len(self.values):
                raise ValueError(
                    f"{where}: its rule is for {operator.table.n_values} values, "
                    f"found {len(self.values)}"
                )
            return
        expected = set(operand_keys(len(self.values), operator.arities, operator.ordered))
        for key in sorted(expected ^ operator.table.keys()):
            operands = " ".join(self.values[i] if i < len(self.values) else f"#{i}" for i in key)
            raise ValueError(
                f"{where}: {'no' if key in expected else 'stray'} entry for {operands}"
            )
        for result in operator.table.values():
            if not 0 <= result < len(self.values):
                raise ValueError(
                    f"{where}: expected results from 0 to {len(self.values) - 1}, found {result}"
                )

    def to_dict(self) -> dict[str, Any]:
        """Everything that defines the algebra, in plain data; tables in symbols, result last."""

        def definition(op: Operator) -> dict[str, Any]:
            if op.rule is not None:
                unbounded = {"unbounded": True} if op.unbounded else {}
                return {"rule": op.rule, "arities": list(op.arities), **unbounded}
            rows = ((*key, value) for key, value in op.table.items())
            return {"table": [[self.values[i] for i in row] for row in rows]}

        return {
            "name": self.name,
            "notation": self.notation,
            "values": list(self.values),
            "operators": [
                {"symbol": op.symbol, "ordered": op.ordered, **definition(op)}
                for op in self.operators
            ],
            "spellings": dict(self.spellings),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Algebra":
        values = tuple(data["values"])
        index = {value: i for i, value in enumerate(values)}
        operators = []
        for op in data["operators"]:
            if "rule" in op:
                operator = Operator.named(
                    op["symbol"],
                    op["rule"],
                    op["arities"],
                    len(values),
                    unbounded=op.get("unbounded", False),
                )
                if operator.ordered != op["ordered"]:
                    raise ValueError(
                        f"operator {op['symbol']!r}: the rule {op['rule']!r} is "
                        f"{'ordered' if operator.ordered else 'free of order'}"
                    )
                operators.append(operator)
                continue
            rows = [tuple(index[symbol] for symbol in row) for row in op["table"]]
            table = {row[:-1]: row[-1] for row in rows}
            arities = tuple(len(key) for key in table)
            operators.append(Operator(op["symbol"], arities, table, op["ordered"]))
        return cls(data["name"], values, tuple(operators), data["notation"], data["spellings"])

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        """The paper's ordered Sigma: parentheses, values, operators; a token's id is its place."""
        return ("(", ")", *self.values, *(op.symbol for op in self.operators))

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        """Every accepted spelling to its token id."""
        ids = {symbol: i for i, symbol in enumerate(self.vocabulary)}
        return ids | {spelling: ids[symbol] for spelling, symbol in self.spellings.items()}

    @property
    def first_operator(self) -> int:
        """Token id of the first operator; values have the ids from 2 up to it."""
        return 2 + len(self.values)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copied and sent between processes as plain data."""
        return Algebra.from_dict, (self.to_dict(),)

    @property
    def max_fan_in(self) -> int | None:
        """The largest number of operands; None where some operator takes any number."""
        if any(op.unbounded for op in self.operators):
            return None
        return max(op.arities[-1] for op in self.operators)

    def require_fan_in(self) -> int:
        """The largest number of operands, for what has to list every case."""
        for op in self.operators:
            if op.unbounded:
                raise ValueError(
                    f"operator {op.symbol!r} of {self.name!r} takes {op.counts} operands: "
                    f"its cases cannot be listed without a bound"
                )
        return max(op.arities[-1] for op in self.operators)

    def cases(self, *, every_order: bool) -> Iterator[tuple[int, tuple[int, ...], int]]:
        """Every span of depth 1: the number of its operator, its operands, its result."""
        self.require_fan_in()
        for o, operator in enumerate(self.operators):
            for operands, value in operator.cases(len(self.values), every_order=every_order):
                yield o, operands, value

    def case_arrays(self, *, every_order: bool) -> Iterator[tuple[int, Ints, Ints]]:
        """The same in blocks: an operator, rows of as many operands each, and their results."""
        self.require_fan_in()
        for o, operator in enumerate(self.operators):
            for arity in operator.arities:
                keys = list(operand_keys(len(self.values), [arity], every_order))
                results = np.array([operator(key) for key in keys])
                yield o, np.array(keys), results

    def count_cases(self, *, every_order: bool) -> int:
        """How many `cases` there are, without listing them."""
        self.require_fan_in()
        n = len(self.values)
        return sum(count_keys(n, op.arities, every_order) for op in self.operators)

    @property
    def ordered(self) -> bool:
        """Whether the order of operands matters anywhere."""
        return any(op.ordered for op in self.operators)

    @property
    def closing_slot(self) -> bool:
        """Whether a zero vector follows each `)` so that neighbouring spans never touch."""
        return self.notation == "prefix"
