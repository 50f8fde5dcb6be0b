"""Arithmetic inputs of chosen shapes, as token ids, made by array operations and not from text."""

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.expression import EMPTY, Expression

Ids = NDArray[np.int16]


def perfect_trees(algebra: Algebra, depth: int, count: int, rng: np.random.Generator) -> Ids:
    """One row for each of `count` expressions `(…)`, with all values at one depth.

    A row has 4·2^depth − 3 tokens. One operator in four is a product: were it half of them, nearly
    every large tree would be worth 0, and getting that right shows little.
    """
    rows = rng.integers(
        FIRST_VALUE, algebra.first_operator, size=(count << depth, 1), dtype=np.int16
    )
    for _ in range(depth):
        column = (len(rows) // 2, 1)
        operators = algebra.first_operator + (rng.random(column) < 0.25).astype(np.int16)
        ends = np.full(column, OPEN, np.int16), np.full(column, CLOSE, np.int16)
        rows = np.hstack([ends[0], rows[::2], operators, rows[1::2], ends[1]])
    return rows


def perfect_tree(algebra: Algebra, depth: int, rng: np.random.Generator) -> Expression:
    return Expression(algebra, perfect_trees(algebra, depth, 1, rng)[0])


def forest(algebra: Algebra, depth: int, tokens: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
    """Perfect trees side by side, an operator after each but the last; and the trees as rows.

    `a+b*c` without parentheses around it is no expression, since it has no single value; but the
    model reduces it as it would any state. So depth stays fixed while the tokens grow, up to the
    next whole tree.
    """
    count = -(-(tokens + 1) // ((4 << depth) - 2))  # rounded up: trees with an operator after each
    trees = perfect_trees(algebra, depth, count, rng)
    between = rng.integers(
        algebra.first_operator, len(algebra.vocabulary), size=(count, 1), dtype=np.int16
    )
    return np.hstack([trees, between]).ravel()[:-1], trees


def reduced_forest(ids: Ids, trees: Ids, values: list[int]) -> Ids:
    """The expected state of a reduced forest: each tree's value at its root, which is its middle
    token.
    """
    length = trees.shape[1]
    expected = np.full(len(trees) * (length + 1), EMPTY, dtype=np.int16)
    expected[length // 2 :: length + 1] = FIRST_VALUE + np.array(values, dtype=np.int16)
    expected[length :: length + 1] = np.append(ids, EMPTY)[length :: length + 1]
    return expected[:-1]
