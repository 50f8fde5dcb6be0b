"""Samples have the depth, the balance and the law that they promise."""

from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import (
    default_leaf,
    draw,
    draw_balanced,
    enumerate_depth,
    mean_tokens,
)
from exactformer.domains.syntax import parse
from tests.algebras import ALGEBRAS, ENDS, MINUS


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("algebra", "depth", "count"),
    [
        (boolean(), 0, 2),
        (boolean(), 1, 10),
        (boolean(), 2, 290),
        (arithmetic(), 1, 200),
        (arithmetic(), 2, 88_000),
        (listops(), 0, 10),
        (listops(), 1, 4_400),
        (MINUS, 1, 7 + 49),
        (ENDS, 1, 3 + 27 + 9),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_enumeration_is_complete(algebra, depth, count):
    expressions = list(enumerate_depth(algebra, depth))
    assert len(expressions) == count
    assert len({str(expression) for expression in expressions}) == count
    assert {expression.depth for expression in expressions} == {depth}


def test_every_enumerated_text_reads_back(algebra):
    for depth in (0, 1):
        for expression in enumerate_depth(algebra, depth):
            assert parse(algebra, str(expression)) == expression


def test_enumeration_is_lazy():
    """All of depth 2 are some 3 * 10^11; the first few come at once."""
    few = list(islice(enumerate_depth(listops(), 2), 1_000))
    assert {expression.depth for expression in few} == {2}


@given(
    algebra=st.sampled_from(ALGEBRAS),
    depth=st.integers(0, 9),
    count=st.integers(0, 20),
    seed=st.integers(0, 2**32),
    leaf=st.none() | st.floats(0, 1),
)
def test_draws_have_the_exact_depth_and_are_well_formed(algebra, depth, count, seed, leaf):
    expressions = draw(algebra, depth, count, rng(seed), leaf)
    assert len(expressions) == count
    for expression in expressions:
        assert expression.depth == depth
        assert parse(algebra, str(expression)) == expression


@pytest.mark.parametrize("sampler", [draw, draw_balanced])
def test_the_generator_decides(sampler, task):
    first, again, other = (sampler(task, 4, 50, rng(seed)) for seed in (7, 7, 8))
    assert first == again
    assert first != other
    generator = rng(7)
    assert sampler(task, 4, 50, generator) == first
    assert sampler(task, 4, 50, generator) != first


@pytest.mark.parametrize("leaf", [None, 0.0, 0.5, 1.0])
def test_mean_number_of_tokens(algebra, leaf):
    expected = mean_tokens(algebra, 8, leaf)
    assert len(expected) == 9
    for depth in (0, 1, 2, 5, 8):
        counts = np.array([len(e) for e in draw(algebra, depth, 2_000, rng(depth), leaf)])
        error = counts.std() / np.sqrt(len(counts))
        assert abs(counts.mean() - expected[depth]) <= 5 * error + 1e-9


def test_mean_number_of_tokens_is_the_papers_law():
    """Its ListOps means are those of two operands each, with no leaf drawn outright."""
    assert mean_tokens(listops(max_fan_in=2), 2, leaf=0.0)[1:] == [5.0, 11.0]
    assert mean_tokens(arithmetic(), 2)[1] == 5.0
    assert mean_tokens(boolean(), 1)[1] == pytest.approx(4 + 2 / 3)
    assert default_leaf(boolean()) == default_leaf(arithmetic()) == 0.2
    assert default_leaf(listops()) == pytest.approx(1 / 3)


def test_every_depth_of_the_paper(task):
    for depth in range(1, 31):
        assert {e.depth for e in draw(task, depth, 100, rng(depth))} == {depth}


@pytest.mark.parametrize("count", [0, 1, 7, 100, 1003])
def test_balance_is_exact_to_one(task, count):
    values = Counter(map(evaluate, draw_balanced(task, 2, count, rng())))
    shares = [values[value] for value in task.values]
    assert sum(shares) == count
    assert max(shares) - min(shares) <= 1


def test_balanced_draws_have_the_exact_depth(task):
    assert {e.depth for e in draw_balanced(task, 5, 100, rng())} == {5}


def test_balance_does_not_favour_the_same_values():
    """Where the classes cannot be equal, which one gets more is drawn too."""
    extra = {evaluate(draw_balanced(arithmetic(), 1, 1, rng(seed))[0]) for seed in range(40)}
    assert len(extra) > 5


def test_balance_that_cannot_be_had():
    bits = ("1", "0")
    never = Algebra("never", bits, (Operator.from_rule("x", [2], lambda *_: "0", bits),), "prefix")
    with pytest.raises(ValueError, match="no expression of depth 1 drawn with the value 1"):
        draw_balanced(never, 1, 10, rng())


def test_every_operator_arity_and_place_occurs(algebra):
    """At depth 2, each operator with each number of operands has its deep one in each place."""
    seen = set()
    for expression in draw(algebra, 2, 3_000, rng(), leaf=1.0):
        inside = expression.nesting[1:-1]
        tokens = expression.ids[1:-1]
        outer = tokens[(inside == 1) & (tokens != 1)]  # operator and values of the outer span
        operator = int(tokens[expression.root - 1])
        deep_starts = int(np.argmax(tokens == 0))
        before = [t for t in tokens[:deep_starts].tolist() if t < algebra.first_operator]
        seen.add((operator, len(outer), len(before)))
    expected = {
        (algebra.first_operator + o, arity, place)
        for o, operator in enumerate(algebra.operators)
        for arity in operator.arities
        for place in range(arity)
    }
    assert seen == expected


def test_operators_and_values_are_uniform(task):
    tokens = np.concatenate([e.ids for e in draw(task, 3, 4_000, rng())])
    for ids in (task.value_ids, task.operator_ids):
        counts = np.bincount(tokens, minlength=len(task.vocabulary))[ids]
        assert counts.min() > 0.9 * counts.mean()
        assert counts.max() < 1.1 * counts.mean()


@pytest.mark.parametrize("sampler", [draw, draw_balanced])
def test_bad_arguments(sampler):
    with pytest.raises(ValueError, match="depth of 0 or more, found -1"):
        sampler(boolean(), -1, 0, rng())
    with pytest.raises(ValueError, match="count of 0 or more, found -3"):
        sampler(boolean(), 1, -3, rng())
    for leaf in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match=f"`leaf` from 0 to 1, found {leaf}"):
            sampler(boolean(), 1, 0, rng(), leaf)


def test_bad_arguments_without_a_generator():
    with pytest.raises(ValueError, match="depth of 0 or more, found -1"):
        next(enumerate_depth(boolean(), -1))
    with pytest.raises(ValueError, match="depth of 0 or more, found -1"):
        mean_tokens(boolean(), -1)
    with pytest.raises(ValueError, match="`leaf` from 0 to 1, found 2"):
        mean_tokens(boolean(), 1, leaf=2)


def test_more_than_fits_is_refused():
    with pytest.raises(ValueError, match="tokens in all"):
        draw(boolean(), 300, 1, np.random.default_rng(0))
