"""Files of labelled rows: read as they were meant, or refused with the place of every mistake."""

import contextlib
import gc
import io
import weakref
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import boolean, listops
from exactformer.domains.errors import ExpressionError, decode
from exactformer.domains.expression import Expression
from exactformer.domains.formats import blocks, bowman
from exactformer.domains.formats.blocks import Kept, in_blocks
from exactformer.domains.formats.labelled import (
    Row,
    guess_format,
    read_bowman_row,
    read_tsv_row,
)
from exactformer.domains.formats.lines import LONGEST_LINE, Lines
from exactformer.domains.reference import evaluate
from exactformer.engine.nangia_rows import read_published
from tests.algebras import KLEENE


def lines(text: str | bytes) -> Lines:
    data = text.encode() if isinstance(text, str) else text
    return Lines("some.tsv", io.BytesIO(data))


def read_nangia_rows(
    file: Lines, format: Literal["nangia", "lra"] = "nangia"
) -> list[tuple[int, str, str]]:
    """Line, label, and what the oracle says, for rows of ListOps text."""
    algebra = listops(5, "mean")
    blocks = [list(block.rows(algebra)) for block in read_published(file, format)]
    return [
        (line, label, evaluate(Expression(algebra, ids))) for line, label, ids in chain(*blocks)
    ]


read_lra_rows = partial(read_nangia_rows, format="lra")


def read_bowman_rows(file: Lines) -> Iterator[Row]:
    return file.read(read_bowman_row)


def read_tsv_rows(file: Lines, algebra: Algebra) -> Iterator[Row]:
    return file.read(partial(read_tsv_row, algebra))


def test_nangia_rows():
    rows = read_nangia_rows(lines("7\t[MAX 1 7 2 ]\r\n5\t( ( ( [MED 2 ) 9 ) ] )\n9\t9"))
    assert rows == [(1, "7", "7"), (2, "5", "5"), (3, "9", "9")]


def test_lra_rows():
    rows = read_lra_rows(lines("Source\tTarget\r\n( ( ( [SM 9 ) 9 ) ] )\t8\r\n[MAX 1 2 ]\t1"))
    assert rows == [(2, "8", "8"), (3, "1", "2")]


def test_tsv_rows_have_the_value_first_or_last():
    rows = read_tsv_rows(lines("(1&0)\t0\nTRUE\t(~0)\n1\t0\n(~1)\tFALSE"), boolean())
    found = [(row.line, row.label, evaluate(row.content)) for row in rows]
    assert found == [(1, "0", "0"), (2, "1", "1"), (3, "0", "1"), (4, "0", "0")]
    (row,) = read_tsv_rows(lines("(true and unknown)\tunknown"), KLEENE)
    assert row.label == evaluate(row.content)


def test_a_byte_order_mark_and_a_last_new_line_are_no_rows(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"\xef\xbb\xbf1\t1\n2\t2\n")
    with Lines.of(path) as file:
        assert [line for line, _, _ in read_nangia_rows(file)] == [1, 2]
        assert file.done == file.size == path.stat().st_size


@pytest.mark.parametrize(
    ("algebra", "text", "format"),
    [
        (listops(), "Source\tTarget\r\n1\t1", "lra"),
        (listops(), "1\t1", "nangia"),
        (listops(10, "mean"), "1\t1", "nangia"),
        (listops(), "7\t[MAX 1 7 2 ]", "nangia"),
        (listops(), "7\t( ( ( ( [MAX 1 ) 7 ) 2 ) ] )", "nangia"),
        (listops(), "( MAX 1 7 2 )\t7", "tsv"),
        (listops(), "7\t( MAX 1 7 2 )", "tsv"),
        (listops(10, "mean"), "( MAX 1 7 2 )\t7", "tsv"),
        (boolean(), "=\t( a )\t( a )", "bowman"),
        (boolean(), "(1&0)\t0", "tsv"),
        (boolean(), "1\t1", "tsv"),
        (KLEENE, "1\t1", "tsv"),
    ],
)
def test_the_format_follows_from_the_domain_and_the_first_line(algebra, text, format):
    assert guess_format(algebra, lines(text).header) == format


