"""The Horton-Strahler number, against its recursive definition and its bounds."""

from math import log2

import pytest
from hypothesis import given, settings

import exactformer as ef
from tests import plain_algebras, trees
from tests.algebras import ALGEBRAS

BY_NAME = {algebra.name: algebra for algebra in [*ALGEBRAS, *plain_algebras.ALGEBRAS]}


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
        ("arithmetic-plain", "1", 0),
        ("arithmetic-plain", "((1))", 1),
        ("arithmetic-plain", "1+2*3+4+5*6", 2),
        ("arithmetic-plain", "(1)+2", 1),
        ("arithmetic-plain", "(1)+(2)", 2),
        ("arithmetic-plain", "1*2+3*4+(5*6+7*8)", 2),
        ("arithmetic-plain", "1*2+3*4+(5+6)*(7+8)", 2),
        ("powers", "(1) ** - (2) ** (1 * (2 ** 1))", 2),
    ],
)
def test_numbers(domain, text, expected):
    assert ef.strahler(ef.parse(BY_NAME[domain], text)) == expected


def counted(algebra: ef.Algebra, words: tuple[str, ...]) -> list[str]:
    """A text in plain notation with its missing parentheses, counted by its neighbours' levels, and
    without its operators: `(v(v(v)))`. What its numbers are, `nested` says.
    """
    levels, K = algebra.declared_levels.tolist(), len(algebra.precedence) + 1
    effective, prefix, ended = [0], [], False  # an end has level 0, as parentheses have
    for word in words:
        is_operator = word in algebra.vocabulary[algebra.first_operator :]
        prefix.append(is_operator and not ended)
        level = levels[not prefix[-1]][algebra.token_ids[word]] if is_operator else 0
        effective.append(max(level, effective[-1]) if prefix[-1] else level)
        ended = word == ")" or word in algebra.values
    effective.append(0)
    text: list[str] = []
    for i, word in enumerate(words):
        p, e, q = effective[i : i + 3]
        if prefix[i]:
            text += ["("] * (e - p)
        elif word == "(":
            text += ["("] * (K - p)
        elif word == ")":
            text += [")"] * (K - q)
        elif word in algebra.values:
            text += ["("] * (max(p, q) - p) + ["v"] + [")"] * (max(p, q) - q)
    return text


def nested(text: list[str]) -> int:
    enclosing: list[list[int]] = [[]]
    for word in text:
        if word == "(":
            enclosing.append([])
        elif word == "v":
            enclosing[-1].append(0)
        else:
            *others, largest = sorted(enclosing.pop())
            enclosing[-1].append(max(1, largest + (largest in others)))
    ((number,),) = enclosing
    return number


@given(plain_algebras.random_algebras(n_values=1))
@settings(max_examples=30)
def test_plain_notation_by_counted_parentheses(algebra):
    for words in plain_algebras.derivations(algebra, 7):
        expression = ef.parse(algebra, " ".join(words))
        assert ef.strahler(expression) == nested(counted(algebra, words))


def test_text_is_no_expression():
    with pytest.raises(TypeError, match="expected an Expression"):
        ef.strahler("(1&0)")  # pyright: ignore[reportArgumentType]
