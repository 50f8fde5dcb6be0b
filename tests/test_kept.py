"""Tables that are kept: exactly those that would be made, or none."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save

from benchmarks.tables import read_off_all
from exactformer.api import construct, load
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import BUILT_IN, CATALOG, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.engine import kept
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.kept import SHIPPED, find_tables, fits, keep_tables, read_tables
from exactformer.engine.read_off import read_off
from exactformer.named import CONSTRUCTED
from exactformer.weightfile import content_sha256, pack_header, read_safetensors
from tests.automata import run

SMALL = listops(4)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder of caches of one's own."""
    monkeypatch.setenv(kept.FOLDER, str(tmp_path))
    return tmp_path


@cache
def tables_of(algebra: Algebra) -> SpanAutomaton:
    return construct(algebra).fast_engine("fast").automaton


def same(a: SpanAutomaton, b: SpanAutomaton) -> bool:
    arrays = ("step", "value", "grammar", "final")
    return a.n_values == b.n_values and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in arrays
    )


@pytest.mark.parametrize("domain", BUILT_IN)
def test_shipped_tables_are_those_of_every_certified_weights(domain):
    algebra = BUILT_IN[domain]()
    path, made = SHIPPED / f"{domain}.safetensors", read_off_all(algebra)
    assert read_safetensors(path, "np", kept.FORMAT)[0]["weights"] == list(made)
    assert len(made) >= (10 if domain in CATALOG else 3)
    for weights, tables in made.items():
        found = read_tables(path, algebra, weights)
        assert found is not None
        assert same(found, tables)
    assert read_tables(path, algebra, "constructed/other") is None
    assert read_tables(path, SMALL, "constructed") is None


def test_tables_fit_and_run_as_the_automaton_does(algebra, folder):
    """On every algebra that has some: what is read back is what was made, and gives its values."""
    tables = tables_of(algebra)
    keep_tables(algebra, "constructed", tables)
    found = find_tables(algebra, "constructed")
    assert found is not None
    assert same(found, tables)
    engine = construct(algebra).fast_engine("fast")
    rng = np.random.default_rng(5)
    for depth in range(4):
        for expression in draw(algebra, depth, 20, rng):
            ids = expression.ids.tolist()
            number = found.run(ids)
            assert number == run(tables, ids)
            assert number is not None
            assert algebra.values[number] == evaluate(expression)
            assert engine.values([expression]) == [algebra.values[number]]
            for place in range(len(ids)):  # and what is no expression has no value in either
                for wrong in ([*ids[:place], *ids[place + 1 :]], ids[:place], [*ids, ids[place]]):
                    assert found.run(wrong) == run(tables, wrong)


def test_weights_in_a_file_are_known_by_their_content(folder, tmp_path_factory):
    first = tmp_path_factory.mktemp("weights") / "first.safetensors"
    construct(SMALL, "table").save(first)
    assert find_tables(SMALL, str(first)) is None
    keep_tables(SMALL, str(first), tables_of(SMALL))
    copy = shutil.copy(first, first.with_name("copy.safetensors"))
    assert find_tables(SMALL, str(copy)) is not None
    construct(SMALL, "closed").save(first)
    assert find_tables(SMALL, str(first)) is None
    assert find_tables(listops(5), str(copy)) is None  # of another algebra
    with pytest.raises(ValueError, match="expected constructed, or a file, found 'missing'"):
        find_tables(SMALL, "missing")


def test_another_code_or_format_has_other_files(folder, monkeypatch):
    keep_tables(SMALL, "constructed", tables_of(SMALL))
    assert find_tables(SMALL, "constructed") is not None
    monkeypatch.setattr(kept, "_makers", lambda: "changed")
    assert find_tables(SMALL, "constructed") is None


def test_every_changed_byte_is_noticed(folder):
    keep_tables(SMALL, "constructed", tables_of(SMALL))
    (path,) = folder.iterdir()
    data = path.read_bytes()
    rng = np.random.default_rng(3)
    for place in [*range(24), *rng.integers(len(data), size=100).tolist()]:
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        assert find_tables(SMALL, "constructed") is None, place
    for length in (0, 7, 100, len(data) - 1):
        path.write_bytes(data[:length])
        assert find_tables(SMALL, "constructed") is None
    path.write_bytes(data)
    assert find_tables(SMALL, "constructed") is not None


def forge(path: Path, change) -> None:
    """A file with a right hash of changed content."""
    header, arrays = read_safetensors(path, "np", kept.FORMAT)
    change(header, arrays)
    header.pop("sha256", None)
    header["sha256"] = content_sha256(header, arrays)
    path.write_bytes(
        save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, pack_header(header))
    )


