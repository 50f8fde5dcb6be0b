"""Whatever is not an expression is refused, at the right place and in words that help."""

import time

import pytest

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import CATALOG, arithmetic, boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.syntax import parse
from tests.algebras import ENDS, KLEENE, MINUS
from tests.fuzz import Fuzzer, fuzz

BIT = "expected a value (1 0) or '(', found "
DIGIT = "expected a value (0 1 2 3 4 5 6 7 8 9) or '(', found "
DIGIT_OR_END = "expected a value (0 1 2 3 4 5 6 7 8 9), '(' or ')', found "
IN_BITS = "expected a value (1 0), '(' or an operator (~), found "
PREFIX = "expected an operator (MAX MIN MED SM), found "
JOIN = "expected an operator (& |), found "
DONE = "expected the end of the text after a whole expression, found "
END = "the end of the text"

# text, line, column, the whole problem; the column counts characters from 1.
BAD: dict[str, list[tuple[str | bytes, int, int, str]]] = {
    "boolean": [
        # Nothing there.
        ("", 1, 1, BIT + "no text"),
        ("   ", 1, 1, BIT + "no text"),
        ("\n \t\n", 1, 1, BIT + "no text"),
        # Parentheses that do not balance.
        ("(", 1, 2, IN_BITS + END + " (1 parenthesis unclosed)"),
        (")", 1, 1, BIT + "')': no parenthesis is open"),
        ("(1", 1, 3, JOIN + END + " (1 parenthesis unclosed)"),
        ("((1&0)", 1, 7, JOIN + END + " (1 parenthesis unclosed)"),
        ("(((1&0", 1, 7, "expected ')', found " + END + " (3 parentheses unclosed)"),
        ("(1&", 1, 4, BIT + END + " (1 parenthesis unclosed)"),
        ("(1&0))", 1, 6, DONE + "')'"),
        (")1&0(", 1, 1, BIT + "')': no parenthesis is open"),
        # No operator, the wrong one, or two.
        ("()", 1, 2, IN_BITS + "')': empty parentheses"),
        ("(1)", 1, 3, JOIN + "')': these parentheses hold no operator"),
        ("(1 0)", 1, 4, JOIN + "'0': no operator between two operands"),
        ("(1(1&0))", 1, 3, JOIN + "'(': no operator between two operands"),
        ("(1~0)", 1, 3, JOIN + "'~': ~ comes before its operand"),
        ("(&1)", 1, 2, IN_BITS + "'&'"),
        ("(1&&0)", 1, 4, BIT + "'&': a second operator in the same parentheses"),
        ("(1&0|1)", 1, 5, "expected ')', found '|': a second operator in the same parentheses"),
        ("(~~1)", 1, 3, BIT + "'~': a second operator in the same parentheses"),
        ("(~1&0)", 1, 4, "expected ')', found '&': a second operator in the same parentheses"),
        ("~1", 1, 1, BIT + "'~'"),
        # Too few operands, or too many.
        ("(1&)", 1, 4, BIT + "')': & takes 2 operands, not 1"),
        ("(~)", 1, 3, BIT + "')': ~ takes 1 operand, not 0"),
        ("(~1 0)", 1, 5, "expected ')', found '0': ~ takes 1 operand here, not more"),
        ("(1&0 1)", 1, 6, "expected ')', found '1': & takes 2 operands here, not more"),
        # More parentheses than the notation has.
        ("((1&0))", 1, 7, JOIN + "')': these parentheses hold no operator"),
        ("((1)&0)", 1, 4, JOIN + "')': these parentheses hold no operator"),
        # Text after the end.
        ("1 0", 1, 3, DONE + "'0'"),
        ("1&0", 1, 2, DONE + "'&'"),
        ("(1&0)(1&0)", 1, 6, DONE + "'('"),
        ("(1&0) # no", 1, 7, DONE + "'#', which is no token"),
        # What is no token.
        ("2", 1, 1, BIT + "'2', which is no token"),
        ("(1&2)", 1, 4, BIT + "'2', which is no token"),
        ("(1&01)", 1, 4, BIT + "'01', which is no token"),
        ("(1AND0)", 1, 2, IN_BITS + "'1AND0', which is no token"),
        ("(1 and 0)", 1, 4, JOIN + "'and', which is no token; did you mean 'AND'?"),
        ("(NOTT 1)", 1, 2, IN_BITS + "'NOTT', which is no token; did you mean 'NOT'?"),
        ("(TRU OR 1)", 1, 2, IN_BITS + "'TRU', which is no token; did you mean 'TRUE'?"),
        ("(1 A 0)", 1, 4, JOIN + "'A', which is no token"),
        ("(1&" + "z" * 50 + ")", 1, 4, BIT + f"'{'z' * 17}...', which is no token"),
        ("[1&0]", 1, 1, BIT + "'[', which is no token"),
        ("(1^0)", 1, 3, JOIN + "'^', which is no token"),
        ("(1&０)", 1, 4, BIT + "'０', which is no token"),
        ("(\x001&0)", 1, 2, IN_BITS + "'\\x00', which is no token"),
        ("(1\x1b&0)", 1, 3, JOIN + "'\\x1b', which is no token"),
        ("(1\u200b&0)", 1, 3, JOIN + "'\\u200b', which is no token"),
        ("(1&\ud8000)", 1, 4, BIT + "'\\ud800', which is no token"),
        ("(1&0)é", 1, 6, DONE + "'é', which is no token"),
        # Bytes that are no text.
        (b"(1&\xff0)", 1, 4, "expected UTF-8 text, found the byte 0xff"),
        (b"\x80", 1, 1, "expected UTF-8 text, found the byte 0x80"),
        ("(1∧0)".encode() + b"\n\xe2\x88", 2, 1, "expected UTF-8 text, found the byte 0xe2"),
        (b"(1&2)", 1, 4, BIT + "'2', which is no token"),
        # On other lines.
        ("(1\n&\n2)", 3, 1, BIT + "'2', which is no token"),
        ("\n\n  (1 & x)", 3, 8, BIT + "'x', which is no token"),
        ("(1&0\n\n", 1, 5, "expected ')', found " + END + " (1 parenthesis unclosed)"),
        ("(1\n& \n\n", 2, 2, BIT + END + " (1 parenthesis unclosed)"),
    ],
    "arithmetic": [
        ("", 1, 1, DIGIT + "no text"),
        ("(1-2)", 1, 3, "expected an operator (+ *), found '-', which is no token"),
        ("(+1)", 1, 2, DIGIT + "'+'"),
        ("10", 1, 1, DIGIT + "'10', which is no token"),
        ("(1+-2)", 1, 4, DIGIT + "'-', which is no token"),
        ("(1+2+3)", 1, 5, "expected ')', found '+': a second operator in the same parentheses"),
        ("(1++2)", 1, 4, DIGIT + "'+': a second operator in the same parentheses"),
        ("(1+2)*3", 1, 6, DONE + "'*'"),
        ("(1.5+2)", 1, 3, "expected an operator (+ *), found '.', which is no token"),
        ("(x+2)", 1, 2, DIGIT + "'x', which is no token"),
    ],
    "listops": [
        ("( )", 1, 3, PREFIX + "')': empty parentheses"),
        ("( 1 2 )", 1, 3, PREFIX + "'1'"),
        ("( ( MAX 1 2 ) )", 1, 3, PREFIX + "'('"),
        ("( MAX )", 1, 7, DIGIT + "')': MAX takes 2 or 3 operands, not 0"),
        ("( MAX 1 )", 1, 9, DIGIT + "')': MAX takes 2 or 3 operands, not 1"),
        (
            "( MAX 1 2 3 4 )",
            *(1, 13, "expected ')', found '4': MAX takes 2 or 3 operands here, not more"),
        ),
        ("( MAX 1 2", 1, 10, DIGIT_OR_END + END + " (1 parenthesis unclosed)"),
        ("( MAX 1 2 MIN )", 1, 11, DIGIT_OR_END + "'MIN': a second operator in the same "),
        ("MAX 1 2", 1, 1, DIGIT + "'MAX'"),
        ("( MAX1 2 )", 1, 3, PREFIX + "'MAX1', which is no token; did you mean 'MAX'?"),
        ("( MAXI 1 2 )", 1, 3, PREFIX + "'MAXI', which is no token; did you mean 'MAX'?"),
        ("( M 1 2 )", 1, 3, PREFIX + "'M', which is no token"),
        ("( MAX 12 3 )", 1, 7, DIGIT + "'12', which is no token"),
        ("( MAX 1 2 ) )", 1, 13, DONE + "')'"),
        # Brackets come in pairs of a kind, and the first wrong one is the error.
        ("( MAX 1 2 ]", 1, 11, "expected ')', found ']'"),
        ("[ MAX 1 2 )", 1, 11, "expected ']', found ')'"),
        ("[ MAX ( MIN 1 2 ] 3 )", 1, 17, "expected ')', found ']'"),
        ("( MAX 1 2 ] 5", 1, 11, "expected ')', found ']'"),
        ("( MAX [ MIN 1 2 ) 3 4 5 ]", 1, 17, "expected ']', found ')'"),
        ("[", 1, 2, PREFIX + END + " (1 parenthesis unclosed)"),
        ("]", 1, 1, DIGIT + "']': no parenthesis is open"),
    ],
}
TABLE = [(CATALOG[domain](), *row) for domain, rows in BAD.items() for row in rows] + [
    (MINUS, "(-1 2)", 1, 5, "expected ')', found '2': - takes 1 operand here, not more"),
    (MINUS, "(1-)", 1, 4, "')': - takes 2 operands, not 1"),
    (ENDS, "( FIRST 1 2 )", 1, 13, "')': FIRST takes 1 or 3 operands, not 2"),
    (KLEENE, "(true and flase)", 1, 11, "expected a value (true unknown false) or '('"),
    (arithmetic(20), "(1+x)", 1, 4, "expected a value (0 1 2 ... 19) or '(', found 'x'"),
]


