"""Expressions in plain notation: all of a given length, or with few or many parentheses."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.grammar import CLOSED, START, TOP
from exactformer.domains.plain_grammar import LEFT, RIGHT, PlainGrammar, may_follow
from exactformer.domains.symbols import CLOSE, OPEN

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra


def plain_tokens(algebra: "Algebra", length: int) -> Iterator[tuple[int, ...]]:
    """Every expression of exactly this many tokens, as token ids."""
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


def write_plain(
    algebra: "Algebra", ids: NDArray[np.int16], surplus: NDArray[np.bool_]
) -> NDArray[np.int16]:
    """The token ids in plain notation of an expression of `algebra.parenthesized`, with the
    parentheses that it needs and those that `surplus` asks for at a `(` or at a value.
    """
    kept = _needed(algebra, ids.tolist()) | surplus
    written: list[int] = []
    enclosing: list[bool] = []  # whether the parentheses of each open span are kept
    for token, keep in zip(ids.tolist(), kept.tolist(), strict=True):
        if token == OPEN:
            enclosing.append(keep)
        elif token == CLOSE:
            keep = enclosing.pop()
        if token in algebra.value_ids and keep:
            written += (OPEN, token, CLOSE)
        elif keep or token not in (OPEN, CLOSE):
            written.append(token)
    return np.array(written, dtype=np.int16)


@dataclass
class _Span:
    """State of a span while it is read."""

    begin: int
    binary: bool = False  # whether an operand stands before the operator
    left: "_Span | None" = None  # that operand, if it is a span
    level: int = 0  # level of the operator; 0 before it


def _needed(algebra: "Algebra", ids: list[int]) -> NDArray[np.bool_]:
    """Whether each `(` of a fully parenthesized text is needed in plain notation: without it, the
    text would be grouped differently or be invalid.
    """
    levels = algebra.declared_levels.tolist()
    directions = algebra.declared_directions.tolist()
    needed = np.zeros(len(ids), dtype=bool)
    enclosing = [_Span(0)]
    for place, token in enumerate(ids):
        inner = enclosing.pop() if token == CLOSE else None
        around = enclosing[-1]
        if token == OPEN:
            enclosing.append(_Span(place))
        elif token >= algebra.first_operator:
            around.level = levels[around.binary][token]
            if left := around.left:
                needed[left.begin] = left.level < around.level + (directions[around.level] == RIGHT)
        elif not around.level:  # a value, or a span, before the operator
            around.binary, around.left = True, inner
        elif inner and inner.binary:
            needed[inner.begin] = inner.level < around.level + (directions[around.level] == LEFT)
        elif inner:
            needed[inner.begin] = not may_follow(algebra, inner.level, around.level)
    return needed