@pytest.mark.parametrize(
    ("read", "text", "places"),
    [
        (read_nangia_rows, "", ["found an empty file"]),
        (read_nangia_rows, "1 [MAX 1 2 ]", ["line 1, column 13: expected label <TAB> expression"]),
        (read_nangia_rows, "1\t1\n\n2\t2", ["line 2, column 1", "found 1 field"]),
        (read_nangia_rows, "1\t1\t1", ["line 1, column 4", "found 3 fields"]),
        (read_nangia_rows, "x\t1\n\t1", ["line 1, column 1", "found 'x'", "line 2", "nothing"]),
        (read_nangia_rows, "10\t1", ["expected one of 0 1 2 3 4 5 6 7 8 9, found '10'"]),
        (read_nangia_rows, "1\t[MAX 1 2", ["line 1, column 11", "1\ufffd[MAX 1 2\n            ^"]),
        (read_nangia_rows, "1\t1\n3\t( ( [MAX 3 ) ] )", ["line 2, column 16", "parentheses"]),
        (read_nangia_rows, b"1\t\xff", ["line 1, column 3", "the byte 0xff"]),
        (read_lra_rows, "[MAX 1 2 ]\t2", ["some.tsv: expected 'Source\\tTarget' as the first"]),
        (read_lra_rows, "Source\tTarget", ["found an empty file"]),
        (read_lra_rows, "Source\tTarget\n1\t[MAX 1 2 ]", ["line 2, column 3: expected one of"]),
        (read_bowman_rows, "#\ta", ["expected relation <TAB> formula <TAB> formula, found 2"]),
        (read_bowman_rows, "!\ta\tb", ["line 1, column 1: expected one of # < > = ^ v |"]),
        (read_bowman_rows, "#\ta\t( not g )", ["line 1, column 11", "'g'"]),
        (read_bowman_rows, "#\t( a )\tb", ["line 1, column 7", "'(' before 'and' or 'or'"]),
        (lambda f: read_tsv_rows(f, boolean()), "(1&0)\t2", ["line 1, column 7", "found '2'"]),
        (lambda f: read_tsv_rows(f, boolean()), "1\t(1&&0)", ["line 1, column 6", "'&'"]),
    ],
)
def test_mistakes_are_located_in_the_file(read, text, places):
    with pytest.raises(ValueError, match=r"some\.tsv: ") as caught:
        list(read(lines(text)))
    for place in places:
        assert place in str(caught.value)


@given(st.binary(max_size=60) | st.text(alphabet="()[]MAXSM 019\tabnotdr#<\r\n").map(str.encode))
def test_any_bytes_are_read_or_refused(data):
    for read in (read_nangia_rows, read_lra_rows, read_bowman_rows):
        for first in (b"", b"Source\tTarget\n"):
            with contextlib.suppress(ValueError):
                assert list(read(lines(first + data)))


def test_lines_and_their_numbers():
    found = list(lines("\ufeffa\r\n\nb"))
    assert found == [(1, b"a\r"), (2, b""), (3, b"b")]
    assert list(lines("")) == list(lines("\ufeff")) == []


@pytest.mark.parametrize("before", [b"", b"1\t1\n"])
def test_a_line_that_is_too_long(before):
    longest = LONGEST_LINE - 1
    assert len(list(lines(before + b" " * longest + b"\n"))[-1][1]) == longest
    with pytest.raises(ValueError, match=rf"line {1 + bool(before)}: expected at most 16,777,215"):
        list(lines(before + b" " * (longest + 2)))


def test_bad_lines_after_the_first_are_counted_not_kept():
    told = []

    def read(line, number):
        if line == b"x":
            error = ExpressionError(f"problem {number}", "x", 0, number)
            told.append(weakref.ref(error))
            raise error

    with pytest.raises(ValueError, match="and 990 more bad lines") as caught:
        list(lines(b"x\n" * 1_000 + b"1").read(read))
    assert "problem 10\n" in str(caught.value)
    assert "problem 11\n" not in str(caught.value)
    gc.collect()
    assert not any(error() for error in told)


