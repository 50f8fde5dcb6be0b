"""The Horton-Strahler number of an expression: how bushy its tree is, where depth is how tall.

A value has the number 0. A span has the largest number among its operands, or one more if two or
more of them have it, and at least 1. So a chain has the number 1, however deep it is. A number
r > 1 takes two operands of r - 1 somewhere, so 2^(r-1) values: no expression has a number above
1 + log2(its values).

In plain notation a run of operators that bind equally is one span, as `1 + 2 + (3 * 4)` is, and so
is all that has parentheses of its own, as `(1)` does. Which operators bind equally is what the
algebra declares. Weights may group them otherwise without a difference in any value (`verify/
levels.py` calls such a level gate harmless), and then take another number of iterations.
"""

from typing import NamedTuple

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.domains.climbing import Applied, climb
from exactformer.domains.data import expect
from exactformer.domains.expression import Expression
from exactformer.domains.polish import fold


def strahler(expression: Expression) -> int:
    """The number of an expression's tree, found in one pass with a stack, as the oracle finds the
    value. It is how many iterations the logarithmic layer takes; in plain notation, with weights
    whose levels are as declared. `Model.outcomes` tells how many a run of other weights takes.
    """
    expect(expression, Expression, "an Expression, which parse makes of text")
    return ACCOUNTS[expression.algebra.notation.groups_by](expression)


def _by_parentheses(expression: Expression) -> int:
    enclosing: list[tuple[int, int]] = []
    largest, having = 0, 0  # largest number among the operands of the open span; how many have it
    for token in expression.ids.tolist():
        if token == OPEN:
            enclosing.append((largest, having))
            largest, having = 0, 0
        elif token == CLOSE:
            number = max(1, largest + (having > 1))
            largest, having = enclosing.pop()
            if number > largest:
                largest, having = number, 1
            elif number == largest:
                having += 1
    return largest


def _by_precedence(expression: Expression) -> int:
    ids = expression.ids.tolist()
    return climb(expression.algebra, ids, lambda token: Segment(0), joined, enclosed).number


def _by_arity(expression: Expression) -> int:
    def number(place: int, operands: list[int]) -> int:
        largest = max(operands)
        return max(1, largest + (operands.count(largest) > 1))

    return fold(expression.algebra, expression.ids.tolist(), lambda place: 0, number)


class Segment(NamedTuple):
    """A part of a text in plain notation. If it is a run of operators of one level, `level` is that
    level, `largest` the largest number among the run's operands, and `having` how many have it.
    """

    number: int
    level: int = 0
    largest: int = 0
    having: int = 0


def joined(operator: Applied, operands: list[Segment]) -> Segment:
    """Apply an operator: an operand that is a run of the same level becomes part of this run."""
    numbers = [
        (part.largest, part.having) if part.level == operator.level else (part.number, 1)
        for part in operands
    ]
    largest = max(number for number, _ in numbers)
    having = sum(count for number, count in numbers if number == largest)
    return Segment(max(1, largest + (having > 1)), operator.level, largest, having)


def enclosed(group: Segment) -> Segment:
    """Put parentheses around a part."""
    return Segment(max(1, group.number))


# By what groups operators.
ACCOUNTS = {"parentheses": _by_parentheses, "precedence": _by_precedence, "arity": _by_arity}
