"""A small run of the attack with damaged files; and it would see faults if there were any."""

import numpy as np
import pytest

from attacks.rows import Sheet, attack, damage, of_formulas, of_listops, sheets, trial


def test_a_small_run_finds_nothing():
    report = attack(count=30, seed=1)
    assert report.found == []
    assert sum(report.tried.values()) >= 36
    assert len(report.tried) > 15


@pytest.mark.parametrize(
    ("name", "value", "kind", "damaged", "words"),
    [
        ("evaluation.score.SHOWN_ROWS", 1, "tsv", "another label", "expected (1,"),
        (
            "evaluation.score.bowman.relation",
            lambda left, right: "#",
            "bowman",
            "none",
            "expected (0,",
        ),
        ("engine.nangia_rows.FIRST_VALUE", 3, "nangia", "none", "expected (0,"),
        ("engine.nangia_rows.all_right", lambda name, blocks: blocks, "lra", "NUL", "Error: "),
    ],
)
def test_it_sees_faults(monkeypatch, tmp_path, name, value, kind, damaged, words):
    rng = np.random.default_rng(4)
    sheet = next(sheet for _ in range(9) for sheet in sheets(rng) if enough(sheet, kind))
    _, case = damage(sheet, rng, damaged)
    assert trial(sheet, case, tmp_path / "rows") is None
    monkeypatch.setattr(f"exactformer.{name}", value)
    assert words in str(trial(sheet, case, tmp_path / "rows"))


def enough(sheet: Sheet, kind: str) -> bool:
    """Whether it is of the kind, and has rows enough for something to go wrong."""
    return sheet.kind == kind and len(sheet.lines) > 10


def test_its_own_evaluators():
    assert of_listops("[MED 2 9 [MAX 1 3 ] 4 ]") == "3"
    assert of_listops("( ( ( ( [SM 9 ) 9 ) 3 ) ] )") == "1"
    assert of_listops("( MIN 5 ( MAX 1 3 ) )") == "3"
    assert of_formulas("( a ( and b ) )", "( not a )") == "|"
    assert of_formulas("a", "( a ( or ( not b ) ) )") == "<"
