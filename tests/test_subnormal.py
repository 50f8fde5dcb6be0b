"""Subnormal numbers count as zero in steps of training, and nowhere else."""

import pytest
import torch

import exactformer as ef
from exactformer.host.threads import subnormals_as_zero
from exactformer.training import loop
from exactformer.training.run import Observer, train_seeds

SMALLEST = torch.tensor(torch.finfo(torch.float32).tiny)


def are_zero() -> bool:
    return bool(SMALLEST / 2 == 0)


@pytest.fixture(autouse=True)
def as_they_are():
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor computes with subnormal numbers always")
    torch.set_flush_denormal(False)
    yield
    torch.set_flush_denormal(False)


def test_within_the_context_alone():
    assert not are_zero()
    with subnormals_as_zero():
        assert are_zero()
        with subnormals_as_zero():
            assert are_zero()
        assert are_zero()
    assert not are_zero()
    with pytest.raises(KeyError), subnormals_as_zero():
        raise KeyError
    assert not are_zero()


def test_one_who_has_them_as_zero_keeps_that():
    torch.set_flush_denormal(True)
    with subnormals_as_zero():
        assert are_zero()
    assert are_zero()


def test_certificates_and_observers_have_them(monkeypatch):
    seen = []

    def watched(function):
        def call(*arguments):
            seen.append((function.__name__, are_zero()))
            return function(*arguments)

        return call

    for name in ("findings_of_all", "certify", "move_gates", "right_of"):
        monkeypatch.setattr(loop, name, watched(getattr(loop, name)))
    monkeypatch.setattr(loop.DepthOneSteps, "step", watched(loop.DepthOneSteps.step))

    class Watching(Observer):
        def evaluated(self, state):
            seen.append(("evaluated", are_zero()))

        def ended(self, result):
            seen.append(("ended", are_zero()))

    train_seeds(ef.boolean(), [7520], observers=[Watching()])
    outside = {"findings_of_all", "certify", "move_gates", "right_of", "evaluated", "ended"}
    assert set(seen) == {("step", True)} | {(name, False) for name in outside}
