"""Training as a whole: it ends with proofs, it repeats itself to the byte, and it loses nothing.

Boolean trains in seconds, so it is what whole runs are tried on. That a run can be killed a hundred
times is shown by `python -m attacks.kills`.
"""

import json
import random
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch

import exactformer as ef
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG, describe
from exactformer.host.threads import one_thread
from exactformer.training.checkpoint import read_checkpoint, write_checkpoint
from exactformer.training.loop import Trainer
from exactformer.training.recipe import PAPER_SEEDS, Staged, recipe_for
from exactformer.training.record import read_seed_record
from exactformer.training.run import CHECKPOINT, Observer, summary, train_seeds
from exactformer.training.state import State, begin, initial
from exactformer.verify import verify
from tests.runs import (
    ARGUMENTS,
    CHECKPOINT_OFTEN,
    StopAtFirstLook,
    exactformer,
    files,
    seed_list,
    weights,
)

# What a run ends with.


def test_ten_of_ten_with_proofs(paper_run):
    names = {f"{s}.{kind}" for s in PAPER_SEEDS for kind in ("safetensors", "proof.json", "json")}
    assert set(files(paper_run)) == names | {"run.json"}
    for seed in PAPER_SEEDS:
        record = json.loads((paper_run / f"{seed}.json").read_text())
        assert (record["seed"], record["verdict"], record["rows_right"]) == (seed, "exact", 35)
        findings = verify(paper_run / f"{seed}.proof.json", paper_run / f"{seed}.safetensors")
        assert record["margin"] == float(findings.smallest_margin) > 1
        assert record["margin"] > record["margin_before_polish"] > 0
        model = ef.load(paper_run / f"{seed}.safetensors")
        assert model.origin == {"made": "trained", "seed": seed, "attempt": record["attempt"]}
        assert model("((1|0)&(~0))") == "1"


def test_the_run_says_what_it_was(paper_run):
    run = json.loads((paper_run / "run.json").read_text())
    assert run["seeds"] == list(PAPER_SEEDS)
    assert run["algebra"] == describe(ef.boolean())
    settings = run["recipe"] | {"betas": tuple(run["recipe"]["betas"])}
    assert Staged(**settings) == recipe_for(ef.boolean())
    assert run["versions"]["torch"] == torch.__version__


