"""A new kind of domain is a file a floor and a line in their tables: here walks around a circle."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.kinds import read_domain
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.model.storage import to_file
from exactformer.verify import verify
from tests.in_process import run_here
from tests.new_kind import Walk, add_to_tables


@pytest.fixture
def walk(monkeypatch: pytest.MonkeyPatch) -> Walk:
    add_to_tables(monkeypatch)
    return Walk("circle", 5)


def test_text_is_read_and_mistakes_are_told(walk: Walk) -> None:
    assert str(ef.parse(walk, "+ + -")) == "++-"
    with pytest.raises(ef.ExpressionError, match=r"expected \+ or -, found '3'"):
        ef.parse(walk, "++3")
    with pytest.raises(ef.ExpressionError, match="found 'x', which is no token"):
        ef.parse(walk, "+x")


def test_the_transformer_is_right_on_every_short_walk_and_on_long_ones(walk: Walk) -> None:
    model = ef.construct(walk)
    walks = [text for n in range(1, 9) for text in enumerate_length(walk, n)]
    walks += [ef.parse(walk, "+" * n + "-" * 7) for n in (100, 4321)]
    assert model.predict(walks) == [evaluate(text) for text in walks]
    assert model("+" * 13) == "3"
    assert model.evaluate(["--", "4"]) == ["3", "4"]
    assert [outcome.iterations for outcome in model.outcomes(walks[:1] + walks[-1:])] == [0, 1]


def test_a_run_can_be_patched_and_a_module_hooked(walk: Walk) -> None:
    model = ef.construct(walk)
    run = model.run("+++")
    assert (run.value, run.iterations) == ("3", 1)
    assert int(run.cache[1, "A"]) == 3
    assert model.run("+++", {(1, "A"): lambda A: A + 1}).value == "4"
    X, inside = model.module().encode(["+-+", "4"])
    assert model.module().decode(model.module()(X, inside)) == ["1", "4"]


def test_an_iteration_is_shown(walk: Walk) -> None:
    traced = ef.construct(walk).trace("++-++")
    assert traced.value == "3"
    assert str(traced).splitlines()[2:] == [
        "iteration 1",
        "  tokens    + + - + +",
        "  after     3 · · · ·",
        "  5 steps lead to 3",
        "",
        "value 3 after 1 iteration",
    ]
    assert "<td" in traced._repr_html_()


def test_weights_and_proofs_are_files(walk: Walk, tmp_path: Path) -> None:
    model = ef.construct(walk)
    certificate = model.certify()
    assert certificate.verdict == "exact"
    certificate.save(tmp_path / "proof.json")
    model.save(tmp_path / "walk.safetensors")
    read = ef.load(tmp_path / "walk.safetensors")
    assert (read.domain, read) == (walk, model)
    assert verify(tmp_path / "proof.json", tmp_path / "walk.safetensors", walk).exact


def test_a_file_is_checked_as_its_kind_says(walk: Walk, tmp_path: Path) -> None:
    file = to_file(walk, ef.construct(walk).weights, {})
    wide = Walk("wide", 99)
    to_file(wide, ef.construct(wide).weights, {}).write(tmp_path / "wide")
    with pytest.raises(ValueError, match="places: expected a number from 2 to 9, found 99"):
        ef.load(tmp_path / "wide")
    with pytest.raises(ValueError, match="unexpected set of tensors: bags outputs"):
        replace(file, arrays={k: v for k, v in file.arrays.items() if k != "G"})
    with pytest.raises(ValueError, match=r"tensor G: expected the shape \(7,\), found \(9,\)"):
        replace(file, arrays=file.arrays | {"G": np.zeros(9, np.int8)})
    with pytest.raises(ValueError, match=r"kind: expected .*algebra.*walk.*, found \'tour\'"):
        read_domain({"kind": "tour"})


def test_wrong_weights_are_refused_with_the_shortest_walk_that_shows_it(walk: Walk) -> None:
    model = ef.construct(walk)
    outputs = model.weights.f.outputs.clone()
    outputs[2] = outputs[3]
    wrong = ef.Model(walk, replace(model.weights, f=replace(model.weights.f, outputs=outputs)))
    certificate = wrong.certify()
    assert certificate.verdict == "inexact"
    example = certificate.counterexample
    assert example is not None
    assert str(example.expression) == "++"
    with pytest.raises(ValueError, match="no tables for 'circle': use --engine model"):
        model.evaluate("+", "fast")
    gate = torch.tensor([1.0, 1.0, 0, 0, 0, 0, 0])
    assert ef.Model(walk, replace(model.weights, G=gate)).certify().verdict == "inexact"


def test_what_is_for_algebras_says_so(walk: Walk) -> None:
    with pytest.raises(ValueError, match="expected an algebra, found 'circle' of the kind walk"):
        _ = ef.construct(walk).algebra


def test_the_commands_take_it(walk: Walk, tmp_path: Path) -> None:
    (tmp_path / "circle.toml").write_text('kind = "walk"\nname = "circle"\nplaces = 5\n')
    domain = str(tmp_path / "circle.toml")
    assert run_here(["eval", domain, "--", "--+"])[:2] == (0, "4\n")
    (tmp_path / "lines").write_text("++\n-\n3\n")
    assert run_here(["eval", domain, "--file", str(tmp_path / "lines")])[:2] == (0, "2\n4\n3\n")
    status, said, _ = run_here(["eval", domain, "--file", str(tmp_path / "lines"), "--json"])
    assert (status, json.loads(said)["iterations"]) == (0, [1, 1, 0])
    for syntax in ("python", "nangia"):
        for given in (["++"], ["--file", str(tmp_path / "lines")]):
            status, _, said = run_here(["eval", domain, *given, "--syntax", syntax])
            assert (status, "expected an algebra, found 'circle'" in said) == (2, True)
    status, said, _ = run_here(["trace", domain, "++-"])
    assert "3 steps lead to 1" in said
    made, proof = str(tmp_path / "walk.safetensors"), str(tmp_path / "proof.json")
    assert run_here(["construct", domain, "--out", made])[0] == 0
    assert run_here(["certify", domain, "--weights", made, "--out", proof])[0] == 0
    assert run_here(["verify", proof, made, "--algebra", domain])[0] == 0
    status, _, said = run_here(["train", domain, "--out", str(tmp_path / "run")])
    assert (status, said) == (
        2,
        "exactformer: expected an algebra, a machine or integers, "
        "found 'circle' of the kind walk\n",
    )
    (tmp_path / "circle.toml").write_text('kind = "walk"\nname = "circle"\nplaces = 1\n')
    status, _, said = run_here(["eval", domain, "+"])
    assert status == 2
    assert "places: expected a number from 2 to 9, found 1" in said
