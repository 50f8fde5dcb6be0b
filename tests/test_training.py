"""Training as a whole: it ends with proofs, it repeats itself to the byte, and it loses nothing.

Boolean trains in seconds, so it is what whole runs are tried on. That a run can be killed twenty
times, and on arithmetic too, is shown by `python benchmarks/killing.py`.
"""

import json
import os
import random
import resource
import shlex
import shutil
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
from exactformer.domains.catalog import CATALOG
from exactformer.training import run as run_module
from exactformer.training.checkpoint import read_checkpoint, write_checkpoint
from exactformer.training.loop import State, Trainer, begin
from exactformer.training.parameters import initial
from exactformer.training.recipe import PAPER_SEEDS, Recipe, recipe_for
from exactformer.training.run import CHECKPOINT, Observer, summary, train_seeds
from exactformer.verify import verify
from tests.algebras import ALGEBRAS

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "exactformer"]
ARGUMENTS = ["train", "boolean", "--out"]

Files = dict[str, bytes]


def exactformer(*arguments: str | Path, before: str = "", **options) -> subprocess.CompletedProcess:
    """The command in a process of its own; `before` is Python to run first in it."""
    command: list[str | Path] = [*COMMAND]
    if before:
        command = [sys.executable, "-c", f"{before}\nfrom exactformer.cli import main\nmain()"]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=300, **options
    )


def refused(*arguments: str | Path, **options) -> str:
    """What it says on a mistake: on stderr, with nothing on stdout and no traceback."""
    result = exactformer(*arguments, **options)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


