"""Tables of the baselines from the records that are shipped, and the parameters kept with them."""

import csv
import json
import subprocess
import sys
from hashlib import sha256

import pytest
import torch

from exactformer.baselines.recipe import RECIPES, network_for
from exactformer.domains.catalog import CATALOG
from exactformer.paper import baseline_records, published
from exactformer.paper.baseline_records import SHIPPED, keep, load_baseline, record_of, try_deep
from exactformer.paper.baseline_tables import table2, table3, table4
from exactformer.paper.comparison import DEEP, TABLE_DEPTHS, asked_problems, count_at
from exactformer.protocol.state import NetworkState

CPU = torch.device("cpu")


def size(network) -> int:
    return sum(tensor.numel() for tensor in network.initial(torch.Generator()).values())


def test_tables_from_shipped_records(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # away from the repository
    for table in (table2, table3, table4):
        paths = table(tmp_path)
        first, *lines = paths[0].read_text().splitlines()
        assert first == f"# exactformer reproduce {table.__name__}"
        rows = list(csv.DictReader(lines))
        assert all(int(row["right"]) <= int(row["problems"]) == 1000 for row in rows)
        models = {(row["task"], row["model"]) for row in rows}
        assert len(models) == (1 if table is table4 else 9)
        text = paths[1].read_text()
        assert f"`exactformer reproduce {table.__name__}`" in text
        assert "**ours**, certified" in text
        assert "always the commonest answer" in text


def test_shipped_records_are_the_full_runs():
    for name, recipe in RECIPES.items():
        record = record_of(name)
        assert record["recipe"]["epochs"] == recipe.epochs
        assert record["recipe"]["learning_rate"] == recipe.learning_rate
        assert record["parameters"] == size(network_for(recipe))
        assert [seed["seed"] for seed in record["seeds"]] == list(published.BASELINE_SEEDS)
        assert (SHIPPED / f"{name}.safetensors").exists()


def test_shipped_parameters_give_what_their_record_says():
    """Half precision changes a few answers at most, and the problems are the same."""
    for name in ("boolean-rope", "boolean-learned-0.01"):
        record = record_of(name)
        problems, values = asked_problems("boolean", "balanced", 3)
        right = sum(
            a == b for a, b in zip(load_baseline(name).predict(problems), values, strict=True)
        )
        seed = next(seed for seed in record["seeds"] if seed["seed"] == record["kept"])
        found, total = seed["best"]["balanced"]["3"]
        assert total == len(values)
        assert abs(right - found) <= 10


def test_ours_are_right_on_every_problem_of_the_comparison():
    for task in CATALOG:
        record = json.loads((SHIPPED / f"{task}-ours.json").read_text())
        for drawing, depths in (("natural", [*TABLE_DEPTHS, *DEEP]), ("balanced", TABLE_DEPTHS)):
            assert record["right"][drawing] == [count_at(depth) for depth in depths]


def test_a_killed_trial_of_the_deep_goes_on_after_the_last_depth(tmp_path, monkeypatch, capsys):
    command = [sys.executable, "-m", "exactformer.paper.baseline_records", "boolean-learned"]
    command += ["--deep", "--out", str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        assert run.stderr.readline().startswith("boolean-learned, depth 11: ")
        run.kill()
    path = tmp_path / "boolean-learned.deep.json"
    begun = json.loads(path.read_text())
    last = max(map(int, begun["right"]))
    monkeypatch.setattr(baseline_records, "DEEP", range(11, last + 2))
    record = try_deep("boolean-learned", tmp_path, CPU)
    assert record == json.loads(path.read_text())
    assert [*record["right"]] == [str(depth) for depth in range(11, last + 2)]
    assert capsys.readouterr().err.startswith(f"boolean-learned, depth {last + 1}: ")  # no other
    assert record["right"].items() >= begun["right"].items()


def test_shipped_trials_of_the_deep_are_of_the_shipped_parameters():
    for path in SHIPPED.glob("*.deep.json"):
        record = json.loads(path.read_text())
        kept = (SHIPPED / f"{record['name']}.safetensors").read_bytes()
        assert record["weights"] == sha256(kept).hexdigest()
        tried = [*record["right"]]
        assert tried == [str(depth) for depth in DEEP[: len(tried)]]
        assert all(
            right <= count == count_at(int(depth))
            for depth, (right, count) in record["right"].items()
        )


def test_damaged_parameters_are_not_tried(tmp_path, monkeypatch, capsys):
    path = tmp_path / "boolean-rope.safetensors"  # in front of the shipped ones
    path.write_text("nothing")
    monkeypatch.setattr(sys, "argv", ["", "boolean-rope", "--deep", "--out", str(tmp_path)])
    with pytest.raises(SystemExit) as stopped:
        baseline_records.main()
    assert stopped.value.code == 2
    assert f"boolean-rope: {path}: expected a safetensors file" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [path]


def test_kept_parameters_of_something_else_are_refused(tmp_path):
    recipe = RECIPES["boolean-rope"]
    state = NetworkState.start(network_for(recipe), [3], CPU)
    fewer = {name: tensor for name, tensor in state.best.items() if name != "embedding"}
    keep(tmp_path / "boolean-rope.safetensors", recipe, 3, fewer, 0)
    with pytest.raises(ValueError, match="expected the parameters of boolean-rope, found others"):
        load_baseline("boolean-rope", tmp_path)
