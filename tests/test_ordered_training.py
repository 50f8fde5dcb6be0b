"""Ordered operators learned from random weights: the rank gate, the slots, the proof."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_depth
from exactformer.model.circuit import ranks
from exactformer.model.construct import bags, rank_gate
from exactformer.model.encode import encode
from exactformer.model.quantize import ternary
from exactformer.training.depth_one import depth_one_rows, rank_errors
from exactformer.training.estimators import ASKING, answered
from exactformer.training.recipe import recipe_for
from exactformer.training.run import CHECKPOINT, train_seeds
from exactformer.verify import verify
from exactformer.weights.file import WeightFile
from tests.algebras import ENDS, MINUS, MODULO_7, S3
from tests.runs import Enough, StopAtFirstLook, weights

ORDERED = [MINUS, ENDS, MODULO_7, S3]


@pytest.fixture(params=ORDERED, ids=lambda algebra: algebra.name)
def ordered(request):
    return request.param


def test_the_bags_of_depth_1_are_the_models(ordered):
    """Behind the right gate, the operator's rows are what a constructed model is built on."""
    rows = depth_one_rows(ordered)
    D = len(ordered.vocabulary)
    found = rows.bags(rank_gate(ordered))[:-1, 0, :, :D]
    found[..., :2] = 0  # the parentheses, which the constructed routing leaves out
    assert {tuple(row) for row in found.flatten(1).tolist()} == {
        tuple(row) for row in bags(ordered)[0].tolist()
    }


def test_slots_of_rows_are_those_of_the_circuit(ordered):
    """For random gates, on every depth-1 expression."""
    rows, D = depth_one_rows(ordered), len(ordered.vocabulary)
    by_tokens = {
        tuple(span.argmax(-1)[span.any(-1)].tolist()): at for at, span in enumerate(rows.span)
    }
    generator = torch.Generator().manual_seed(0)
    gates = [torch.randint(-1, 2, (D,), generator=generator).float() for _ in range(20)]
    made = [rows.bags(gate)[:, 0, :, :D] for gate in gates]
    for expression in enumerate_depth(ordered, 1):
        X = encode(torch.from_numpy(expression.ids.copy()), D)
        for gate, of_gate in zip(gates, made, strict=True):
            R = ranks(X, torch.ones(len(X), dtype=torch.int64), gate)
            expected = torch.zeros(rows.slots, D)
            expected.index_add_(0, (R - 1).clamp(0, rows.slots - 1), X)
            assert torch.equal(of_gate[by_tokens[tuple(expression.ids.tolist())]], expected)


def test_the_error_of_a_gate_is_that_of_the_best_table(ordered):
    """Against counting by dictionary; nothing counted is 1, the right gate 0."""
    rows, D = depth_one_rows(ordered), len(ordered.vocabulary)
    values = rows.target[:-1].sum(1).argmax(-1).tolist()

    def wrong(gate: torch.Tensor) -> int:
        groups: dict[tuple, list[int]] = {}
        for bag, value in zip(rows.bags(gate)[:-1, 0].flatten(1).tolist(), values, strict=True):
            groups.setdefault(tuple(bag), []).append(value)
        return sum(len(group) - max(map(group.count, group)) for group in groups.values())

    generator = torch.Generator().manual_seed(1)
    gates = torch.randint(-1, 2, (20, D), generator=generator).float()
    gates = torch.cat([gates, torch.zeros(1, D), rank_gate(ordered)[None]])
    errors = rank_errors(rows, gates)
    nothing = wrong(torch.zeros(D))
    assert nothing > 0
    assert errors.tolist() == pytest.approx([wrong(gate) / nothing for gate in gates])
    assert errors[-2:].tolist() == [1, 0]


@pytest.mark.parametrize("name", ASKING)
def test_an_estimator_finds_a_rank_gate(ordered, name):
    errors = partial(rank_errors, depth_one_rows(ordered))
    solved = 0
    for seed in range(5):
        noise, memory = np.random.default_rng(seed), {}
        logits = 0.1 * torch.randn(
            len(ordered.vocabulary), generator=torch.Generator().manual_seed(seed)
        )
        for _ in itertools.repeat(None, 100):
            logits = answered(ASKING[name](logits, 0.0, noise, memory), errors)
            if errors(ternary(logits)[None]) == 0:
                solved += 1
                break
    assert solved >= 4


def test_learned_from_random_weights_and_certified(tmp_path):
    """With `out`, as the command does: weights, proof and record of each seed."""
    folder = tmp_path / "run"
    results = train_seeds(S3, [1, 2], out=folder)
    assert [result.exact for result in results] == [True, True]
    rng = np.random.default_rng(0)
    batch = [e for depth in range(1, 31) for e in draw(S3, depth, 5, rng, leaf=0.8)]
    for result in results:
        path = folder / f"{result.seed}.safetensors"
        assert verify(folder / f"{result.seed}.proof.json", path).exact
        model = ef.load(path)
        assert model.weights.G_R is not None
        assert model.predict(batch) == [evaluate(e) for e in batch]
        logits = WeightFile.read(path).arrays["G_R_logits"]
        assert torch.equal(ternary(torch.from_numpy(logits)), model.weights.G_R)


def test_a_seed_is_the_same_alone_and_after_an_interruption(tmp_path, monkeypatch):
    monkeypatch.setattr("exactformer.training.run.CHECKPOINT_SECONDS", 0.0)
    together, alone = tmp_path / "together", tmp_path / "alone"
    with pytest.raises(Enough):
        train_seeds(S3, [1, 2], out=together, observers=[StopAtFirstLook()])
    assert (together / CHECKPOINT).exists()
    train_seeds(S3, [1, 2], out=together)
    train_seeds(S3, [2], recipe=recipe_for(S3), out=alone)
    assert weights(alone)["2.safetensors"] == weights(together)["2.safetensors"]
