"""Machines in `run`, with intermediates patched, in traces and on the command line."""

import json
from collections import Counter

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.machine_catalog import MACHINES
from exactformer.domains.machine_sampling import draw_texts
from exactformer.domains.machines import Machine
from exactformer.model.layers import LAYERS
from tests.in_process import run_here


def test_every_tap_is_reported_and_can_be_patched():
    model = ef.construct(MACHINES["parity"]())
    run = model.run("0110")
    assert {name for _, name in run.cache} >= set(LAYERS["machine"].taps)
    assert run.cache[1, "key"].tolist() == [1, 2, 3, 4, 5]
    assert run.cache[1, "u"].tolist() == [0, 0, 1, 0, 0]
    for state in (0, 1):
        changed = model.run("0110", {(1, "u"): lambda u, q=state: torch.full_like(u, q)})
        assert changed.value == str(state)
    unknown = model.run("0110", {(1, "F"): lambda F: torch.full_like(F, 2)})
    assert unknown.value is None


def test_a_trace_has_the_state_that_arrives_at_each_token():
    (step,) = ef.construct(MACHINES["cycle-5"]()).trace("++-").steps
    assert step.rows() == {
        "tokens": ["+", "+", "-", "$"],
        "key": [1, 2, 3, 4],
        "state": [0, 1, 3, 1],  # as `from_rule` found them: 0, 1, 4, 2, 3
        "mask": [1, 1, 1, 1],
        "after": ["·", "·", "·", "1"],
    }
    assert MACHINES["cycle-5"]().states == ("0", "1", "4", "2", "3")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["eval", "parity", "01a1"], "line 1, column 3: expected 0 or 1, found 'a'"),
        (["eval", "parity", ""], "line 1, column 1: expected 0 or 1, found no text"),
        (["eval", "flip-flop", "1x"], "expected 0, 1, i or r, found 'x'"),
        (["eval", "s3", "231 214"], "line 1, column 5: expected 123, 132, 213, 231, 312 or 321"),
        (["eval", "parity", "01", "--engine", "fast"], "'parity'"),
        (["eval", "parity", "01", "--weights", "constructed/units"], "closed or table"),
        (["eval", "parity", "01", "--weights", "constructed/dense"], "only one-hot vectors"),
    ],
)
def test_bad_input_is_refused_where_it_stands(words, expected):
    status, printed, errors = run_here(words)
    assert (status, printed) == (2, "")
    assert expected in errors


def test_lines_of_a_file_are_answered_one_by_one(tmp_path):
    path = tmp_path / "lines"
    path.write_text("01\n0111\n1\n")
    assert run_here(["eval", "parity", "--file", str(path)])[1] == "1\n1\n1\n"
    status, printed, _ = run_here(["eval", "parity", "0110", "--json"])
    assert status == 0
    assert json.loads(printed) == {"engine": "model", "value": "0", "iterations": 1}


@pytest.mark.parametrize("name", MACHINES)
def test_samples_of_a_length_are_scored_right(name, tmp_path):
    status, printed, _ = run_here(["sample", name, "--length", "12", "--count", "50"])
    assert status == 0
    (tmp_path / "rows.tsv").write_text(printed)
    status, printed, _ = run_here(["score", name, str(tmp_path / "rows.tsv")])
    assert (status, printed.splitlines()[0]) == (0, "50 of 50 rows right")


def test_a_wrong_label_and_one_that_is_no_answer(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("ir1r\t.0.1\ni r 1 r\t.0.0\n")
    status, printed, _ = run_here(["score", "flip-flop", str(path)])
    assert status == 1
    assert "1 of 2 rows right" in printed
    assert "line 2: expected .0.0, found .0.1" in printed
    path.write_text("ir1r\t.0.1\nir1r\tx\n")
    status, _, errors = run_here(["score", "flip-flop", str(path)])
    assert status == 2
    assert "line 2, column 6: expected one of" in errors


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["sample", "parity", "--depth", "3"], "expected --length, not --depth"),
        (["sample", "boolean", "--length", "3"], "expected --depth, not --length"),
    ],
)
def test_a_sample_is_of_a_depth_or_of_a_length(words, expected):
    status, printed, errors = run_here(words)
    assert (status, printed) == (2, "")
    assert expected in errors


def test_random_texts_are_drawn_equally_often():
    """Texts are two zeros at least, then ones: as many as there are places for the first one."""
    after = {("a", "0"): "b", ("b", "0"): "c", ("c", "0"): "c", ("c", "1"): "d", ("d", "1"): "d"}
    machine = Machine.from_rule(
        "zeros", "01", "a", lambda q, x: after.get((q, x)), end=lambda q: "1" if q in "cd" else None
    )
    drawn = draw_texts(machine, 6, 4_000, np.random.default_rng(0))
    counts = Counter(map(str, drawn))
    assert counts.keys() == {"0" * k + "1" * (6 - k) for k in range(2, 7)}
    assert max(abs(count - 800) for count in counts.values()) < 120
    with pytest.raises(ValueError, match="'zeros' allows no text of 1 symbols"):
        draw_texts(machine, 1, 1, np.random.default_rng(0))


def test_verify_says_that_it_is_a_machine(tmp_path):
    weights, proof = str(tmp_path / "w.safetensors"), str(tmp_path / "p.json")
    assert run_here(["construct", "parity", "--out", weights])[0] == 0
    assert run_here(["certify", "parity", "--weights", weights, "--out", proof])[0] == 0
    assert "\n  machine  parity (built in), sha256 " in run_here(["verify", proof, weights])[1]


def test_info_says_what_a_machine_is():
    status, printed, _ = run_here(["info", "cycle-5", "--json"])
    assert status == 0
    facts = json.loads(printed)
    assert (facts["kind"], facts["symbols"], facts["answers"]) == (
        "machine",
        ["+", "-", "="],
        "at the end",
    )