def refusal(algebra: Algebra, text: str | bytes, **options) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        parse(algebra, text, **options)
    return caught.value


@pytest.mark.parametrize(("algebra", "text", "line", "column", "problem"), TABLE)
def test_place_and_reason(algebra, text, line, column, problem):
    error = refusal(algebra, text)
    assert problem in error.problem
    assert (error.line, error.column) == (line, column)
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    assert (
        error.offset == sum(len(above) + 1 for above in text.split("\n")[: line - 1]) + column - 1
    )
    heading, shown, caret = str(error).split("\n")
    assert heading == f"line {line}, column {column}: {error.problem}"
    if text.isprintable():
        assert shown == "  " + text
    if text.isascii():
        assert caret == " " * (2 + column - 1) + "^"


def test_the_table_has_no_row_twice():
    assert len({(algebra.name, text) for algebra, text, *_ in TABLE}) == len(TABLE)


@pytest.mark.parametrize(
    ("text", "shown", "columns"),
    [
        ("(1&漢)", "(1&漢)", 3),
        ("(漢&1)", "(漢&1)", 1),
        ("１２", "１２", 0),
        ("((1&漢字)", "((1&漢字)", 4),
        ("(1∧∨)", "(1∧∨)", 3),
        ("(1 e\u0301 x)", "(1 e\u0301 x)", 3),
        ("\t(1 x)", "�(1 x)", 4),
        ("(1\x1b[31m", "(1�[31m", 2),
        ("(1\x00", "(1�", 2),
        ("(1&0)\rx", "(1&0)�x", 6),
    ],
)
def test_what_the_line_looks_like(text, shown, columns):
    _, line, caret = str(refusal(boolean(), text)).split("\n")
    assert line == "  " + shown
    assert caret == "  " + " " * columns + "^"


