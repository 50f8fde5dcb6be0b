"""A table of certified seeds rests on weights and proofs that are there and match."""

import json
import shutil
from pathlib import Path

import pytest

import exactformer as ef
from exactformer.model.feedforward import MLP
from exactformer.sweep import is_finished, plan, read_rows
from exactformer.training.record import read_record, write_record
from tests.runs import exactformer, refused

SEEDS = (0, 1)
SHARD = "recipe/0-1"


def arguments(folder: Path) -> list[str | Path]:
    return ["sweep", "boolean", "--seeds", "0-1", "--workers", "1", "--out", folder]


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sweep") / "out"
    result = exactformer(*arguments(folder))
    assert "| recipe | 2 | 2 |" in result.stdout, result.stderr
    return folder


@pytest.fixture
def folder(finished, tmp_path) -> Path:
    """A copy, to be spoiled."""
    return shutil.copytree(finished, tmp_path / "out")


@pytest.mark.parametrize("name", ["0.safetensors", "0.proof.json", "0.json"])
def test_what_was_deleted_is_made_again_with_the_same_bytes(folder, finished, name):
    (folder / SHARD / name).unlink()
    (shard,) = plan(ef.boolean(), SEEDS, {}, block=20)
    assert not is_finished(folder, shard)
    (row,) = read_rows(folder, [shard])
    assert [record["seed"] for record in row.records] == [1]  # the other one has nothing to show
    result = exactformer(*arguments(folder))
    assert "| recipe | 2 | 2 |" in result.stdout, result.stderr
    for made in ("0.safetensors", "0.proof.json"):
        assert (folder / SHARD / made).read_bytes() == (finished / SHARD / made).read_bytes()


def overwrite_weights(out: Path) -> None:
    shutil.copy(out / "1.safetensors", out / "0.safetensors")


def cut_weights(out: Path) -> None:
    path = out / "0.safetensors"
    path.write_bytes(path.read_bytes()[:-1])


def overwrite_proof(out: Path) -> None:
    shutil.copy(out / "1.proof.json", out / "0.proof.json")


def forge_proof(out: Path) -> None:
    path = out / "0.proof.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"verdict": "inexact"}))


def forge_record(out: Path) -> None:
    """As a broken disk would not: with its hash."""
    path = out / "0.json"
    write_record(path, read_record(path) | {"weights_sha256": "0" * 64})


@pytest.mark.parametrize(
    "spoil", [overwrite_weights, cut_weights, overwrite_proof, forge_proof, forge_record]
)
def test_what_was_overwritten_is_refused_as_train_refuses_it(folder, spoil):
    spoil(folder / SHARD)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = refused(*arguments(folder))
    assert str(folder / SHARD / "0.") in said
    assert "remove" in said
    train = ["train", "boolean", "--seeds", "0,1", "--out", folder / SHARD]
    assert refused(*train) == said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_inexact_weights_with_a_record_that_says_exact(folder):
    """Weights, record and proof agree, but the proof does not hold."""
    out = folder / SHARD
    model = ef.load(out / "0.safetensors")
    proof = json.loads((out / "0.proof.json").read_text())
    f = model.weights.f
    assert isinstance(f, MLP)
    f.b_2.data.add_(100)
    broken = ef.Model(model.algebra, model.weights, dict(model.origin))
    broken.save(out / "0.safetensors")
    sha256 = ef.load(out / "0.safetensors").sha256
    (out / "0.proof.json").write_text(json.dumps(proof | {"weights_sha256": sha256}))
    write_record(out / "0.json", read_record(out / "0.json") | {"weights_sha256": sha256})
    assert "0.proof.json" in refused(*arguments(folder))


def test_shards_are_checked_in_several_processes_with_the_same_result(folder, monkeypatch):
    monkeypatch.setattr("exactformer.sweep.results.ALONE_SECONDS", 0.0)
    shards = plan(ef.boolean(), SEEDS, {}, block=20) * 2  # the same one twice: it is read only
    alone = read_rows(folder, shards)
    assert [record["seed"] for record in alone[0].records] == [0, 1, 0, 1]
    assert read_rows(folder, shards, workers=2) == alone
    overwrite_weights(folder / SHARD)
    for workers in (1, 2):
        with pytest.raises(ValueError, match=r"0\.json is about other weights than .*remove one"):
            read_rows(folder, shards, workers)
