"""A text that is no program is refused with the place and the cause, whatever is wrong with it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains import program_syntax
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.reference import evaluate_program
from tests.programs import ALGEBRAS, HALF_ADDER

REFUSED = [
    ("", 1, 1, "expected a statement such as name=expr;, found no text"),
    ("# a=1;", 1, 7, "expected a statement such as name=expr;, found no text"),
    (";", 1, 1, "expected a statement such as name=expr;, found ';'"),
    ("a=1;;b=0;", 1, 5, "expected a statement such as name=expr;, found ';'"),
    ("a=1", 1, 4, "expected ';' after the statement, found the end of the text"),
    ("a=1;b", 1, 6, "expected '=' after the name 'b', found the end of the text"),
    ("a;b=1;", 1, 2, "expected '=' after the name 'a', found ';'"),
    ("a 1;", 1, 3, "expected '=' after the name 'a', found '1'"),
    ("a=1 b=0;", 1, 5, "expected ';' after a whole expression, found the name 'b'"),
    ("1=0;", 1, 1, "found '1': a token of boolean, which cannot be a name"),
    ("NOT=0;", 1, 1, "found 'NOT': a token of boolean, which cannot be a name"),
    ("2x=0;", 1, 1, "expected a statement such as name=expr;, found '2x', which is no name"),
    ("a=1;\nb=0;\n a = b;", 3, 2, "'a' is defined twice, first in line 1, column 1"),
    ("a=1;\nb=(a&c);", 2, 6, "'c' is used, but never defined"),
    ("alpha=1;b=(alph&1);", 1, 12, "never defined; did you mean 'alpha'?"),
    ("a=(a|1);", 1, 1, "'a' depends on itself: 'a' -> 'a'"),
    ("z=c;c=(b&b);b=(a|1);a=c;y=1;", 1, 5, "'c' depends on itself: 'c' -> 'b' -> 'a' -> 'c'"),
    ("a=(b);b=1;", 1, 5, "found ')': these parentheses hold no operator"),
    ("a=(1 b 0);b=1;", 1, 6, "expected an operator (& |), found the name 'b'"),
    ("a=(b&);b=1;", 1, 6, "expected a name, a value (1 0) or '(', found ')'"),
    ("a=;", 1, 3, "expected a name, a value (1 0) or '(', found ';'"),
    ("a=(1&2);", 1, 6, "found '2', which is no token"),
    ("a=((1&0);b=1;", 1, 9, "(1 parenthesis unclosed)"),
    ("a=((1&0)", 1, 9, "found the end of the text"),
    ("a=1&0;", 1, 4, "each operator needs its parentheses"),
    (b"a=1;\nb=\xff;", 2, 3, "expected UTF-8 text, found the byte 0xff"),
]


@pytest.mark.parametrize(("text", "line", "column", "problem"), REFUSED)
def test_what_is_wrong_and_where(text, line, column, problem):
    with pytest.raises(ef.ExpressionError) as raised:
        ef.parse_program(ef.boolean(), text)
    assert (raised.value.line, raised.value.column) == (line, column)
    assert problem in raised.value.problem


def test_a_long_cycle_is_shown_in_part():
    text = "".join(f"x{i}=x{(i + 1) % 100};" for i in range(100))
    with pytest.raises(ef.ExpressionError) as raised:
        ef.parse_program(ef.boolean(), text)
    assert "'x0' -> 'x1'" in raised.value.problem
    assert raised.value.problem.endswith("-> ... -> 'x0' (100 names)")


def test_names_of_a_prefix_algebra():
    with pytest.raises(ef.ExpressionError, match="did you mean 'MAX'"):
        ef.parse_program(ef.listops(), "a=max;")
    with pytest.raises(ef.ExpressionError, match=r"expected '\]', found '\)'"):
        ef.parse_program(ef.listops(), "a=1;b=[ MAX a 2 );")


def test_a_name_that_is_too_long_to_be_misspelt():
    """Comparing two such names would take hours, and the message would hold one of them."""
    long = "".join("xy"[i * i // 7 % 2] for i in range(200_000))
    with pytest.raises(ef.ExpressionError) as raised:
        ef.parse_program(ef.boolean(), f"{long}=1;y=(~{long[::-1]}z);")
    assert raised.value.problem.endswith("...' is used, but never defined")


def test_no_more_statements_than_the_bound(monkeypatch):
    monkeypatch.setattr(program_syntax, "MOST_STATEMENTS", 2)
    with pytest.raises(ValueError, match="statements of a program: expected 2 at most, found 3"):
        ef.parse_program(ef.boolean(), "a=1;b=1;c=1;")


def test_no_longer_statement_than_the_bound(monkeypatch):
    monkeypatch.setattr(program_syntax, "LONGEST_STATEMENT", 10)
    assert len(ef.parse_program(ef.boolean(), "a=1;" + 99 * " " + "b=(a&(~0));")) == 2
    with pytest.raises(ef.ExpressionError, match="10 characters at most, found 11") as raised:
        ef.parse_program(ef.boolean(), "a=1;\n b=(a &(~0)) ;")
    assert (raised.value.line, raised.value.column) == (2, 2)


PIECES = st.sampled_from(
    [*";=#()[]&|~+-*.\n \"'é0", "a", "x1", "MAX", "12", "\0", "\ud800", "==", "x0=", "(x0&x1)"]
)


@settings(deadline=None)
@given(st.lists(PIECES, max_size=20).map("".join), st.sampled_from(ALGEBRAS))
def test_any_text_is_a_program_or_a_located_error(text, algebra):
    read(algebra, text)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(ALGEBRAS), st.data())
def test_a_damaged_program_is_one_or_a_located_error(seed, algebra, data):
    rng = np.random.default_rng(seed)
    text = str(draw_program(algebra, int(rng.integers(1, 6)), rng))
    at, put = data.draw(st.integers(0, len(text))), data.draw(PIECES | st.just(""))
    read(algebra, text[:at] + put + text[at + data.draw(st.integers(0, 5)) :])


def read(algebra: ef.Algebra, text: str) -> None:
    """Read a text, and evaluate it if it is a program."""
    try:
        program, refused = ef.parse_program(algebra, text), None
    except ef.ExpressionError as error:
        program, refused = None, error
    if program is None:
        assert refused is not None
        assert 0 <= refused.offset <= len(text)
        return
    values = evaluate_program(program)
    assert ef.construct(algebra).run_program(program, engine="fast").values == values


def test_every_prefix_of_a_program_is_refused_or_is_a_program():
    for end in range(len(HALF_ADDER)):
        with pytest.raises(ef.ExpressionError):
            ef.parse_program(ef.boolean(), HALF_ADDER[:end])
