"""The engine gives the model's values and the parser's errors, on everything."""

import random
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attacks.spellings import AtOnce
from exactformer.api import construct
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import CATALOG, arithmetic, boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.engine import build
from exactformer.engine import readers as two_readers
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.read_off import read_off
from tests.algebras import EVERY, SUMS, TASKS
from tests.cases import CASES
from tests.fuzz import Fuzzer
from tests.rows import listed
from tests.test_bad_input import BAD
from tests.test_syntax import written


@cache
def engine_for(algebra: Algebra) -> CpuEngine:
    return CpuEngine(read_off(algebra, construct(algebra).weights), algebra)


# Even short texts are shared, in small parts, with much of each left over.
SHARED = {
    "WORTH_SHARING": 1,
    "SMALLEST_PART": 5,
    "RESIDUE_ROOM": 8,
    "second_core": AtOnce,
}


@pytest.fixture(params=[False, True], ids=["one reader", "two readers"])
def readers(request, monkeypatch):
    """Everything is tried with one reader and with two, even short texts."""
    if request.param:
        for name, value in SHARED.items():
            monkeypatch.setattr(two_readers, name, value)


def complaint(read, text) -> str | None:
    try:
        read(text)
    except ExpressionError as error:
        return f"{error.offset} {error}"
    return None


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.domain} {case.text}"[:60])
def test_cases(case, readers):
    engine = engine_for(CATALOG[case.domain]())
    assert engine.value(case.text) == case.value
    assert engine.value(case.text.encode()) == case.value
    assert engine.values([parse(engine.algebra, case.text)]) == [case.value]


@given(written())
def test_any_way_to_write_it_has_the_same_value(example):
    algebra, _, text = example
    assert engine_for(algebra).value(text) == evaluate(parse(algebra, text))


@pytest.mark.parametrize("domain", CATALOG)
def test_bad_text_gets_the_parsers_error(domain, readers):
    engine = engine_for(CATALOG[domain]())
    for text, *_ in BAD[domain]:
        expected = complaint(lambda t: parse(engine.algebra, t), text)
        assert expected is not None
        assert complaint(engine.value, text) == expected


@pytest.mark.parametrize("algebra", EVERY, ids=lambda algebra: algebra.name)
def test_random_and_damaged_texts(algebra, readers):
    engine, fuzzer = engine_for(algebra), Fuzzer(algebra, seed=6)
    right = 0
    for _ in range(5_000):
        text = fuzzer.text()
        wrong = complaint(lambda t: parse(algebra, t), text)
        assert complaint(engine.value, text) == wrong
        if wrong is None:
            right += 1
            assert engine.value(text) == evaluate(parse(algebra, text))
    assert 500 < right < 4_500


@pytest.mark.parametrize("algebra", EVERY, ids=lambda algebra: algebra.name)
def test_slips_in_longer_texts(algebra, readers):
    """Long enough for every short cut of the pass; right, with a slip in them, or with two."""
    engine, rng = engine_for(algebra), random.Random(8)
    words = [*algebra.token_ids, "", " ", "  ", "\t", "x", "é", "12", "∧"]
    for expression in draw(algebra, 5, 60, np.random.default_rng(8)):
        for slips in range(3):
            text = str(expression)
            for _ in range(slips):
                place = rng.randrange(len(text) + 1)
                text = text[:place] + rng.choice(words) + text[place + rng.choice([0, 1, 2]) :]
            wrong = complaint(lambda t: parse(algebra, t), text)
            assert complaint(engine.value, text) == wrong
            if wrong is None:
                assert engine.value(text) == evaluate(parse(algebra, text))


@pytest.mark.parametrize("algebra", TASKS, ids=lambda algebra: algebra.name)
def test_ten_thousand_expressions_through_engine_model_and_oracle(algebra):
    model, rng = construct(algebra), np.random.default_rng(10)
    expressions = [e for depth in range(1, 6) for e in draw(algebra, depth, 2_000, rng)]
    values = [evaluate(e) for e in expressions]
    text = "\n".join(map(str, expressions)).encode()
    engine = engine_for(algebra)
    assert listed(engine, [engine.rows(np.frombuffer(text, dtype=np.uint8))]) == values
    assert engine.values(expressions) == values
    assert model.predict(expressions) == values


