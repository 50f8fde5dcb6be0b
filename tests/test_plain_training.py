"""Levels and directions learned from short texts: from random numbers to a proof."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.precedence import Level
from exactformer.model.quantize import ternary
from exactformer.training.kinds import recipe_by_method
from exactformer.training.levels import LONGEST_TEXT, learn_levels, level_problem
from exactformer.training.recipe import recipe_for
from exactformer.training.run import train_seeds
from exactformer.training.state import Seed, Trained
from exactformer.weights.file import WeightFile
from tests.plain_algebras import IMPLICATION, MODULO7


def test_from_random_numbers_to_a_proof(tmp_path):
    command = [sys.executable, "-m", "exactformer", "train", "boolean-plain", "--seeds", "300"]
    done = subprocess.run([*command, "--out", tmp_path], capture_output=True, text=True, check=True)
    assert "certified 1 of 1" in done.stdout
    file = WeightFile.read(tmp_path / "300.safetensors")
    assert file.algebra == ef.boolean_plain()
    levels = ternary(torch.from_numpy(file.arrays["G_L_logits"]))
    used = ef.boolean_plain().declared_levels > 0
    assert (file.arrays["G_L"] == np.where(used, levels[..., 0] + 2, 0)).all()
    directions = ternary(torch.from_numpy(file.arrays["directions_logits"]))
    assert (file.arrays["directions"] == directions.numpy()).all()
    assert json.loads((tmp_path / "300.json").read_text())["level_steps"] > 0
    before = (tmp_path / "300.safetensors").stat().st_mtime_ns
    (result,) = train_seeds(ef.boolean_plain(), [300], out=tmp_path)  # which it goes on with
    assert result.model.certify().verdict == "exact"
    assert (tmp_path / "300.safetensors").stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "algebra", [ef.boolean_plain(), MODULO7, IMPLICATION], ids=lambda a: a.name
)
def test_the_declared_gate_makes_no_error_and_others_do(algebra):
    weights, rng = ef.construct(algebra).weights, np.random.default_rng(0)
    problem = level_problem(algebra, weights, 200, rng)
    assert len(problem.texts) <= 200
    assert max(map(len, problem.texts)) <= LONGEST_TEXT
    used = algebra.declared_levels > 0
    prefix_level = algebra.declared_levels.max()
    # Prefix operators, the tightest in all three, go on a level of the tightest binary ones.
    levels = np.minimum(algebra.declared_levels, prefix_level - 1)[used]
    levels += 3 - (prefix_level - 1)  # the tightest of three
    directions = np.zeros(3)
    for level in range(1, prefix_level):
        directions[level + 3 - prefix_level] = algebra.declared_directions[level]
    gate = torch.from_numpy(np.concatenate([levels - 2, directions])).float()
    assert ef.Model(algebra, problem.gated(gate)).certify().verdict == "exact"
    worst = gate.clone()
    worst[: problem.shape[0]] *= -1
    nothing = torch.zeros_like(gate)
    right, wrong, one = problem.errors(torch.stack([gate, worst, nothing])).tolist()
    assert right == 0 < wrong
    assert one == 1
    assert ef.Model(algebra, problem.gated(worst)).certify().verdict == "inexact"


def test_many_operators_have_levels_of_several_digits():
    bits = ("0", "1")
    symbols = "+*^%"
    operators = [Operator.from_rule(s, [2], lambda a, b: a, bits, ordered=True) for s in symbols]
    algebra = Algebra(
        "many", bits, operators, "plain", precedence=[Level("left", (s,)) for s in symbols]
    )
    weights = ef.construct(algebra).weights
    problem = level_problem(algebra, weights, 10, np.random.default_rng(0))
    assert problem.shape == (8, 9)
    gate = torch.tensor([-1, -1, 0, -1, 1, 1, 0, 0, *[0] * 8, 1.0])
    gated = problem.gated(gate)
    assert gated.G_L is not None
    assert gated.directions is not None
    assert gated.G_L[1, algebra.first_operator :].tolist() == [1, 2, 9, 5]
    assert gated.directions.tolist() == [0] * 9 + [1]


def test_a_prefix_operator_looser_than_three_binary_levels_is_learned():
    """One digit has three levels, and this takes four. Texts that stay wrong tell, nothing else."""
    values = ("0", "1", "2")

    def binary(symbol: str, rule: Callable[[int, int], int]) -> Operator:
        return Operator.from_rule(
            symbol, [2], lambda a, b: str(rule(int(a), int(b)) % 3), values, ordered=True
        )

    operators = [binary("+", int.__add__), binary("*", int.__mul__), binary("^", int.__pow__)]
    operators.append(Operator.from_rule("!", [1], lambda a: str((int(a) ** 2 + 1) % 3), values))
    declared = [("prefix", "!"), ("left", "+"), ("left", "*"), ("right", "^")]
    levels = [Level(direction, (symbol,)) for direction, symbol in declared]
    algebra = Algebra("loose", values, operators, "plain", precedence=levels)
    model, recipe = ef.construct(algebra), recipe_for(algebra)
    spans = Trained(Seed(1), model.weights, model.certify(), 0.0, 0.0, {})
    learned = learn_levels(algebra, spans, recipe)
    assert learned.exact
    assert learned.logits["G_L"].shape[-1] == 2
    assert recipe.level_steps < learned.counts["level_steps"] <= 2 * recipe.level_steps


def test_spans_that_were_not_learned_get_no_levels():
    recipe = replace(recipe_for(ef.arithmetic_plain()), steps=1, attempts=1, look_every=1)
    (result,) = train_seeds(ef.arithmetic_plain(), [300], recipe=recipe)
    assert not result.exact
    assert result.record["level_steps"] == 0


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("end-to-end", {}, "training end to end: not for 'boolean-plain'"),
        ("staged", {"estimator": "gumbel"}, "search or score, which can learn the gate of levels"),
        ("staged", {"level_texts": 0}, "expected level_texts of 1 or more, found 0"),
    ],
)
def test_what_cannot_be_trained(method, settings, message):
    algebra = ef.boolean_plain()
    with pytest.raises(ValueError, match=message):
        train_seeds(algebra, [1], recipe=recipe_by_method(method, algebra, settings))