def files(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def weights(folder: Path) -> Files:
    return {name: data for name, data in files(folder).items() if name.endswith(".safetensors")}


def seed_list(seeds: list[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, seeds))


@pytest.fixture(scope="module")
def paper_run(tmp_path_factory) -> Path:
    """Boolean on the paper's ten seeds, by the command."""
    folder = tmp_path_factory.mktemp("paper") / "new" / "run"
    result = exactformer(*ARGUMENTS, folder)
    assert result.returncode == 0, result.stderr
    assert "certified 10 of 10" in result.stdout
    return folder


@pytest.fixture
def old_run(paper_run, tmp_path) -> Path:
    """A copy, to be spoiled."""
    return shutil.copytree(paper_run, tmp_path / "old")


def forget(folder: Path, *seeds: int) -> None:
    """Make seeds of a finished run unfinished."""
    for seed in seeds:
        for kind in ("safetensors", "proof.json", "json"):
            (folder / f"{seed}.{kind}").unlink()


class Enough(Exception):
    pass


class StopAtFirstLook(Observer):
    def looked(self, state: State) -> None:
        raise Enough


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
    assert Algebra.from_dict(run["algebra"]) == ef.boolean()
    settings = run["recipe"] | {"betas": tuple(run["recipe"]["betas"])}
    assert Recipe(**settings) == recipe_for(ef.boolean())
    assert run["versions"]["torch"] == torch.__version__


def test_the_same_command_gives_the_same_bytes(paper_run, tmp_path):
    result = exactformer(*ARGUMENTS, tmp_path, "--json")
    assert result.returncode == 0, result.stderr
    assert weights(tmp_path) == weights(paper_run)
    records = json.loads(result.stdout)
    assert [record["seed"] for record in records] == list(PAPER_SEEDS)
    for record in records:
        written = json.loads((paper_run / f"{record['seed']}.json").read_text())
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
        "module.recipe_for = lambda algebra: module.Recipe(steps=50, attempts=1)"
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
        assert ef.evaluate(expression) == example["expected"] != example["found"]


# The same bits, whoever is trained beside and however often the run is interrupted.


@pytest.mark.parametrize("seed", PAPER_SEEDS)
def test_a_seed_alone_ends_with_the_same_bytes(paper_run, tmp_path, seed):
    train_seeds(ef.boolean(), [seed], out=tmp_path)
    name = f"{seed}.safetensors"
    assert weights(tmp_path) == {name: (paper_run / name).read_bytes()}


def advance(algebra: Algebra, recipe: Recipe, state: State, looks: int) -> State:
    """Train for so many looks and no further."""
    seen = 0

    def report(state: State) -> None:
        nonlocal seen
        seen += 1
        if seen == looks:
            raise Enough

    with pytest.raises(Enough):
        list(Trainer(algebra, recipe).train(state, report))
    return state


def assert_same_seed(one: State, row: int, other: State, other_row: int) -> None:
    fields, other_fields = (asdict(s) for s in (one.seeds[row], other.seeds[other_row]))
    memory, other_memory = fields.pop("memory"), other_fields.pop("memory")
    assert fields == other_fields
    assert memory.keys() == other_memory.keys()
    assert all(torch.equal(memory[name], other_memory[name]) for name in memory)
    for name, tensor in one.tensors.items():
        assert torch.equal(tensor[row], other.tensors[name][other_row]), name


def shortened(algebra: Algebra) -> tuple[Recipe, int]:
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
    write_checkpoint(tmp_path / "state", state)
    resumed = advance(task, recipe, read_checkpoint(tmp_path / "state"), looks - looks // 2)
    assert len(through.seeds) == len(resumed.seeds)
    for row in range(len(through.seeds)):
        assert_same_seed(through, row, resumed, row)


def test_a_checkpoint_holds_everything(tmp_path):
    algebra = ef.boolean()
    recipe, _ = shortened(algebra)
    state = advance(algebra, recipe, begin(algebra, recipe, [5, 6, 7]), 1)
    assert all(seed.memory for seed in state.seeds)
    write_checkpoint(tmp_path / "state", state)
    again = read_checkpoint(tmp_path / "state")
    assert again.tensors.keys() == state.tensors.keys()
    for row in range(3):
        assert_same_seed(state, row, again, row)
    write_checkpoint(tmp_path / "again", again)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "state").read_bytes()


CHECKPOINT_OFTEN = "import exactformer.training.run as run; run.CHECKPOINT_SECONDS = 0.0"


def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(paper_run, tmp_path):
    """Three kills, each a random while after the run has written something new."""
    seeds = (8739, 5395, 5353)  # the slowest
    main = f"{CHECKPOINT_OFTEN}\nfrom exactformer.cli import main\nmain()"
    command = [sys.executable, "-c", main, *ARGUMENTS, tmp_path, "--seeds", seed_list(seeds)]
    rng, kills = random.Random(0), 0
    while kills < 3:
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


@pytest.fixture
def interrupted(tmp_path, monkeypatch) -> Path:
    """A run of two of the paper's seeds with a checkpoint."""
    monkeypatch.setattr(run_module, "CHECKPOINT_SECONDS", 0.0)
    folder = tmp_path / "interrupted"
    with pytest.raises(Enough):
        train_seeds(ef.boolean(), PAPER_SEEDS[:2], out=folder, observers=[StopAtFirstLook()])
    assert set(files(folder)) == {"run.json", CHECKPOINT}
    return folder


def test_a_checkpoint_is_used(interrupted, paper_run, monkeypatch):
    """Not only is the end the same: the steps before the checkpoint are not made again."""
    looks = []

    class Watch(Observer):
        def looked(self, state: State) -> None:
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


# Bad input: exit status 2, the reason, and nothing lost.


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train bolean --out OUT", "expected one of boolean, arithmetic, listops, found 'bolean'"),
        ("train boolean", "--out"),
        ("train boolean --out OUT --attempts 0", "--attempts"),
        (
            "train boolean --out OUT --seeds abc",
            "expected numbers separated by commas, found 'abc'",
        ),
        (
            "train boolean --out OUT --seeds 1,1",
            "expected different seeds of 0 or more, found [1, 1]",
        ),
        ("train boolean --out OUT --estimator grad", "expected one of search, score"),
        ("train boolean --out OUT --device abacus", "cpu or cuda, found 'abacus'"),
    ],
)
def test_mistakes(tmp_path, arguments, words):
    out = str(tmp_path / "out")
    assert words in refused(*(out if a == "OUT" else a for a in arguments.split()))
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda(tmp_path):
    message = refused(*ARGUMENTS, tmp_path / "out", "--device", "cuda")
    assert "expected a CUDA device, found none" in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1]])