def test_weights_that_are_not_certified_are_refused_with_advice():
    model = construct(boolean())
    gate = model.weights.G_PE.clone()
    gate[0] = 0
    weights = type(model.weights)(gate, model.weights.W_Q, model.weights.W_K, model.weights.f)
    with pytest.raises(ValueError, match="exactformer certify") as raised:
        read_off(boolean(), weights)
    assert "the gate is +1" in str(raised.value)


COMBS = {
    "left": lambda n: "(" * n + "7" + "+1)" * n,
    "right": lambda n: "(3*" * n + "7" + ")" * n,
    "zigzag": lambda n: "((2+" * (n // 2) + "1" + ")*3)" * (n // 2),
}


@pytest.mark.parametrize("name", COMBS)
@pytest.mark.parametrize("levels", [10, 1_000, 300_000])
def test_combs(name, levels, readers):
    text = COMBS[name](levels)
    assert engine_for(arithmetic()).value(text) == evaluate(parse(arithmetic(), text))


@given(st.integers(0, 2**32), st.sampled_from([1, 40, 400]))
def test_an_error_anywhere_in_a_long_text(seed, levels):
    """With two readers, so that the error may be in either part or in what joins them."""
    rng = random.Random(seed)
    text = COMBS[rng.choice(list(COMBS))](levels)
    place = rng.randrange(len(text))
    text = text[:place] + rng.choice(["", "(", ")", "+", "3", "x", " "]) + text[place + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHARED.items():
            patch.setattr(two_readers, name, value)
        found = complaint(engine_for(arithmetic()).value, text)
    assert found == complaint(lambda t: parse(arithmetic(), t), text)


def test_symbols_that_bytes_do_not_tell_apart_go_through_the_parser():
    values = ("été", "hiver")
    algebra = Algebra(
        "saisons", values, (Operator.from_rule("a+", [2], min, values),), notation="infix"
    )
    engine = engine_for(algebra)
    assert not engine.reads_bytes
    assert engine.value("(hiver a+ été)") == "hiver"
    assert complaint(engine.value, "(hiver a+") == complaint(
        lambda t: parse(algebra, t), "(hiver a+"
    )


def test_a_large_vocabulary():
    values = tuple(f"v{i}" for i in range(300))
    rule = {value: values[(i + 1) % 300] for i, value in enumerate(values)}
    algebra = Algebra(
        "clock", values, (Operator.from_rule("next", [1], rule.__getitem__, values),), "prefix"
    )
    engine = CpuEngine(read_off(algebra, construct(algebra, "table").weights), algebra)
    assert engine.value("( next ( next v298 ) )") == "v0"


@pytest.mark.parametrize("token", [-32768, -1, 14, 30, 300, 32767])
def test_tokens_that_an_algebra_does_not_have(token):
    """They are no index into its tables, alone or within a span."""
    for ids in ([token], [0, 3, 12, token, 1]):
        forged = Expression(arithmetic(), np.array(ids, dtype=np.int16))
        with pytest.raises(ValueError, match="expected tokens from 0 to 13, found others"):
            engine_for(arithmetic()).values([forged])


def test_any_number_of_operands_up_to_the_tables():
    engine = engine_for(SUMS)
    for count in range(2, 17):
        text = f"( SUM {'1 ' * count})"
        assert engine.value(text) == evaluate(parse(SUMS, text))
    wide = f"( SUM {'1 ' * 10_000})"
    with pytest.raises(ValueError, match="more operands than the fast engine has tables for"):
        engine.value(wide)
    with pytest.raises(ValueError, match="more operands than the fast engine has tables for"):
        engine.values([parse(SUMS, wide)])
    model = construct(SUMS)
    assert model.fast_engine() is None
    assert model(wide) == evaluate(parse(SUMS, wide))


def test_an_operator_with_too_many_cases_is_left_to_the_model(monkeypatch):
    monkeypatch.setattr(build, "MOST_KEYS", 50)
    model = construct(listops())
    with pytest.raises(ValueError, match=r"on up to . operands has too many cases.*--engine model"):
        model.fast_engine("fast")
    assert model.fast_engine() is None
    assert model("( MAX ( MIN 8 3 5 ) ( SM 4 7 6 ) )") == "7"
