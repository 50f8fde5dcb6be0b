"""Mistakes in training: exit status 2, the reason, and nothing lost."""

import resource
import shutil
from dataclasses import replace

import pytest
import torch

import exactformer as ef
from exactformer.training.recipe import PAPER_SEEDS, recipe_for
from exactformer.training.run import CHECKPOINT, train_seeds
from tests.algebras import MINUS
from tests.runs import ARGUMENTS, CHECKPOINT_OFTEN, files, forget, seed_list, weights
from tests.runs import refused as refused_in_a_process
from tests.test_cli_model import refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("train bolean --out OUT", "expected one of boolean, arithmetic, listops, boolean-plain,"),
        ("train boolean", "--out"),
        ("train boolean --out OUT --attempts 0", "--attempts"),
        (
            "train boolean --out OUT --seeds abc",
            "expected numbers separated by commas, or ranges such as 0-99, found 'abc'",
        ),
        (
            "train boolean --out OUT --seeds 1,1",
            "expected different seeds of 0 or more, found [1, 1]",
        ),
        (
            "train boolean --out OUT --estimator grad",
            "expected one of search, score",
        ),
        ("train boolean --out OUT --device abacus", "cpu or cuda, found 'abacus'"),
        (
            "train boolean-polish --out OUT",
            "in stages: not for 'boolean-polish' in Polish notation",
        ),
        ("sweep boolean-polish --seeds 1 --out OUT", "in stages: not for 'boolean-polish'"),
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


@pytest.mark.parametrize("recipe", [None, recipe_for(ef.boolean())])
def test_polish_notation_from_python(recipe):
    with pytest.raises(ValueError, match="training in stages: not for 'boolean-polish'"):
        ef.train(ef.boolean_polish(), seeds=[1], recipe=recipe)


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1]])
def test_bad_seeds_from_python(seeds):
    with pytest.raises(ValueError, match="seed"):
        ef.train(ef.boolean(), seeds=seeds)


@pytest.mark.parametrize("name", ["steps", "attempts", "look_every", "strings"])
def test_bad_recipe_from_python(name):
    recipe = replace(recipe_for(ef.boolean()), **{name: 0})
    with pytest.raises(ValueError, match=f"expected {name} of 1 or more, found 0"):
        ef.train(ef.boolean(), recipe=recipe)


@pytest.mark.parametrize("estimator", ["straight-through", "gumbel"])
def test_the_rank_gate_has_two_estimators_only(tmp_path, estimator):
    recipe = replace(recipe_for(MINUS), estimator=estimator)
    with pytest.raises(ValueError, match=r"expected the estimator search or score.* of 'minus'"):
        ef.train(MINUS, recipe=recipe, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_more_cases_than_can_be_listed_are_refused(tmp_path):
    with pytest.raises(ValueError, match="'MAX' of 'listops-any' takes 2 or more operands"):
        ef.train(ef.listops(None), out=tmp_path / "out")
    with pytest.raises(ValueError, match=r"100000 at most, found 738980; construct it"):
        ef.train(ef.listops(10), out=tmp_path / "out")
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

    message = refused_in_a_process(
        *ARGUMENTS, old_run, preexec_fn=no_large_files, before=CHECKPOINT_OFTEN
    )
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
    if damage == "truncated":  # one through the command
        message = refused(*ARGUMENTS, interrupted, "--seeds", seed_list(PAPER_SEEDS[:2]))
    else:
        with pytest.raises(ValueError, match="checkpoint") as caught:
            train_seeds(ef.boolean(), PAPER_SEEDS[:2], out=interrupted)
        message = str(caught.value)
    assert f"{path}: " in message
    assert "training cannot go on from this checkpoint: remove it" in message
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
        ("7520.json", b"7520", "expected an object, found 7520; remove it to train the seed"),
        ("7520.json", b"", "remove it to train the seed again"),
        ("7520.json", b"{}", "there is no 'sha256'; remove it"),
        ("7520.proof.json", b"{}", "expected a verdict, found none; remove it to have it made"),
        ("7520.proof.json", b"[", "remove it to have it made again"),
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


def test_an_unknown_estimator_from_python():
    recipe = replace(recipe_for(ef.boolean()), estimator="guess")  # pyright: ignore
    with pytest.raises(ValueError, match="expected one of search, score"):
        train_seeds(ef.boolean(), [1], recipe=recipe)
