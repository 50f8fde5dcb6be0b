"""The two ways to iterate, "depth" and "log", and their costs. Imports no torch, so commands start
fast.

"depth" is the paper's layer (`circuit.py`): one iteration for each level. "log" is the logarithmic
layer (`speculate.py`), which tries each value in each position. Plain notation has one layer
(`precedence.py`), and so has Polish notation (`polish.py`); their iterations are of the second
kind, whatever is chosen. Each other kind of domain has one layer, too.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

from exactformer.domains.algebra import CLOSE, FIRST_VALUE
from exactformer.domains.data import show, suggestion
from exactformer.domains.expression import Expression
from exactformer.domains.integers import Integers
from exactformer.domains.machines import ReadByMachine

Iterations = Literal["depth", "log"]

MOST_WORK = 10**9  # work of one expression without --no-limit: a minute or two


def check_iterations(iterations: str) -> None:
    if iterations not in get_args(Iterations):
        hint = suggestion(iterations, get_args(Iterations))
        raise ValueError(f"iterations: expected depth or log, found {show(iterations)}{hint}")


class Cost(NamedTuple):
    """The cost of a layer: how many iterations an expression takes at most, and how many values
    each position is tried with; 0 if it is run as it is.
    """

    iterations: Callable[[Expression], int]
    values: Callable[[Expression], int]


def _logarithm(expression: Expression) -> int:
    ids = expression.ids
    values = int(((ids >= FIRST_VALUE) & (ids < expression.algebra.first_operator)).sum())
    return values.bit_length()  # 1 + floor(log2(values))


def _states(expression: Expression) -> int:
    assert isinstance(expression.domain, ReadByMachine)
    return len(expression.domain.states)


def _innermost_spans(expression: Expression) -> int:
    brackets = expression.ids[expression.ids <= CLOSE]
    return int((brackets[:-1] < brackets[1:]).sum()).bit_length()  # 1 + floor(log2(spans))


def _integers(expression: Expression) -> Integers:
    assert isinstance(expression.domain, Integers)
    return expression.domain


_BY_LOGARITHM = Cost(_logarithm, lambda expression: len(expression.algebra.values))

_OF_INTEGERS = Cost(
    lambda text: _integers(text).most_iterations(text.ids), lambda text: _integers(text).base
)

COSTS: dict[str, Cost] = {  # by layer
    "depth": Cost(lambda expression: expression.depth, lambda expression: 0),
    "log": _BY_LOGARITHM,
    "plain": _BY_LOGARITHM,
    "polish": _BY_LOGARITHM,
    "machine": Cost(lambda text: 1, _states),
    "span-machine": Cost(_innermost_spans, _states),
    "integers": _OF_INTEGERS,
    "little-endian": _OF_INTEGERS,
    "square-root": Cost(lambda text: (len(text) + 1) // 2, lambda text: 1),
    "rearrange": Cost(lambda text: 1, lambda text: 0),
}


def most_iterations(expression: Expression, iterations: Iterations) -> int:
    """Number of iterations by depth; an upper bound on it for the other layers."""
    return _cost(expression, iterations).iterations(expression)


def values_tried(expression: Expression, iterations: Iterations) -> int:
    """Number of values that each position is tried with; 0 if it is run as it is."""
    return _cost(expression, iterations).values(expression)


def _cost(expression: Expression, iterations: Iterations) -> Cost:
    check_iterations(iterations)
    return COSTS[expression.domain.layer(iterations)]


def work(expression: Expression, iterations: Iterations = "depth") -> int:
    """Upper bound on the transformer's work: positions of all iterations together."""
    tried = 1 + values_tried(expression, iterations)
    return most_iterations(expression, iterations) * len(expression.positions) * tried


def require_feasible(
    expression: Expression,
    most: int | None,
    where: str = "",
    iterations: Iterations = "depth",
    instead: str = "--no-limit runs it anyway",
) -> None:
    """Refuse what would take hours, unless there is no bound; `instead` says what to do then."""
    if most is not None and work(expression, iterations) > most:
        values = values_tried(expression, iterations)
        tried = f" with {values:,} value{'s' * (values != 1)}" if values else ""
        raise ValueError(
            f"{where}the transformer would take {most_iterations(expression, iterations):,} "
            f"iterations of {len(expression.positions):,} positions{tried} each, more than "
            f"{most:,} in all: {instead}"
        )