FORGERIES = {
    "weights in a text": lambda header, arrays: header.update(weights="constructed and others"),
    "no weights": lambda header, arrays: header.update(weights=[]),
    "null for weights": lambda header, arrays: header.update(weights=None),
    "another algebra": lambda header, arrays: header.update(algebra="x"),
    "an array less": lambda header, arrays: arrays.pop("grammar"),
    "an array more": lambda header, arrays: arrays.update(more=np.zeros(1)),
    "another type": lambda header, arrays: arrays.update(step=arrays["step"].astype(np.int64)),
    "a token less": lambda header, arrays: arrays.update(step=arrays["step"][:, :-1]),
    "a value less": lambda header, arrays: arrays.update(value=arrays["value"][:-1]),
    "no states": lambda header, arrays: arrays.update(value=np.zeros((), dtype=np.int32)),
    "few states": lambda header, arrays: arrays.update({k: v[:5] for k, v in arrays.items()}),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=FORGERIES)
def test_forged_files_are_as_good_as_none(folder, change):
    keep_tables(SMALL, "constructed", tables_of(SMALL))
    (path,) = folder.iterdir()
    forge(path, lambda header, arrays: None)
    assert find_tables(SMALL, "constructed") is not None
    forge(path, change)
    assert find_tables(SMALL, "constructed") is None


def test_no_number_of_tables_can_be_another_unnoticed(algebra):
    """Whatever one number is changed to, the tables are refused: so no value can be wrong."""
    tables = tables_of(algebra)
    assert fits(algebra, tables)
    rng = np.random.default_rng(4)
    for name in ("step", "value", "grammar"):
        array = getattr(tables, name)
        for place in rng.integers(array.size, size=150).tolist():
            number = int(array.flat[place])
            top = int(array.max()) + 2
            for other in {number + 1, number - 1, -1, -2, int(rng.integers(-1, top)), 1 << 30}:
                changed = array.copy()
                changed.flat[place] = other
                if other != number:
                    assert not fits(algebra, replace(tables, **{name: changed})), (name, place)


def exactformer(*arguments: str, folder: Path | str) -> subprocess.CompletedProcess:
    environment = os.environ | {kept.FOLDER: str(folder)}
    command = [sys.executable, "-m", "exactformer", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_command_keeps_and_mends_tables(tmp_path):
    """A value that the file would give wrongly is given rightly, and the file is mended."""
    command = ("eval", "listops-4", "( MAX 1 2 ( MIN 5 3 ) )")
    assert exactformer(*command, folder=tmp_path).stdout == "3\n"
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()

    def wrong(header, arrays):
        arrays["value"] = np.where(arrays["value"] == 3, 4, arrays["value"]).astype(np.int32)

    forge(path, wrong)
    assert path.read_bytes() != data
    lines = tmp_path.with_suffix(".txt")
    lines.write_text(f"{command[-1]}\n7\n")
    result = exactformer("eval", "listops-4", "--file", str(lines), "--json", folder=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout) == {"engine": "fast", "values": ["3", "7"]}
    assert path.read_bytes() == data


def test_a_folder_that_cannot_be_written_does_not_matter(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    result = exactformer("eval", "listops-4", "( MAX 1 2 )", folder=blocked)
    assert (result.returncode, result.stdout, result.stderr) == (0, "2\n", "")
    assert blocked.read_text() == "no folder"


def test_only_so_many_are_kept(folder, monkeypatch):
    monkeypatch.setattr(kept, "MOST_KEPT", 3)
    tables, names = tables_of(SMALL), CONSTRUCTED[:5]
    for number in range(5):
        keep_tables(SMALL, names[number], tables)
        os.utime(next(p for p in folder.iterdir() if p.stat().st_mtime > 1e9), (number, number))
    found = [find_tables(SMALL, name) is not None for name in names]
    assert found == [False, False, True, True, True]


def test_uncertified_weights_and_long_tables_are_not_kept(tmp_path):
    wrong = construct(SMALL, "table")
    wrong.weights.f.outputs[0] = wrong.weights.f.outputs[-1]  # pyright: ignore
    path = tmp_path / "wrong.safetensors"
    wrong.save(path)
    caches = tmp_path / "caches"
    result = exactformer("eval", "listops-4", "( MAX 1 2 )", "--weights", str(path), folder=caches)
    assert result.returncode == 0
    assert not caches.exists()
    with pytest.raises(ValueError, match="certified exact"):
        read_off(SMALL, load(path, SMALL).weights)
