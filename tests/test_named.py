"""A name of weights means one thing, whatever lies in the folder where it is said."""

from pathlib import Path

import pytest

import exactformer as ef
from exactformer.weights.named import CONSTRUCTED
from tests.in_process import run_here


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """Where each constructed name is that of a file, too, with learned weights."""
    monkeypatch.chdir(tmp_path)
    Path("constructed").mkdir()
    for name in (*CONSTRUCTED[1:], "constructed/mine"):
        ef.load("listops/7520").save(name)
    return tmp_path


@pytest.mark.parametrize("name", CONSTRUCTED)
def test_a_constructed_name_is_never_a_file(name, folder):
    if name == "constructed/units":  # there are none for listops, which a file does not change
        with pytest.raises(ValueError, match="it has no units"):
            ef.load(name, ef.listops())
    else:
        assert ef.load(name, ef.listops()).origin["made"] == "constructed"
    with pytest.raises(ValueError, match=f"{name}: expected an algebra, too") as raised:
        ef.load(name)
    if name != "constructed":
        assert f"a file of this name is './{name}'" in str(raised.value)


def test_a_path_is_always_a_file(folder):
    learned = ef.load("listops/7520")
    for path in (Path("constructed/closed"), "./constructed/closed", folder / "constructed/closed"):
        assert ef.load(path) == ef.load(path, ef.listops()) == learned
    with pytest.raises(ValueError, match="expected constructed"):
        ef.load(Path("constructed/closed2"), ef.listops())


def test_another_file_in_a_folder_of_that_name_is_a_file(folder):
    learned = ef.load("listops/7520")
    assert ef.load("constructed/mine") == ef.load("constructed/mine", ef.listops()) == learned
    told = run_here(["eval", "listops", "( MAX 1 0 )", "--weights", "constructed/mine", "--json"])
    assert told == (0, '{"engine": "fast", "value": "1"}\n', "")


@pytest.mark.parametrize("algebra", [None, ef.listops()])
@pytest.mark.parametrize("name", ["constructed/closd", "constructed/", "constructed/closed/"])
def test_what_is_neither_is_told_what_there_is(algebra, name):
    with pytest.raises(ValueError, match="did you mean") as raised:
        ef.load(name, algebra)
    kinds = "constructed, constructed/closed, /units, /table, /fitted or /dense"
    assert f"expected {kinds}, or a file, found {name!r}; " in str(raised.value)
