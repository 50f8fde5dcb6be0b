"""Folds an expression in Polish or reverse Polish notation, whose operators have fixed arities.

Polish notation is read from the right, reverse Polish from the left: each operator then finds its
operands finished, on top of a stack. So a nesting a million deep is an ordinary input. The text
must be well formed: the parser has reported its errors before.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from exactformer.domains.algebra import Algebra

T = TypeVar("T")


def arities_by_token(algebra: "Algebra") -> list[int]:
    """The number of operands of each token: 0 for a value, the only arity of an operator."""
    return [0] * algebra.first_operator + [op.arities[0] for op in algebra.operators]


def fold(
    algebra: "Algebra",
    ids: Sequence[int],
    value: Callable[[int], T],
    apply: Callable[[int, list[T]], T],
) -> T:
    """Evaluate an expression from the inside out: `value` maps the place of a value in the text,
    `apply` the place of an operator and the results of its operands, in the order of the text.
    """
    arities, results = arities_by_token(algebra), []
    step = -1 if algebra.notation.operators_first else 1
    for place in range(len(ids))[::step]:
        arity = arities[ids[place]]
        if not arity:
            results.append(value(place))
            continue
        operands = results[-arity:][::step]
        del results[-arity:]
        results.append(apply(place, operands))
    return results.pop()
