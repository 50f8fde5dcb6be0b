"""`verify --kernel`: which checker it runs, which ones it refuses, and what no checker covers."""

import hashlib
import json
from pathlib import Path

import pytest
import torch

import exactformer as ef
from exactformer.model.circuit import Weights
from exactformer.model.construct import dense
from exactformer.model.feedforward import MLP
from exactformer.verify import coq
from tests.in_process import run_here

FOLDER = Path(coq.__file__).parents[2] / "proof"


def verified(model: ef.Model, folder: Path, *options: str) -> tuple[int, str, str]:
    """What `verify --kernel` says of a model."""
    weights, proof = folder / "model.safetensors", folder / "proof.json"
    model.save(weights)
    model.certify().save(proof)
    status, printed, errors = run_here(["verify", str(proof), str(weights), "--kernel", *options])
    return status, printed, " ".join(errors.split())


def test_this_version_names_the_proof_that_is_here():
    """If the proof was changed, `make proof` builds a checker whose --proof is the new PROOF."""
    names = ["Makefile", "_CoqProject", "main.ml", *sorted(p.name for p in FOLDER.glob("*.v"))]
    hashes = [hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in names]
    listed = "".join(f"{own}  {name}\n" for own, name in zip(hashes, names, strict=True))
    assert hashlib.sha256(listed.encode()).hexdigest() == coq.PROOF
    written = (FOLDER / "_CoqProject").read_text().split()
    assert {name for name in written if name.endswith(".v")} <= set(names)


def test_the_checker_that_ran_is_named(checker, tmp_path):
    model = ef.load("boolean/7520")
    status, printed, _ = verified(model, tmp_path)
    assert status == 0
    assert f"  checker  {checker}, built from the proof with sha256 {coq.PROOF}\n" in printed
    facts = json.loads(verified(model, tmp_path, "--json")[1])
    assert (facts["checker"], facts["checker_proof"]) == (str(checker), coq.PROOF)


OTHERS = {
    "another proof": f"echo {'0' * 64}",
    "no name": "echo 'checker: expected files to check' >&2; exit 2",
    "always exact": "echo exact",
    "a part of the name": f"echo {coq.PROOF[:-1]}",
    "more than the name": f"echo {coq.PROOF}; echo exact",
    "a failure": f"echo {coq.PROOF}; exit 1",
}


@pytest.mark.parametrize("script", OTHERS.values(), ids=OTHERS)
def test_a_checker_of_another_proof_is_refused(script, tmp_path, monkeypatch):
    built = tmp_path / "checker"
    built.write_text(f"#!/bin/sh\n{script}\n")
    built.chmod(0o755)
    monkeypatch.setattr(coq, "BUILT", built)
    status, printed, errors = verified(ef.construct(ef.boolean()), tmp_path)
    assert (status, printed) == (2, "")
    assert f"{built}: expected a checker that was built from the proof {coq.PROOF}" in errors
    assert "`make proof` builds it anew" in errors


def test_a_file_that_cannot_be_run_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(coq, "BUILT", tmp_path / "checker")
    (tmp_path / "checker").write_text("not a program")
    status, printed, errors = verified(ef.construct(ef.boolean()), tmp_path)
    assert (status, printed) == (2, "")
    assert "the checker cannot be run" in errors


@pytest.mark.parametrize("answer", ["", "yes", "exact\nexact", "not covered", "exact: no"])
def test_what_is_no_answer_is_an_error(answer, tmp_path, monkeypatch):
    built = tmp_path / "checker"
    named = f'if [ "$1" = --proof ]; then echo {coq.PROOF}; else printf "{answer}\\n"; fi'
    built.write_text(f"#!/bin/sh\n{named}\n")
    built.chmod(0o755)
    monkeypatch.setattr(coq, "BUILT", built)
    status, printed, errors = verified(ef.construct(ef.boolean()), tmp_path)
    assert (status, printed) == (2, "")
    assert "expected an answer to each file" in errors


def wide() -> ef.Model:
    """A Boolean model with routing that `verify` accepts and that is wider than `reach`."""
    model = ef.construct(ef.boolean(), "closed")
    f = model.weights.f
    assert isinstance(f, MLP)
    scaled = MLP(f.W_1 / 32, f.b_1, f.W_2, f.b_2, f.activation)
    return ef.Model(
        model.algebra,
        Weights(model.weights.G_PE, model.weights.W_Q, 32 * model.weights.W_K, scaled),
    )


def with_dense_vectors() -> ef.Model:
    model = ef.construct(ef.boolean())
    return ef.Model(model.algebra, dense(model.weights, torch.Generator().manual_seed(0)))


def test_what_is_not_covered_is_said_before_a_checker_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(coq, "BUILT", tmp_path / "checker")
    monkeypatch.setenv("PATH", "")
    status, printed, errors = verified(ef.construct(ef.boolean_plain()), tmp_path)
    assert (status, printed) == (2, "")
    assert "not for 'boolean-plain' in plain notation" in errors
    assert "not built" in verified(ef.construct(ef.boolean()), tmp_path)[2]


UNCOVERED = {
    "units": (lambda: ef.construct(ef.listops(None)), "found units"),
    "dense": (with_dense_vectors, "found dense vectors"),
    "plain": (
        lambda: ef.construct(ef.boolean_plain()),
        "not for 'boolean-plain' in plain",
    ),
    "wide": (wide, "routed sums may be larger than every format holds"),
}


@pytest.mark.usefixtures("checker")
@pytest.mark.parametrize(("make", "reason"), UNCOVERED.values(), ids=UNCOVERED)
def test_weights_that_are_not_covered_are_not_called_inexact(make, reason, tmp_path):
    model = make()
    assert model.certify().verdict == "exact"
    status, printed, errors = verified(model, tmp_path)
    assert (status, printed) == (2, "")
    assert "not covered by the extracted checker" in errors
    assert reason in errors
    assert "without --kernel the proof is accepted" in errors
    assert "not exact" not in errors