def test_the_same_command_gives_the_same_bytes(paper_run, tmp_path):
    result = exactformer(*ARGUMENTS, tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    assert weights(tmp_path) == weights(paper_run)
    records = json.loads(result.stdout)
    assert [record["seed"] for record in records] == list(PAPER_SEEDS)
    for record in records:
        written = read_seed_record(paper_run / f"{record['seed']}.json", record["seed"])
        assert record | {"seconds": 0} == written | {"seconds": 0}


def test_a_finished_run_is_not_done_again(old_run):
    before = files(old_run)
    results = train_seeds(ef.boolean(), PAPER_SEEDS, out=old_run, observers=[StopAtFirstLook()])
    assert "certified 10 of 10" in summary(results)
    assert files(old_run) == before


def test_from_python():
    results = ef.train(ef.boolean(), seeds=[12, 11])
    assert [result.seed for result in results] == [12, 11]
    assert [result.model.certify().verdict for result in results] == ["exact", "exact"]
    assert results[0].model("(~(1&1))") == "0"
    assert all(result.exact for result in results)
    assert "certified 2 of 2" in summary(results)


def test_an_uncertified_seed_ends_with_its_counterexample(tmp_path):
    patch = (
        "import exactformer.training.recipe as module\n"
        "module.recipe_for = lambda algebra: module.Staged(steps=50, attempts=1)"
    )
    result = exactformer("train", "boolean", "--seeds", "1,2", "--out", tmp_path, before=patch)
    assert result.returncode == 1, result.stderr
    assert "certified 0 of 2" in result.stdout
    for seed in (1, 2):
        record = json.loads((tmp_path / f"{seed}.json").read_text())
        assert (record["verdict"], record["attempt"], record["step"]) == ("inexact", 1, 50)
        proof = json.loads((tmp_path / f"{seed}.proof.json").read_text())
        example = proof["counterexample"]
        assert example["expression"] == record["counterexample"]
        assert f"{seed} fails on {example['expression']}" in result.stdout
        model = ef.load(tmp_path / f"{seed}.safetensors")
        expression = ef.parse(model.algebra, example["expression"])
        assert model.predict([expression]) == [example["found"]]
        assert ef.oracle(expression) == example["expected"] != example["found"]


# The same bits, whoever is trained beside and however often the run is interrupted.


@pytest.mark.parametrize("seed", PAPER_SEEDS[:4])
def test_a_seed_alone_ends_with_the_same_bytes(paper_run, tmp_path, seed):
    train_seeds(ef.boolean(), [seed], out=tmp_path)
    name = f"{seed}.safetensors"
    assert weights(tmp_path) == {name: (paper_run / name).read_bytes()}


def advance(algebra: Algebra, recipe: Staged, state: State, looks: int) -> State:
    """Train for so many looks and no further."""
    trainer = Trainer(algebra, recipe)
    with one_thread():
        for _ in range(looks):
            ended = trainer.advance(state)
            state.keep([row for row in range(len(state.seeds)) if row not in ended])
    return state


def assert_same_seed(one: State, row: int, other: State, other_row: int) -> None:
    fields, other_fields = (asdict(s) for s in (one.seeds[row], other.seeds[other_row]))
    memory, other_memory = fields.pop("memory"), other_fields.pop("memory")
    assert fields == other_fields
    assert memory.keys() == other_memory.keys()
    assert all(torch.equal(memory[name], other_memory[name]) for name in memory)
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor[row], other.tensors[name][other_row]), name


def shortened(algebra: Algebra) -> tuple[Staged, int]:
    """A recipe that has a seed start again, with its gate in motion, and looks that show both."""
    recipe = replace(recipe_for(algebra), gate_from=0.0, gate_steps=2)
    if algebra.name == "listops":
        return replace(recipe, steps=75, look_every=25), 4
    return replace(recipe, steps=200), 6


@pytest.mark.parametrize("name", ["arithmetic", "listops"])
def test_a_seed_has_the_same_bits_alone_and_beside_others(name):
    algebra = CATALOG[name]()
    recipe, looks = shortened(algebra)
    seeds: list[int] = list(PAPER_SEEDS[:5])
    together = advance(algebra, recipe, begin(algebra, recipe, seeds), looks)
    assert {seed.attempt for seed in together.seeds} == {2}
    assert all(seed.memory and 0 < seed.step < seed.spent for seed in together.seeds)
    for group in ([seeds[1]], [seeds[3], seeds[0]]):
        apart = advance(algebra, recipe, begin(algebra, recipe, group), looks)
        for row, seed in enumerate(group):
            assert_same_seed(apart, row, together, seeds.index(seed))


def test_a_restart_is_a_fresh_start_from_the_next_draw():
    algebra = ef.boolean()
    recipe = replace(recipe_for(algebra), steps=50, gate_from=0.0)
    state = advance(algebra, recipe, begin(algebra, recipe, [5, 6]), 1)
    for row, seed in enumerate(state.seeds):
        assert (seed.attempt, seed.step, seed.spent, seed.memory) == (2, 0, 50, {})
        start = initial(algebra, recipe, seed.seed, attempt=2)
        for name, tensor in state.tensors.items():
            assert torch.equal(tensor[row], start.get(name, torch.zeros_like(tensor[row]))), name


