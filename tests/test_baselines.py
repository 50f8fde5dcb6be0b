"""The baselines: their formulas, their protocol, and that they know nothing of the model."""

import ast
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

import exactformer.baselines
from exactformer.baselines import crvnn, looped
from exactformer.baselines.crvnn import CRvNN, Neighbours
from exactformer.baselines.looped import Looped, over_batch
from exactformer.baselines.positions import ENCODINGS, FIRE, Learned, RoPE
from exactformer.baselines.recipe import RECIPES, BaselineRecipe, network_for
from exactformer.domains.catalog import CATALOG, boolean, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.paper import baseline_records, published
from exactformer.paper.baseline_records import load_baseline, train_baseline
from exactformer.paper.comparison import asked_problems
from exactformer.protocol.data import (
    Batches,
    Problems,
    balanced_order,
    draw_depth_two,
    every,
    padded,
)
from exactformer.protocol.loop import Trainer, train_network
from exactformer.protocol.predictor import Predictor
from exactformer.protocol.state import Inputs, NetworkState

CPU = torch.device("cpu")
SHORT = BaselineRecipe("boolean", "fire", epochs=4, batch=100)


def stacked(network, seeds):
    return NetworkState.start(network, seeds, CPU).parameters


def size(network) -> int:
    return sum(tensor.numel() for tensor in network.initial(torch.Generator()).values())


# --- positions


def test_learned_positions_are_rows_of_a_table():
    encoding = Learned(limit=6)
    table = encoding.initial(4, 2, torch.Generator().manual_seed(0))["positions/table"]
    p = {"positions/table": table[None]}
    assert torch.equal(encoding.embedding(p, 5)[0, 0], table[:5])
    assert torch.equal(encoding.embedding(p, 8)[0, 0, 6:], table[[5, 5]])


def test_rope_against_complex_numbers():
    x = torch.randn(2, 3, 2, 7, 8)
    pairs = torch.complex(x[..., :4], x[..., 4:])
    for i in range(7):
        for k in range(4):
            pairs[..., i, k] *= complex(
                math.cos(i * 1e4 ** (-k / 4)), math.sin(i * 1e4 ** (-k / 4))
            )
    torch.testing.assert_close(RoPE().rotated(x), torch.cat([pairs.real, pairs.imag], dim=-1))


def test_rope_products_depend_on_the_distance_only():
    q, k = torch.randn(8), torch.randn(8)
    turned_q, turned_k = (RoPE().rotated(v.expand(1, 1, 1, 12, 8))[0, 0, 0] for v in (q, k))
    products = turned_q @ turned_k.T
    for distance in range(-5, 6):
        along = products.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("L", [512.0, 3.0])
def test_fire_against_its_formula(L):
    encoding = FIRE(L=L, hidden=5)
    networks = [encoding.initial(8, 2, torch.Generator().manual_seed(s)) for s in (1, 2)]
    networks[1]["positions/c"] = torch.tensor(-0.4)  # used by its absolute value
    p = {name: torch.stack([one[name] for one in networks]) for name in networks[0]}
    bias = encoding.bias(p, 6)
    assert bias.shape == (2, 1, 2, 6, 6)
    for s, one in enumerate(networks):
        c = abs(one["positions/c"].item())
        for i in range(6):
            for j in range(6):
                ratio = math.log(c * abs(i - j) + 1) / math.log(c * max(L, i) + 1)
                hidden = torch.relu(ratio * one["positions/W_1"] + one["positions/b_1"])
                expected = hidden @ one["positions/W_2"] + one["positions/b_2"]
                torch.testing.assert_close(bias[s, 0, :, i, j], expected)


# --- networks


def test_parameter_counts():
    assert size(CRvNN()) == published.CRVNN_PARAMETERS == 521_611
    # 4 square maps, the two of the MLP, 3 norms, embedding and read-out, all with biases
    looped = 4 * (128 * 128 + 128) + 128 * 512 + 512 + 512 * 128 + 128 + 6 * 128
    assert size(Looped(16, 10)) == looped + 16 * 128 + 128 * 10 + 10
    assert size(Looped(16, 10, FIRE())) - size(Looped(16, 10)) == 2 + 64 + 32 * 4 + 4
    assert size(Looped(16, 10, Learned(50))) - size(Looped(16, 10)) == 50 * 128


NETWORKS = {
    name: Looped(16, 10, encoding(), width=16, heads=2, hidden=32)
    for name, encoding in ENCODINGS.items()
} | {"crvnn": CRvNN(width=8, feature=4, hidden=16)}


