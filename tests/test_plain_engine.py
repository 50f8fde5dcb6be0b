"""The engine on plain notation: the oracle's values and the parser's errors, on everything."""

import io
import random
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

import exactformer as ef
from exactformer.domains.sampling import enumerate_length
from exactformer.engine import plain
from exactformer.engine.build import algebra_values
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.plain import plain_automaton
from exactformer.engine.read_off import read_off
from tests.plain_algebras import ALGEBRAS, derivations, powers, random_algebras, value
from tests.rows import line_values
from tests.test_engine import complaint, readers  # noqa: F401 (a fixture)

# `!` may stand before anything, but not directly behind `*`; words beside marks.
LOOSE = ef.Algebra(
    "loose",
    ("0", "1"),
    (
        ef.Operator("!", (1,), {(0,): 1, (1,): 0}),
        ef.Operator("*", (2,), {(0, 0): 0, (0, 1): 0, (1, 1): 1}),
        ef.Operator("~", (1,), {(0,): 1, (1,): 0}),
    ),
    "plain",
    {"one": "1", "both": "*"},
    [ef.Level("prefix", ["!"]), ef.Level("left", ["*"]), ef.Level("prefix", ["~"])],
)
EVERY = [*ALGEBRAS[:-1], powers(3), LOOSE]  # powers modulo 5 have 16,952 states


@cache
def engine_for(algebra: ef.Algebra) -> CpuEngine:
    return CpuEngine(read_off(algebra, ef.construct(algebra).weights), algebra)


@given(random_algebras())
@settings(max_examples=15)
def test_every_short_text_of_random_algebras(algebra):
    known = derivations(algebra, 6)
    automaton = plain_automaton(algebra, algebra_values(algebra))
    for words, tree in known.items():
        ids = [algebra.token_ids[word] for word in words]
        assert automaton.run(ids) == value(algebra, tree)
    for words in product(range(len(algebra.vocabulary)), repeat=4):
        texts = tuple(algebra.vocabulary[i] for i in words)
        assert (automaton.run(words) is None) == (texts not in known)


@pytest.mark.parametrize("algebra", EVERY, ids=lambda a: a.name)
def test_short_texts_in_one_file(algebra, readers):  # noqa: F811
    expressions = [e for n in range(1, 5) for e in enumerate_length(algebra, n)]
    engine, values = engine_for(algebra), [ef.oracle(e) for e in expressions]
    assert engine.values(expressions) == values
    file = io.BytesIO("\n".join(map(str, expressions)).encode())
    assert line_values(engine, file) == values


@pytest.mark.parametrize("algebra", EVERY, ids=lambda a: a.name)
def test_slips_in_longer_texts(algebra, readers):  # noqa: F811
    engine, rng = engine_for(algebra), random.Random(8)
    words = [*algebra.token_ids, "", " ", "  ", "\t", "x", "é", "12", "∧", "11"]
    for expression in ef.draw(algebra, 5, 60, np.random.default_rng(8)):
        for slips in range(3):
            text = str(expression)
            for _ in range(slips):
                place = rng.randrange(len(text) + 1)
                text = text[:place] + rng.choice(words) + text[place + rng.choice([0, 1, 2]) :]
            wrong = complaint(lambda t: ef.parse(algebra, t), text)
            assert complaint(engine.value, text) == wrong
            if wrong is None:
                assert engine.value(text) == ef.oracle(ef.parse(algebra, text))


@pytest.mark.parametrize("algebra", EVERY, ids=lambda a: a.name)
def test_a_long_line_is_read_piece_by_piece(algebra):
    engine, rng = engine_for(algebra), np.random.default_rng(3)
    (expression,) = ef.draw(algebra, 60, 1, rng, leaf=0.6)
    text = str(expression)
    assert len(text) > 500
    assert line_values(engine, io.BytesIO(text.encode()), size=128) == [ef.oracle(expression)]
    spoilt = f"{text[: len(text) // 2]} ) ){text[len(text) // 2 :]}"
    (found,) = line_values(engine, io.BytesIO(spoilt.encode()), size=128)
    with pytest.raises(ef.ExpressionError) as failure:
        ef.parse(algebra, spoilt)
    assert isinstance(found, ef.ExpressionError)
    assert found.problem == failure.value.problem
    assert found.place == {"byte": len(spoilt[: failure.value.offset].encode())}


def test_both_engines_by_name():
    model = ef.construct(ef.arithmetic_plain())
    assert model("1+2*3") == "7"
    for engine in ("auto", "fast", "model"):
        assert model.evaluate(["1+2*3", b"(1+2)*3", "((4))"], engine) == ["7", "9", "4"]


def test_too_many_states_are_left_to_the_model(monkeypatch):
    model = ef.construct(ef.arithmetic_plain())
    monkeypatch.setattr(plain, "MOST_STATES", 100)
    with pytest.raises(ValueError, match="more than the 100 states of the fast engine"):
        model.evaluate("1+2*3", "fast")
    assert model("1+2*3") == "7"
