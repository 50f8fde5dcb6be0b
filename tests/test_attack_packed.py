"""The attack on the packed layer: a small run finds nothing, and it can find something."""

import torch

from attacks.packed import attack
from exactformer.model import packed
from exactformer.model.kinds import Kinds


def test_a_small_attack_finds_nothing():
    report = attack(30, seed=1)
    assert not report.found
    assert sum(report.tried.values()) == 30
    assert {"zeros: dropped", "zeros: kept"} <= {kind.split("; ")[1] for kind in report.tried}


def test_zeros_that_are_dropped_though_they_would_come_back_are_found_out(monkeypatch):
    always = property(lambda self: True, lambda self, value: None)
    monkeypatch.setattr(Kinds, "zeros_stay", always, raising=False)
    assert attack(60, seed=1).found


def test_clusters_that_run_together_are_found_out(monkeypatch):
    count = packed.count

    def forgetting(state, kinds):
        """As if no position were missing."""
        state.position.copy_(torch.arange(len(state.position)))
        return count(state, kinds)

    monkeypatch.setattr(packed, "count", forgetting)
    assert attack(60, seed=1).found


def test_a_run_that_stops_early_is_found_out(monkeypatch):
    monkeypatch.setattr(packed, "halted", lambda state, counts: counts.deepest <= counts.first + 1)
    assert any("iterations" in found for found in attack(30, seed=1).found)
