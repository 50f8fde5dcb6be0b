"""Python's text: the same value as Python's own, for whatever Python accepts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.python import parse_python
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from tests.algebras import KLEENE

SEVEN = tuple("0123456")
MODULO_7 = Algebra(
    "modulo7",
    SEVEN,
    (
        Operator.named("+", "sum", [2], 7),
        Operator.named("-", "difference", [1, 2], 7),
        Operator.named("*", "product", [2], 7),
    ),
    "infix",
)
ONLY_BINARY = Algebra(
    "binary-minus",
    SEVEN,
    (*MODULO_7.operators[::2], Operator.named("-", "difference", [2], 7)),
    "infix",
)


@pytest.mark.parametrize(
    ("algebra", "text", "native"),
    [
        (boolean(), "not ( True ) and False or True", "(((~1)&0)|1)"),
        (boolean(), "True or False and not 1", "(1|(0&(~1)))"),
        (boolean(), "not not 0", "(~(~0))"),
        (boolean(), "((( 1 )))", "1"),
        (boolean(), "1 or 0 or 1", "((1|0)|1)"),
        (boolean(), b"not(1)or(0)", "((~1)|0)"),
        (arithmetic(), "2 + 3 * 14 - 1", "((2+(3*4))+(9*1))"),
        (arithmetic(), "-3 * -+4", "((9*3)*(9*4))"),
        (arithmetic(), "1_000_007 - 00", "(7+(9*0))"),
        (arithmetic(3), "5 - 4", "(2+(2*1))"),
        (MODULO_7, "2 - 3 - -8", "((2-3)-(-1))"),
        (ONLY_BINARY, "2 - -8", "(2-(0-1))"),
    ],
)
def test_the_full_form(algebra, text, native):
    assert str(parse_python(algebra, text)) == native


BOOLEANS = st.recursive(
    st.sampled_from(["True", "False", "1", "0"]),
    lambda inner: (
        st.tuples(inner, st.sampled_from([" and ", " or "]), inner).map("".join)
        | inner.map("not {}".format)
        | inner.map("( {} )".format)
    ),
)
INTEGERS = st.recursive(
    st.integers(0, 10**6).map(str) | st.just("0"),
    lambda inner: (
        st.tuples(inner, st.sampled_from(["+", "-", " * "]), inner).map("".join)
        | inner.map("-{}".format)
        | inner.map("+ {}".format)
        | inner.map("({})".format)
    ),
)


@given(BOOLEANS)
def test_booleans_are_worth_what_python_says(text):
    assert evaluate(parse_python(boolean(), text)) == str(int(eval(text)))


@given(INTEGERS, st.sampled_from([arithmetic(), arithmetic(2), MODULO_7, ONLY_BINARY]))
def test_numbers_are_worth_what_python_says(text, algebra):
    assert evaluate(parse_python(algebra, text)) == str(eval(text) % len(algebra.values))


def test_native_text_means_the_same():
    for expression in draw(arithmetic(), 4, 50, np.random.default_rng(0)):
        assert parse_python(arithmetic(), str(expression)) == expression


@given(st.text(alphabet="()10 andornotTrueFlse-+*_é\n", max_size=30))
def test_any_text_is_read_or_refused(text):
    for algebra in (boolean(), arithmetic()):
        try:
            value = evaluate(parse_python(algebra, text))
        except ExpressionError:
            continue
        expected = eval(f"({text})")  # in parentheses, where Python takes new lines
        assert value == str(int(expected) % len(algebra.values))


@pytest.mark.parametrize(
    ("algebra", "text", "column", "problem"),
    [
        (boolean(), "", 1, "expected True, False, 1, 0, 'not' or '(', found no text"),
        (boolean(), "1 and", 6, "'not' or '(', found the end of the text"),
        (boolean(), "1 and or 0", 7, "'not' or '(', found 'or'"),
        (boolean(), "1 0", 3, "expected an operator (or and) or the end of the text, found '0'"),
        (boolean(), "(1 or 0", 8, "(or and) or ')', found the end of the text (1 unclosed)"),
        (boolean(), "1 or 0)", 7, "or the end of the text, found ')'"),
        (boolean(), "()", 2, "found ')'"),
        (boolean(), "1 not 0", 3, "expected an operator (or and) or the end of the text"),
        (boolean(), "2", 1, "found '2'"),
        (boolean(), "true", 1, "found 'true'"),
        (boolean(), "1 & 0", 3, "found '&'"),
        (arithmetic(), "2 ** 3", 4, "expected a whole number, '-', '+' or '(', found '*'"),
        (arithmetic(), "2 / 3", 3, "expected an operator (+ - *) or the end of the text"),
        (arithmetic(), "012", 1, "found '012'"),
        (arithmetic(), "1.5", 2, "found '.'"),
        (arithmetic(), "1__0", 1, "found '1__0'"),
        (arithmetic(), "٣", 1, "found '٣'"),
        (arithmetic(), "2 *", 4, "found the end of the text"),
        (arithmetic(), "__import__('os')", 1, "found '__import__'"),
    ],
)
def test_errors_are_located_in_the_users_own_text(algebra, text, column, problem):
    with pytest.raises(ExpressionError) as caught:
        parse_python(algebra, text, first_line=3)
    assert problem in caught.value.problem
    assert (caught.value.line, caught.value.column) == (3, column)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(" * 100_000 + "7" + ")" * 100_000, "7"),
        ("-" * 100_000 + "7", "7"),
        ("1" + "+1" * 100_000, "1"),
        ("1+(" * 100_000 + "1" + ")" * 100_000, "1"),
        ("1" * 100_000, "1"),
    ],
)
def test_deep_and_long_text(text, value):
    assert evaluate(parse_python(arithmetic(), text)) == value


def test_algebras_without_pythons_operators_are_refused():
    saturating = Algebra(
        "saturating",
        SEVEN,
        (Operator.named("+", "saturating-sum", [2], 7), Operator.named("*", "product", [2], 7)),
        "infix",
    )
    for algebra in (listops(), KLEENE, saturating):
        with pytest.raises(ValueError, match=f"not for '{algebra.name}'"):
            parse_python(algebra, "1")
