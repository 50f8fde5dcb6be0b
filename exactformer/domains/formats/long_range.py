"""Draws new expressions from the distribution of the Long Range Arena's ListOps set.

The law of its published generator: a node on levels 1 (the outermost) to 9 is an operator with
probability 1/4 and a digit otherwise; on level 10 it is a digit. Operators (MIN, MAX, MED, SM),
numbers of operands (2 to 10) and digits are uniform. Of these trees, those with more than 500 and
fewer than 2,000 tokens are kept, each once; an operator with its bracket is one token and `]`
another. MED is the floor of the median, SM the sum modulo 10.
"""

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.catalog import listops
from exactformer.domains.expression import Expression

LEVELS = 10
OPERATOR_SHARE = 0.25
FEWEST, MOST = 2, 10  # operands
SHORTEST, LONGEST = 501, 1_999  # tokens
TREES_AT_ONCE = 10_000
MOST_EXPRESSIONS = 200_000  # twice the published set; all are kept, to draw none twice

HEADER = "Source\tTarget"


def draw_long_range(count: int, rng: np.random.Generator) -> list[Expression]:
    """`count` different expressions of the Long Range Arena's distribution."""
    if not 0 <= count <= MOST_EXPRESSIONS:
        raise ValueError(f"expected a count from 0 to {MOST_EXPRESSIONS:,}, found {count:,}")
    algebra = listops(MOST, "mean")
    kept: dict[bytes, None] = {}  # in the order they were drawn
    while len(kept) < count:
        kept |= dict.fromkeys(_trees(algebra, rng))
    return [
        Expression(algebra, np.frombuffer(tokens, dtype=np.uint8).astype(np.int16))
        for tokens in list(kept)[:count]
    ]


def _trees(algebra: Algebra, rng: np.random.Generator) -> list[bytes]:
    """Grow many trees together, one array operation a level, and keep those of the right size."""
    tokens: list[NDArray[np.uint8]] = []  # token of each node by level: an operator or a digit
    arity: list[NDArray[np.int64]] = []  # 0 for digits
    tree: list[NDArray[np.int64]] = [np.arange(TREES_AT_ONCE)]  # tree that each node belongs to
    for level in range(1, LEVELS + 1):
        n = len(tree[-1])
        is_operator = (rng.random(n) < OPERATOR_SHARE) & (level < LEVELS)
        operators = rng.integers(algebra.first_operator, len(algebra.vocabulary), size=n)
        digits = rng.integers(FIRST_VALUE, algebra.first_operator, size=n)
        tokens.append(np.where(is_operator, operators, digits).astype(np.uint8))
        arity.append(np.where(is_operator, rng.integers(FEWEST, MOST + 1, size=n), 0))
        tree.append(np.repeat(tree[-1], arity[-1]))
    sizes = np.zeros(TREES_AT_ONCE, dtype=np.int64)
    for of_tree, operands in zip(tree[:-1], arity, strict=True):
        sizes += np.bincount(of_tree, 1 + (operands > 0), TREES_AT_ONCE).astype(np.int64)
    kept = (sizes >= SHORTEST) & (sizes <= LONGEST)

    below: list[bytes] = []  # the trees' parts on the level below, from left to right
    for of_tree, symbols, operands in zip(tree[-2::-1], tokens[::-1], arity[::-1], strict=True):
        parts, first = [], 0
        chosen = kept[of_tree]
        for symbol, count in zip(symbols[chosen].tolist(), operands[chosen].tolist(), strict=True):
            if count:
                inner = b"".join(below[first : first + count])
                parts.append(bytes((OPEN, symbol)) + inner + bytes((CLOSE,)))
                first += count
            else:
                parts.append(bytes((symbol,)))
        below = parts
    return below
