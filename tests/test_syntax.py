"""Reading and writing: every spelling reads, and what is written reads back as the same."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.algebra import CLOSE, Algebra, Operator
from exactformer.domains.catalog import CATALOG, arithmetic, boolean, listops
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.syntax import parse
from tests import trees
from tests.algebras import ALGEBRAS, ENDS, KLEENE, LETTERS, MINUS
from tests.cases import CASES

DEEP = 1_000_000
SPACE = st.sampled_from(["", "", "", " ", "  ", "\t", "\n", " \r\n "])


@st.composite
def written(draw) -> tuple[Algebra, trees.Tree, str]:
    """A tree, written with any spelling of each token and any white space between them."""
    algebra = draw(st.sampled_from(ALGEBRAS))
    tree = draw(trees.trees(algebra))
    spellings: dict[str, list[str]] = {symbol: [symbol] for symbol in algebra.vocabulary}
    for spelling, symbol in algebra.spellings.items():
        if symbol not in "()":
            spellings[symbol].append(spelling)
    square: list[bool] = []  # which of the open spans began with `[`
    text = draw(SPACE)
    for symbol in trees.symbols(algebra, tree):
        word = draw(st.sampled_from(spellings[symbol]))
        if symbol == "(":
            square.append("[" in algebra.spellings and draw(st.booleans()))
            word = "[" if square[-1] else "("
        elif symbol == ")":
            word = "]" if square.pop() else ")"
        # Two words in a row need a space, as in any language.
        needed = re.search(r"\w$", text) and re.match(r"\w", word)
        text += (" " if needed else "") + draw(SPACE) + word
    return algebra, tree, text + draw(SPACE)


@given(written())
def test_any_way_to_write_it_reads_as_the_same_expression(example):
    algebra, tree, text = example
    expression = parse(algebra, text)
    assert [algebra.vocabulary[i] for i in expression.ids] == trees.symbols(algebra, tree)
    assert parse(algebra, text.encode()) == expression


@given(written())
def test_the_written_form_is_canonical_and_stable(example):
    algebra, tree, text = example
    canonical = str(parse(algebra, text))
    packed = algebra.notation == "infix" and algebra not in (KLEENE, LETTERS)
    assert canonical == ("" if packed else " ").join(trees.symbols(algebra, tree))
    assert str(parse(algebra, canonical)) == canonical


@given(trees.algebras_with_trees())
def test_reading_undoes_writing(example):
    algebra, tree = example
    ids = [algebra.token_ids[symbol] for symbol in trees.symbols(algebra, tree)]
    expression = Expression(algebra, np.array(ids, dtype=np.int16))
    again = parse(algebra, str(expression))
    assert again == expression
    assert hash(again) == hash(expression)
    assert len(again) == len(ids)


@given(trees.algebras_with_trees())
def test_shape_is_the_recursive_definitions(example):
    algebra, tree = example
    symbols = trees.symbols(algebra, tree)
    expression = parse(algebra, " ".join(symbols))
    assert expression.depth == trees.depth(tree)
    assert expression.root == trees.root(algebra, tree)
    assert expression.widest == trees.widest(tree)
    opened = [symbols[: i + 1].count("(") for i in range(len(symbols))]
    closed = [symbols[: i + 1].count(")") for i in range(len(symbols))]
    assert expression.nesting.tolist() == [o - c for o, c in zip(opened, closed, strict=True)]
    positions = []
    for token in expression.ids.tolist():
        positions += [token, EMPTY] if token == CLOSE and algebra.notation == "prefix" else [token]
    assert expression.positions.tolist() == positions
    assert expression.positions[expression.root] == expression.ids[expression.root]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.domain} {case.text!r}")
def test_depth_of_the_cases(case):
    assert parse(CATALOG[case.domain](), case.text).depth == case.depth


@pytest.mark.parametrize(
    ("algebra", "canonical", "spellings"),
    [
        (boolean(), "(1&0)", ["(1∧0)", "(1 AND 0)", "(TRUE&FALSE)", "( TRUE AND FALSE )"]),
        (boolean(), "(1|0)", ["(1∨0)", "(1 OR 0)", "(TRUE|0)"]),
        (boolean(), "(~1)", ["(∼1)", "(NOT 1)", "(NOT TRUE)", "(~\nTRUE)"]),
        (boolean(), "(~(~0))", ["(NOT(NOT FALSE))"]),
        (arithmetic(), "((1+2)*(3+4))", [" ( ( 1 + 2 ) * ( 3 + 4 ) ) "]),
        (arithmetic(12), "( 10 + 11 )", ["(10+11)", "(\t10 +11)"]),
        (listops(), "( MAX ( SM 1 2 ) 3 )", ["(MAX(SM 1 2)3)", "[MAX [SM 1 2] 3]"]),
        (MINUS, "(1-(-2))", ["(1−(−2))", "( 1 - ( - 2 ) )"]),
        (ENDS, "( FIRST ( LAST 0 1 ) )", ["[FIRST[LAST 0 1]]", "(FIRST[LAST 0 1])"]),
        (KLEENE, "( true and ( not unknown ) )", ["(true and(not unknown))"]),
        (LETTERS, "( T A F )", ["(T A F)", "(T\nA F)"]),
    ],
)
def test_spellings(algebra, canonical, spellings):
    for text in [canonical, *spellings]:
        assert str(parse(algebra, text)) == canonical


def test_a_marked_symbol_is_never_split():
    """`->` and `-` in one algebra: the longer one wins, and packing would be ambiguous."""

    def implies(a: str, b: str) -> str:
        return "0" if (a, b) == ("1", "0") else "1"

    def flip(a: str) -> str:
        return "0" if a == "1" else "1"

    bits = ("1", "0")
    arrows = Algebra(
        "arrows",
        bits,
        (
            Operator.from_rule("->", [2], implies, bits, ordered=True),
            Operator.from_rule("-", [1], flip, bits),
        ),
        "infix",
    )
    assert str(parse(arrows, "((-1)->0)")) == "( ( - 1 ) -> 0 )"


@pytest.mark.parametrize(
    ("algebra", "start", "end"),
    [
        (arithmetic(), "(", "+1)"),
        (arithmetic(), "(1+", ")"),
        (listops(), "[ MAX ", " 1 ]"),
    ],
    ids=["left", "right", "prefix"],
)
def test_a_million_deep(algebra, start, end):
    text = start * DEEP + "1" + end * DEEP
    expression = parse(algebra, text)
    assert expression.depth == DEEP
    assert len(expression) == 4 * DEEP + 1
    assert str(expression) == text.replace("[", "(").replace("]", ")")
    left = algebra.notation == "infix" and start == "("
    assert expression.root == (len(expression) - 3 if left else 2 if start == "(1+" else 1)


def test_an_expression_cannot_change():
    expression = parse(boolean(), "(1&0)")
    with pytest.raises(ValueError, match="read-only"):
        expression.ids[1] = 3


def test_equality_is_of_algebra_and_tokens():
    assert parse(boolean(), "(1&0)") == parse(boolean(), "(TRUE AND FALSE)")
    assert parse(boolean(), "(1&0)") != parse(boolean(), "(0&1)")
    assert parse(listops(), "(MAX 1 2)") != parse(listops(median="mean"), "(MAX 1 2)")
    assert parse(boolean(), "1") != "1"


def test_repr_is_short():
    assert repr(parse(boolean(), "(1&0)")) == "Expression(boolean, (1&0))"
    assert len(repr(parse(boolean(), "(~" * 500 + "1" + ")" * 500))) < 120
