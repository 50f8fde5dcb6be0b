"""Anybody's module under the paper's protocol, and tables of accuracy by depth."""

import json
from dataclasses import asdict
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import exactformer as ef
from exactformer.baselines.looped import Looped
from exactformer.baselines.positions import FIRE
from exactformer.baselines.recipe import BaselineRecipe
from exactformer.domains.catalog import CATALOG, boolean, listops
from exactformer.domains.sampling import enumerate_depth, problems_of_depth
from exactformer.paper import baseline_records
from exactformer.problems.accuracy import interval, interval_of_counts, interval_over_seeds
from exactformer.problems.draw import problems
from exactformer.protocol import Recipe, Trained, default_recipe, train
from exactformer.protocol.data import draw_depth_two, padded
from exactformer.protocol.modules import ModuleNetwork
from exactformer.protocol.state import Inputs, NetworkState
from tests.algebras import ALGEBRAS, MODULO_7
from tests.own_modules import Encoder, Recurrent

SHORT = Recipe(epochs=3, batch=100)


def lstm() -> nn.Module:
    return Recurrent(boolean())


def gru() -> nn.Module:
    return Recurrent(boolean(), nn.GRU)


def encoder() -> nn.Module:
    return Encoder(boolean())


@pytest.mark.parametrize("make", [lstm, gru, encoder])
def test_it_learns_boolean_by_the_public_door(make):
    recipe = Recipe(epochs=20, learning_rate=0.02)
    results = train(make, boolean(), seeds=[3], recipe=recipe)
    for result in results:
        assert min(result.accuracy) > 0.75  # the commonest value has half of either depth
        assert len(result.curve) == 20
        assert result.curve[-1]["loss"] < 0.7 * result.curve[0]["loss"]
        best = result.curve[result.best_epoch - 1]
        assert (best["depth 1"], best["depth 2"]) == pytest.approx(result.accuracy, abs=1e-4)
        assert sum(result.accuracy) >= max(p["depth 1"] + p["depth 2"] for p in result.curve) - 1e-3


def test_a_module_is_batched_where_torch_can_and_gives_the_same_then():
    problems = torch.randint(-1, 7, (2, 5, 9), generator=torch.Generator().manual_seed(0))
    problems[..., 0] = 0
    inputs = Inputs(problems, torch.ones(2, 5, dtype=torch.int64), 2)
    network = ModuleNetwork(encoder, boolean())
    assert (network.batched, ModuleNetwork(lstm, boolean()).batched) == (True, False)
    each = [network.initial(torch.Generator().manual_seed(seed)) for seed in (1, 2)]
    p = {name: torch.stack([one[name] for one in each]) for name in each[0]}
    together, _ = network.forward(p, inputs, training=True)
    network.batched = False
    apart, _ = network.forward(p, inputs, training=True)
    torch.testing.assert_close(together, apart, atol=1e-5, rtol=1e-4)
    assert not torch.equal(together[0], together[1])


def test_the_seed_decides_and_torchs_own_generator_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first, again, other = (train(lstm, boolean(), [s], recipe=SHORT)[0] for s in (7, 7, 8))
    assert torch.equal(torch.rand(3), expected)
    assert first.curve == again.curve != other.curve
    assert torch.equal(first.last.parameters["out.weight"], again.last.parameters["out.weight"])


def test_a_run_that_was_killed_goes_on_as_if_nothing_had_happened(tmp_path):
    (whole,) = train(lstm, boolean(), [3], recipe=SHORT)
    lines: list[str] = []

    def kill(line: str) -> None:
        lines.append(line)
        if len(lines) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(lstm, boolean(), [3], recipe=SHORT, out=tmp_path, report=kill)
    (resumed,) = train(lstm, boolean(), [3], recipe=SHORT, out=tmp_path, report=lines.append)
    assert len(lines) == SHORT.epochs  # none twice
    assert resumed.curve == whole.curve
    for name, tensor in whole.last.parameters.items():
        assert torch.equal(resumed.last.parameters[name], tensor)
    with pytest.raises(ValueError, match="expected a run with seeds"):
        train(lstm, boolean(), [4], recipe=SHORT, out=tmp_path)
    with pytest.raises(ValueError, match="expected a run with algebra"):
        train(lstm, ef.load_algebra("examples/nand.toml"), [3], recipe=SHORT, out=tmp_path)
    with pytest.raises(ValueError, match=r"tensor .* is"):
        train(encoder, boolean(), [3], recipe=SHORT, out=tmp_path)


