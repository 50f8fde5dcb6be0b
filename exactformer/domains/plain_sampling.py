"""Expressions in plain notation: all of a length, and given ones with few or many parentheses."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.grammar import CLOSED, START, TOP
from exactformer.domains.plain_grammar import LEFT, RIGHT, PlainGrammar, may_follow


def plain_tokens(algebra: Algebra, length: int) -> Iterator[tuple[int, ...]]:
    """Every text of exactly this many tokens, as token ids."""
    grammar = PlainGrammar(algebra)

    def further(
        tokens: tuple[int, ...], state: int, around: tuple[int, ...]
    ) -> Iterator[tuple[int, ...]]:
        left = length - len(tokens)
        operand = grammar.after_operand[state]
        if left < len(around) + (operand != CLOSED):
            return  # not even what is open can be finished
        if not left:
            yield tokens
            return
        if operand != CLOSED:
            yield from further((*tokens, OPEN), START, (*around, state))
            for value in algebra.value_ids:
                yield from further((*tokens, value), operand, around)
        if grammar.complete[state]:
            yield from further((*tokens, CLOSE), grammar.after_operand[around[-1]], around[:-1])
        for operator, following in grammar.after_operator[state].items():
            yield from further((*tokens, operator), following, around)

    return further((), TOP, ())


def written_plain(
    algebra: Algebra, expression: Expression, surplus: NDArray[np.bool_]
) -> Expression:
    """An expression of `algebra.parenthesized` with the parentheses that it needs, and those that
    `surplus` asks for at a `(` or at a value.
    """
    ids = expression.ids.tolist()
    kept = _needed(algebra, ids) | surplus
    written: list[int] = []
    enclosing: list[bool] = []  # whether the parentheses of each open span are kept
    for token, keep in zip(ids, kept.tolist(), strict=True):
        if token == OPEN:
            enclosing.append(keep)
        elif token == CLOSE:
            keep = enclosing.pop()
        if token in algebra.value_ids and keep:
            written += (OPEN, token, CLOSE)
        elif keep or token not in (OPEN, CLOSE):
            written.append(token)
    return Expression(algebra, np.array(written, dtype=np.int16))


@dataclass
class _Span:
    """What was read of a span, and the spans among its operands."""

    begin: int
    operator: int | None = None
    binary: bool = False
    left: "_Span | None" = None
    right: "_Span | None" = None
    level: int = 0


def _needed(algebra: Algebra, ids: list[int]) -> NDArray[np.bool_]:
    """Where a `(` of a fully parenthesized text begins a span that would be another, or none at
    all, without its parentheses.
    """
    levels = algebra.declared_levels.tolist()
    directions = algebra.declared_directions.tolist()
    needed = np.zeros(len(ids), dtype=bool)
    enclosing = [_Span(0)]
    for place, token in enumerate(ids):
        around = enclosing[-1]
        if token == OPEN:
            enclosing.append(_Span(place))
        elif token == CLOSE:
            span = enclosing.pop()
            span.level = levels[span.binary][span.operator]
            direction = directions[span.level]
            if left := span.left:
                needed[left.begin] = left.level < span.level + (direction == RIGHT)
            if (right := span.right) and right.binary:
                needed[right.begin] = right.level < span.level + (direction == LEFT)
            elif right:
                needed[right.begin] = not may_follow(algebra, right.level, span.level)
            around = enclosing[-1]
            if around.operator is None:
                around.left, around.binary = span, True
            else:
                around.right = span
        elif token >= algebra.first_operator:
            around.operator = token
        elif around.operator is None:
            around.binary = True  # a value before the operator
    return needed
