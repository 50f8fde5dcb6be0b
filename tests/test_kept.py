"""Of certified weights their hash is kept, and of others nothing."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.certified import HEADER, certified_lines
from exactformer.api import construct, load
from exactformer.domains.catalog import BUILT_IN, CATALOG, boolean, boolean_plain, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.engine import kept, plain
from exactformer.engine.kept import SHIPPED, find_tables, is_certified, keep_certified, line
from exactformer.engine.loaded import named
from exactformer.evaluation.values import Evaluator
from exactformer.weights.named import CONSTRUCTED
from exactformer.weights.named import SHIPPED as WEIGHTS
from tests.automata import run
from tests.plain_algebras import MODULO7

SMALL = listops(4)
SHA256 = "0" * 64  # what constructed weights have instead does not matter


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder of caches of one's own."""
    monkeypatch.setenv(kept.FOLDER, str(tmp_path / "caches"))
    return tmp_path / "caches"


@pytest.fixture
def file(folder) -> Path:
    """The file that says that constructed weights of `SMALL` were certified."""
    keep_certified(SMALL, "constructed", SHA256)
    (path,) = folder.iterdir()
    assert find_tables(SMALL, "constructed") is not None
    return path


def save_wrong(path: Path) -> None:
    """Weights that take a case of MAX for another."""
    wrong = construct(SMALL, "table")
    wrong.weights.f.outputs[0] = wrong.weights.f.outputs[-1]  # pyright: ignore
    wrong.save(path)


def exactformer(*arguments: str, folder: Path | str) -> subprocess.CompletedProcess:
    environment = os.environ | {kept.FOLDER: str(folder)}
    command = [sys.executable, "-m", "exactformer", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


# The list in the package


def test_the_shipped_list_has_all_that_is_certified():
    expected = [HEADER]
    for name, make in BUILT_IN.items():
        expected += (lines := list(certified_lines(make())))
        assert len(lines) >= (13 if name in CATALOG else 3)
    assert SHIPPED.read_text().splitlines() == expected


@pytest.mark.parametrize("domain", CATALOG)
def test_shipped_weights_in_the_list_have_a_proof_beside_them(domain):
    proofs = sorted((WEIGHTS / domain).glob("*.proof.json"))
    assert len(proofs) >= 10
    for proof in proofs:
        proved = json.loads(proof.read_text())["weights_sha256"]
        assert is_certified(BUILT_IN[domain](), proved)
        assert not is_certified(SMALL, proved)


def test_infix_weights_are_known_for_plain_notation(folder):
    assert find_tables(boolean_plain(), "boolean/7520") is not None
    with pytest.raises(ValueError, match="'arithmetic', not for this 'boolean-plain'"):
        find_tables(boolean_plain(), "arithmetic/7520")


def test_without_the_list_nothing_is_known(folder, monkeypatch):
    assert find_tables(boolean(), "7520") is not None
    monkeypatch.setattr(kept, "SHIPPED", folder / "missing")
    assert find_tables(boolean(), "7520") is None


# What is kept in the user's folder


def test_tables_are_found_and_give_the_models_values(algebra, folder, monkeypatch):
    """On every algebra that has some: they are those of the model, and refuse what is wrong."""
    monkeypatch.setattr(kept, "SHIPPED", folder / "missing")
    assert find_tables(algebra, "constructed") is None
    keep_certified(algebra, "constructed", SHA256)
    found = find_tables(algebra, "constructed")
    engine = construct(algebra).fast_engine("fast")
    tables = engine.automaton
    assert found is not None
    assert np.array_equal(found.step, tables.step)
    assert np.array_equal(found.value, tables.value)
    assert np.array_equal(found.grammar, tables.grammar)
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


def test_a_file_is_small_and_says_what_was_certified(file):
    format, code, said = file.read_text().splitlines()
    assert (format, said) == (kept.FORMAT, line(SMALL, "constructed"))
    assert len(code) == 64
    assert file.stat().st_size < 200


def test_weights_in_a_file_are_known_by_their_content(folder, tmp_path):
    first = tmp_path / "first.safetensors"
    model = construct(SMALL, "table")
    model.save(first)
    assert find_tables(SMALL, str(first)) is None
    keep_certified(SMALL, str(first), model.sha256)
    copy = shutil.copy(first, first.with_name("copy.safetensors"))
    assert find_tables(SMALL, str(copy)) is not None
    construct(SMALL, "closed").save(first)
    assert find_tables(SMALL, str(first)) is None
    save_wrong(first)
    assert find_tables(SMALL, str(first)) is None
    with pytest.raises(ValueError, match="'listops-4', not for this 'listops-5'"):
        find_tables(listops(5), str(copy))
    with pytest.raises(ValueError, match="expected constructed, or a file, found 'missing'"):
        find_tables(SMALL, "missing")


def test_a_damaged_weights_file_is_refused_however_well_it_is_known(folder, tmp_path):
    path = tmp_path / "weights.safetensors"
    model = construct(SMALL, "table")
    model.save(path)
    keep_certified(SMALL, str(path), model.sha256)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))  # the header has the hash that is known
    with pytest.raises(ValueError, match="the tensors are not those whose hash its header gives"):
        find_tables(SMALL, str(path))


