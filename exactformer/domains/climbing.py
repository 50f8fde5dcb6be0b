"""Precedence climbing: groups the operators of plain notation, from left to right.

A call `climb(minimum)` of the textbook's function reads one operand and then goes on for as long as
operators bind at least as tightly as `minimum`. Here the calls are kept in a list, so that a
nesting a million deep is an ordinary input. The text must be well formed: the parser, which knows
nothing of groups, has reported its errors before.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.symbols import CLOSE, OPEN

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra

T = TypeVar("T")


@dataclass(frozen=True)
class Applied:
    """An operator at its position in a text."""

    token: int
    place: int  # index in the text
    operands: int  # number of operands: 1 for a prefix operator, 2 for a binary one
    level: int  # level of precedence there


def climb(
    algebra: "Algebra",
    ids: Sequence[int],
    value: Callable[[int], T],
    apply: Callable[[Applied, list[T]], T],
    enclose: Callable[[T], T] = lambda result: result,
) -> T:
    """Evaluate an expression from the inside out: `value` maps the token id of a value, `apply`
    maps an operator and its operands' results, `enclose` maps the result of a group in parentheses.

    A prefix operator directly behind a tighter one binds as tightly as that one does, so that `2 **
    -1 ** 2` is one run of operators from the right.
    """
    prefix_level, binary_level = algebra.declared_levels.tolist()
    directions = algebra.declared_directions.tolist()
    waiting: list[tuple[Applied | None, int]] = []  # calls, each with its minimum; None for a `)`
    results: list[T] = []
    minimum, ended = 1, False  # whether an operand has just ended
    for place, token in enumerate([*ids, CLOSE]):
        if not ended:
            if token == OPEN:
                waiting.append((None, minimum))
                minimum = 1
            elif token < algebra.first_operator:
                results.append(value(token))
                ended = True
            else:
                before = waiting[-1][0] if waiting else None
                level = max(prefix_level[token], before.level if before else 0)
                waiting.append((Applied(token, place, 1, level), minimum))
                minimum = prefix_level[token]
            continue
        level = 0 if token == CLOSE else binary_level[token]
        while level < minimum and waiting and (operator := waiting[-1][0]):
            minimum = waiting.pop()[1]
            operands = results[-operator.operands :]
            del results[-operator.operands :]
            results.append(apply(operator, operands))
        if token != CLOSE:
            waiting.append((Applied(token, place, 2, level), minimum))
            minimum, ended = level + (directions[level] < 0), False
        elif waiting:
            minimum = waiting.pop()[1]
            results.append(enclose(results.pop()))
    return results.pop()


# A tree of token ids: one id, or a tuple of trees in the order of the text.
Node = int | tuple["Node", ...]


def flat(tree: Node) -> NDArray[np.int16]:
    """The token ids of a tree, from left to right, found without recursion."""
    ids: list[int] = []
    rest: list[Node] = [tree]
    while rest:
        item = rest.pop()
        if isinstance(item, int):
            ids.append(item)
        else:
            rest += reversed(item)
    return np.array(ids, dtype=np.int16)
