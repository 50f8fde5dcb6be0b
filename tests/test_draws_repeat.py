"""A seed gives the same expressions in every release, and enumerations keep their order."""

import hashlib
from collections.abc import Iterable
from itertools import islice

import numpy as np
import pytest

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic_plain, boolean, boolean_plain, listops
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import draw, draw_balanced, enumerate_depth, enumerate_length

DRAWN = {
    "boolean": "2780a912f009e032",
    "listops": "933b3f8eab5461bc",
    "boolean-plain": "dd09ea3c538ad4c5",
    "arithmetic-plain": "271d04a40eacdf2c",
}
LISTED = {
    "boolean": "7de2f77fd7af2e5b",
    "listops": "837f0c78e8e8b897",
    "boolean-plain": "932740d26c8767b0",
    "arithmetic-plain": "ce757ef1271cce84",
}
ALGEBRAS = [boolean(), listops(), boolean_plain(), arithmetic_plain()]


def digest(expressions: Iterable[Expression]) -> str:
    """A hash of texts, with all that an expression says of its tree."""
    told = hashlib.sha256()
    for e in expressions:
        facts = (str(e), str(e.parenthesized), e.depth, e.widest, e.root)
        told.update(repr((*facts, e.positions.tolist())).encode())
    return told.hexdigest()[:16]


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_a_seed_draws_the_same_expressions_as_ever(algebra: Algebra) -> None:
    rng = np.random.default_rng(8)
    drawn = [e for depth in range(6) for e in draw(algebra, depth, 40, rng)]
    drawn += draw(algebra, 3, 40, rng, leaf=0.5)
    drawn += draw_balanced(algebra, 2, 50, rng)
    if algebra.precedence:
        drawn += draw(algebra, 4, 40, rng, parentheses=0.7)
    assert digest(drawn) == DRAWN[algebra.name]


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_every_expression_comes_in_the_same_order_as_ever(algebra: Algebra) -> None:
    listed = [e for depth in range(3) for e in islice(enumerate_depth(algebra, depth), 500)]
    listed += [e for length in range(1, 8) for e in islice(enumerate_length(algebra, length), 500)]
    assert digest(listed) == LISTED[algebra.name]