@pytest.mark.parametrize("network", list(NETWORKS.values()), ids=list(NETWORKS))
def test_the_seed_axis_is_each_seed_alone_and_padding_is_nothing(network):
    expressions = draw(listops(), 3, 6, np.random.default_rng(0))
    expressions += draw(listops(), 1, 3, np.random.default_rng(1))
    tokens = torch.from_numpy(padded(expressions))
    depths = torch.tensor([e.depth for e in expressions])
    seeds = [3, 1, 4]
    together = Inputs(tokens.expand(3, -1, -1), depths.expand(3, -1), 3)
    logits, penalty = network.forward(stacked(network, seeds), together)
    assert logits.shape == (3, 9, 10)
    for row, seed in enumerate(seeds):
        for b, expression in enumerate(expressions):
            tokens = torch.from_numpy(padded([expression]))[None]
            alone = Inputs(tokens, depths[None, b : b + 1], int(depths[b]))
            one, pen = network.forward(stacked(network, [seed]), alone)
            torch.testing.assert_close(one[0, 0], logits[row, b], atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(pen[0, 0], penalty[row, b], atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("positions", [Learned(limit=20), RoPE(), FIRE(L=30.0)])
def test_a_problem_alone_goes_in_blocks_with_the_same_logits(positions, kept, monkeypatch):
    monkeypatch.setattr(looped, "KEPT", kept)
    monkeypatch.setattr("exactformer.baselines.positions.CACHED", 50)
    network = Looped(16, 10, positions, width=16, heads=2, hidden=32)
    expression = max(draw(listops(), 5, 10, np.random.default_rng(0)), key=len)
    assert len(expression) > 100
    row = 3 * 2 * len(expression)  # seeds and heads
    monkeypatch.setattr(looped, "BLOCK", 33 * row)  # the last block has fewer queries
    p = stacked(network, [3, 1, 4])
    if "positions/W_1" in p:
        p["positions/W_1"][0, 0] = 0.0
    tokens = torch.from_numpy(padded([expression])).expand(3, 2, -1)
    depths = torch.full((3, 2), 5)
    both, _ = network.forward(p, Inputs(tokens, depths, 5))
    alone, _ = network.forward(p, Inputs(tokens[:, :1], depths[:, :1], 5))
    torch.testing.assert_close(alone, both[:, :1], atol=1e-5, rtol=1e-5)


def test_the_input_comes_in_again_at_every_step():
    network = Looped(16, 10, width=16, heads=2, hidden=32)
    p = stacked(network, [0])
    expression = parse(listops(), "( MAX 1 2 )")
    tokens = torch.from_numpy(padded([expression]))[None]
    E = p["embedding"][:, expression.ids.tolist()][None]
    attend = partial(over_batch, torch.zeros(1, 1, 1, 1, 1))
    h = torch.zeros_like(E)
    for _ in range(3):
        h = network.block(p, h + E, attend)
    last = torch.nn.functional.layer_norm(h[0, 0, -1], (16,))  # the norm's start changes nothing
    expected = last @ p["read_out/weight"][0]
    found, _ = network.forward(p, Inputs(tokens, torch.tensor([[3]]), 3))
    torch.testing.assert_close(found[0, 0], expected, atol=1e-5, rtol=1e-4)


def neighbours(exist: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """[i, j]: how far j is the left, or the right, neighbour of i."""
    near, every_token = Neighbours(exist[None, None]), torch.eye(len(exist))[None, None]
    return near.left(every_token)[0, 0], near.right(every_token)[0, 0]


def test_neighbours_of_tokens_that_surely_exist_or_not():
    left, right = neighbours(torch.tensor([1.0, 0.0, 1.0, 0.0, 1.0]))
    assert right[0].tolist() == pytest.approx([0, 0, 1, 0, 0], abs=1e-6)
    assert left[4].tolist() == pytest.approx([0, 0, 1, 0, 0], abs=1e-6)
    assert left[3].tolist() == pytest.approx([0, 0, 1, 0, 0], abs=1e-6)


@pytest.mark.parametrize("dense", [256, 2])
def test_neighbours_against_the_definition(monkeypatch: pytest.MonkeyPatch, dense: int):
    monkeypatch.setattr(crvnn, "DENSE", dense)
    monkeypatch.setattr(crvnn, "CHUNK", 3)  # past DENSE: three chunks, the last with two tokens
    exist = torch.rand(8, generator=torch.Generator().manual_seed(0))
    left, right = neighbours(exist)
    for i in range(8):
        for j in range(8):
            between = exist[min(i, j) + 1 : max(i, j)]
            expected = float(exist[j] * (1 - between).prod())
            assert right[i, j].item() == pytest.approx(expected if j > i else 0, abs=1e-6)
            assert left[i, j].item() == pytest.approx(expected if j < i else 0, abs=1e-6)


def test_crvnn_answers_in_chunks_as_it_does_at_once(monkeypatch: pytest.MonkeyPatch):
    predictor = load_baseline("listops-crvnn")
    expressions, _ = asked_problems("listops", "natural", 5, 8)
    tokens = torch.from_numpy(padded(expressions))[None]
    inputs = Inputs(tokens, torch.full((1, 8), 5), 5)
    at_once, _ = predictor.network.forward(predictor.parameters, inputs)
    monkeypatch.setattr(crvnn, "DENSE", 0)
    monkeypatch.setattr(crvnn, "CHUNK", 16)
    in_chunks, _ = predictor.network.forward(predictor.parameters, inputs)
    torch.testing.assert_close(in_chunks, at_once, atol=1e-3, rtol=1e-4)


def test_crvnn_learns_with_finite_gradients():
    network = CRvNN(width=8, feature=4, hidden=16)
    p = {k: v.requires_grad_() for k, v in stacked(network, [0]).items()}
    problems = draw_depth_two(listops(), 10, np.random.default_rng(0))
    tokens = torch.from_numpy(problems.tokens)[None]
    inputs = Inputs(tokens, torch.full((1, 10), 2), 2)
    logits, penalty = network.forward(p, inputs, training=True)
    gradients = torch.autograd.grad(logits.square().sum() + penalty.sum(), list(p.values()))
    for name, gradient in zip(p, gradients, strict=True):
        assert gradient.isfinite().all(), name
        assert gradient.any(), name


# --- data


def test_training_sets_of_the_paper():
    sizes = {name: len(every(CATALOG[name](), 1)) for name in CATALOG}
    assert sizes == {"boolean": 10, "arithmetic": 200, "listops": 4400}
    assert len(every(boolean(), 2)) == 290


def test_drawn_problems_are_valid_right_balanced_and_as_long_as_those_of_draw():
    algebra = listops()
    problems = draw_depth_two(algebra, 1000, np.random.default_rng(0))
    assert np.bincount(problems.values).tolist() == [100] * 10
    for tokens, value in zip(problems.tokens, problems.values, strict=True):
        text = " ".join(algebra.vocabulary[i] for i in tokens[tokens >= 0])
        expression = parse(algebra, text)
        assert expression.depth == 2
        assert evaluate(expression) == algebra.values[value]
        assert (tokens[len(expression) :] == -1).all()
    other = np.mean([len(e) for e in draw(algebra, 2, 3000, np.random.default_rng(1))])
    assert (problems.tokens >= 0).sum(1).mean() == pytest.approx(other, rel=0.05)


def test_balanced_order():
    values = np.array([0] * 9 + [1] * 3)
    problems = Problems(np.zeros((12, 1), dtype=np.int16), values, np.ones(12, dtype=np.int64))
    order = balanced_order(problems, np.random.default_rng(0))
    assert np.bincount(values[order]).tolist() == [6, 6]
    assert len(set(order[values[order] == 0])) == 6  # none twice
    assert set(order[values[order] == 1]) == {9, 10, 11}


# --- protocol


def test_recipes_follow_the_paper():
    assert len(RECIPES) == 2 * 10  # each at two rates
    for name, recipe in RECIPES.items():
        assert recipe.sampled == (8800 if "listops" in name else 0)
        if recipe.network != "crvnn":
            epochs = {"arithmetic": 50, "boolean": 1000, "listops": 300}[recipe.task]
            assert (recipe.epochs, recipe.batch, recipe.clip) == (epochs, 500, 1.0)
        assert recipe.learning_rate == (0.01 if name.endswith("-0.01") else 0.001)
    assert size(network_for(RECIPES["listops-crvnn"])) == 521_611


def test_learning_rate():
    network = Looped(7, 2, width=16, heads=2, hidden=32)
    data = Batches([every(boolean(), 1)], SHORT, CPU)
    trainer = Trainer(network, SHORT, NetworkState.start(network, [0], CPU), 100, data)
    fractions = dict(enumerate(trainer.factors[:, 0].tolist(), start=1))
    known = {5: 0.65, 10: 1.0, 55: 0.525, 100: 0.05}
    assert {step: fractions[step] for step in known} == pytest.approx(known)
    assert set(trainer.rates.values()) == {SHORT.learning_rate}


def test_a_small_looped_transformer_learns_boolean_depth_one():
    network = Looped(7, 2, FIRE(), width=16, heads=2, hidden=32)
    state = NetworkState.start(network, [0, 1], CPU)
    data = Batches([every(boolean(), 1)] * 2, SHORT, CPU)
    data.arrange([np.arange(10)] * 2)
    trainer = Trainer(network, replace(SHORT, learning_rate=0.01), state, 150, data)
    for _ in range(150):
        trainer.run(1)
    assert data.accuracy(network, state.parameters, slice(None)).tolist() == [1, 1]


def small(recipe):
    """A small network, for speed."""
    return Looped(7, 2, ENCODINGS[recipe.network](), width=16, heads=2, hidden=32)


def train(recipe, seeds, folder, report=lambda line: None):
    return train_network(small(recipe), boolean(), recipe, seeds, folder, CPU, report)


def test_a_killed_run_goes_on_as_if_nothing_had_happened(tmp_path):
    whole = train(SHORT, [3, 1], tmp_path / "whole")
    lines = []

    def kill(line):
        lines.append(line)
        if len(lines) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SHORT, [3, 1], tmp_path / "killed", kill)
    resumed = train(SHORT, [3, 1], tmp_path / "killed", lines.append)
    assert len(lines) == SHORT.epochs  # no epoch twice
    assert resumed.curve == whole.curve
    for name in whole.best:
        assert torch.equal(resumed.best[name], whole.best[name])
    again = train(SHORT, [3, 1], tmp_path / "killed", lines.append)
    assert len(lines) == SHORT.epochs
    assert torch.equal(again.best_accuracy, whole.best_accuracy)


def test_seeds_train_alone_as_together(tmp_path):
    together = train(SHORT, [3, 1], tmp_path / "both")
    alone = train(SHORT, [1], tmp_path / "one")
    for name in alone.parameters:
        torch.testing.assert_close(
            alone.parameters[name][0], together.parameters[name][1], atol=1e-4, rtol=1e-3
        )


def test_another_recipe_does_not_go_on_with_the_run(tmp_path):
    train(replace(SHORT, epochs=1), [3], tmp_path)
    with pytest.raises(ValueError, match="expected a run with recipe"):
        train(SHORT, [3], tmp_path)


def test_a_record_is_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(baseline_records, "network_for", small)
    recipe = replace(SHORT, epochs=1)
    record = train_baseline(recipe, tmp_path, [3, 1], CPU, problems=5)
    assert [seed["seed"] for seed in record["seeds"]] == [3, 1]
    for epoch in ("best", "last"):
        for drawing in ("natural", "balanced"):
            assert record["seeds"][0][epoch][drawing]["10"][1] == 5
    kept = load_baseline("boolean-fire", tmp_path)
    problems, values = asked_problems("boolean", "natural", 3, 5)
    right = sum(a == b for a, b in zip(kept.predict(problems), values, strict=True))
    seed = next(seed for seed in record["seeds"] if seed["seed"] == record["kept"])
    assert right == seed["best"]["natural"]["3"][0]
    (tmp_path / "boolean-fire" / "state.safetensors").unlink()  # not needed any more
    assert train_baseline(recipe, tmp_path, [3, 1], CPU, problems=5) == record


def test_predictor_answers_in_order():
    network = network_for(RECIPES["boolean-rope"])
    second = {n: both[1:] for n, both in NetworkState.start(network, [3, 1], CPU).best.items()}
    predictor = Predictor(network, boolean(), second)
    expressions = draw(boolean(), 3, 8, np.random.default_rng(0))
    expressions += draw(boolean(), 1, 4, np.random.default_rng(0))
    one_by_one = [predictor.predict([expression])[0] for expression in expressions]
    assert predictor.predict(expressions) == one_by_one
    assert replace(predictor, memory=1).predict(expressions) == one_by_one


# --- imports


def test_baselines_never_import_the_model():
    forbidden = {"exactformer.model", "exactformer.training", "exactformer.api"}
    for path in Path(exactformer.baselines.__path__[0]).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not any(name.startswith(tuple(forbidden)) for name in names), path
