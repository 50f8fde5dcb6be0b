"""Files and folders get their name when they are whole, and nothing is left of a killed writer."""

import fcntl
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from exactformer.host.atomic import new_file, new_folder, remove_unfinished, write_atomically

COMMAND = [sys.executable, "-m", "exactformer"]
MANY = ["--count", "2000000", "--depth", "4"]


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def kill_while_writing(folder: Path, *arguments: str | Path) -> None:
    """Kill a command as soon as there is something hidden in the folder."""
    with subprocess.Popen(
        [*COMMAND, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 120
        while not hidden(folder):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()
        assert process.wait() == -signal.SIGKILL


@pytest.mark.parametrize(
    "arguments",
    [
        ("sample", "boolean", *MANY, "--out"),
        ("export", "dataset", "boolean", *MANY[:2], "--out"),
        ("export", "lm-eval", "boolean", *MANY[:2], "--out"),
    ],
)
def test_what_a_killed_command_left_is_gone_after_the_next_one(tmp_path, arguments):
    kill_while_writing(tmp_path, *arguments, tmp_path / "killed")
    assert hidden(tmp_path)
    last = [*COMMAND, "sample", "boolean", "--count", "3", "--out", tmp_path / "rows"]
    subprocess.run(last, check=True, timeout=120)
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


@pytest.fixture
def dead() -> int:
    """The id of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_writers_that_live_elsewhere_are_let_be(tmp_path, dead):
    """One in another container has an id that nobody has here, and a lock."""
    left, locked = (tmp_path / f".a.{dead}.{end * 8}.unfinished.jsonl" for end in "xy")
    left.touch()
    with locked.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        remove_unfinished(tmp_path)
        assert list(tmp_path.iterdir()) == [locked]
    remove_unfinished(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_writer_locks_what_it_writes(tmp_path, dead, monkeypatch):
    monkeypatch.setattr(os, "getpid", lambda: dead)
    with new_file(tmp_path / "file") as file, new_folder(tmp_path / "folder") as folder:
        remove_unfinished(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([file, folder])
    assert sorted(hidden(tmp_path)) == []


def test_links_are_not_followed(tmp_path, dead):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "notes").touch()
    (tmp_path / f".a.{dead}.abcdefgh.unfinished").symlink_to(kept)
    remove_unfinished(tmp_path)
    assert (kept / "notes").exists()


@pytest.mark.parametrize(("umask", "file", "folder"), [(0o077, 0o600, 0o700), (0, 0o666, 0o777)])
def test_the_umask_decides_who_may_read(tmp_path, umask, file, folder):
    before = os.umask(umask)
    try:
        write_atomically(tmp_path / "file", b"mine")
        with new_folder(tmp_path / "folder") as unfinished:
            (unfinished / "inside").write_text("mine")
    finally:
        os.umask(before)
    modes = {path: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert list(modes.values()).count(folder) == 1
    assert modes == {
        tmp_path / "file": file,
        tmp_path / "folder": folder,
        tmp_path / "folder" / "inside": file,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("sample", "boolean", "--count", "20000", "--out"),
        ("construct", "arithmetic", "--out"),
        ("trace", "boolean", "(1&0)", "--html"),
        ("certify", "arithmetic", "--out"),
        ("export", "dataset", "boolean", "--out"),
        ("export", "lm-eval", "boolean", "--out"),
        ("export", "huggingface", "boolean", "--out"),
        ("export", "torch", "boolean", "--out"),
    ],
)
def test_a_full_disk_is_reported_with_the_name_of_the_file(tmp_path, arguments):
    """A limit on the size of files fails as a full disk does, with another reason."""
    result = subprocess.run(
        [*COMMAND, *arguments, tmp_path / "result"],
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
        env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    assert result.stderr == f"exactformer: {tmp_path / 'result'}: File too large\n"
    assert list(tmp_path.iterdir()) == []
