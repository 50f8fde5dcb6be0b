"""Algebras in Polish and reverse Polish notation, and what their texts mean by definition.

`value` reads a text by recursion on what an expression is; it knows neither the grammar's count nor
a stack. Operators of all algebras here depend on the order of their operands.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

import exactformer as ef
from exactformer.domains.algebra import FIRST_VALUE, Algebra, Operator

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "polish"
LISTOPS = ef.load_algebra(EXAMPLES / "listops.toml")
CALCULATOR = ef.load_algebra(EXAMPLES / "modulo7.toml")
SIDES = ("polish", "reverse-polish")
# The arities of the operators of small alphabets, each with its number of values.
ALPHABETS = ((2, (1, 2)), (2, (2, 3)), (1, (1, 3)), (2, (1, 2, 2)), (3, (1,)))


@cache
def ordered_algebra(
    n_values: int, arities: tuple[int, ...], notation: str, seed: int = 0
) -> Algebra:
    """An algebra with random tables, in which the order of operands matters."""
    rng = np.random.default_rng([seed, n_values, *arities])

    def operator(symbol: str, arity: int) -> Operator:
        table = {key: int(rng.integers(n_values)) for key in product(range(n_values), repeat=arity)}
        return Operator(symbol, (arity,), table, ordered=True)

    operators = [operator(symbol, arity) for symbol, arity in zip("fgh", arities, strict=False)]
    return Algebra("ordered", map(str, range(n_values)), operators, notation)


def value(algebra: Algebra, ids: Sequence[int]) -> str | None:
    """The value of a text by definition; None if it is no expression."""
    first = str(algebra.notation) == "polish"
    read = _prefix if first else _suffix
    found, rest = read(algebra, tuple(ids))
    return algebra.values[found] if found is not None and not rest else None


def _prefix(algebra: Algebra, ids: tuple[int, ...]) -> tuple[int | None, tuple[int, ...]]:
    """The value of the expression at the beginning of a text, and what follows it."""
    if not ids or ids[0] < FIRST_VALUE:
        return None, ids
    if ids[0] < algebra.first_operator:
        return ids[0] - FIRST_VALUE, ids[1:]
    operator, rest, operands = algebra.operators[ids[0] - algebra.first_operator], ids[1:], []
    for _ in range(operator.arities[0]):
        operand, rest = _prefix(algebra, rest)
        operands.append(operand)
    return (None if None in operands else operator(operands)), rest


def _suffix(algebra: Algebra, ids: tuple[int, ...]) -> tuple[int | None, tuple[int, ...]]:
    """The value of the expression at the end of a text, and what comes before it."""
    if not ids or ids[-1] < FIRST_VALUE:
        return None, ids
    if ids[-1] < algebra.first_operator:
        return ids[-1] - FIRST_VALUE, ids[:-1]
    operator, rest, operands = algebra.operators[ids[-1] - algebra.first_operator], ids[:-1], []
    for _ in range(operator.arities[0]):
        operand, rest = _suffix(algebra, rest)
        operands.append(operand)
    return (None if None in operands else operator(operands[::-1])), rest


def random_text(algebra: Algebra, operators: int, rng: np.random.Generator) -> list[int]:
    """The token ids of a random text with so many operators: any order of the tokens has exactly
    one rotation that is an expression in Polish notation.
    """
    drawn = rng.choice(algebra.operator_ids, operators)
    arities = {t: op.arities[0] for t, op in enumerate(algebra.operators, algebra.first_operator)}
    needed = sum(arities[token] - 1 for token in drawn.tolist()) + 1
    tokens = np.concatenate([drawn, rng.choice(algebra.value_ids, needed)])
    rng.shuffle(tokens)
    sums = np.cumsum([arities.get(token, 0) - 1 for token in tokens.tolist()])
    ids = np.roll(tokens, -int(np.argmin(sums)) - 1).tolist()
    return ids if str(algebra.notation) == "polish" else ids[::-1]


def stack_value(algebra: Algebra, ids: Sequence[int]) -> str:
    """The value of a long text, by a loop of its own over whichever tokens are nested deepest."""
    first = str(algebra.notation) == "polish"
    waiting: list[list[int]] = [[-1]]  # operators from outside in, each with its operands so far
    for token in ids if first else reversed(ids):
        waiting.append([token])
        while True:
            token_, *operands = waiting[-1]
            if token_ < 0:
                break
            if token_ >= algebra.first_operator:
                operator = algebra.operators[token_ - algebra.first_operator]
                if len(operands) < operator.arities[0]:
                    break
                result = operator(operands if first else operands[::-1])
            else:
                result = token_ - FIRST_VALUE
            waiting.pop()
            waiting[-1].append(result)
    ((_, found),) = waiting
    return algebra.values[found]
