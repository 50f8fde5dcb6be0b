"""`exactformer sweep`: the bytes of `train`, whoever runs a shard, and nothing lost by a kill."""

import csv
import json
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

import exactformer as ef
from exactformer.sweep import SettingRow, is_finished, plan, read_rows, run, run_shard, save_shard
from exactformer.sweep.run import claim
from exactformer.training.recipe import Staged
from exactformer.training.run import train_seeds
from tests.test_cli_model import exactformer, refused

SEEDS = range(4)
BOOLEAN = ef.boolean()


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "exactformer", "sweep", *map(str, arguments)]


def sweep(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300)


def seed_files(folder: Path) -> dict[str, bytes]:
    """Weights and proofs by name, wherever they are; records have the seconds that they took."""
    paths = [*folder.rglob("*.safetensors"), *folder.rglob("*.proof.json")]
    return {path.name: path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def of_train(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("train")
    train_seeds(BOOLEAN, SEEDS, out=folder)
    return seed_files(folder)


def test_a_killed_sweep_goes_on_with_the_bytes_of_train(tmp_path, of_train):
    arguments = ("boolean", "--seeds", "0-3", "--block", "2", "--workers", "1", "--out", tmp_path)
    first = subprocess.Popen(command(*arguments), stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 200
    while not (ended := list(tmp_path.glob("recipe/*/[0-9].json"))):
        assert first.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    first.kill()
    assert first.wait() < 0
    kept = {path: path.stat().st_mtime_ns for path in ended}
    time.sleep(1)  # the workers see that they are alone
    result = sweep(*arguments)
    assert result.returncode == 0, result.stderr
    assert seed_files(tmp_path) == of_train
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert "| recipe | 4 | 4 | 0.510 to 1.000 | 4 |" in result.stdout
    rows = list(csv.DictReader((tmp_path / "sweep.csv").read_text().splitlines()))
    assert [row["certified"] for row in rows] == ["4"]
    assert (tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")
    _, printed, _ = exactformer("sweep", *arguments, "--json")  # with nothing left to do
    (found,) = json.loads(printed)
    assert [record["seed"] for record in found["seeds"]] == [0, 1, 2, 3]
    said = refused("sweep", *arguments[:4], "3", *arguments[5:])
    assert "holds another sweep (its block differ)" in said


def test_a_shard_runs_anywhere(tmp_path, of_train):
    first, second = plan(BOOLEAN, SEEDS, {"spread": ["0.1"]}, block=3)
    assert second.seeds == (3,)
    assert second.name == "spread=0.1/3-3"
    files = run_shard(pickle.loads(pickle.dumps(second)))
    assert files["3.safetensors"] == of_train["3.safetensors"]  # 0.1 is the recipe's own
    assert not is_finished(tmp_path, second)
    save_shard(tmp_path, second, files)
    assert is_finished(tmp_path, second)
    assert run_shard(second, tmp_path) == files  # which has nothing left to do
    (row,) = read_rows(tmp_path, [first, second])
    assert [record["seed"] for record in row.records] == [3]
    assert row.at_first == len(row.certified) == 1


def test_every_combination_of_settings_in_blocks_of_seeds():
    settings = {"spread": ["0.1", "0.2"], "estimator": ["score", "search"]}
    shards = plan(BOOLEAN, range(5), settings, block=2)
    assert len(shards) == len({shard.name for shard in shards}) == 4 * 3
    assert {shard.seeds for shard in shards[:4]} == {(0, 1)}
    recipe = shards[1].recipe
    assert isinstance(recipe, Staged)
    assert (recipe.spread, recipe.estimator) == (0.1, "search")
    (ends,) = plan(BOOLEAN, [1], {"method": ["end-to-end"], "epochs": ["3"]}, block=1)
    assert ends.recipe.steps == 3 * 2


def test_a_row_without_a_certified_seed():
    record = {"seed": 1, "verdict": "inexact", "attempt": 5}
    of_none = ["0", "0.000 to 0.793"]
    assert SettingRow((), [record]).cells == ["recipe", "1", *of_none, *of_none, "-", "-", "-"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rat": ["0.1"]}, "the method staged has no 'rat'"),
        ({"spread": ["0.1", "0.1"]}, "found one twice"),
        ({"spread": ["0.1", "wide"]}, "expected a number for spread, found 'wide'"),
        ({"method": ["staged", "other"]}, "expected the method staged, sure or end-to-end"),
        ({"steps": ["0"]}, "expected steps of 1 or more"),
    ],
)
def test_mistakes_are_told_before_anything_is_written(settings, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        claim(tmp_path / "out", BOOLEAN, SEEDS, settings)
    assert not (tmp_path / "out").exists()


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    said = refused("sweep", "boolean", "--seeds", "0", "--out", tmp_path)
    assert "expected a new folder" in said
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_first_look_may_take_long(tmp_path, monkeypatch, capsys):
    shards = plan(BOOLEAN, SEEDS, {}, 2, "cpu")
    monkeypatch.setattr(run, "LINE_SECONDS", 0.0)  # as if each look took longer than that
    progress = run.Progress(shards, tmp_path)
    assert capsys.readouterr().err == ""
    assert progress.look() == 0
    assert capsys.readouterr().err == "0 of 4 seeds, 0.00 a second\n"
