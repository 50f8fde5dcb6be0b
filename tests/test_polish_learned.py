"""The gate of Polish notation, learned from texts without labels."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.sampling import enumerate_length
from exactformer.training.arities import (
    Undetermined,
    learn_arities,
    rank,
    with_learned_arities,
)
from tests.polish_algebras import CALCULATOR, LISTOPS, SIDES, ordered_algebra, random_text


def words(algebra, ids):
    return [algebra.vocabulary[token] for token in ids]


def declared(algebra):
    gate = algebra.declared_gates
    return dict(zip(algebra.vocabulary[2:], gate["G_A"][2:].tolist(), strict=True)), gate["side"][0]


@pytest.mark.parametrize("algebra", [ef.boolean_polish(), LISTOPS, CALCULATOR], ids=str)
def test_forty_texts_make_weights_of_prefix_notation_exact(algebra):
    rng = np.random.default_rng(0)
    texts = [e for depth in (0, 1, 2, 3) for e in ef.draw(algebra, depth, 20, rng)]
    weights = ef.construct(algebra.parenthesized).weights
    assert weights.G_A is None
    model = ef.Model(algebra, with_learned_arities(algebra, weights, texts))
    assert model.certify().verdict == "exact"
    with pytest.raises(Undetermined):
        with_learned_arities(algebra, weights, texts[:3])


@given(st.integers(0, 2**32), st.sampled_from(SIDES), st.integers(1, 12))
def test_what_is_learned_is_declared_or_nothing(seed, notation, count):
    rng = np.random.default_rng(seed)
    algebra = ordered_algebra(2, (1, 2, 3), notation)
    texts = [words(algebra, random_text(algebra, int(rng.integers(5)), rng)) for _ in range(count)]
    try:
        found = learn_arities(texts)
    except Undetermined:
        return
    counts, side = declared(algebra)
    assert found.counts.items() <= counts.items()
    assert found.side == side
    assert set(found.values) == {symbol for text in texts for symbol in text} & {"0", "1"}


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_no_other_gate_of_small_numbers_explains_texts_that_determine_one(seed, count):
    rng = np.random.default_rng(seed)
    algebra = ordered_algebra(1, (1, 2), SIDES[seed % 2])
    texts = [words(algebra, random_text(algebra, int(rng.integers(4)), rng)) for _ in range(count)]
    symbols = sorted({symbol for text in texts for symbol in text})

    def explains(gate, side):
        sums = [np.cumsum([gate[symbol] for symbol in text[::side]]) for text in texts]
        return all(total[-1] == -1 and (total[:-1] >= 0).all() for total in sums)

    fitting = [
        (dict(zip(symbols, numbers, strict=True)), side)
        for numbers in product(range(-1, 3), repeat=len(symbols))
        for side in (1, -1)
        if explains(dict(zip(symbols, numbers, strict=True)), side)
    ]
    try:
        found = learn_arities(texts)
    except Undetermined:
        return
    assert fitting == [(found.counts, found.side)]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "expected texts of one symbol or more"),
        ([["1"], []], "expected texts of one symbol or more"),
        (["1", "0"], "from one side, found both sides"),
        (["1", "1+1", "1+1+1"], "from one side, found neither side"),
        (["1", "+11", "+1"], "no numbers of operands"),
        (["+11"], "leave the operands of some of 2 symbols open"),
    ],
)
def test_what_cannot_be_learned_is_said(texts, message):
    with pytest.raises(Undetermined, match=message):
        learn_arities(texts)


def test_a_symbol_that_no_text_has_is_asked_for():
    algebra = ef.boolean_polish()
    texts = [e for n in (1, 2, 3) for e in enumerate_length(algebra, n) if 4 not in e.ids]
    with pytest.raises(Undetermined, match="found none with &"):
        with_learned_arities(algebra, ef.construct(algebra).weights, texts)


@given(st.integers(0, 2**32))
def test_the_rank_modulo_a_prime(seed):
    rng = np.random.default_rng(seed)
    N = rng.integers(0, 4, (int(rng.integers(1, 7)), int(rng.integers(1, 7))))
    assert rank(N) == np.linalg.matrix_rank(N)
