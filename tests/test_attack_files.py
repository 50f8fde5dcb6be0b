"""A short run of the attack on files, and proof that it would notice."""

import pytest

from attacks import targets
from attacks.files import attack
from exactformer.protocol import state


class AnyHash(str):
    """Equal to every other."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


@pytest.fixture
def one_kind(monkeypatch):
    """The attack on files of one kind only."""

    def choose(name: str) -> None:
        every = targets.targets
        monkeypatch.setattr(
            "attacks.files.targets", lambda folder: [t for t in every(folder) if name in t.name]
        )

    return choose


def test_no_damaged_file_breaks_anything():
    report = attack(800, seed=0, commands_every=0)
    assert report.found == []
    assert sum(report.tried.values()) == 800
    refused = sum(number for name, number in report.tried.items() if name.endswith("refused"))
    assert refused > 500


def test_the_command_refuses_too(one_kind):
    one_kind("definition")
    report = attack(1, seed=0, commands_every=1)
    assert report.found == []
    assert report.tried["by the command"] == 1


def test_a_reader_that_does_not_look_at_the_hash_is_found_out(one_kind, monkeypatch):
    one_kind("checkpoint")
    monkeypatch.setattr(state, "_content", lambda header, tensors: AnyHash())
    report = attack(200, seed=0, commands_every=0)
    assert any("believed, and not what was written" in found for found in report.found)


def test_a_traceback_is_found_out(one_kind, monkeypatch):
    one_kind("definition")
    monkeypatch.setattr(targets, "load_algebra", lambda path: {}["verdict"])
    report = attack(3, seed=0, commands_every=0)
    assert len(report.found) == 3
    assert all("KeyError: 'verdict'" in found for found in report.found)
