"""Proofs: what is constructed has one, `verify` accepts it, and no other."""

import json
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch

from exactformer.api import Model, construct
from exactformer.certify import certify
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.definition import load_algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.feedforward import MLP, Table
from exactformer.verify import ProofRejected, proof_of, verify
from tests.algebras import TASKS
from tests.brute_force import constructed

KINDS = ["closed", "table", "fitted", "dense"]


@pytest.fixture(
    scope="module",
    params=[(a, k) for a in TASKS for k in KINDS if (a.name, k) != ("arithmetic", "fitted")],
    ids=lambda pair: f"{pair[0].name}-{pair[1]}",
)
def model(request) -> Model:
    return constructed(*request.param)


@pytest.fixture(scope="module")
def proof(model, tmp_path_factory):
    """Paths of the proof and of the weights."""
    folder = tmp_path_factory.mktemp("proof")
    certificate = model.certify()
    assert certificate.verdict == "exact"
    assert certificate.counterexample is None
    model.save(folder / "weights")
    certificate.save(folder / "proof")
    return folder / "proof", folder / "weights"


def test_constructed_models_are_exact_and_their_proofs_are_accepted(model, proof):
    findings = verify(*proof)
    bags = sum(len(op.table) for op in model.algebra.operators)
    assert findings.exact
    assert findings.rows > 3 * bags
    assert findings.smallest_margin > findings.rounding_bound
    assert str(model.certify()).startswith("exact\n  yes")


def test_the_number_of_rows_is_that_of_all_positions(task):
    """For each bag its distinct tokens, and once the zero vector."""
    expected = 1
    for operator in task.operators:
        expected += sum(3 + len(set(key)) for key in operator.table)
    assert construct(task, "table").certify().findings.rows == expected


BLOCKED = """if True:
    import sys
    from pathlib import Path
    sys.modules["torch"] = None
    from exactformer.verify import verify
    assert verify(Path(sys.argv[1]), Path(sys.argv[2])).exact
    seen = [name for name in sys.modules if name.startswith("exactformer.model")]
    assert not seen, seen
    print("accepted")
"""


def test_verifying_needs_neither_torch_nor_the_model(proof):
    arguments = [sys.executable, "-c", BLOCKED, *map(str, proof)]
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert (result.stdout, result.stderr) == ("accepted\n", "")


def fitted_proof(tmp_path):
    model = construct(boolean(), "fitted")
    model.save(tmp_path / "weights")
    model.certify().save(tmp_path / "proof")
    return json.loads((tmp_path / "proof").read_text())


def flip_condition(proof):
    proof["conditions"][next(iter(proof["conditions"]))] = False


def drop_condition(proof):
    proof["conditions"].popitem()


def truthy_conditions(proof):
    proof["conditions"] = dict.fromkeys(proof["conditions"], 1)


@pytest.mark.parametrize(
    "edit",
    [
        lambda proof: proof.update(smallest_margin=proof["smallest_margin"] + "1"),
        lambda proof: proof.update(smallest_margin=str(Fraction(proof["smallest_margin"]) / 2)),
        lambda proof: proof.update(smallest_margin="1e30000000"),
        lambda proof: proof.update(rounding_bound="1/1000"),
        lambda proof: proof.update(rows=proof["rows"] + 1),
        lambda proof: proof.update(verdict="inexact"),
        lambda proof: proof.update(verdict="not proved"),
        lambda proof: proof.update(weights_sha256="0" * 64),
        lambda proof: proof["algebra"].update(name="boolean-2"),
        lambda proof: proof["algebra"].update(sha256="0" * 64),
        lambda proof: proof["algebra"].update(definition=boolean().to_dict()),
        lambda proof: proof["arithmetic"].update(feedforward="IEEE binary32"),
        lambda proof: proof.pop("arithmetic"),
        lambda proof: proof.update(rows=float(proof["rows"])),
        lambda proof: proof.update(wrong_rows=17),
        lambda proof: proof.update(counterexample={"expression": "x"}),
        lambda proof: proof.update(most_operands={"float32": 2**60}),
        lambda proof: proof.update({"\x1b[8m": "nothing to see"}),
        truthy_conditions,
        flip_condition,
        drop_condition,
    ],
    ids=[
        *("margin", "half the margin", "huge", "rounding", "rows", "inexact", "not proved"),
        *("hash", "name", "hash of the algebra", "definition", "arithmetic", "no arithmetic"),
        *("rows as a float", "wrong rows", "counterexample", "operands", "control characters"),
        *("conditions that are not booleans", "condition", "fewer conditions"),
    ],
)
def test_an_edited_proof_is_rejected(tmp_path, edit):
    proof = fitted_proof(tmp_path)
    edit(proof)
    (tmp_path / "proof").write_text(json.dumps(proof))
    with pytest.raises(ProofRejected):
        verify(tmp_path / "proof", tmp_path / "weights")


