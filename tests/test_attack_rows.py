"""A small run of the attack with damaged files; and it would see faults if there were any."""

import pytest

from attacks.rows import attack, of_formulas, of_listops


def test_a_small_run_finds_nothing():
    report = attack(count=60, seed=1)
    assert report.found == []
    assert sum(report.tried.values()) >= 66
    assert len(report.tried) > 20


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("exactformer.score.SHOWN_ROWS", 1, "expected (1,"),
        ("exactformer.score.logic.relation", lambda left, right: "#", "expected ("),
        ("exactformer.domains.formats.all_right", lambda name, results: results, "Error"),
    ],
)
def test_it_sees_faults(monkeypatch, name, value, words):
    monkeypatch.setattr(name, value)
    report = attack(count=60, seed=2)
    assert any(words in found for found in report.found)


def test_its_own_evaluators():
    assert of_listops("[MED 2 9 [MAX 1 3 ] 4 ]") == "3"
    assert of_listops("( ( ( ( [SM 9 ) 9 ) 3 ) ] )") == "1"
    assert of_listops("( MIN 5 ( MAX 1 3 ) )") == "3"
    assert of_formulas("( a ( and b ) )", "( not a )") == "|"
    assert of_formulas("a", "( a ( or ( not b ) ) )") == "<"
