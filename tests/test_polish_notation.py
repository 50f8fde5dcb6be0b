"""Polish and reverse Polish notation: which texts there are, what they mean, and what is wrong."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.definition import DefinitionError, load_algebra
from exactformer.domains.expression import Expression, span_expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth, enumerate_length, problems_of_depth
from exactformer.weights.named import read_weights
from tests.polish_algebras import (
    ALPHABETS,
    CALCULATOR,
    LISTOPS,
    SIDES,
    ordered_algebra,
    random_text,
    stack_value,
    value,
)

REVERSE = Algebra("bits", "10", ef.boolean().operators, "reverse-polish")


@pytest.mark.parametrize("notation", SIDES)
@pytest.mark.parametrize(("n_values", "arities"), ALPHABETS)
def test_every_short_text_has_its_value_or_an_error(n_values, arities, notation):
    algebra = ordered_algebra(n_values, arities, notation)
    symbols = [*algebra.value_ids, *algebra.operator_ids]
    for length in range(1, 8 if len(symbols) < 5 else 7):
        found = []
        for ids in product(symbols, repeat=length):
            wanted = value(algebra, ids)
            error = algebra.grammar.first_error(list(ids))
            assert (error is None) == (wanted is not None), ids
            if wanted is None:
                continue
            expression = Expression(algebra, np.array(ids, dtype=np.int16))
            assert evaluate(expression) == wanted
            assert evaluate(expression.parenthesized) == wanted
            found.append(expression)
        every = list(enumerate_length(algebra, length))
        assert len(every) == len(found)
        assert set(every) == set(found)


@pytest.mark.parametrize("notation", SIDES)
def test_an_error_is_at_the_first_token_that_no_expression_has_there(notation):
    for n_values, arities in ((2, (1, 2)), (1, (1, 3)), (3, (1,))):
        algebra = ordered_algebra(n_values, arities, notation)
        lengths = range(1, 4 + 3 * max(arities))  # three tokens, and all that these may lack
        every = [e.ids.tolist() for length in lengths for e in enumerate_length(algebra, length)]
        begins = {tuple(ids[:k]) for ids in every for k in range(len(ids) + 1)}
        symbols = [*algebra.value_ids, *algebra.operator_ids]
        for ids in product(symbols, repeat=3):
            if error := algebra.grammar.first_error(list(ids)):
                place, _ = error
                assert ids[:place] in begins
                assert place == len(ids) or ids[: place + 1] not in begins


def test_a_tree_has_its_operands_in_the_order_of_the_text():
    for text, tree in {"3 5 -": "( - 3 5 )", "3 5 _ 2 * -": "( - 3 ( * ( _ 5 ) 2 ) )"}.items():
        expression = ef.parse(CALCULATOR, text)
        assert str(expression.parenthesized) == tree
    assert evaluate(ef.parse(CALCULATOR, "3 5 -")) == "5"
    expression = ef.parse(LISTOPS, "SM 1 MIN 2 MAX 3 4 5")
    assert str(expression.parenthesized) == "( SM 1 ( MIN 2 ( MAX 3 4 ) 5 ) )"
    assert (expression.depth, expression.widest, evaluate(expression)) == (3, 3, "3")


@pytest.mark.parametrize("algebra", [LISTOPS, CALCULATOR], ids=str)
def test_writing_undoes_the_tree(algebra):
    rng = np.random.default_rng(0)
    for depth in range(5):
        for expression in ef.draw(algebra, depth, 20, rng):
            tree = expression.parenthesized
            back = algebra.notation.write(algebra, tree.ids, lambda n: np.zeros(n, dtype=bool))
            assert np.array_equal(back, expression.ids)
            assert ef.parse(algebra, str(expression)) == expression
            assert expression.depth == depth
            operator = algebra.vocabulary[expression.positions[expression.root]]
            assert depth == 0 or tree.ids[1] == algebra.token_ids[operator]
    assert len(list(enumerate_depth(algebra, 1))) == problems_of_depth(algebra, 1)


def test_the_expression_of_a_span_is_a_text():
    span = span_expression(CALCULATOR, CALCULATOR.token_ids["-"], [2, 3])
    assert str(span) == "0 1 -"
    assert str(span_expression(ef.boolean_plain(), 4, [2, 3])) == "(1&0)"


@given(st.integers(0, 2**32), st.integers(0, 200), st.sampled_from(SIDES))
def test_long_texts_have_their_values(seed, operators, notation):
    rng = np.random.default_rng(seed)
    algebra = ordered_algebra(3, (1, 2, 3), notation, seed % 7)
    ids = random_text(algebra, operators, rng)
    assert evaluate(Expression(algebra, np.array(ids, dtype=np.int16))) == stack_value(algebra, ids)


@pytest.mark.parametrize("notation", SIDES)
def test_a_nesting_of_any_depth_is_an_ordinary_text(notation):
    algebra = ordered_algebra(2, (1, 2), notation)
    n = 50_000
    text = "f " * n + "0" if notation == "polish" else "0" + " f" * n
    expression = ef.parse(algebra, text)
    assert (expression.depth, ef.strahler(expression)) == (n, 1)
    assert evaluate(expression) == stack_value(algebra, expression.ids.tolist())


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("& 1", 4, "expected a value (1 0) or an operator (& | ~), found the end of the text: "
         "& takes 2 operands, 1 found"),
        ("& | 1", 6, "| takes 2 operands, 1 found; 2 operands are missing in all"),
        ("~", 2, "~ takes 1 operand, none found"),
        ("| 1 0 1", 7, "expected the end of the text after a whole expression, found '1': "
         "the expression before it is complete"),
        ("& ( 1 ) 0", 3, "found '(': polish notation has no parentheses"),
        ("& 1 )", 5, "found ')': polish notation has no parentheses"),
        ("& 1 2", 5, "found '2', which is no token"),
        ("", 1, "found no text"),
    ],
)  # fmt: skip
def test_mistakes_in_polish_notation_are_told_at_their_place(text, column, message):
    with pytest.raises(ef.ExpressionError, match=re.escape(message)) as raised:
        ef.parse(ef.boolean_polish(), text)
    assert f"line 1, column {column}: " in str(raised.value)


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("1 &", 3, "expected a value (1 0), an operator (~) or the end of the text, found '&': "
         "& takes 2 operands, 1 found before it"),
        ("& 1 0", 1, "expected a value (1 0), found '&': & takes 2 operands, none found before it"),
        ("1 0", 4, "expected a value (1 0) or an operator (& | ~), found the end of the text: "
         "2 operands without an operator that takes them"),
        ("1 0 1 &", 8, "2 operands without an operator that takes them"),
        ("( 1 0 & )", 1, "found '(': reverse-polish notation has no parentheses"),
    ],
)  # fmt: skip
def test_mistakes_in_reverse_polish_notation_are_told_at_their_place(text, column, message):
    with pytest.raises(ef.ExpressionError, match=re.escape(message)) as raised:
        ef.parse(REVERSE, text)
    assert f"line 1, column {column}: " in str(raised.value)


def test_with_operators_of_one_operand_alone_a_second_value_is_refused():
    algebra = Algebra("nots", "10", ef.boolean().operators[2:], "reverse-polish")
    with pytest.raises(ef.ExpressionError, match=r"column 3: .*no operator takes two operands"):
        ef.parse(algebra, "1 0 ~")


@pytest.mark.parametrize("notation", SIDES)
@pytest.mark.parametrize("arity", ["[1, 2]", '"2+"'])
def test_an_operator_of_several_arities_is_refused(notation, arity, tmp_path):
    path = tmp_path / "several.toml"
    path.write_text(
        f'name = "several"\nnotation = "{notation}"\nvalues = ["0", "1"]\n'
        f'[[operators]]\nsymbol = "M"\narity = {arity}\nrule = "max"\n'
    )
    with pytest.raises(DefinitionError, match="no bracket tells how many"):
        load_algebra(path)
    with pytest.raises(ValueError, match="no bracket tells how many, found 2 or 3; use prefix"):
        Algebra("several", "01", [Operator.named("M", "max", [2, 3], 2)], notation)


def test_weights_of_the_same_operators_with_parentheses_serve():
    assert ef.boolean_polish().has_spans_of(ef.boolean())
    assert REVERSE.has_spans_of(ef.boolean())
    assert LISTOPS.has_spans_of(ef.listops())
    assert LISTOPS.has_spans_of(ef.listops(3, "mean"))  # another MED, but of two operands only
    of_two = [Operator.named("MED", "median", [2], 10)]
    median = Algebra("median", LISTOPS.values, of_two, "polish")
    assert median.has_spans_of(ef.listops(operators=("MED",)))
    assert not median.has_spans_of(ef.listops(3, "mean", ("MED",)))
    assert not LISTOPS.has_spans_of(ef.boolean())
    assert not ef.boolean().has_spans_of(ef.boolean_polish())
    assert not ef.boolean_polish().has_spans_of(ef.boolean_plain())
    gates = read_weights("listops/7520", LISTOPS).arrays
    assert gates["G_A"].tolist() == [0, 0, *[-1] * 10, 1, 2, 2, 1]
    assert gates["side"].tolist() == [1]
    assert read_weights("boolean/7520", REVERSE).arrays["side"].tolist() == [-1]


def test_operators_agree_where_the_first_has_a_value():
    least = Operator("m", (2,), {(0, 0): 0, (0, 1): 0, (1, 1): 1})
    both = {key: min(key) for key in product(range(2), repeat=2)}
    assert least.agrees_with(Operator("m", (2,), both, ordered=True))
    assert Operator("m", (2,), both, ordered=True).agrees_with(least)
    assert not least.agrees_with(Operator("m", (2,), both | {(1, 0): 1}, ordered=True))
    assert not least.agrees_with(Operator("m", (2,), {**least.table, (1, 1): 0}))
    assert Operator.named("m", "min", [2], 2).agrees_with(Operator.named("m", "min", [2, 3], 2))
    assert not Operator.named("m", "min", [2, 3], 2).agrees_with(least)
    unbounded = Operator.named("m", "min", [2], 2, unbounded=True)
    assert least.agrees_with(unbounded)
    assert not unbounded.agrees_with(least)