def test_the_module_comes_back_with_its_best_parameters():
    (result,) = train(encoder, boolean(), [3], recipe=SHORT)
    module = result.module()
    expressions = ef.draw(boolean(), 3, 20, np.random.default_rng(0))
    ids = torch.from_numpy(padded(expressions)).long()
    with torch.no_grad():
        found = module(ids.clamp(min=0), ids >= 0).argmax(-1).tolist()
    assert [boolean().values[i] for i in found] == result.predict(expressions)
    assert result.fitted == (min(result.accuracy) >= 0.95)


def test_the_baselines_use_the_same_door(tmp_path, monkeypatch):
    small = Looped(7, 2, FIRE(), width=16, heads=2, hidden=32)
    monkeypatch.setattr(baseline_records, "network_for", lambda recipe: small)
    recipe = BaselineRecipe("boolean", "fire", epochs=2)
    baseline_records.train_baseline(recipe, tmp_path, [3, 1], torch.device("cpu"), problems=1)
    start = NetworkState.start(small, [3, 1], torch.device("cpu"))
    header = {"recipe": asdict(recipe), "seeds": [3, 1]}
    theirs = NetworkState.read(tmp_path / "boolean-fire" / "state.safetensors", header, start)
    ours = train(small, boolean(), [3, 1], recipe=Recipe(epochs=2))
    for row, result in enumerate(ours):
        for name, tensor in result.last.parameters.items():
            assert torch.equal(tensor[0], theirs.parameters[name][row])
    with pytest.raises(ValueError, match="not made of a module"):
        ours[0].module()


class WithStatistics(Recurrent):
    def __init__(self) -> None:
        super().__init__(boolean())
        self.norm = nn.BatchNorm1d(2)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return self.norm(super().forward(tokens, mask))


class WithoutParameters(nn.Module):
    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.zeros(len(tokens), 2)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (Recurrent(boolean()), TypeError, "expected a function that makes a module"),
        (lambda: 3, TypeError, "makes a torch.nn.Module, found 3"),
        (lambda: Recurrent(listops()), ValueError, r"logits \(b, 2\), so \(2, 2\) for 2 problems"),
        (WithStatistics, ValueError, "buffer 'norm.running_mean' changes as it runs"),
        (WithoutParameters, ValueError, "parameters to train, found none"),
    ],
)
def test_a_module_that_does_not_fit_is_refused(make, kind, said):
    with pytest.raises(kind, match=said):
        train(make, boolean(), recipe=SHORT)


@pytest.mark.parametrize("seeds", [[], [1, 1], [-1], ["1"], [1.0]])
def test_seeds_are_different_whole_numbers(seeds):
    with pytest.raises(ValueError, match="seeds: expected"):
        train(lstm, boolean(), seeds, recipe=SHORT)


def test_the_papers_constants_for_its_tasks():
    constants = {name: asdict(default_recipe(CATALOG[name]())) for name in CATALOG}
    assert {name: c["epochs"] for name, c in constants.items()} == {
        "boolean": 1000,
        "arithmetic": 50,
        "listops": 300,
    }
    assert {name: c["sampled"] for name, c in constants.items()} == {
        "boolean": 0,
        "arithmetic": 0,
        "listops": 8800,
    }
    for algebra in ALGEBRAS:
        if problems_of_depth(algebra, 2) < 3000:
            assert problems_of_depth(algebra, 2) == sum(1 for _ in enumerate_depth(algebra, 2))
    with pytest.raises(ValueError, match="listops-any"):
        default_recipe(listops(None))


def test_any_algebra_can_have_drawn_problems():
    drawn = draw_depth_two(MODULO_7, 70, np.random.default_rng(0))
    assert np.bincount(drawn.values).tolist() == [10] * 7
    recipe = Recipe(epochs=2, sampled=70, measured=50)
    (result,) = train(lambda: Recurrent(MODULO_7), MODULO_7, [0], recipe=recipe)
    assert isinstance(result, Trained)


# --- tables


class Constant:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def predict(self, expressions) -> list[Any]:
        return [self.answer for _ in expressions]


def test_a_table_counts_what_is_right():
    exact = ef.load("boolean/7520")
    models = {"exact": exact, "ones": [Constant("1"), Constant("0")], "silent": Constant(None)}
    table = ef.depth_table(models, boolean(), [1, 4], 30, seed=3)
    for depth in (1, 4):
        values = [row.value for row in problems(boolean(), [depth], 30, seed=3)]
        cells = {name: row[depth] for name, row in table.rows.items()}
        assert (cells["exact"].correct, cells["exact"].total) == (30, 30)
        assert (cells["ones"].correct, cells["ones"].total) == (30, 60)
        assert cells["silent"].correct == 0
        assert cells["commonest value"].correct == max(values.count("0"), values.count("1"))
        assert cells["exact"].interval == interval(30, 30)
    assert table == ef.depth_table(models, boolean(), [1, 4], 30, seed=3)
    other = ef.depth_table(models, boolean(), [1, 4], 30, seed=4)
    assert other.rows["commonest value"] != table.rows["commonest value"]
    assert "| exact | 30 of 30 (0.89 to 1.00) | 30 of 30" in str(table)
    assert json.loads(json.dumps(table.to_dict()))["rows"]["exact"]["4"]["correct"] == 30


