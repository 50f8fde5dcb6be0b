"""The Horton-Strahler number of an expression: how bushy its tree is, where depth is how tall.

A value has the number 0. A span has the largest number among its operands, or one more if two or
more of them have it, and at least 1. So a chain has the number 1, however deep it is. A number
r > 1 takes two operands of r - 1 somewhere, so 2^(r-1) values: no expression has a number above
1 + log2(its values).
"""

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.domains.expression import Expression
from exactformer.domains.plain import expect


def strahler(expression: Expression) -> int:
    """Found in one pass with a stack, as the oracle finds the value."""
    expect(expression, Expression, "an Expression, which parse makes of text")
    enclosing: list[tuple[int, int]] = []
    largest, having = 0, 0  # number among the operands of the open span; how many have it
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
