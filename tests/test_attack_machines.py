"""The attack on machines notices a check that sees nothing, and a layer that loses the state."""

import torch

from attacks import machines
from exactformer.model import machine, span_machine
from exactformer.verify.machine import _Product


def test_nothing_is_found():
    report = machines.attack(12, seed=0)
    assert report.found == []
    assert report.tried["texts"] > 100


def test_a_check_that_sees_no_faults_is_noticed(monkeypatch):
    monkeypatch.setattr(_Product, "_add_fault", lambda *parts: None)
    found = machines.attack(30, seed=0).found
    assert any("called exact" in fault for fault in found)


def test_a_layer_that_loses_the_state_is_noticed(monkeypatch):
    for layer in (machine, span_machine):
        monkeypatch.setattr(layer, "arriving", lambda F, kind, starts: torch.zeros_like(kind))
    assert machines.attack(5, seed=0).found
