"""Every shipped model is exact, its proof holds, and it evaluates the cases right."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.catalog import CATALOG, describe
from exactformer.domains.expression import Expression
from exactformer.domains.machine_catalog import MACHINES
from exactformer.domains.reference import evaluate
from exactformer.model.storage import to_file
from exactformer.paper import published
from exactformer.training.kinds import recipe_by_method
from exactformer.training.recipe import PAPER_SEEDS
from exactformer.training.record import read_record
from exactformer.verify import ProofRejected, verify
from exactformer.weights.file import WeightFile
from exactformer.weights.named import SHIPPED
from tests.cases import CASES

FILES = [path for task in CATALOG for path in sorted((SHIPPED / task).glob("*.safetensors"))]
TRAINED = [(task, seed) for task in CATALOG for seed in PAPER_SEEDS]


def name_of(path: Path) -> str:
    return path.relative_to(SHIPPED).with_suffix("").as_posix()


@pytest.fixture(scope="module", params=FILES, ids=name_of)
def shipped(request) -> tuple[Path, ef.Model]:
    return request.param, ef.load(name_of(request.param))


def test_ten_trained_seeds_a_task_and_the_fitted_ones():
    trained = {f"{task}/{seed}" for task, seed in TRAINED}
    # With the paper's routing, none can be fitted for arithmetic.
    fitted = {"boolean/fitted", "listops/fitted"}
    assert {name_of(path) for path in FILES} == trained | fitted
    assert len(trained) == 30
    for task, seed in TRAINED:
        assert (SHIPPED / task / f"{seed}.proof.json").is_file()


@pytest.mark.parametrize("name", MACHINES)
def test_a_learned_machine_is_exact_and_right_on_long_texts(name):
    path, machine = SHIPPED / name / "7520.safetensors", MACHINES[name]()
    proof, record = path.with_suffix(".proof.json"), read_record(path.with_suffix(".json"))
    model = ef.load(f"{name}/7520")
    certificate = model.certify()
    assert (model.domain, certificate.verdict) == (machine, "exact")
    assert verify(proof, path, machine) == certificate.findings
    assert record["weights_sha256"] == certificate.weights_sha256
    run = read_record(path.parent / "run.json")
    assert run["algebra"] == describe(machine)
    assert run["recipe"] == json.loads(json.dumps(asdict(recipe_by_method("beliefs", machine, {}))))
    rng = np.random.default_rng(0)
    ids = [rng.integers(len(machine.symbols), size=n).astype(np.int16) for n in (1, 7, 100, 3_000)]
    texts = [Expression(machine, part) for part in ids]
    assert model.predict(texts) == [evaluate(text) for text in texts]
    assert {file.parent.name for file in SHIPPED.glob("*/*.safetensors")} == {*CATALOG, *MACHINES}


def test_it_is_exact_and_its_proof_holds(shipped):
    path, model = shipped
    assert model.algebra == CATALOG[path.parent.name]()
    certificate = model.certify()
    assert certificate.verdict == "exact", str(certificate)
    proof = path.with_suffix("").with_suffix(".proof.json")
    if proof.exists():
        assert verify(proof, path) == certificate.findings
    record = path.with_suffix(".json")
    if record.exists():
        assert json.loads(record.read_text())["weights_sha256"] == certificate.weights_sha256


@pytest.mark.parametrize("task", CATALOG)
def test_the_record_of_its_run_names_the_algebra(task):
    record = read_record(SHIPPED / task / "run.json")
    assert record["algebra"] == describe(CATALOG[task]())
    assert "definition" not in record["algebra"]
    assert record["seeds"] == list(PAPER_SEEDS)


def test_it_is_written_again_with_the_same_bytes(shipped, tmp_path):
    path, model = shipped
    file, ending = WeightFile.read(path), "_logits"
    logits = {
        name.removesuffix(ending): torch.from_numpy(array)
        for name, array in file.arrays.items()
        if name.endswith(ending)
    }
    file.write(tmp_path / "read")
    to_file(model.algebra, model.weights, model.origin, logits).write(tmp_path / "run")
    for name in ("read", "run"):
        assert (tmp_path / name).read_bytes() == path.read_bytes(), name


def test_it_evaluates_the_cases(shipped):
    path, model = shipped
    cases = [case for case in CASES if case.domain == path.parent.name]
    assert cases
    expressions = [ef.parse(model.algebra, case.text) for case in cases]
    assert model.predict(expressions) == [case.value for case in cases]


def test_trained_ones_say_so_and_have_the_papers_size(shipped):
    path, model = shipped
    if path.stem == "fitted":
        return
    assert model.origin["made"] == "trained"
    assert model.origin["seed"] == int(path.stem)
    w, f = model.weights, model.weights.f
    tensors = [w.G_PE, w.W_Q, w.W_K, *(getattr(f, name) for name in ("W_1", "b_1", "W_2", "b_2"))]
    assert sum(t.numel() for t in tensors) == published.PARAMETERS[path.parent.name]


def test_by_name():
    model = ef.load("listops/7520")
    assert model("( MAX ( MIN 8 3 5 ) ( SM 4 7 6 ) )") == "7"
    assert model.origin["seed"] == 7520


def test_a_proof_is_about_one_file_only(tmp_path):
    shutil.copy(SHIPPED / "boolean" / "8739.proof.json", tmp_path / "proof.json")
    with pytest.raises(ProofRejected, match="about other weights"):
        verify(tmp_path / "proof.json", SHIPPED / "boolean" / "7520.safetensors")