def test_a_proof_is_about_its_weights_only(tmp_path):
    fitted_proof(tmp_path)
    construct(boolean()).save(tmp_path / "others")
    with pytest.raises(ProofRejected, match="about other weights"):
        verify(tmp_path / "proof", tmp_path / "others")


@pytest.mark.parametrize("verdict", ["exact", "not proved"])
def test_a_forged_proof_of_wrong_weights_is_rejected(tmp_path, verdict, short_search):
    """Every claim but the verdict is true, so that only the check of the weights can tell."""
    model = construct(boolean(), "fitted")
    assert isinstance(model.weights.f, MLP)
    f = replace(model.weights.f, W_2=-model.weights.f.W_2)
    wrong = Model(boolean(), replace(model.weights, f=f))
    certificate = wrong.certify()
    assert certificate.verdict == "inexact"
    wrong.save(tmp_path / "weights")
    certificate.save(tmp_path / "proof")
    with pytest.raises(ValueError, match=r"expected the format .* found 'exactformer fault 1'"):
        verify(tmp_path / "proof", tmp_path / "weights")
    proof = proof_of(boolean(), certificate.weights_sha256, certificate.findings)
    proof["verdict"] = verdict
    (tmp_path / "proof").write_text(json.dumps(proof))
    with pytest.raises(ProofRejected):
        verify(tmp_path / "proof", tmp_path / "weights")
    proof["conditions"] = dict.fromkeys(proof["conditions"], True)
    (tmp_path / "proof").write_text(json.dumps(proof))
    with pytest.raises(ProofRejected):
        verify(tmp_path / "proof", tmp_path / "weights")


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "{}",
            "[]",
            "null",
            "exact",
            "\x00\xff",
            '{"weights_sha256": 1}',
            "{{",
            "[" * 100_000,
        ),
        '{"format": "exactformer proof 2", "format": "exactformer proof 2"}',
        '{"format": "exactformer proof 2", "rows": NaN}',
        '{"format": "exactformer proof 1"}',
    ],
    ids=lambda text: repr(text[-30:]),
)
def test_what_is_no_proof_is_an_error(tmp_path, text):
    fitted_proof(tmp_path)
    (tmp_path / "proof").write_text(text)
    with pytest.raises(ValueError, match="expected a proof file"):
        verify(tmp_path / "proof", tmp_path / "weights")


@pytest.mark.parametrize("changed", [("W_1", "b_1"), ("W_2", "b_2")])
def test_huge_weights_beside_none_are_only_wrong(changed, short_search):
    f = construct(boolean(), "fitted").weights.f
    assert isinstance(f, MLP)
    others = {"W_1", "b_1", "W_2", "b_2"} - set(changed)
    tensors = {name: torch.full_like(getattr(f, name), 1e30) for name in changed}
    tensors |= {name: torch.zeros_like(getattr(f, name)) for name in others}
    weights = replace(construct(boolean()).weights, f=replace(f, **tensors))
    assert certify(boolean(), weights).verdict == "inexact"


def test_the_saved_fault_names_the_counterexample(tmp_path, short_search):
    model = construct(boolean())
    gate = model.weights.G_PE.clone()
    gate[CLOSE] = 0
    certificate = certify(boolean(), replace(model.weights, G_PE=gate))
    example = certificate.counterexample
    assert certificate.verdict == "inexact"
    assert example is not None
    certificate.save(tmp_path / "fault")
    saved = json.loads((tmp_path / "fault").read_text())
    assert saved["counterexample"]["expression"] == str(example.expression)
    assert saved["counterexample"]["expected"] == evaluate(example.expression)
    assert saved["conditions"]["the gate is +1 on '(', -1 on ')', 0 elsewhere"] is False
    assert f"shortest counterexample: {example.expression}" in str(certificate)


