"""Compiled functions are kept on disk, and compiled again if that fails or the file is damaged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from exactformer.engine.compiled import compiled

@compiled
def twice(x):
    return 2 * x

@compiled
def six_times(x):
    return 3 * twice(x)

print(six_times(7), sum(six_times.stats.cache_hits.values()))
"""
NOWHERE = "/dev/null/nowhere"  # cannot be made, not even by root


def run(script: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
    )
    assert result.returncode == 0, result.stderr
    return result


@pytest.fixture
def script(tmp_path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


@pytest.fixture(scope="module")
def compiled_once(tmp_path_factory) -> Path:
    """A folder with the script and, in `kept`, what it compiled."""
    folder = tmp_path_factory.mktemp("compiled")
    (folder / "script.py").write_text(SCRIPT)
    result = run(folder / "script.py", NUMBA_CACHE_DIR=str(folder / "kept"))
    assert (result.stdout.split(), result.stderr) == (["42", "0"], "")
    return folder


def test_the_second_process_finds_what_the_first_compiled(compiled_once):
    result = run(compiled_once / "script.py", NUMBA_CACHE_DIR=str(compiled_once / "kept"))
    assert result.stdout.split() == ["42", "1"]
    assert result.stderr == ""


def test_where_nothing_can_be_written_there_is_a_hint(script, tmp_path):
    (tmp_path / "__pycache__").write_text("not a folder")
    nowhere = {"NUMBA_CACHE_DIR": NOWHERE, "HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE}
    result = run(script, **nowhere)
    assert result.stdout.split() == ["42", "0"]
    assert len(result.stderr.splitlines()) == 1
    assert "NUMBA_CACHE_DIR" in result.stderr


def test_a_folder_that_cannot_be_written_is_no_obstacle_where_another_can(script):
    for hits in (0, 1):
        result = run(script, NUMBA_CACHE_DIR=NOWHERE)
        assert result.stdout.split() == ["42", str(hits)]


def flip(data: bytes) -> bytes:
    place = len(data) * 2 // 3
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], flip], ids=["cut in half", "one bit"]
)
def test_damaged_files_are_made_anew(compiled_once, tmp_path, ending, damage):
    kept = shutil.copytree(compiled_once / "kept", tmp_path / "kept")
    files = list(kept.rglob(f"*.{ending}"))
    assert files
    for file in files:
        file.write_bytes(damage(file.read_bytes()))
    for hits in (0, 1):
        result = run(compiled_once / "script.py", NUMBA_CACHE_DIR=str(kept))
        assert result.stdout.split() == ["42", str(hits)]
        assert result.stderr == ""


def test_a_change_in_a_file_beside_it_counts(tmp_path):
    script, beside = tmp_path / "script.py", tmp_path / "beside.py"
    script.write_text(
        "from beside import FACTOR\n"
        "from exactformer.engine.compiled import compiled\n"
        "@compiled\n"
        "def times(x):\n"
        "    return FACTOR * x\n"
        "print(times(7), sum(times.stats.cache_hits.values()))\n"
    )
    for factor, expected in ((2, "14 0"), (3, "21 0"), (3, "21 1")):
        beside.write_text(f"FACTOR = {factor}\n")
        result = run(script, NUMBA_CACHE_DIR=str(tmp_path / "kept"))
        assert result.stdout.strip() == expected