@pytest.mark.parametrize("name", sorted({*CONSTRUCTED} - {*kept.BY_NAME}))
def test_a_name_that_does_not_determine_its_weights_is_not_kept(name, folder):
    """The fitted ones are in a file, and the dense ones depend on torch and the processor."""
    keep_certified(boolean(), name, load(name, boolean()).sha256)
    assert not folder.exists()
    assert find_tables(boolean(), name) is None
    assert find_tables(boolean(), "fitted") is not None  # that file, by its hash


def test_another_code_has_other_files(file, monkeypatch):
    monkeypatch.setattr(kept, "_code", lambda: "changed")
    assert find_tables(SMALL, "constructed") is None


def test_another_format_has_other_files(file, monkeypatch):
    monkeypatch.setattr(kept, "FORMAT", "exactformer certified 2")
    assert find_tables(SMALL, "constructed") is None


def test_too_many_states_are_left_to_the_model(folder, monkeypatch):
    keep_certified(MODULO7, "constructed", SHA256)
    assert find_tables(MODULO7, "constructed") is not None
    monkeypatch.setattr(plain, "MOST_STATES", 10)
    assert find_tables(MODULO7, "constructed") is None


def test_only_so_many_are_kept_and_the_files_of_others_are_let_be(folder, monkeypatch):
    monkeypatch.setattr(kept, "MOST_KEPT", 3)
    folder.mkdir()
    others = [folder / f"{number}.safetensors" for number in range(5)]
    for path in others:  # somebody's weights
        path.write_text("")
    algebras = [listops(most) for most in (2, 4, 5, 6, 7)]  # listops-3 is shipped
    for number, algebra in enumerate(algebras):
        keep_certified(algebra, "constructed", SHA256)
        new = (path for path in folder.glob("*.certified") if path.stat().st_mtime > 1e9)
        os.utime(next(new), (number, number))
    found = [find_tables(algebra, "constructed") is not None for algebra in algebras]
    assert found == [False, False, True, True, True]
    assert all(path.exists() for path in others)


# Files that were damaged or forged


def test_every_changed_byte_is_noticed(file):
    data = file.read_bytes()
    for place in range(len(data)):
        file.write_bytes(data[:place] + bytes([data[place] ^ 1 << place % 8]) + data[place + 1 :])
        assert find_tables(SMALL, "constructed") is None, place
    for length in range(len(data)):
        file.write_bytes(data[:length])
        assert find_tables(SMALL, "constructed") is None
    file.write_bytes(data)
    assert find_tables(SMALL, "constructed") is not None


def replaced_by_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def replaced_by_a_pipe(path: Path) -> None:
    """Which nobody writes to: reading it would wait for ever."""
    path.unlink()
    os.mkfifo(path)


def replaced_by_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


FORGERIES = {
    "nothing": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 100),
    "a line more": lambda path: path.write_bytes(path.read_bytes() + b"and more\n"),
    "other ends of lines": lambda path: path.write_text(path.read_text(), newline="\r\n"),
    "other weights": lambda path: path.write_text(path.read_text().replace("constructed", SHA256)),
    "a terabyte": lambda path: os.truncate(path, 1 << 40),
    "a folder": replaced_by_a_folder,
    "a pipe": replaced_by_a_pipe,
    "a link to itself": replaced_by_a_link,
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_forged_files_are_as_good_as_none(file, forge):
    forge(file)
    assert find_tables(SMALL, "constructed") is None


