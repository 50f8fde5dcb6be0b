"""The certificate in Polish notation: one gate and one side are right, and all others show it."""

import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.algebra import FIRST_VALUE
from exactformer.model.circuit import Weights
from exactformer.model.storage import to_file
from exactformer.verify import ProofRejected, check, verify
from exactformer.weights.file import WeightFile
from tests.in_process import run_here
from tests.polish_algebras import CALCULATOR, LISTOPS, SIDES, ordered_algebra

COUNTS = "each token counts the number of its operands less one"
SIDE = "texts are read from the side where operators come first"


def mutant(model, **gates):
    assert isinstance(model.weights, Weights)
    return ef.Model(model.algebra, replace(model.weights, **gates))


@pytest.mark.parametrize("notation", SIDES)
def test_every_gate_of_small_numbers_but_one_is_inexact_with_an_error_replayed(notation):
    algebra = ordered_algebra(2, (1, 2), notation)
    model = ef.construct(algebra)
    right = model.weights.gates["G_A"].tolist()[FIRST_VALUE:]
    verdicts = {}
    for numbers in product((-1, 0, 1), repeat=len(right)):
        tried = mutant(model, G_A=torch.tensor([0, 0, *numbers]))
        certificate = tried.certify()
        verdicts[numbers] = certificate.verdict
        if list(numbers) == right:
            continue
        assert certificate.findings.failed == [COUNTS]
        example = certificate.counterexample
        assert example is not None
        assert example.shortest
        assert len(example.expression) <= 3
        assert tried.predict([example.expression]) == [example.found] != [example.expected]
    assert [gate for gate, verdict in verdicts.items() if verdict == "exact"] == [tuple(right)]
    assert set(verdicts.values()) == {"exact", "inexact"}


@pytest.mark.parametrize("algebra", [LISTOPS, CALCULATOR], ids=str)
def test_the_other_side_is_inexact(algebra):
    model = ef.construct(algebra)
    certificate = mutant(model, side=-model.weights.gates["side"]).certify()
    assert certificate.verdict == "inexact"
    assert certificate.findings.failed == [SIDE]
    assert "texts are read from the other side" in str(certificate)


def test_what_parentheses_count_makes_no_difference():
    model = ef.construct(CALCULATOR)
    G_A = model.weights.gates["G_A"].clone()
    G_A[:FIRST_VALUE] = 5
    tried = mutant(model, G_A=G_A)
    assert tried.certify().verdict == "exact"
    assert tried("3 5 - 2 * _") == "4"


def test_a_wrong_row_is_shown_by_a_text_of_the_notation():
    model = ef.construct(CALCULATOR)
    f = model.weights.f
    wrong = ef.Model(CALCULATOR, replace(model.weights, f=replace(f, b_2=f.b_2 + 0.75)))
    certificate = wrong.certify()
    assert certificate.verdict == "inexact"
    assert certificate.counterexample is not None
    assert str(certificate.counterexample.expression) == "0 _"


def test_weights_learned_with_parentheses_are_exact_without():
    for name, algebra in {
        "listops/7520": LISTOPS,
        "arithmetic/7520": ef.arithmetic_polish(),
    }.items():
        model = ef.load(name, algebra)
        assert model.certify().verdict == "exact"
    assert ef.load("listops/7520", LISTOPS)("MIN 7 MAX 3 8 MED 9 SM 5 6 2") == "2"


def test_a_proof_is_saved_and_verified(tmp_path):
    weights, proof = tmp_path / "weights.safetensors", tmp_path / "proof.json"
    ef.load("boolean/7520", ef.boolean_polish()).save(weights)
    ef.load("boolean/7520", ef.boolean_polish()).certify().save(proof)
    assert verify(proof, weights, ef.boolean_polish()).exact
    with pytest.raises(ProofRejected, match="another algebra"):
        verify(proof, weights, ef.boolean())
    data = json.loads(proof.read_text())
    assert data["conditions"][COUNTS]
    del data["conditions"][SIDE]
    proof.write_text(json.dumps(data))
    with pytest.raises(ProofRejected, match="conditions"):
        verify(proof, weights)


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("G_A", [-2], "G_A: expected numbers from -1 to"),
        ("side", [0], "side: expected 1 or -1, found 0"),
    ],
)
def test_a_file_with_gates_that_mean_nothing_is_refused(name, numbers, message, tmp_path):
    path = tmp_path / "weights.safetensors"
    model = ef.construct(ef.boolean_polish())
    model.save(path)
    file = WeightFile.read(path)
    array = file.arrays[name].copy()
    array[-1:] = np.array(numbers)
    with pytest.raises(ValueError, match=message):
        replace(file, arrays=file.arrays | {name: array})


def test_weights_with_the_gates_of_another_notation_are_refused(tmp_path):
    with pytest.raises(ValueError, match="tensor G_A: infix notation, and there is one"):
        ef.Model(ef.boolean(), ef.construct(ef.boolean_polish()).weights).sha256  # noqa: B018
    with pytest.raises(ValueError, match="tensor G_A: polish notation, and there is none"):
        ef.Model(ef.boolean_polish(), ef.construct(ef.boolean()).weights).sha256  # noqa: B018


def test_the_check_itself_asks_for_the_gate_of_arities():
    file = to_file(ef.boolean(), ef.construct(ef.boolean()).weights, {})
    with pytest.raises(ValueError, match="polish notation, and there is none"):
        check(ef.boolean_polish(), file.arrays, file.activation)


def test_the_commands_certify_and_verify(tmp_path):
    proof, weights = tmp_path / "proof.json", tmp_path / "weights.safetensors"
    assert run_here(["construct", "boolean-polish", "--out", str(weights)])[0] == 0
    status, said, _ = run_here(
        ["certify", "boolean-polish", "--weights", str(weights), "--out", str(proof)]
    )
    assert status == 0
    assert said.startswith("exact")
    status, said, _ = run_here(["verify", str(proof), str(weights), "--algebra", "boolean-polish"])
    assert status == 0
    assert "accepted" in said
