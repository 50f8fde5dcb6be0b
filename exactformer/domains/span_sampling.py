"""Expressions in infix and prefix notation: all of a given length."""

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from exactformer.domains.operators import Operator
from exactformer.domains.symbols import CLOSE, OPEN

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra

WIDEST = 10  # operands drawn for an operator that takes any number, as in the Long Range Arena


def parenthesized_tokens(algebra: "Algebra", length: int) -> Iterator[tuple[int, ...]]:
    """Every expression of exactly this many tokens, as token ids."""
    if length == 1:
        yield from ((token,) for token in algebra.value_ids)
    for token, operator in enumerate(algebra.operators, start=algebra.first_operator):
        for arity in arities_of(operator, length - 3):
            for operands in _operands_of_length(algebra, arity, length - 3):
                yield span(algebra, token, operands)


def _operands_of_length(
    algebra: "Algebra", count: int, length: int
) -> Iterator[list[tuple[int, ...]]]:
    """Every choice of `count` expressions that have this many tokens in total."""
    if count == 0:
        if length == 0:
            yield []
        return
    for first_length in range(1, length - count + 2):
        if not _fits(algebra, count - 1, length - first_length):
            continue  # or every `first` would be tried in vain
        for first in parenthesized_tokens(algebra, first_length):
            for others in _operands_of_length(algebra, count - 1, length - first_length):
                yield [first, *others]


@cache
def _fits(algebra: "Algebra", count: int, length: int) -> bool:
    """Whether some `count` expressions have this many tokens in total."""
    if count == 0 or length < count:
        return length == count
    if count == 1:
        arities = (arity for op in algebra.operators for arity in arities_of(op, length - 3))
        return length == 1 or any(_fits(algebra, arity, length - 3) for arity in arities)
    return any(
        _fits(algebra, 1, first) and _fits(algebra, count - 1, length - first)
        for first in range(1, length - count + 2)
    )


def arities_of(operator: Operator, widest: int = WIDEST) -> tuple[int, ...]:
    """The numbers of operands to draw from, up to `widest` if the operator takes any number."""
    more = range(operator.arities[-1] + 1, widest + 1) if operator.unbounded else ()
    return (*operator.arities, *more)


def span(algebra: "Algebra", operator: int, operands: list[tuple[int, ...]]) -> tuple[int, ...]:
    parts = algebra.notation.arrange((operator,), operands)
    return (OPEN, *(token for part in parts for token in part), CLOSE)