def test_results_end_at_the_first_bad_line():
    results = lines(b"1\n2\n\xff\n3").read(decode)
    assert [next(results), next(results)] == ["1", "2"]
    with pytest.raises(ValueError, match=r"some\.tsv: line 3, column 1: expected UTF-8"):
        next(results)


@given(st.lists(st.integers(0, 50)), st.integers(1, 100))
def test_blocks_have_everything_in_order(items, most):
    blocks = list(in_blocks(items, lambda item: item, most))
    assert list(chain.from_iterable(blocks)) == items
    assert all(sum(block[:-1]) < most for block in blocks)
    with Kept[list[int]]() as kept:
        kept.keep(blocks)
        assert list(kept) == list(kept) == blocks
        assert kept.count == len(items)


def test_what_is_kept_goes_to_disk(monkeypatch):
    monkeypatch.setattr(blocks, "KEPT_IN_MEMORY", 100)
    with Kept[list[str]]() as kept:
        kept.keep([["one"] * 10, ["another"] * 1_000])
        assert vars(kept.file)["_rolled"]
        assert list(kept) == [["one"] * 10, ["another"] * 1_000]


# Bowman's formulas


@pytest.mark.parametrize(
    ("text", "true"),
    [
        ("a", lambda a, b: a),
        ("( not a )", lambda a, b: not a),
        ("( a ( and b ) )", lambda a, b: a and b),
        ("( ( not a ) ( or ( b ( and ( not a ) ) ) ) )", lambda a, b: not a),
        ("( not ( ( not a ) ( or b ) ) )", lambda a, b: a and not b),
    ],
)
def test_formulas(text, true):
    """The first two variables are the two highest bits of the number of an assignment."""
    found = [evaluate(bowman.expression(c)) for c in bowman.circuits(bowman.read_formula(text))]
    assert len(found) == 64
    for i, value in enumerate(found):
        assert value == str(int(true(bool(i & 32), bool(i & 16))))


@pytest.mark.parametrize(
    ("left", "right", "relation"),
    [
        ("a", "a", "="),
        ("a", "( not a )", "^"),
        ("( a ( and b ) )", "a", "<"),
        ("a", "( a ( and b ) )", ">"),
        ("( a ( and b ) )", "( not a )", "|"),
        ("( a ( or b ) )", "( not a )", "v"),
        ("a", "b", "#"),
        ("( a ( and b ) )", "( a ( and c ) )", "#"),
        ("( not ( a ( or b ) ) )", "( ( not a ) ( and ( not b ) ) )", "="),
    ],
)
def test_relations(left, right, relation):
    def truth(text: str) -> int:
        circuits = bowman.circuits(bowman.read_formula(text))
        return bowman.truth([evaluate(bowman.expression(circuit)) for circuit in circuits])

    assert bowman.relation(truth(left), truth(right)) == relation


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("", 1, "expected a variable (a to f) or '(', found the end of the formula"),
        ("g", 1, "expected a variable (a to f) or '(', found 'g'"),
        ("ab", 1, "found 'ab'"),
        ("a b", 3, "expected the end of the formula, found 'b'"),
        ("( a and b )", 5, "expected '(' before 'and' or 'or', found 'and'"),
        ("( a ( and b )", 14, "expected ')', found the end of the formula"),
        ("( a ( not b ) )", 7, "expected 'and' or 'or', found 'not'"),
        ("( not a b )", 9, "expected ')', found 'b'"),
        ("( and a )", 3, "expected a variable (a to f), '(' or 'not', found 'and'"),
        ("a )", 3, "expected the end of the formula, found ')'"),
    ],
)
def test_formulas_that_are_none(text, column, problem):
    with pytest.raises(ExpressionError) as caught:
        bowman.read_formula(text)
    assert problem in caught.value.problem
    assert caught.value.column == column


def test_a_deep_formula():
    depth = 100_000
    formula = bowman.read_formula("( not " * depth + "a" + " )" * depth)
    first, *_ = bowman.circuits(formula)
    assert evaluate(bowman.expression(first)) == "0"
    right = bowman.read_formula("( a ( or " * depth + "b" + " ) )" * depth)
    assert bowman.expression(bowman.circuits(right)[0]).depth == depth