def width(cell) -> float:
    return cell.interval[1] - cell.interval[0]


@pytest.mark.parametrize("times", [2, 3, 10])
def test_the_same_predictor_several_times_does_not_narrow_the_interval(times):
    for one in (Constant("1"), ef.load("boolean/7520"), Constant(None)):
        models = {"once": one, "again": [one] * times}
        rows = ef.depth_table(models, boolean(), [1, 3], 60).rows
        for depth in (1, 3):
            once, again = rows["once"][depth], rows["again"][depth]
            assert again.interval[0] <= once.interval[0]
            assert again.interval[1] >= once.interval[1]
            assert width(again) < width(once) + 0.03  # and it tells no less either
            assert again.seeds == once.seeds * times


def test_seeds_that_differ_widen_the_interval_and_each_is_shown():
    seeds = [ef.load("boolean/7520"), Constant("1"), Constant(None)]
    table = ef.depth_table({"mixed": seeds, "one": seeds[1]}, boolean(), [3], 200)
    mixed, one = table.rows["mixed"][3], table.rows["one"][3]
    assert width(mixed) > 3 * width(one)
    assert mixed.seeds == (200, one.seeds[0], 0)
    assert f"| mixed | 200, {one.seeds[0]}, 0 of 200 (" in str(table)
    assert "bootstrap over seeds and problems" in str(table)
    as_data = table.to_dict()["rows"]
    assert as_data["mixed"]["3"]["seeds"] == list(mixed.seeds)
    assert "bootstrap over seeds and problems" in as_data["mixed"]["3"]["method"]
    assert as_data["one"]["3"]["method"].startswith("Wilson")


def test_the_bootstrap_covers_the_mean_of_seeds_that_share_problems():
    """Accuracies of seeds and hardness of problems are drawn; the truth is the mean over both."""
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(100):
        skill = rng.normal(0.5, 1, (6, 1))
        hardness = rng.normal(0, 1, (1, 80))
        noise = rng.normal(0, 1, (6, 80))
        low, high = interval_over_seeds(skill + hardness + noise > 0)
        covered += low <= 0.6136 <= high  # of a normal with mean 0.5 and variance 3
    assert covered >= 85


def test_counts_alone_give_an_interval_as_wide_or_wider():
    right = np.random.default_rng(0).random((5, 200)) < np.linspace(0.4, 0.8, 5)[:, None]
    known, counted = interval_over_seeds(right), interval_of_counts(right.sum(1).tolist(), 200)
    assert counted[1] - counted[0] >= known[1] - known[0]
    assert interval_of_counts([100] * 4, 200) == pytest.approx(interval(100, 200), abs=0.005)


def test_a_table_is_plotted(tmp_path):
    models = {"ones": Constant("1"), "two": [Constant("1"), Constant("0")]}
    table = ef.depth_table(models, boolean(), [1, 2], 10)
    axes = table.plot()
    labels = [line.get_label() for line in axes.get_lines()]
    assert [label for label in labels if label[0] != "_"] == ["ones", "two", "commonest value"]
    assert len(labels) == 5  # a line for each seed of the second
    axes.figure.savefig(tmp_path / "plot.png")
    from matplotlib import pyplot

    pyplot.close(axes.figure)


@pytest.mark.parametrize(
    ("predictor", "kind", "said"),
    [
        (Constant(1), TypeError, "mine: expected the symbol of a value, as text, or None, found 1"),
        (Constant(b"1"), TypeError, "found b'1'"),
        (lambda expressions: ["1"], TypeError, "mine: expected something with `predict`"),
        ([], ValueError, "mine: expected a model of another name, found none"),
    ],
)
def test_what_does_not_predict_values_is_an_error(predictor, kind, said):
    with pytest.raises(kind, match=said):
        ef.depth_table({"mine": predictor}, boolean(), [1], 5)


def test_answers_must_be_a_list_of_the_right_length():
    class Text:
        def predict(self, expressions):
            return "1" * len(expressions)

    class Array:
        def predict(self, expressions):
            return torch.zeros(len(expressions))

    class Short:
        def predict(self, expressions):
            return ["1"]

    for predictor, kind in ((Text(), TypeError), (Array(), TypeError), (Short(), ValueError)):
        with pytest.raises(kind, match="mine: expected a"):
            ef.depth_table({"mine": predictor}, boolean(), [1], 5)  # type: ignore[reportArgumentType]
