"""The Horton-Strahler number, against its recursive definition and its bounds."""

from math import log2

import pytest
from hypothesis import given

import exactformer as ef
from tests import trees
from tests.algebras import ALGEBRAS

BY_NAME = {algebra.name: algebra for algebra in ALGEBRAS}


def number(tree: trees.Tree) -> int:
    """By definition."""
    if isinstance(tree, str):
        return 0
    *others, largest = sorted(map(number, tree[1:]))
    return max(1, largest + (largest in others))


@given(trees.algebras_with_trees())
def test_the_recursive_definition_and_the_logarithm(example):
    algebra, tree = example
    symbols = trees.symbols(algebra, tree)
    found = ef.strahler(ef.parse(algebra, " ".join(symbols)))
    assert found == number(tree)
    assert found <= min(trees.depth(tree), 1 + log2(sum(s in algebra.values for s in symbols)))


@pytest.mark.parametrize(
    ("domain", "text", "expected"),
    [
        ("boolean", "1", 0),
        ("boolean", "(~1)", 1),
        ("boolean", "(~" * 99 + "(1&0)" + ")" * 99, 1),
        ("boolean", "((1|0)&(~0))", 2),
        ("listops", "( MAX ( MIN 1 2 ) ( MIN 3 4 ) ( MIN 5 6 ) )", 2),
        ("listops", "( MAX ( MIN 1 2 ) ( MIN ( SM 3 4 ) ( SM 5 6 ) ) )", 2),
        ("arithmetic", "(" * 100_000 + "1" + "+1)" * 100_000, 1),
    ],
)
def test_numbers(domain, text, expected):
    assert ef.strahler(ef.parse(BY_NAME[domain], text)) == expected


def test_text_is_no_expression():
    with pytest.raises(TypeError, match="expected an Expression"):
        ef.strahler("(1&0)")  # pyright: ignore[reportArgumentType]
