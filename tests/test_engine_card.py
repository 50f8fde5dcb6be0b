"""Long texts go to the card, here to tensor operations; errors come from the CPU, as ever."""

import numpy as np
import pytest

from exactformer.domains.catalog import arithmetic
from exactformer.domains.errors import ExpressionError
from exactformer.domains.syntax import parse
from exactformer.engine import card
from exactformer.engine.card import CardEngine
from tests.cases import CASES
from tests.fuzz import Fuzzer
from tests.test_engine import EVERY, complaint, engine_for


def card_engine(algebra) -> CardEngine:
    return CardEngine(engine_for(algebra).automaton, algebra, "cpu")


@pytest.fixture
def everything_is_long(monkeypatch):
    monkeypatch.setattr(card, "WORTH_A_CARD", 1)


@pytest.mark.parametrize("algebra", EVERY, ids=lambda algebra: algebra.name)
@pytest.mark.usefixtures("everything_is_long")
def test_random_and_damaged_texts(algebra):
    engine, fuzzer = card_engine(algebra), Fuzzer(algebra, seed=7)
    for _ in range(300):
        text = fuzzer.text()
        wrong = complaint(lambda t: parse(algebra, t), text)
        assert complaint(engine.value, text) == wrong
        if wrong is None:
            assert engine.value(text) == engine_for(algebra).value(text)


@pytest.mark.usefixtures("everything_is_long")
def test_lines():
    engine = card_engine(arithmetic())
    texts = [case.text for case in CASES if case.domain == "arithmetic"]
    lines = [text for text in texts if "\n" not in text] + ["(1+"]
    results = engine.lines(np.frombuffer("\n".join(lines).encode(), dtype=np.uint8))
    assert results[:-1] == [engine_for(arithmetic()).value(line) for line in lines[:-1]]
    assert isinstance(results[-1], ExpressionError)
    assert results[-1].line == len(lines)


def test_the_card_is_asked(monkeypatch):
    """What it answers is the answer, if it has one."""
    engine = card_engine(arithmetic())
    text = "(" * 1_200_000 + "7" + "+1)" * 1_200_000
    assert len(text) > card.WORTH_A_CARD
    monkeypatch.setattr(engine.card, "value", lambda text: 3)
    assert engine.value(text) == "3"
    monkeypatch.setattr(engine.card, "value", lambda text: None)
    assert engine.value(text) == "7"
