"""The attack on what is remembered: a small run finds nothing, and it can find something."""

from torch import Tensor

from attacks import remembered as attacks
from attacks.tensor_changes import CHANGES
from exactformer.model import remembered


def test_a_small_attack_finds_nothing():
    report = attacks.attack(24, seed=1)
    assert not report.found
    assert sum(n for kind, n in report.tried.items() if kind.startswith("model: ")) >= 12


def test_it_knows_many_ways_of_changing_a_tensor():
    assert {".data", ".data =", "NumPy", "DLPack", "AdamW, fused", "SGD, foreach"} <= set(CHANGES)


def test_a_package_that_counts_changes_is_found_out(monkeypatch):
    """Changes as torch counts them, which misses those through `.data`."""
    right = remembered._same

    def counted(part, copied):
        if isinstance(part, Tensor) and isinstance(copied, Tensor):
            return part.shape == copied.shape and part._version == 0
        return right(part, copied)

    monkeypatch.setattr(remembered, "_same", counted)
    _, stale = attacks.case("perceptron, relu", "itself", ".data", 4, [1])
    assert {"sha256", "certify", "predict", "folder"} <= {what.split(":")[0] for what in stale}


def test_floats_that_are_compared_as_numbers_are_found_out(monkeypatch):
    monkeypatch.setattr(remembered, "_bits", lambda tensor: tensor.detach())
    _, stale = attacks.case("rank gate", "itself", "the sign of zeros", 3, [0])
    assert any(what.startswith("sha256") for what in stale)


def test_a_package_whose_pickles_hold_what_is_remembered_is_found_out(monkeypatch):
    monkeypatch.delattr(remembered.Remembering, "__getstate__")
    _, stale = attacks.case("dense", "pickle", "add_", 0, [0])
    assert any("cannot be copied" in what for what in stale)
