"""Training end to end: what the layer computes, what a run does, and what it never looks at."""

import json
import re
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.catalog import CATALOG
from exactformer.domains.sampling import draw, enumerate_depth, problems_of_depth
from exactformer.model.architecture import paper_architecture
from exactformer.model.circuit import iterate
from exactformer.model.encode import encode, pad_slots
from exactformer.model.quantize import ternary
from exactformer.paper.end_to_end import FRESH_SEEDS, SHIPPED, UNPULLED, end_to_end
from exactformer.paper.estimator_study import SHIPPED as STUDY
from exactformer.paper.estimator_tables import estimators
from exactformer.problems.accuracy import interval
from exactformer.training.end_to_end import PARAMETERS, EndToEndTrainer
from exactformer.training.recipe import PAPER_SEEDS, end_to_end_recipe
from exactformer.training.run import CHECKPOINT, train_seeds
from exactformer.training.soft_layer import Constants, SoftLayer, losses
from exactformer.training.state import begin, export, initial
from tests.algebras import MINUS
from tests.runs import Enough, StopAtFirstLook, exactformer, weights
from tests.test_cli_model import refused

TASKS = [ef.boolean(), ef.arithmetic(), ef.listops()]
by_task = pytest.mark.parametrize("algebra", TASKS, ids=lambda algebra: algebra.name)


@by_task
def test_the_papers_number_of_steps(algebra):
    """Its epochs, its batch of 500: one look at depth 1, then one at depth 1 and 2."""
    recipe = end_to_end_recipe(algebra)
    expected = {"boolean": (1000, 1, 1), "arithmetic": (50, 1, 177), "listops": (300, 9, 27)}
    found = recipe.epochs, recipe.depth_one_steps, recipe.joint_steps
    assert found == expected[algebra.name]


@by_task
def test_problems_of_a_depth_are_counted_without_making_them(algebra):
    assert problems_of_depth(algebra, 1) == sum(1 for _ in enumerate_depth(algebra, 1))
    if algebra.name == "boolean":
        assert problems_of_depth(algebra, 2) == sum(1 for _ in enumerate_depth(algebra, 2))


@by_task
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_forwards_it_is_the_circuit(algebra, seed):
    """Random weights and gates, two iterations: the same states as the model's own layer."""
    recipe = end_to_end_recipe(algebra)
    tensors = {name: t.unsqueeze(0) for name, t in initial(algebra, recipe, seed, 1).items()}
    tensors["gate"] = 6 * tensors["gate"]  # so that some of it is 1 or -1
    ids, inside = pad_slots(draw(algebra, 2, 8, np.random.default_rng(seed)))
    X = encode(ids, len(algebra.vocabulary))
    gate = ternary(tensors["gate"]).unsqueeze(1)
    layer = SoftLayer(tensors, gate, paper_architecture(algebra).activation, Constants(recipe))
    weights = export(algebra, tensors, 0)
    soft = X.unsqueeze(0)
    for _ in range(2):
        P, _, soft = layer(soft, inside.unsqueeze(0))
        step = iterate(X, weights, inside)
        X = step.X
        assert torch.equal(P[0], step.P.float())
        assert torch.equal(soft[0], X)


def test_every_parameter_learns_from_depth_2():
    """Once the gate finds the inner spans; before, a first iteration may leave nothing at all."""
    algebra = ef.boolean()
    recipe = end_to_end_recipe(algebra)
    trainer = EndToEndTrainer(algebra, recipe)
    tensors = begin(algebra, recipe, [200]).tensors
    tensors["gate"] = ef.construct(algebra).weights.G_PE.unsqueeze(0)
    learned = {name: tensors[name].requires_grad_() for name in PARAMETERS}
    gate = ternary(learned["gate"]).unsqueeze(1)
    layer = SoftLayer(learned, gate, trainer.architecture.activation, trainer.constants)
    loss = losses(layer, trainer.depth_two, 2)[1]
    gradients = torch.autograd.grad(loss, list(learned.values()))
    for name, gradient in zip(learned, gradients, strict=True):
        assert gradient.abs().sum() > 0, name


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compiled for a GPU")
@pytest.mark.filterwarnings("ignore")  # torch's own, of what it compiles with
@by_task
def test_the_compiled_loss_is_the_loss(algebra):
    """After 50 steps; rounding, which differs, takes runs apart in the end."""
    recipe = end_to_end_recipe(algebra)
    ends = []
    for compiled in (False, True):
        trainer = EndToEndTrainer(algebra, recipe, "cuda", compiled=compiled)
        state = begin(algebra, recipe, [200, 201])
        state.tensors = {name: tensor.cuda() for name, tensor in state.tensors.items()}
        trainer.steps(state, slice(0, 2))
        ends.append([seed.loss for seed in state.seeds])
    assert ends[0] == pytest.approx(ends[1], rel=1e-3)


@pytest.fixture(scope="module")
def short():
    """A recipe that ends soon, long before anything is learned."""
    return end_to_end_recipe(ef.boolean(), epochs=60)