def test_bad_seeds_from_python(seeds):
    with pytest.raises(ValueError, match="seed"):
        ef.train(ef.boolean(), seeds=seeds)


@pytest.mark.parametrize("name", ["steps", "attempts", "look_every", "strings"])
def test_bad_recipe_from_python(name):
    recipe = replace(recipe_for(ef.boolean()), **{name: 0})
    with pytest.raises(ValueError, match=f"expected {name} of 1 or more, found 0"):
        ef.train(ef.boolean(), recipe=recipe)


def test_an_algebra_with_ordered_operators_is_refused(tmp_path):
    (ordered,) = [a for a in ALGEBRAS if any(op.ordered for op in a.operators)][:1]
    with pytest.raises(ValueError, match="depends on the order of its operands"):
        ef.train(ordered, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_with_another_run_is_left_alone(old_run):
    before = files(old_run)
    message = refused(*ARGUMENTS, old_run, "--seeds", "7520,1", "--attempts", "2")
    assert "holds another run (its recipe and seeds differ)" in message
    assert files(old_run) == before
    with pytest.raises(ValueError, match="holds another run"):
        ef.train(ef.arithmetic(), PAPER_SEEDS, recipe=recipe_for(ef.boolean()), out=old_run)
    assert files(old_run) == before


def test_weights_that_no_run_explains_are_left_alone(old_run):
    for path in [old_run / "run.json", *old_run.glob("*[0-9].json")]:
        path.unlink()
    before = files(old_run)
    with pytest.raises(ValueError, match=r"no run\.json"):
        train_seeds(ef.boolean(), PAPER_SEEDS, out=old_run)
    assert files(old_run) == before


def test_a_file_where_the_folder_should_be(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert str(tmp_path / "file") in refused(*ARGUMENTS, tmp_path / "file")
    assert (tmp_path / "file").read_text() == "in the way"


@pytest.mark.parametrize("limit", [2_000, 4_000], ids=["weights", "checkpoint"])
def test_a_full_disk(old_run, paper_run, limit):
    """Room for the small files only: what was finished stays whole, and more room is enough.

    Weights are 2,663 bytes and the checkpoint more than 4,000.
    """
    forget(old_run, 5353, 7520)
    before = files(old_run)

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    message = refused(*ARGUMENTS, old_run, preexec_fn=no_large_files, before=CHECKPOINT_OFTEN)
    assert "File too large" in message
    assert files(old_run) == before
    train_seeds(ef.boolean(), PAPER_SEEDS, out=old_run)
    assert weights(old_run) == weights(paper_run)


@pytest.mark.parametrize("damage", ["truncated", "garbage", "empty", "weights"])
def test_a_damaged_checkpoint(interrupted, paper_run, damage):
    path = interrupted / CHECKPOINT
    data = path.read_bytes()
    weights_file = (paper_run / "7520.safetensors").read_bytes()
    damaged = {"truncated": data[:-100], "garbage": bytes(range(256)) * 20, "empty": b""}
    path.write_bytes((damaged | {"weights": weights_file})[damage])
    before = files(interrupted)
    if damage == "truncated":  # one through the command, the others without a new process
        message = refused(*ARGUMENTS, interrupted, "--seeds", seed_list(PAPER_SEEDS[:2]))
    else:
        with pytest.raises(ValueError, match="checkpoint") as caught:
            train_seeds(ef.boolean(), PAPER_SEEDS[:2], out=interrupted)
        message = str(caught.value)
    assert f"{path} is no checkpoint that training can go on from; remove it" in message
    assert files(interrupted) == before
    path.unlink()
    train_seeds(ef.boolean(), PAPER_SEEDS[:2], out=interrupted)
    assert weights(interrupted).items() <= weights(paper_run).items()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("run.json", b"{", "expected the description of a run"),
        ("run.json", b"[]", "expected the description of a run"),
        ("run.json", b"\xff\xfe", "expected the description of a run"),
        ("7520.json", b"7520", "expected the record of a seed"),
        ("7520.json", b"", "expected the record of a seed"),
        ("7520.safetensors", b"weights", "expected a safetensors file"),
    ],
)
def test_a_damaged_file_of_a_run(old_run, name, content, words):
    (old_run / name).write_bytes(content)
    before = files(old_run)
    with pytest.raises(ValueError, match=words) as caught:
        train_seeds(ef.boolean(), PAPER_SEEDS, out=old_run)
    assert str(old_run / name) in str(caught.value)
    assert files(old_run) == before


