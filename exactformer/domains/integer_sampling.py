"""Random texts of integers, of two numbers with their lowest digits first, and of square roots.

A numeral has 1 to `longest` digits, and then is a uniform one of so many. For depth d the
operator is uniform; one operand, of either side alike, has depth d - 1, and the other is a numeral
with probability 1/2, and else of a depth uniform in 0 to d - 1.

Of two numbers the first one has a uniform share of the digits, and digits are uniform. So are bits
of which the root is asked.
"""

import numpy as np

from exactformer.domains.bounds import MOST_TEXTS_AT_ONCE, require
from exactformer.domains.expression import Expression
from exactformer.domains.growth import Growth
from exactformer.domains.integers import Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.square_roots import BIT, SquareRoot
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN

LONGEST_NUMERAL = 6


def draw_integers(
    domain: Integers,
    depth: int,
    count: int,
    rng: np.random.Generator,
    longest: int = LONGEST_NUMERAL,
) -> list[Expression]:
    """Draw texts of exactly this depth; the module's docstring has the law."""
    if depth < 0 or count < 0:
        raise ValueError(f"expected a depth and a count of 0 or more, found {depth} and {count}")
    drawn = []
    for _ in range(count):
        # Tokens, and below zero what is still to be drawn, each as -1 less its depth.
        text = [-1 - depth]
        for level in range(depth, -1, -1):
            text = [
                token
                for part in text
                for token in (_drawn(domain, level, rng, longest) if part == -1 - level else [part])
            ]
            require("tokens of a text", len(text), MOST_TEXTS_AT_ONCE)
        drawn.append(Expression(domain, np.array(text, dtype=np.int16)))
    return drawn


def tokens_of_integers(domain: Integers, depth: int, longest: int = LONGEST_NUMERAL) -> float:
    """The expected number of tokens of a text of this depth."""
    return Growth((1 + longest) / 2, 3, 1, 1 / 2).tokens(depth)[depth]


def _drawn(domain: Integers, depth: int, rng: np.random.Generator, longest: int) -> list[int]:
    """A numeral, or a span with what is still to be drawn in place of its operands."""
    if depth:
        operands = [depth - 1, int(rng.random() < 0.5 and rng.integers(depth))]
        a, b = operands if rng.random() < 0.5 else operands[::-1]
        return [OPEN, -1 - a, int(rng.integers(domain.first_operator, domain.none)), -1 - b, CLOSE]
    digits = rng.integers(domain.base, size=rng.integers(1, longest + 1))
    if len(digits) > 1:
        digits[0] = rng.integers(1, domain.base)
    return (FIRST_VALUE + digits).tolist()


def draw_little_endian(
    domain: LittleEndian, length: int, count: int, rng: np.random.Generator
) -> list[Expression]:
    """Draw texts of this many symbols; the module's docstring has the law."""
    if length < 3 or count < 0:
        raise ValueError(f"expected a length of 3 or more and a count, found {length} and {count}")
    require("symbols of all texts", length * count, MOST_TEXTS_AT_ONCE)
    ids = rng.integers(FIRST_VALUE, domain.first_operator, size=(count, length), dtype=np.int16)
    marks = rng.integers(1, length - 1, size=count)
    ids[np.arange(count), marks] = domain.token_ids[domain.between]
    return [Expression(domain, row.copy()) for row in ids]


def draw_square_roots(
    domain: SquareRoot, length: int, count: int, rng: np.random.Generator
) -> list[Expression]:
    """Draw texts of this many bits; the module's docstring has the law."""
    if length < 1 or count < 0:
        raise ValueError(f"expected a length of 1 or more and a count, found {length} and {count}")
    require("symbols of all texts", length * count, MOST_TEXTS_AT_ONCE)
    ids = rng.integers(BIT, BIT + 2, size=(count, length), dtype=np.int16)
    return [Expression(domain, row.copy()) for row in ids]
