"""The oracle: evaluates an expression by definition.

It shares nothing with the model: one pass from left to right with a stack, looking results up in
the algebra's tables. In plain notation, what belongs together is found by precedence climbing.
"""

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra, Operator
from exactformer.domains.climbing import Applied, climb
from exactformer.domains.data import expect
from exactformer.domains.expression import Expression


def evaluate(expression: Expression) -> str:
    """The symbol of the expression's value; of a text of another domain, its answer."""
    expect(expression, Expression, "an Expression, which parse makes of text")
    return REFERENCES[expression.domain.kind](expression)


def _of_algebra(expression: Expression) -> str:
    return expression.algebra.values[ACCOUNTS[expression.algebra.notation.groups_by](expression)]


def _by_precedence(expression: Expression) -> int:
    algebra, first_operator = expression.algebra, expression.algebra.first_operator

    def apply(applied: Applied, operands: list[int]) -> int:
        return algebra.operators[applied.token - first_operator](operands)

    return climb(algebra, expression.ids.tolist(), lambda token: token - FIRST_VALUE, apply)


def _by_parentheses(expression: Expression) -> int:
    algebra, first_operator = expression.algebra, expression.algebra.first_operator
    enclosing: list[tuple[Operator | None, list[int]]] = []  # spans that are still open
    operator: Operator | None = None
    operands: list[int] = []  # as indices into the algebra's values
    for token in expression.ids.tolist():
        if token == OPEN:
            enclosing.append((operator, operands))
            operator, operands = None, []
        elif token == CLOSE:
            assert operator is not None, "an Expression has an operator in each span"
            value = operator(operands)
            operator, operands = enclosing.pop()
            operands.append(value)
        elif token < first_operator:
            operands.append(token - FIRST_VALUE)
        else:
            operator = algebra.operators[token - first_operator]
    return operands[0]


# The index of the value, by what groups operators.
ACCOUNTS = {"parentheses": _by_parentheses, "precedence": _by_precedence}
REFERENCES = {Algebra.kind: _of_algebra}  # by the kind of domain