@pytest.mark.parametrize(
    ("before", "columns"),
    [("漢", 2), ("é", 1), ("e\u0301", 1), ("ｱ", 1), ("Ａ", 2), ("∧", 1)],
)
def test_the_caret_allows_for_wide_and_narrow_characters(before, columns):
    """Here an odd character is a value, so that the error comes after it."""
    symbols = Algebra(
        "odd", (before, "0"), (Operator("+", (2,), dict.fromkeys([(0, 0), (0, 1), (1, 1)], 0)),),
        "infix",
    )  # fmt: skip
    _, _, caret = str(refusal(symbols, f"({before}+?)")).split("\n")
    assert caret == "  " + " " * (columns + 2) + "^"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(1+" * 100_000, ""),
        ("(1+" * 100_000, "2" + ")" * 100_000),
        ("", "(1+" * 100_000),
        ("(1+" * 5, ")" * 100_000),
        ("(1+" * 100, ")" * 5),
        ("(1+" * 24, ""),
        ("\n" + "(1+" * 500, " \n" + ")" * 500),
    ],
)
def test_a_long_line_is_shown_around_the_place(before, after):
    error = refusal(arithmetic(), before + "?" + after)
    heading, shown, caret = str(error).split("\n")
    assert len(str(error)) < 400
    assert shown[caret.index("^")] == "?"
    assert error.offset == len(before)
    assert shown.lstrip().startswith("…") == (len(before) > 36 and len(before + after) > 71)
    assert shown.endswith("…") == (len(after.rstrip("\n").split("\n")[0]) > 36)
    assert "'?'" in heading