def test_a_seed_has_the_same_bytes_alone_and_after_an_interruption(tmp_path, monkeypatch, short):
    together, alone, broken = (tmp_path / name for name in ("together", "alone", "broken"))
    train_seeds(ef.boolean(), [1, 2], recipe=short, out=together)
    train_seeds(ef.boolean(), [2], recipe=short, out=alone)
    assert weights(alone).items() <= weights(together).items()
    monkeypatch.setattr("exactformer.training.run.CHECKPOINT_SECONDS", 0.0)
    for _ in range(2):
        with pytest.raises(Enough):
            train_seeds(
                ef.boolean(), [1, 2], recipe=short, out=broken, observers=[StopAtFirstLook()]
            )
        assert (broken / CHECKPOINT).exists()
    train_seeds(ef.boolean(), [1, 2], recipe=short, out=broken)
    assert weights(broken) == weights(together)


def test_numbers_near_zero_are_there_again_after_training(short):
    """While it runs they count as zero; what is certified, and all that follows, has them."""
    smallest = torch.tensor(1e-45)
    train_seeds(ef.boolean(), [1], recipe=short)
    assert float(smallest * 2) > 0


def test_a_seed_that_is_not_exact_may_start_again(short):
    (result,) = train_seeds(ef.boolean(), [1], recipe=replace(short, attempts=2))
    assert not result.exact
    record = result.record
    assert (record["attempt"], record["step"], record["steps_in_all"]) == (2, 120, 240)


def test_balanced_gives_every_answer_the_same_weight():
    recipe = end_to_end_recipe(ef.boolean(), balanced=True)
    problems = EndToEndTrainer(ef.boolean(), recipe).depth_two
    values = problems.target[0].sum(1)  # one-hot, of each problem
    by_value = (values * problems.weight[0].unsqueeze(1)).sum(0)
    assert by_value[by_value > 0].tolist() == pytest.approx([145.0, 145.0])


def test_boolean_is_learned_and_certified(tmp_path):
    """Processors round differently, so that a seed may be exact on one and not on another. About
    six of seven are, on any.
    """
    result = exactformer(
        "train", "boolean", "--method", "end-to-end", "--seeds", "200-202", "--out", tmp_path
    )
    told = re.search(r"certified (\d) of 3, (\d) at the first attempt", result.stdout)
    assert told, result.stdout + result.stderr
    assert 1 <= int(told[1]) == int(told[2])
    assert result.returncode == (told[1] != "3")
    recipe = json.loads((tmp_path / "run.json").read_text())["recipe"]
    assert (recipe["epochs"], recipe["attempts"]) == (1000, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "both"], "expected the method staged, sure or end-to-end, found 'both'"),
        (
            ["--method", "end-to-end", "--estimator", "scores"],
            "search for estimator, found 'scores'",
        ),
        (["--method", "end-to-end", "--set", "gate_draws=0"], "expected gate_draws of 1 or more"),
        (["--method", "end-to-end", "--set", "epochs"], "expected NAME=VALUE, found 'epochs'"),
        (["--method", "end-to-end", "--set", "epochs=x"], "a whole number for epochs, found 'x'"),
        (["--method", "end-to-end", "--set", "epochs=0"], "expected epochs and batch of 1 or more"),
        (
            ["--method", "end-to-end", "--set", "optimizer=sgd"],
            "one of adam, adamw for optimizer",
        ),
        (["--set", "epochs=3"], "the method staged has no 'epochs'"),
    ],
)
def test_mistakes(tmp_path, arguments, message):
    said = refused("train", "boolean", "--out", tmp_path / "out", *arguments)
    assert message in said
    assert list(tmp_path.iterdir()) == []


def test_ordered_operators_are_refused():
    with pytest.raises(ValueError, match="ignore the order of their operands"):
        end_to_end_recipe(MINUS)


def test_reproduce_says_what_stops_a_seed(tmp_path):
    """The quick version is too short to learn anything: nothing is certified, and why is said."""
    result = exactformer("reproduce", "end-to-end", "--quick", "--out", tmp_path, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "end-to-end.md").read_text()
    assert "| boolean | 0 of 2 | 0.00 to 0.66 | 9 of 10 |" in text
    assert "| boolean | 8739 | inexact | depth 1 and the gate |" in text


@pytest.mark.parametrize(
    ("successes", "expected"), [(9, (0.596, 0.982)), (0, (0.0, 0.278)), (10, (0.722, 1.0))]
)
def test_wilsons_interval(successes, expected):
    """Ten trials, against published values."""
    assert interval(successes, 10) == pytest.approx(expected, abs=0.001)


def test_the_tables_of_shipped_records_count_what_the_records_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # away from runs of one's own
    text = end_to_end(tmp_path)[1].read_text()
    for path in SHIPPED.glob("*.json"):
        record = json.loads(path.read_text())
        verdicts = [seed["verdict"] for seed in record["seeds"]]
        exact = verdicts.count("exact")
        name, _, which = path.stem.rpartition("-")
        assert f"| {name.replace('-', ' ')} | {exact} of {len(verdicts)} |" in text
        seeds = [seed["seed"] for seed in record["seeds"]]
        assert seeds == list(PAPER_SEEDS if which == "paper" else FRESH_SEEDS)
        recipe = end_to_end_recipe(CATALOG[record["algebra"]]())
        recipe = replace(recipe, gate_pull=0.0) if name == UNPULLED else recipe
        known = {k: v for k, v in asdict(recipe).items() if k in record["recipe"]}
        assert json.loads(json.dumps(known)) == record["recipe"]
    text = estimators(tmp_path)[1].read_text()
    for path in STUDY.glob("*.json"):
        record = json.loads(path.read_text())
        if "judged" in record:
            exact = sum(row["exact"] for row in record["judged"])
            assert f"| {record['task']} | {record['name']} | {exact} of 100 |" in text
