"""A run is taken up again only from what fits together: whatever was damaged is refused by name,
and what is missing is made again.
"""

import json
import os
import random
import subprocess
import sys
from dataclasses import replace

import pytest

import exactformer as ef
from exactformer.host.atomic import remove_unfinished, write_atomically
from exactformer.training.recipe import PAPER_SEEDS, recipe_for
from exactformer.training.record import read_record, write_record
from exactformer.training.run import CHECKPOINT, train_seeds
from tests.runs import Enough, StopAtFirstLook, files


def resume(folder, seeds=PAPER_SEEDS):
    """Go on with a run in which nothing is left to train."""
    return train_seeds(ef.boolean(), seeds, out=folder, observers=[StopAtFirstLook()])


def test_no_flipped_bit_of_a_checkpoint_is_trained_on(interrupted):
    path, rng = interrupted / CHECKPOINT, random.Random(0)
    data = path.read_bytes()
    for _ in range(200):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="remove it to train the unfinished seeds") as caught:
            train_seeds(ef.boolean(), PAPER_SEEDS[:2], out=interrupted)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("name", ["run.json", "7520.json"])
def test_no_flipped_bit_of_a_record_is_believed(old_run, name):
    path, rng = old_run / name, random.Random(0)
    data = path.read_bytes()
    meant = json.loads(data)
    for _ in range(100):
        damaged = bytearray(data)
        damaged[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        refusal = ""
        try:
            resume(old_run)
        except ValueError as error:
            refusal = str(error)
        assert str(path) in refusal or json.loads(damaged) == meant  # white space


def in_full(folder):
    """Make run.json what it was at first, when it spelled the algebra out."""
    path = folder / "run.json"
    record = read_record(path)
    assert set(record["algebra"]) == {"name", "sha256"}
    write_record(path, record | {"algebra": ef.boolean().to_dict()})


def test_a_record_that_spells_the_algebra_out_is_read(old_run):
    in_full(old_run)
    before = files(old_run)
    resume(old_run)
    assert files(old_run) == before
    with pytest.raises(ValueError, match="its algebra differ"):
        train_seeds(ef.arithmetic(), PAPER_SEEDS, recipe=recipe_for(ef.boolean()), out=old_run)


def test_its_checkpoint_is_taken_up(tmp_path, monkeypatch, paper_run):
    """A checkpoint names its run by a hash of what run.json says."""
    monkeypatch.setattr("exactformer.training.run.CHECKPOINT_SECONDS", 0.0)
    folder, seeds = tmp_path / "run", PAPER_SEEDS[:2]
    with pytest.raises(Enough):
        train_seeds(ef.boolean(), seeds, out=folder, observers=[StopAtFirstLook()])
    (folder / CHECKPOINT).unlink()
    in_full(folder)
    with pytest.raises(Enough):
        train_seeds(ef.boolean(), seeds, out=folder, observers=[StopAtFirstLook()])
    assert (folder / CHECKPOINT).exists()
    results = train_seeds(ef.boolean(), seeds, out=folder)
    for result in results:
        written = (folder / f"{result.seed}.safetensors").read_bytes()
        assert written == (paper_run / f"{result.seed}.safetensors").read_bytes()


def test_an_algebra_of_ones_own_is_spelled_out(tmp_path):
    mine = replace(ef.boolean(), name="mine")
    with pytest.raises(Enough):
        train_seeds(mine, [1], out=tmp_path, observers=[StopAtFirstLook()])
    said = read_record(tmp_path / "run.json")["algebra"]
    assert ef.Algebra.from_dict(said["definition"]) == mine


def test_a_checkpoint_of_another_run(interrupted, tmp_path):
    """Same seeds, another recipe: its numbers would be trained on in the wrong way."""
    recipe = replace(recipe_for(ef.boolean()), feedforward_rate=0.04)
    other = tmp_path / "other"
    with pytest.raises(Enough):
        train_seeds(
            ef.boolean(), PAPER_SEEDS[:2], recipe=recipe, out=other, observers=[StopAtFirstLook()]
        )
    (other / CHECKPOINT).write_bytes((interrupted / CHECKPOINT).read_bytes())
    with pytest.raises(ValueError, match="belongs to another run than"):
        train_seeds(ef.boolean(), PAPER_SEEDS[:2], recipe=recipe, out=other)


def test_a_missing_proof_is_made_again(old_run, paper_run):
    (old_run / "7520.proof.json").unlink()
    resume(old_run)
    assert files(old_run) == files(paper_run)


def test_missing_weights_are_trained_again(old_run, paper_run):
    (old_run / "7520.safetensors").unlink()
    train_seeds(ef.boolean(), PAPER_SEEDS, out=old_run)
    name = "7520.safetensors"
    assert (old_run / name).read_bytes() == (paper_run / name).read_bytes()


@pytest.mark.parametrize(
    "claim", [{"verdict": "inexact"}, {"rows": 34}, {"smallest_margin": "1"}], ids=str
)
def test_a_proof_that_claims_something_else(old_run, claim):
    path = old_run / "7520.proof.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | claim))
    with pytest.raises(ValueError, match=r"7520\.proof\.json") as caught:
        resume(old_run)
    assert "remove" in str(caught.value)


def test_a_record_that_contradicts_its_proof(old_run):
    path = old_run / "7520.json"
    write_record(path, read_record(path) | {"verdict": "inexact"})
    with pytest.raises(ValueError, match=r"says inexact, but .*7520\.proof\.json exact"):
        resume(old_run)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("seed", 7, "seed: expected 7520, found 7"),
        ("verdict", "perhaps", "verdict: expected 'exact', 'inexact' or 'undecided'"),
        ("attempt", True, "attempt: expected a whole number, found true"),
        ("margin", "1", "margin: expected a number, found '1'"),
        ("margin", 10**400, "margin: expected a number, found 1000"),
        ("more", 1, "unknown field 'more'"),
        ("weights_sha256", "0" * 64, "about other weights than"),
    ],
)
def test_a_field_of_a_record_that_is_none(old_run, field, value, words):
    path = old_run / "7520.json"
    write_record(path, read_record(path) | {field: value})
    with pytest.raises(ValueError, match=words) as caught:
        resume(old_run)
    assert str(path) in str(caught.value)


def test_what_a_killed_writer_left_is_removed_by_the_next_run(old_run):
    before = files(old_run)
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        dead.wait()
    left = old_run / f".7520.json.{dead.pid}.abcdefgh.unfinished"
    kept = [
        old_run / f".7520.json.{os.getpid()}.abcdefgh.unfinished",  # its writer lives
        old_run / f".notes.{dead.pid}.abcdefgh",  # none of ours
        old_run / ".unfinished",
    ]
    for path in (left, *kept):
        path.write_text("half")
    resume(old_run)
    assert files(old_run) == before | {path.name: b"half" for path in kept}


KILLED = """if True:
    import os, signal, sys
    from exactformer.host.atomic import write_atomically
    os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    write_atomically(sys.argv[1], b"new")
"""


def test_a_kill_between_writing_and_renaming(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    subprocess.run([sys.executable, "-c", KILLED, path], timeout=120)
    assert path.read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 2  # what it left
    remove_unfinished(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    write_atomically(path, b"new")
    assert path.read_bytes() == b"new"