def test_run_json_that_is_none_by_the_command(old_run):
    (old_run / "run.json").write_text("not JSON")
    before = files(old_run)
    assert "run.json: expected the description of a run" in refused(*ARGUMENTS, old_run)
    assert files(old_run) == before


def test_tampered_weights(old_run):
    path = old_run / "7520.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    before = files(old_run)
    assert "not those whose hash its header gives" in refused(*ARGUMENTS, old_run)
    shutil.copy(old_run / "1936.safetensors", path)
    with pytest.raises(ValueError, match="about other weights"):
        train_seeds(ef.boolean(), PAPER_SEEDS, out=old_run)
    assert files(old_run) == before | {path.name: before["1936.safetensors"]}


# The paper's own command, and TensorBoard.


def paper_command(*arguments: str, cwd: Path) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, ROOT / "run_transformer_enumerated.py", *arguments],
        **{"capture_output": True, "text": True, "cwd": cwd, "timeout": 300},
    )


APPENDIX = shlex.split(
    "--model_type boolean --seeds 8739 7520 --min_train_depth 1 --max_train_depth 2 "
    "--n_epochs 1000 --learning_rate 0.01 --wdecay 0.0 --device cpu --learnable_pe "
    "--learnable_attn --learnable_mlp --optimizer adamw --train_batch_size 500 --balanced "
    "--loss bce"
)


def test_the_papers_command(paper_run, tmp_path):
    result = paper_command(*APPENDIX, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "certified 2 of 2" in result.stdout
    unused = result.stderr.splitlines()[0]
    for flag in ("--n_epochs", "--learning_rate", "--wdecay", "--optimizer", "--balanced"):
        assert flag in unused
    written = weights(tmp_path / "runs" / "boolean")
    assert len(written) == 2
    assert written.items() <= weights(paper_run).items()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"--max_train_depth": "0"}, "found 1 and 0"),
        ({"--min_train_depth": "2"}, "found 2 and 2"),
        ({"--model_type": "bolean"}, "bolean"),
        ({"--learnable_mlp": None}, "expected --learnable_mlp"),
        ({"--loss": "mse"}, "mse"),
    ],
)
def test_mistakes_in_the_papers_command(tmp_path, change, words):
    arguments = list(APPENDIX)
    for flag, value in change.items():
        place = arguments.index(flag)
        if value is None:
            del arguments[place]
        else:
            arguments[place + 1] = value
    result = paper_command(*arguments, cwd=tmp_path)
    assert result.returncode == 2
    assert words in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_without_its_package(tmp_path):
    without = "import sys; sys.modules['tensorboard'] = None"
    logs, out = tmp_path / "logs", tmp_path / "out"
    message = refused(*ARGUMENTS, out, "--tensorboard", logs, before=without)
    assert "pip install 'exactformer[tensorboard]'" in message
    assert list(tmp_path.iterdir()) == []


def test_tensorboard_writes_events(tmp_path):
    pytest.importorskip("tensorboard")
    logs, out = tmp_path / "logs", tmp_path / "out"
    result = exactformer(*ARGUMENTS, out, "--seeds", "7520", "--tensorboard", logs)
    assert result.returncode == 0, result.stderr
    assert any(os.path.getsize(path) > 100 for path in logs.glob("events*"))
