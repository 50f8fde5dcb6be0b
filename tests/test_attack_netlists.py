"""A short run of the attack on netlists, and proof that it would notice."""

import numpy as np
import pytest

from attacks.netlists import attack
from exactformer.domains.formats import aiger, blif, netlist
from exactformer.domains.program import Program
from exactformer.engine import circuits, statements

KINDS = ("aig", "aag", "blif", "program")


def test_no_damaged_netlist_breaks_anything():
    report = attack(600, seed=0, commands_every=300)
    assert report.found == []
    assert report.tried["by the command"] == 2
    assert all(report.tried[f"{kind}, accepted"] > 10 for kind in KINDS)
    assert all(report.tried[f"{kind}, refused"] > 40 for kind in KINDS)


def found(kind: str, count: int = 300) -> str:
    report = attack(count, seed=0, commands_every=0)
    return " ".join(fault for fault in report.found if kind in fault)


def test_wrong_outputs_are_found_out(monkeypatch):
    monkeypatch.setattr(circuits, "WAYS", circuits.WAYS[np.arange(16) ^ 15])
    assert "wrong outputs" in found("aig")


def test_wrong_values_of_programs_are_found_out(monkeypatch):
    right = statements.values_by_levels
    monkeypatch.setattr(statements, "values_by_levels", lambda *given: 1 - right(*given))
    assert "wrong outputs" in found("program")


def test_a_cycle_that_is_let_through_is_found_out(monkeypatch):
    monkeypatch.setattr(Program, "cycle", [])
    assert "what the simulator does not: AssertionError" in found("any order", 1500)


def test_a_refusal_without_a_place_is_found_out(monkeypatch):
    monkeypatch.setattr(netlist.Place, "of", lambda place, offset: "somewhere")
    assert "a refusal without a place" in found("blif")


@pytest.mark.parametrize(("module", "name"), [(aiger, "_rows"), (blif, "_expression")])
def test_a_traceback_is_found_out(monkeypatch, module, name):
    monkeypatch.setattr(module, name, lambda *_: {}["part"])
    assert "KeyError: 'part'" in found("")


def test_memory_for_what_a_header_claims_is_found_out(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the file is kept
    monkeypatch.setattr(aiger, "MOST_INPUTS", 1 << 40)
    report = attack(1, seed=0, only=463, commands_every=0)  # it claims 2**31 inputs
    assert "MemoryError" in str(report.found)