def test_a_checkpoint_goes_on_with_the_same_bits(task, tmp_path):
    recipe, looks = shortened(task)
    recipe = replace(recipe, attempts=1_000, gate_from=0.5)
    through = advance(task, recipe, begin(task, recipe, [1, 2]), looks)
    state = advance(task, recipe, begin(task, recipe, [1, 2]), looks // 2)
    write_checkpoint(tmp_path / "state", state, "a run")
    held = read_checkpoint(tmp_path / "state", "a run", begin(task, recipe, [1, 2]))
    resumed = advance(task, recipe, held, looks - looks // 2)
    assert len(through.seeds) == len(resumed.seeds)
    for row in range(len(through.seeds)):
        assert_same_seed(through, row, resumed, row)


def test_a_checkpoint_holds_everything(tmp_path):
    algebra = ef.boolean()
    recipe, _ = shortened(algebra)
    state = advance(algebra, recipe, begin(algebra, recipe, [5, 6, 7]), 1)
    assert all(seed.memory for seed in state.seeds)
    write_checkpoint(tmp_path / "state", state, "a run")
    start = begin(algebra, recipe, [7, 6, 5])
    again = read_checkpoint(tmp_path / "state", "a run", start)
    assert again.tensors.keys() == state.tensors.keys()
    for row in range(3):
        assert_same_seed(state, row, again, row)
    write_checkpoint(tmp_path / "again", again, "a run")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "state").read_bytes()


def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(paper_run, tmp_path):
    """Two kills, each a random while after the run has written something new."""
    seeds = (8739, 5395)  # the slowest
    main = f"{CHECKPOINT_OFTEN}\nfrom exactformer.cli import main\nmain()"
    command = [sys.executable, "-c", main, *ARGUMENTS, tmp_path, "--seeds", seed_list(seeds)]
    rng, kills = random.Random(0), 0
    while kills < 2:
        before = _times(tmp_path)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while _times(tmp_path) == before and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.1))
        if process.poll() is not None:
            break  # it was quicker than we; what it left is still to be compared
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
    assert kills
    result = exactformer(*ARGUMENTS, tmp_path, "--seeds", seed_list(seeds))
    assert result.returncode == 0, result.stderr
    expected = weights(paper_run)
    names = [f"{seed}.safetensors" for seed in seeds]
    assert weights(tmp_path) == {name: expected[name] for name in names}
    for seed in seeds:
        verify(tmp_path / f"{seed}.proof.json", tmp_path / f"{seed}.safetensors")


def _times(folder: Path) -> dict[str, int]:
    """When each whole file was written; temporary ones start with a dot."""
    found = {}
    for path in folder.iterdir():
        if not path.name.startswith("."):
            try:
                found[path.name] = path.stat().st_mtime_ns
            except FileNotFoundError:
                continue
    return found


def test_a_checkpoint_is_used(interrupted, paper_run, monkeypatch):
    """Not only is the end the same: the steps before the checkpoint are not made again."""
    looks = []

    class Watch(Observer):
        def evaluated(self, state: State) -> None:
            looks.append([seed.spent for seed in state.seeds])

    results = train_seeds(ef.boolean(), PAPER_SEEDS[:2], out=interrupted, observers=[Watch()])
    assert looks[0] == [100, 100]
    assert all(result.exact for result in results)
    assert weights(interrupted).items() <= weights(paper_run).items()
    assert not (interrupted / CHECKPOINT).exists()


def test_a_seed_without_its_record_is_trained_again(old_run, paper_run):
    """The record is written last; a run killed just before it leaves weights and proof."""
    (old_run / "7520.json").unlink()
    (old_run / "1936.json").unlink()
    (old_run / "1936.proof.json").unlink()
    train_seeds(ef.boolean(), PAPER_SEEDS, out=old_run)
    assert weights(old_run) == weights(paper_run)
    assert set(files(old_run)) == set(files(paper_run))


def test_a_seed_that_diverges_ends_with_a_verdict():
    recipe = replace(recipe_for(ef.boolean()), feedforward_rate=1e20, steps=50, attempts=1)
    (result,) = train_seeds(ef.boolean(), [7520], recipe=recipe)
    assert result.record["verdict"] == "inexact"
