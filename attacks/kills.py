"""Training runs that are killed, or find the disk full: do they end with the same bytes?

    python -m attacks.kills [--count N] [--seed S]

A run is started again and again and killed with SIGKILL: a random while after it has written
something, at once after that, which mostly tears a write, or just before a file that is written
gets its name. In between it may find no room for a file, and must then say so in one line, with
exit status 2 and nothing half written. In the end its files are held against those of a run that
nobody disturbed: all weights, proofs and records but for the seconds in them, and nothing else.
"""

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from attacks.report import Report, run_alone

CLAIM = "A run that is killed at any moment and taken up again ends with the same bytes."
SEEDS = "8739,7520,1936"
LONGEST = 0.3  # seconds from the first file that a process writes to its kill
WRITES = 12  # a run renames about so many files
DRIVER = """\
import os, signal, sys
import exactformer.training.run as run
from exactformer.cli import main
run.CHECKPOINT_SECONDS = 0.0
left, replace = int(sys.argv.pop(1)), os.replace
def counted(*names):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    replace(*names)
os.replace = counted
main()
"""


def start(
    folder: Path, seeds: str = SEEDS, *, renames: int = 0, bytes_each: int | None = None
) -> subprocess.Popen:
    """The command; with `renames`, killed just before that one; with `bytes_each`, as if the disk
    had so much room for a file.
    """
    arguments = [str(renames), "train", "boolean", "--seeds", seeds, "--out", str(folder)]

    def limit() -> None:
        if bytes_each is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_each, bytes_each))

    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=limit,
    )


def attack(count: int, seed: int) -> Report:
    """Kill runs `count` times in all, in as many runs as that takes."""
    report, rng = Report(CLAIM), Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        undisturbed = Path(temporary) / "undisturbed"
        _ended(start(undisturbed), "undisturbed", report)
        expected = _files(undisturbed)
        kills = runs = 0
        while kills < count:
            folder = Path(temporary) / f"run-{runs}"
            runs += 1
            over = False
            while kills < count and not over:
                if rng.random() < 0.15:
                    over = _fill_disk(folder, rng, report)
                else:
                    over = _kill(folder, rng, report, f"seed {seed}, run {runs}, kill {kills + 1}")
                    kills += not over
            _ended(start(folder), f"seed {seed}, run {runs}", report)
            found = _files(folder)
            report.count("runs ended", 1)
            for name in sorted(expected.keys() | found.keys()):
                report.count("files compared")
                if expected.get(name) != found.get(name):
                    report.found.append(f"seed {seed}, run {runs}: {name} differs or is not there")
            shutil.rmtree(folder)
    return report


def _kill(folder: Path, rng: Random, report: Report, which: str) -> bool:
    """Start the run and kill it; whether it was quicker and has ended."""
    kind = rng.choice(("later", "at once", "before a rename"))
    renames = rng.randint(1, WRITES) if kind == "before a rename" else 0
    process = start(folder, renames=renames)
    if not renames:
        before = _changed(folder)
        while _changed(folder) == before and process.poll() is None:
            time.sleep(0.002)
        if kind == "later":
            time.sleep(rng.uniform(0, LONGEST))
        process.kill()
    _, errors = process.communicate()
    if process.returncode == 0:
        return True
    if process.returncode != -9:
        report.found.append(f"{which}: status {process.returncode}, {errors.decode()!r}")
    report.count(f"killed {kind}")
    return False


def _fill_disk(folder: Path, rng: Random, report: Report) -> bool:
    """Start the run with little room for a file; whether that was enough."""
    room = rng.choice((100, 1_000, 2_000, 4_000))
    half = set(folder.glob(".*"))
    process = start(folder, bytes_each=room)
    out, errors = process.communicate()
    if process.returncode == 0:
        return True
    report.count("found the disk full")
    # Seeds that ended before are listed, too.
    *progress, last = errors.decode().splitlines() or [""]
    one_line = last.startswith("exactformer: ") and all(
        line.startswith("boolean ") for line in progress
    )
    left = set(folder.glob(".*")) - half
    if process.returncode != 2 or out or not one_line or "File too large" not in last or left:
        report.found.append(
            f"a file of {room} bytes at most: status {process.returncode}, {errors.decode()!r}, "
            f"left {sorted(path.name for path in left)}"
        )
    return False


def _ended(process: subprocess.Popen, which: str, report: Report) -> None:
    _, errors = process.communicate()
    if process.returncode != 0:
        report.found.append(f"{which}: ended with status {process.returncode}, {errors.decode()!r}")


def _changed(folder: Path) -> int:
    """Changes whenever the run writes a file, temporary ones included."""
    return folder.stat().st_mtime_ns if folder.exists() else 0


def _files(folder: Path) -> dict[str, bytes]:
    """Every file there is; records without the seconds, which are never the same."""
    return {path.name: _timeless(path) for path in folder.iterdir()}


def _timeless(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix != ".json" or path.name.endswith(".proof.json") or path.name == "run.json":
        return data
    record = json.loads(data)
    return json.dumps({k: v for k, v in record.items() if k not in ("seconds", "sha256")}).encode()


if __name__ == "__main__":
    run_alone(attack, count=20)