def test_a_huge_word_is_not_repeated_in_full():
    error = refusal(listops(), "( MAX " + "M" * 1_000_000 + " 1 )")
    assert error.column == 7
    assert len(str(error)) < 400


@pytest.mark.parametrize(
    ("text", "offset", "problem"),
    [
        ("(1+" * 1_000_000 + "2" + ")" * 999_999, 4_000_000, "(1 parenthesis unclosed)"),
        ("(1+" * 1_000_000 + "2" + ")" * 1_000_001, 4_000_001, "expected the end of the text"),
        ("(" * 1_000_000, 1_000_000, "(1000000 parentheses unclosed)"),
        ("(" * 1_000_000 + ")" * 1_000_000, 1_000_000, "empty parentheses"),
        ("(" * 1_000_000 + "1" + "+1)" * 999_999 + "+1 1)", 4_000_001, "not more"),
    ],
)
def test_wrong_at_the_end_of_a_million_levels(text, offset, problem):
    start = time.process_time()
    error = refusal(arithmetic(), text)
    assert time.process_time() - start < 20
    assert error.offset == offset
    assert problem in error.problem


def test_lines_count_from_where_the_text_began_in_its_file():
    assert refusal(boolean(), "x", first_line=17).line == 17
    assert refusal(boolean(), "(1\n&x)", first_line=17).line == 18
    assert refusal(boolean(), b"(1\n\xff)", first_line=17).line == 18


def test_braces_in_symbols_do_not_upset_the_message():
    values = ("{", "}")
    curly = Algebra("curly", values, (Operator.from_rule("{0}", [2], min, values),), "infix")
    assert str(parse(curly, "({{0}})")) == "( { {0} } )"
    error = refusal(curly, "({ {0}")
    assert "expected a value ({ }) or '(', found the end of the text" in error.problem


def test_fuzz(task):
    """`make fuzz` tries a million."""
    tally = fuzz(task, count=20_000, seed=1)
    assert tally.valid > 2_000
    assert tally.invalid > 8_000


def test_everything_before_the_error_could_have_gone_on(task):
    """The error is at the first token that no expression could have there, not after it."""
    fuzzer = Fuzzer(task, seed=2)
    errors = [(text, attempt(task, text)) for text in (fuzzer.text() for _ in range(5_000))]
    prefixes = [text[: error.offset] for text, error in errors if error and error.offset]
    assert len(prefixes) > 1_000
    for prefix in prefixes:
        error = attempt(task, prefix)
        assert error is None or error.offset == len(prefix.rstrip()), prefix


def attempt(algebra: Algebra, text: str) -> ExpressionError | None:
    try:
        parse(algebra, text)
    except ExpressionError as error:
        return error
    return None
