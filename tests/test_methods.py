"""The method `sure`: for `train`, for `sweep` and in Python, with its constants in the record."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

import exactformer as ef
from exactformer.domains.catalog import CATALOG
from exactformer.sweep import plan, run_shard
from exactformer.training.kinds import recipe_by_method
from exactformer.training.recipe import Staged, recipe_for, sure_recipe_for
from tests.runs import Enough, StopAtFirstLook, exactformer

ARITHMETIC = ef.arithmetic()
SHORT = {"steps": 50, "attempts": 1}
SURE = sure_recipe_for(ARITHMETIC)


def recorded(run: str | bytes) -> Staged:
    """The recipe of a run.json."""
    recipe = json.loads(run)["recipe"]
    return Staged(**recipe | {"betas": tuple(recipe["betas"])})


def test_it_differs_where_the_default_falls_short():
    for make in CATALOG.values():
        assert recipe_by_method("sure", make(), {}) == sure_recipe_for(make())
    changed = {
        task for task, make in CATALOG.items() if sure_recipe_for(make()) != recipe_for(make())
    }
    assert changed == {"arithmetic", "listops"}


def test_train_and_sweep(tmp_path):
    words = [f"--set={name}={value}" for name, value in SHORT.items()]
    arguments = ["train", "arithmetic", "--method", "sure", "--seeds", "1", *words]
    result = exactformer(*arguments, "--out", tmp_path)
    assert result.returncode == 1, result.stderr  # too few steps for a certificate
    assert recorded((tmp_path / "run.json").read_text()) == replace(SURE, **SHORT)
    settings = {"method": ["staged", "sure"]} | {name: [str(SHORT[name])] for name in SHORT}
    staged, sure = plan(ARITHMETIC, [1], settings, block=1)
    assert sure.name == "method=sure,steps=50,attempts=1/1-1"
    assert staged.recipe == replace(recipe_for(ARITHMETIC), **SHORT)
    files = run_shard(sure)
    assert recorded(files["run.json"]) == replace(SURE, **SHORT)
    assert files["1.safetensors"] == (tmp_path / "1.safetensors").read_bytes()


def test_python(tmp_path):
    with pytest.raises(Enough):
        ef.train(ARITHMETIC, [1], method="sure", out=tmp_path, observers=[StopAtFirstLook()])
    assert recorded((tmp_path / "run.json").read_text()) == SURE
    (result,) = ef.train(ef.boolean(), [8739], method="sure")
    assert result.exact


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "sur"}, "expected the method staged, sure or end-to-end, found 'sur'"),
        ({"method": "sure", "recipe": SURE}, "expected a method or a recipe, found 'sure' and"),
    ],
)
def test_mistakes(tmp_path: Path, options, message):
    with pytest.raises(ValueError, match=message):
        ef.train(ARITHMETIC, [1], out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()