def test_a_file_of_another_user_is_as_good_as_none(file, monkeypatch):
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert find_tables(SMALL, "constructed") is None


def test_the_file_of_some_weights_says_nothing_of_others(file, folder):
    keep_certified(listops(5), "constructed", SHA256)
    (other,) = set(folder.iterdir()) - {file}
    shutil.copy(other, file)
    assert find_tables(SMALL, "constructed") is None
    assert find_tables(listops(5), "constructed") is not None


def test_whoever_can_write_as_the_user_can_claim_a_certificate_but_no_wrong_value(folder, tmp_path):
    """A whole forgery has weights answered for by the algebra, and fools nothing that certifies."""
    path = tmp_path / "wrong.safetensors"
    save_wrong(path)
    model, text = load(path, SMALL), "( MAX 0 0 )"
    assert model.certify().verdict == "inexact"
    own = str(model(text))
    assert own != "0"
    keep_certified(SMALL, str(path), model.sha256)  # as a forger would
    assert Evaluator(SMALL, str(path)).runs == "fast"
    options = ("listops-4", text, "--weights", str(path))
    assert (
        exactformer("eval", *options, folder=folder).stdout == "0\n"
    )  # right, but not the model's
    assert exactformer("eval", *options, "--engine", "model", folder=folder).stdout == f"{own}\n"
    rows = tmp_path / "rows"
    rows.write_text(f"{text}\t0\n")
    options = ("listops-4", str(rows), "--weights", str(path))
    assert exactformer("score", *options, folder=folder).returncode == 0
    assert exactformer("score", *options, "--engine", "model", folder=folder).returncode == 2
    certified = exactformer("certify", "listops-4", "--weights", str(path), folder=folder)
    assert certified.returncode == 1
    assert "inexact" in certified.stdout


# The command


def test_the_command_keeps_and_mends_what_it_needs(tmp_path):
    command = ("eval", "listops-4", "( MAX 1 2 ( MIN 5 3 ) )")
    assert exactformer(*command, folder=tmp_path).stdout == "3\n"
    (path,) = tmp_path.iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:100])
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


@pytest.mark.parametrize("engine", ["auto", "fast", "model"])
def test_uncertified_weights_are_not_kept(engine, folder, tmp_path):
    path = tmp_path / "wrong.safetensors"
    save_wrong(path)
    evaluator = Evaluator(SMALL, str(path), engine)
    if engine == "fast":
        with pytest.raises(ValueError, match="certified exact"):
            assert evaluator.fast
    else:
        assert evaluator.fast is None
    assert not folder.exists()


def test_weights_whose_tables_take_long_are_not_kept(folder):
    evaluator = Evaluator(listops(None), engine="fast")
    assert evaluator.runs == "fast"
    assert not folder.exists()


def test_changed_weights_are_certified_anew(folder, tmp_path):
    path = tmp_path / "weights.safetensors"
    evaluator = Evaluator(SMALL, str(path))
    construct(SMALL, "table").save(path)
    assert replace(evaluator).runs == "fast"
    assert len(list(folder.iterdir())) == 1
    save_wrong(path)
    assert replace(evaluator).runs == "model"
    assert len(list(folder.iterdir())) == 1
    construct(SMALL, "closed").save(path)
    assert replace(evaluator).runs == "fast"
    assert len(list(folder.iterdir())) == 2


def test_weights_that_change_while_they_are_certified_are_not_kept(folder, tmp_path, monkeypatch):
    """The hash that is kept is that of the certified weights, not of a file changed since."""
    path = tmp_path / "weights.safetensors"
    construct(SMALL, "table").save(path)

    def load_and_change(name, algebra):
        parts = named(name, algebra)
        save_wrong(path)
        return parts

    monkeypatch.setattr("exactformer.engine.loaded.named", load_and_change)
    assert Evaluator(SMALL, str(path)).fast is not None
    assert find_tables(SMALL, str(path)) is None
    construct(SMALL, "table").save(path)
    assert find_tables(SMALL, str(path)) is not None


def test_the_code_that_decides_is_where_it_is_looked_for():
    assert all((kept.PACKAGE / name).exists() for name in kept.DECIDING)
