"""The oracle agrees with the recursive definition, and with Python's own arithmetic."""

import operator
import random
from functools import reduce

import pytest
from hypothesis import given

from exactformer.domains.catalog import CATALOG, arithmetic, boolean, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from tests import trees
from tests.algebras import MINUS
from tests.cases import CASES

DEEP = 100_000


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.domain} {case.text!r}")
def test_cases(case):
    assert evaluate(parse(CATALOG[case.domain](), case.text)) == case.value


@given(trees.algebras_with_trees())
def test_the_recursive_definition(example):
    algebra, tree = example
    expression = parse(algebra, " ".join(trees.symbols(algebra, tree)))
    assert evaluate(expression) == trees.value(algebra, tree)


@given(trees.trees(boolean()))
def test_boolean_is_python(tree):
    text = "".join(trees.symbols(boolean(), tree))
    assert evaluate(parse(boolean(), text)) == str(eval(text.replace("~", "1-")))


@given(trees.trees(arithmetic()))
def test_arithmetic_is_python(tree):
    text = "".join(trees.symbols(arithmetic(), tree))
    assert evaluate(parse(arithmetic(), text)) == str(eval(text) % 10)


@given(trees.trees(MINUS))
def test_order_matters_where_it_should(tree):
    text = "".join(trees.symbols(MINUS, tree))
    assert evaluate(parse(MINUS, text)) == str(eval(text) % 7)


def test_the_two_medians_differ():
    text = "( SM ( MED 2 9 ) ( MED 1 8 5 ) )"
    assert evaluate(parse(listops(), text)) == "7"
    assert evaluate(parse(listops(median="mean"), text)) == "0"


@pytest.mark.parametrize(
    ("algebra", "text", "value"),
    [
        (arithmetic(), "(" * DEEP + "1" + "+3)" * DEEP, (1 + 3 * DEEP) % 10),
        (arithmetic(), "(7*" * DEEP + "3" + ")" * DEEP, pow(7, DEEP, 10) * 3 % 10),
        (boolean(), "(~" * (DEEP + 1) + "1" + ")" * (DEEP + 1), 0),
        (listops(), "( SM 3 " * DEEP + "4" + " 9 )" * DEEP, (12 * DEEP + 4) % 10),
    ],
    ids=["left", "right", "unary", "prefix"],
)
def test_very_deep(algebra, text, value):
    assert evaluate(parse(algebra, text)) == str(value)


def test_a_perfect_tree_of_a_million_tokens():
    """Sums and products alternate by level, so that Python can fold a level at a time."""
    rng = random.Random(0)
    digits = [rng.randrange(10) for _ in range(2**18)]
    texts = list(map(str, digits))
    level = 0
    while len(texts) > 1:
        sign, apply = [("+", operator.add), ("*", operator.mul)][level % 2]
        pairs = list(zip(digits[::2], digits[1::2], strict=True))
        digits = [reduce(apply, pair) % 10 for pair in pairs]
        texts = [f"({a}{sign}{b})" for a, b in zip(texts[::2], texts[1::2], strict=True)]
        level += 1
    expression = parse(arithmetic(), texts[0])
    assert len(expression) == 2**20 - 3
    assert expression.depth == 18
    assert evaluate(expression) == str(digits[0])
