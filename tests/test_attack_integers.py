"""The attack on integers notices a check that sees nothing, and a layer that loses the carry."""

import numpy as np
import pytest
import torch

import exactformer as ef
from attacks import integers as attacks
from exactformer.verify.integer_spans import wrong_spans

QUICK = ("integers-2 table", "integers-2 closed", "integers-2 learned", "integers-3 table")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(attacks, "SOURCES", dict.fromkeys(QUICK, 1))
    for name, number in {"SHORT": 6, "BELOW": 4, "NESTED": 15, "DIGITS": 6}.items():
        monkeypatch.setattr(attacks, name, number)


def test_a_small_attack_finds_nothing():
    report = attacks.attack(10, seed=0)
    assert report.found == []
    assert report.tried["texts"] > 2_000
    assert any("other states: exact" in kind for kind in report.tried)
    assert any("row: inexact" in kind for kind in report.tried)
    assert not any("undecided" in kind for kind in report.tried)


def test_weights_with_other_states_are_as_right_as_before():
    for source in QUICK[:3]:
        model, texts, expected = attacks.problems(source)
        other = attacks.with_other_states(model.weights, np.random.default_rng(1))
        assert ef.Model(model.domain, other).predict(texts) == expected
        copies = 2 if source.endswith("table") else 1
        assert copies * model.weights.W == other.W


def test_a_check_that_sees_nothing_is_noticed(monkeypatch):
    def nothing(domain, tables):
        wrong_spans(domain, tables)
        return ()

    monkeypatch.setattr("exactformer.verify.integers.wrong_spans", nothing)
    found = attacks.attack(8, seed=0).found
    assert any("called exact, and wrong" in fault for fault in found)


def test_a_layer_that_loses_the_carry_is_noticed(monkeypatch):
    def none(F, kind, starts):
        return torch.zeros_like(kind)

    monkeypatch.setattr("exactformer.model.integers.arriving", none)
    assert attacks.attack(5, seed=0).found
