"""Plain notation: what is a text, what belongs together in it, and what it is worth."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import enumerate_length
from tests.plain_algebras import (
    ALGEBRAS,
    MODULO7,
    derivations,
    infix,
    powers,
    random_algebras,
    value,
)


def words_of(algebra, expression) -> tuple[str, ...]:
    return tuple(algebra.vocabulary[i] for i in expression.ids)


@given(random_algebras(n_values=1))
@settings(max_examples=30)
def test_the_automaton_and_the_climber_have_the_productions(algebra):
    by_productions = derivations(algebra, 7)
    found = [e for n in range(1, 8) for e in enumerate_length(algebra, n)]
    assert {words_of(algebra, e) for e in found} == by_productions.keys()
    assert len(found) == len(by_productions)
    for expression in found:
        tree = by_productions[words_of(algebra, expression)]
        assert list(words_of(algebra, expression.parenthesized)) == infix(tree)


@given(random_algebras())
@settings(max_examples=15)
def test_the_parser_takes_these_texts_and_no_others(algebra):
    known = derivations(algebra, 4)
    for n in range(1, 5):
        for words in product(algebra.vocabulary, repeat=n):
            try:
                expression = ef.parse(algebra, " ".join(words))
            except ef.ExpressionError:
                assert words not in known
            else:
                assert algebra.values.index(ef.oracle(expression)) == value(algebra, known[words])
                assert ef.oracle(expression.parenthesized) == ef.oracle(expression)


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda a: a.name)
def test_values_and_depths_of_all_short_texts(algebra):
    for words, tree in derivations(algebra, 5).items():
        expression = ef.parse(algebra, " ".join(words))
        assert algebra.values.index(ef.oracle(expression)) == value(algebra, tree)
        assert expression.depth == _depth(tree)
        assert expression.root == 0 if isinstance(tree, str) else words[expression.root] == tree[0]


def _depth(tree) -> int:
    return 0 if isinstance(tree, str) else 1 + max(map(_depth, tree[1:]))


@given(st.sampled_from([ef.arithmetic_plain(), MODULO7]), st.integers(0, 2**32), st.integers(0, 6))
def test_sums_and_products_are_those_of_python(algebra, seed, depth):
    for expression in ef.draw(algebra, depth, 5, np.random.default_rng(seed)):
        assert int(ef.oracle(expression)) == eval(str(expression)) % len(algebra.values)


@given(st.integers(0, 2**32), st.integers(0, 6))
def test_formulas_are_those_of_python(seed, depth):
    algebra = ef.boolean_plain()
    words = {"&": "and", "|": "or", "~": "not", "1": "True", "0": "False"}
    for expression in ef.draw(algebra, depth, 5, np.random.default_rng(seed)):
        text = " ".join(words.get(word, word) for word in words_of(algebra, expression))
        assert ef.parse(algebra, text) == expression
        assert ef.oracle(expression) == str(int(eval(text)))


def test_powers_are_those_of_python():
    algebra = powers()
    for text, grouped in [
        ("2**-1", "(2**(-1))"),
        ("-2**2", "(-(2**2))"),
        ("2**1**2", "(2**(1**2))"),
        ("2**-1**2*2", "((2**(-(1**2)))*2)"),
        ("-2*2", "((-2)*2)"),
        ("2*-2", "(2*(-2))"),
    ]:
        expression = ef.parse(algebra, text)
        assert str(expression.parenthesized).replace(" ", "") == grouped
        assert eval(text) == eval(grouped)


BAD = [
    ("boolean-plain", "", 1, "expected a value (1 0), '(' or a prefix operator (~), found no text"),
    ("boolean-plain", "1 |", 4, "'(' or a prefix operator (~), found the end of the text"),
    ("boolean-plain", "1 0", 3, "found '0': no operator between two operands"),
    ("boolean-plain", "(1)(0)", 4, "found '(': no operator between two operands"),
    ("boolean-plain", "1 ~ 0", 3, "expected an operator (& |) or the end of the text, found '~'"),
    ("boolean-plain", "1 | & 0", 5, "found '&': & has no operand before it"),
    ("boolean-plain", "and 1", 1, "found 'and': & has no operand before it"),
    ("boolean-plain", "1)", 2, "found ')': no parenthesis is open"),
    ("boolean-plain", "(1|)", 4, "found ')': the operator before it has no operand after it"),
    ("boolean-plain", "()", 2, "found ')': empty parentheses"),
    (
        "boolean-plain",
        "~(1&0",
        6,
        "expected an operator (& |) or ')', found the end of the text (1",
    ),
    ("boolean-plain", "1 and nto 0", 7, "found 'nto', which is no token; did you mean 'NOT'?"),
    ("arithmetic-plain", "12", 1, "found '12', which is no token"),
    ("arithmetic-plain", "1+-2", 3, "found '-', which is no token"),
]


@pytest.mark.parametrize(("domain", "text", "column", "problem"), BAD)
def test_errors_are_located(domain, text, column, problem):
    algebra = {a.name: a for a in ALGEBRAS}[domain]
    with pytest.raises(ef.ExpressionError) as failure:
        ef.parse(algebra, text)
    assert failure.value.column == column
    assert problem in failure.value.problem


def test_a_loose_prefix_operator_may_not_follow_a_tight_one():
    negation = ef.Operator("!", (1,), {(0,): 1, (1,): 0})
    both = ef.Operator("*", (2,), {(0, 0): 0, (0, 1): 0, (1, 1): 1})
    levels = [ef.Level("prefix", ("!",)), ef.Level("left", ("*",))]
    algebra = ef.Algebra("loose", ("0", "1"), (negation, both), "plain", {}, levels)
    assert ef.oracle(ef.parse(algebra, "!0*0")) == "1"
    with pytest.raises(ef.ExpressionError, match="! binds more loosely than the operator before"):
        ef.parse(algebra, "0*!0")
    assert ef.oracle(ef.parse(algebra, "0*(!0)")) == "0"


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda a: a.name)
def test_drawn_texts_are_of_the_depth_with_as_many_parentheses_as_asked(algebra, share):
    rng = np.random.default_rng(1)
    for expression in ef.draw(algebra, 4, 40, rng, parentheses=share):
        assert ef.parse(algebra, str(expression)) == expression
        assert expression.depth == 4
        if share == 0:
            assert all(
                _changes(expression, place)
                for place in np.flatnonzero(expression.ids == OPEN).tolist()
            )
        elif share == 1:
            pairs = int((expression.ids == OPEN).sum())
            uses = int(np.isin(expression.parenthesized.ids, [OPEN, *algebra.value_ids]).sum())
            assert pairs == uses


def _changes(expression: Expression, place: int) -> bool:
    """Whether the text means something else, or nothing, without the pair that opens here."""
    nesting = expression.nesting
    end = place + int(np.argmax(nesting[place:] < nesting[place]))
    without = np.delete(expression.ids, [place, end])
    assert expression.ids[end] == CLOSE
    text = str(Expression(expression.algebra, without))
    try:
        return ef.parse(expression.algebra, text).parenthesized != expression.parenthesized
    except ef.ExpressionError:
        return True


def test_balanced_draws_and_wrong_shares():
    rng, algebra = np.random.default_rng(0), ef.arithmetic_plain()
    drawn = ef.draw_balanced(algebra, 2, 20, rng, parentheses=0)
    assert sorted(map(ef.oracle, drawn)) == sorted("0123456789" * 2)
    with pytest.raises(ValueError, match="`parentheses` from 0 to 1, found 2"):
        ef.draw(algebra, 1, 1, rng, parentheses=2)
    with pytest.raises(ValueError, match="not for 'boolean', since all its parentheses are needed"):
        ef.draw(ef.boolean(), 1, 1, rng, parentheses=0.5)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_every_tree_of_a_depth_once(depth):
    plain = list(ef.enumerate_depth(ef.boolean_plain(), depth))
    written = [str(e.parenthesized) for e in plain]
    assert written == [str(e) for e in ef.enumerate_depth(ef.boolean(), depth)]


def test_deep_and_long_texts():
    algebra, n = MODULO7, 30_000
    for text, expected in [
        ("(" * n + "3" + ")" * n, "3"),
        ("-" * n + "3", "3"),
        ("1" + "+1" * n, str((n + 1) % 7)),
        ("1" + "-(1" * n + ")" * n, str((n + 1) % 2)),
    ]:
        assert ef.oracle(ef.parse(algebra, text)) == expected
