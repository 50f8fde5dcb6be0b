"""Checks that a level gate groups operators as declared, or that a different grouping changes no
value.

In plain notation, levels and directions say which operator is evaluated before which. Weights carry
their own, the algebra declares others. They may differ: `+` below `-` is another gate than `+` and
`-` on one level, but with sums and differences modulo seven no value can tell.

How a gate orders operators. A binary operator of level l counts as 2l, a prefix operator of level
l as 2l + 1. A prefix operator right behind another operator takes the larger one of its own number
and of that one's, to which 1 is added if that one is binary and groups from the left. This is an
operator's effective level. The larger level comes first; on one level, the left one does where the
level groups from the left, else the right one. So the operators of an expression without
parentheses come in a total order, and evaluating them in that order is what the layer does. By
induction it is enough to look at such expressions: a group in parentheses is a value, with levels
of its own inside.

The same holds of the declaration, for what the parser lets pass: a prefix operator u right behind a
tighter one is an expression only if that one does not group from the left, and no binary level lies
between the two. Then u and the later operators keep the order that their declared levels say.

What suffices. The orders of gate and declaration are compared pair by pair.
  (i)  Binary o, then binary p, o = p included. If one groups `a o b p c` from the left and the
       other from the right, it must hold that (a o b) p c = a o (b p c) for all values.
  (ii) Prefix u, then binary p. The level e of u may be that of an operator before it. So for every
       level e that u can have in an expression that the parser lets pass: if u comes before p by
       one of gate and declaration but not by the other, then u(a) p b = u(a p b) for all values.

Why that suffices. Sort one order into the other by swaps of neighbours: each swap is of a pair on
which the two differ, and all pairs on which they agree stay as they are. Let x, left of y, be
swapped; all operators before them in the present order are evaluated, the others not yet.
  - A binary operator that is not evaluated yet lies between them: then they share no operand, and
    either one first gives the same.
  - Else, x and y binary: they stand in `a x b y c`, and (i) is what is needed.
  - Else, x prefix and y binary: they stand in `x a y b`, and (ii) is. Its level is among those
    listed, since levels depend on the run of operators in front of it alone, and every run that the
    parser lets pass is followed, operator by operator.
  - Else, y is prefix, and nothing but prefix operators lie between. Those right behind an operator
    come before it in both orders, so x comes after y in both, and there is no swap. If y stands
    further right, the binary operator right before its run comes after y in both orders, so it is
    not evaluated yet, and this is the first case.
No swap changes the value, so both orders give the same one.

An operator's own level is not enough for (ii). Let `!`, `~` and `+` be declared from the loosest to
the tightest, `~` be the identity, and a gate have `~` above `+`. By itself that is harmless. But in
`~!a+b` the `!` goes along with `~`, before `+`, and !a+b need not be !(a+b).

What is necessary. If (i) fails, some `a o b p c` comes out wrong, and if (ii) fails for u at the
beginning of an operand, some `u a p b` does. Where it fails behind other operators only, these may
hide it, and the verdict may stay open.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.bounds import require
from exactformer.verify.rows import Fault
from exactformer.weights.tensors import Arrays

T = TypeVar("T")

MOST_COMPARED = 1 << 33  # choices of operands of two operators: a minute or two
MOST_KEPT = 20  # choices of operands that make a difference, of each pair


@dataclass(frozen=True)
class LevelGate:
    """Effective levels, declared or learned; `levels` has rows for prefix and for binary uses."""

    levels: NDArray[np.int64]
    directions: NDArray[np.int64]

    def prefix(self, u: int) -> int:
        return 2 * int(self.levels[0, u]) + 1

    def binary(self, o: int) -> int:
        return 2 * int(self.levels[1, o])

    def groups_left(self, o: int) -> bool:
        """Whether the level of a binary operator groups from the left."""
        return bool(self.directions[self.levels[1, o]] <= 0)

    def left_first(self, o: int, p: int) -> bool:
        """Whether `a o b p c` is `(a o b) p c`."""
        left, right = self.binary(o), self.binary(p)
        return left > right or (left == right and self.groups_left(o))


@dataclass(frozen=True)
class Grouping:
    """The patterns that a level gate groups otherwise than declared: those that change no value,
    and those that change one, with expressions whose value changes.
    """

    harmless: tuple[str, ...]
    wrong: tuple[Fault, ...]

    def __str__(self) -> str:
        if self.wrong:
            return f"otherwise than declared, with a difference: {self.wrong[0]}"
        if self.harmless:
            return f"otherwise than declared, without a difference: {', '.join(self.harmless)}"
        return "as declared"


@dataclass(frozen=True)
class OperatorRun:
    """Consecutive operators: a binary one with its operand, or none, then prefix operators."""

    binary: int | None
    prefix: tuple[int, ...] = ()

    def then(self, u: int) -> "OperatorRun":
        return OperatorRun(self.binary, (*self.prefix, u))

    def with_operands(self, p: int, first: T | None, second: T, third: T) -> list[T | int]:
        """The text of the run with operands: `first binary prefix ... second p third`."""
        before = [] if first is None or self.binary is None else [first, self.binary]
        return [*before, *self.prefix, second, p, third]


def check_levels(algebra: Algebra, arrays: Arrays) -> Grouping:
    """Conditions (i) and (ii) for the gate in `arrays`."""
    declared = LevelGate(algebra.declared_levels, algebra.declared_directions)
    gate = LevelGate(*(arrays[name].astype(np.int64) for name in ("G_L", "directions")))
    binary = np.flatnonzero(algebra.declared_levels[1]).tolist()
    pairs = [
        (OperatorRun(o), p)
        for o, p in product(binary, binary)
        if gate.left_first(o, p) != declared.left_first(o, p)
    ]
    pairs += [
        (run, p)
        for run, e in every_run(algebra, declared, gate)
        for p in binary
        if (e > gate.binary(p)) != (declared.prefix(run.prefix[-1]) > declared.binary(p))
    ]
    compared = sum(len(algebra.values) ** (2 if run.prefix else 3) for run, _ in pairs)
    name = f"operands of {algebra.name!r} for which two ways to group are compared"
    require(name, compared, MOST_COMPARED)
    table = cache(partial(_table, algebra))
    harmless: list[str] = []
    wrong: list[Fault] = []
    for run, p in pairs:
        last = table(run.prefix[-1], 1) if run.prefix else table(run.binary, 2)
        differing = _differing(last, table(p, 2))
        pattern = _pattern(algebra, run, p)
        harmless += [] if differing else [pattern]
        wrong += [
            Fault(pattern, tuple(ids))
            for operands in differing
            for ids in _examples(algebra, run, p, operands)
        ]
    return Grouping(tuple(harmless), tuple(wrong))


def every_run(
    algebra: Algebra, declared: LevelGate, gate: LevelGate
) -> Iterator[tuple[OperatorRun, int]]:
    """Each prefix operator with each level that the gate can give it, at the end of a run of
    operators that the parser accepts.
    """
    prefix, binary = (np.flatnonzero(row).tolist() for row in algebra.declared_levels)
    binary_levels = sorted({declared.binary(o) for o in binary})
    # By what the next operator depends on: declared level, the gate's, and whether a looser one is
    # refused whatever it is.
    runs = {(0, 0, False): OperatorRun(None)}
    for o in binary:
        level = gate.binary(o) + gate.groups_left(o)
        runs.setdefault((declared.binary(o), level, declared.groups_left(o)), OperatorRun(o))
    seen: set[tuple[int, int]] = set()
    for (d, e, refuses), run in (waiting := list(runs.items())):
        for u in prefix:
            own, level = declared.prefix(u), max(gate.prefix(u), e)
            if own < d and (refuses or any(own < between < d for between in binary_levels)):
                continue
            if (u, level) not in seen:
                seen.add((u, level))
                yield run.then(u), level
            key = max(own, d), level, False
            if key not in runs:
                runs[key] = run.then(u)
                waiting.append((key, runs[key]))


def _table(algebra: Algebra, token: int, arity: int) -> NDArray[np.int64]:
    """The results of an operator, by its operands."""
    operator, n = algebra.operators[token - algebra.first_operator], len(algebra.values)
    results = [operator(operands) for operands in product(range(n), repeat=arity)]
    return np.array(results).reshape([n] * arity)


def _differing(u: NDArray, p: NDArray) -> list[tuple[int, ...]]:
    """Some operands (a, b) with u(a) p b different from u(a p b). For each a, a binary operator o
    is a prefix operator `a o`: then some (a, b, c) with (a o b) p c different from a o (b p c).
    """
    if u.ndim == 2:
        found = [(a, *others) for a, of_b in enumerate(u) for others in _differing(of_b, p)]
        return found[:MOST_KEPT]
    differs = np.argwhere(p[u] != u[p])
    return [tuple(operands) for operands in differs[:MOST_KEPT].tolist()]


def _examples(
    algebra: Algebra, run: OperatorRun, p: int, operands: tuple[int, ...]
) -> Iterator[list[int]]:
    """The expressions with these operands around p, for every choice of the run's own operands."""
    *first, a, b = (FIRST_VALUE + operand for operand in operands)
    firsts = first or ([None] if run.binary is None else algebra.value_ids[:MOST_KEPT])
    for value in firsts:
        yield run.with_operands(p, value, a, b)


def _pattern(algebra: Algebra, run: OperatorRun, p: int) -> str:
    """The pattern of a run in words, such as `a + b * c`."""
    names = iter("abc")
    first = None if run.binary is None else next(names)
    parts = run.with_operands(p, first, next(names), next(names))
    symbols = [part if isinstance(part, str) else algebra.vocabulary[part] for part in parts]
    return f"`{' '.join(symbols)}`"