def test_a_proof_is_about_the_algebra_asked_for(tmp_path):
    fitted_proof(tmp_path)
    paths = tmp_path / "proof", tmp_path / "weights"
    assert verify(*paths, algebra=boolean()).exact
    with pytest.raises(ProofRejected, match="another algebra than the arithmetic asked for"):
        verify(*paths, algebra=arithmetic())


def test_an_algebra_of_ones_own_is_spelled_out_in_its_proof(tmp_path):
    algebra = load_algebra("examples/kleene.toml")
    model = construct(algebra)
    model.save(tmp_path / "weights")
    model.certify().save(tmp_path / "proof")
    proof = json.loads((tmp_path / "proof").read_text())
    assert proof["algebra"]["definition"] == algebra.to_dict()
    assert verify(tmp_path / "proof", tmp_path / "weights", algebra=algebra).exact


def test_a_falsified_algebra_of_a_known_name_is_told_apart(tmp_path):
    """The same name with other tables: exact about itself, and not what was asked for."""
    right = load_algebra("examples/kleene.toml")
    data = right.to_dict()
    for operator in data["operators"]:
        for row in operator.get("table", []):
            row[-1] = right.values[0]
    model = construct(Algebra.from_dict(data))
    model.save(tmp_path / "weights")
    model.certify().save(tmp_path / "proof")
    command = [sys.executable, "-m", "exactformer", "verify", "proof", "weights"]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert said.returncode == 0
    assert "kleene (not built in), sha256" in said.stdout
    assert "--algebra ties it to yours" in said.stdout
    path = str(Path("examples/kleene.toml").resolve())
    said = subprocess.run(
        [*command, "--algebra", path], capture_output=True, text=True, cwd=tmp_path
    )
    assert (said.returncode, said.stderr) == (1, "")
    assert said.stdout.startswith("rejected: weights is about another algebra")


def test_the_span_of_a_wrong_row_is_the_counterexample():
    """Far beyond the expressions that a search by length gets to."""
    algebra = listops(5)
    model = construct(algebra, "table")
    f = model.weights.f
    assert isinstance(f, Table)
    bag = torch.zeros(16, dtype=torch.int16)
    bag[algebra.token_ids["MED"]] = 1
    for digit in (7, 7, 8, 9, 9):
        bag[FIRST_VALUE + digit] += 1
    outputs = f.outputs.clone()
    row = int((f.bags == bag).all(1).nonzero())
    outputs[row] = torch.eye(16)[FIRST_VALUE + 3].to(outputs.dtype)
    certificate = certify(algebra, replace(model.weights, f=Table(f.bags, outputs)))
    example = certificate.counterexample
    assert certificate.verdict == "inexact"
    assert example is not None
    assert str(example.expression) == "( MED 7 7 8 9 9 )"
    assert (example.expected, example.found) == ("8", "3")


def test_the_value_may_appear_at_any_one_position(task):
    """Here at `)`: nothing in the argument needs it to be the operator's position."""
    model = construct(task, "table")
    D, first = len(task.vocabulary), task.first_operator
    W_Q, W_K = torch.zeros(2, D, 2)
    W_Q[CLOSE], W_K[FIRST_VALUE:first, 0], W_K[first:, 1] = 1, 1, 1
    at_the_end = Model(task, replace(model.weights, W_Q=W_Q, W_K=W_K))
    assert at_the_end.certify().verdict == "exact"
    rng = np.random.default_rng(0)
    batch = [e for depth in range(1, 9) for e in draw(task, depth, 20, rng)]
    assert at_the_end.predict(batch) == [evaluate(e) for e in batch]
    assert at_the_end(str(batch[-1])) == evaluate(batch[-1])
    W_Q[OPEN] = 1  # a second position with the value
    twice = replace(at_the_end.weights, W_Q=W_Q)
    assert certify(task, twice).verdict == "inexact"
