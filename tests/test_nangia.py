"""Nangia and Bowman's notation: both forms are read and written, and damage is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.catalog import boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.formats.nangia import (
    SCANNER,
    covering,
    format_nangia,
    parse_nangia,
    read_nangia,
    uncovered,
)
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse

WIDE = listops(5, "mean", ("MAX", "MIN", "MED", "SM", "PM", "FIRST", "LAST"))
OPERATORS = "an operator ([MAX [MIN [MED [SM [PM [FIRST [LAST)"


def n_ary(expression: Expression) -> str:
    return " ".join(word for word in format_nangia(expression).split() if word not in "()")


@pytest.mark.parametrize(
    ("text", "native"),
    [
        ("7", "7"),
        ("[MAX 1 7 2 ]", "(MAX 1 7 2)"),
        ("( ( ( ( [MAX 1 ) 7 ) 2 ) ] )", "(MAX 1 7 2)"),
        ("((([SM 9) 9)])", "(SM 9 9)"),
        ("[MAX 2 [FIRST 9 6 ] ]", "(MAX 2 (FIRST 9 6))"),
        ("( ( ( [MAX 2 ) ( ( ( [FIRST 9 ) 6 ) ] ) ) ] )", "(MAX 2 (FIRST 9 6))"),
        ("( ( ( [LAST ( ( ( [PM 9 ) 6 ) ] ) ) 1 ) ] )", "(LAST (PM 9 6) 1)"),
        (b"[MED 1 2 ]\r", "(MED 1 2)"),
    ],
)
def test_both_forms_are_the_native_expression(text, native):
    assert parse_nangia(WIDE, text) == parse(WIDE, native)


def test_writing_and_reading_back():
    for depth in range(6):
        for expression in draw(WIDE, depth, 20, np.random.default_rng(0)):
            assert parse_nangia(WIDE, format_nangia(expression)) == expression
            assert parse_nangia(WIDE, n_ary(expression)) == expression


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, f"expected a digit, '(' or {OPERATORS}, found the end of the text"),
        ("12", 1, f"expected a digit or {OPERATORS}, found '12', which is no token"),
        ("5 5", 3, "expected the end of the text after a whole expression, found '5'"),
        ("MAX 1 2", 1, "found 'MAX', which is no token; did you mean '[MAX'?"),
        ("[MEAN 1 2 ]", 1, "found '[MEAN', which is no token"),
        ("[MAX 1 ]", 8, "found ']': MAX takes 2 or more operands, not 1"),
        ("[MAX ]", 6, "found ']': MAX takes 2 or more operands, not 0"),
        ("[MAX 1 2", 9, f"expected a digit, {OPERATORS} or ']', found the end of the text"),
        ("[MAX 1 2 ] ]", 12, "expected the end of the text"),
        ("[MAX 1 2 )", 10, f"expected a digit, {OPERATORS} or ']', found ')'"),
        ("[MAX 1 ( [MIN 1 2 ] ]", 8, "found '(': this expression began without parentheses"),
        # The binarised form: too few parentheses, too many, in the wrong place, or none.
        ("( 5 )", 3, f"expected '(' or {OPERATORS}, found '5'"),
        ("( ( [MAX 1 ) ] )", 14, "expected 3 or more parentheses before [MAX, found ']': it has 2"),
        ("( ( ( [MAX 1 ) 2 ) 3 ) ] )", 20, "expected ']', found '3': MAX has parentheses for 2"),
        ("( ( ( ( [MAX 1 ) 2 ) ] ) )", 22, "found ']': 2 parentheses of MAX are still open"),
        ("( ( ( [MAX 1 2 ) ] )", 14, "expected ')', found '2': in the binarised form"),
        ("( ( ( [MAX 1 ) 2 ) ] ", 21, "expected ')', found the end of the text"),
        ("( ( ( [MAX 1 ) 2 ) ] ) )", 24, "expected the end of the text"),
        ("( ( ( [MAX [MIN 1 2 ] ) 2 ) ] )", 12, "expected a digit or '(', found '[MIN'"),
        ("( ( ( ( [MAX 1 ) ( 2 ) ) ] )", 20, f"expected '(' or {OPERATORS}, found '2'"),
    ],
)
def test_damage_is_located(text, column, problem):
    with pytest.raises(ExpressionError) as caught:
        read_nangia(text, first_line=7)
    assert problem in caught.value.problem
    assert (caught.value.line, caught.value.column) == (7, column)


def test_a_change_in_the_parentheses_is_never_overlooked():
    """Take any parenthesis out of a binarised row, or put one in: no such text is well formed."""
    (expression,) = draw(WIDE, 3, 1, np.random.default_rng(5))
    words = format_nangia(expression).split()
    for place, word in enumerate(words):
        damaged = [[*words[:place], extra, *words[place:]] for extra in "()"]
        damaged += [words[:place] + words[place + 1 :]] if word in "()" else []
        for text in damaged:
            with pytest.raises(ExpressionError):
                read_nangia(" ".join(text))


@given(st.text(alphabet="()[]MAXSM 019\t\n\x00é", max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        reading = read_nangia(text)
    except ExpressionError:
        return
    expression = reading.expression(covering(reading.uses, "mean"))
    words = SCANNER.findall(text)
    if words[0] == "(":
        assert format_nangia(expression).split() == words
    else:
        assert n_ary(expression).split() == words


def test_deep_nesting():
    depth = 100_000
    right = "[SM 1 " * depth + "1" + " ]" * depth
    left = "( ( ( [SM " * depth + "1" + " ) 1 ) ] )" * depth
    for text in (right, left):
        expression = parse_nangia(listops(), text)
        assert expression.depth == depth
        assert evaluate(expression) == str((depth + 1) % 10)


def test_what_an_algebra_does_not_cover_is_named():
    with pytest.raises(ExpressionError, match="column 21: MAX of 4 operands is outside 'listops'"):
        parse_nangia(listops(), "[MIN 1 [MAX 1 2 3 4 ] ]")
    with pytest.raises(ExpressionError, match="column 12: FIRST of 2 operands is outside"):
        parse_nangia(listops(), "[FIRST 1 2 ]")
    with pytest.raises(ValueError, match="not for 'boolean'"):
        parse_nangia(boolean(), "1")


def test_the_algebra_that_covers():
    assert covering({("MAX", 2)}, "lower") == listops()
    assert covering({("MAX", 2)}, "mean") == listops(median="mean")
    assert covering({("MED", 5), ("SM", 2)}, "mean") == listops(5, "mean")
    assert covering({("LAST", 2), ("MAX", 4)}, "mean") == listops(4, operators=("MAX", "LAST"))
    assert covering([], "lower") == listops()
    assert uncovered(listops(None), {("MAX", 2), ("MAX", 100)}) == []
    assert uncovered(listops(), {("PM", 2), ("MAX", 3), ("MAX", 4)}) == [("MAX", 4), ("PM", 2)]
