"""Training runs killed at random moments and taken up again: do they end with the same bytes?

    python benchmarks/killing.py [--kills N]

Each task is first trained without interruption. Then the same command is started again and again
and killed with SIGKILL, a random while after it has written something (every fourth time at once,
which mostly tears that write), until there have been N kills; the last process is left to end. If a
run ends before, the next starts in a new folder. Checkpoints are written after every look instead
of every other second. A weights file counts as identical when all of its bytes are.
"""

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Arithmetic's 1936 starts again from its second draw, so a restart is among what is interrupted.
RUNS = {"boolean": "8739,7520,1936,7439,6210,5650,5395,3140,1243,5353", "arithmetic": "8739,1936"}
LONGEST = 0.3  # seconds from the first file that a process writes to its kill
DRIVER = """\
import exactformer.training.run as run
run.CHECKPOINT_SECONDS = 0.0
from exactformer.cli import main
main()
"""


def start(task: str, folder: Path) -> subprocess.Popen:
    arguments = ["train", task, "--seeds", RUNS[task], "--out", str(folder)]
    command = [sys.executable, "-c", DRIVER, *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def ended(process: subprocess.Popen) -> None:
    _, told = process.communicate()
    if process.returncode != 0:
        raise SystemExit(f"a run ended with status {process.returncode}:\n{told.decode()}")


def newest(folder: Path) -> tuple[int, ...]:
    """Changes whenever the run writes a file, temporary ones included."""
    return (folder.stat().st_mtime_ns,) if folder.exists() else ()


def weights(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def wait_for_a_sign(process: subprocess.Popen, folder: Path) -> None:
    before = newest(folder)
    while newest(folder) == before and process.poll() is None:
        time.sleep(0.002)


def kill_and_compare(task: str, kills: int, temporary: Path, rng: random.Random) -> str:
    reference = temporary / task
    ended(start(task, reference))
    expected = weights(reference)
    seeds = RUNS[task].count(",") + 1
    assert len(expected) == seeds
    runs = done = identical = compared = torn = with_finished = 0
    while done < kills:
        folder = temporary / f"{task}-{runs}"
        runs += 1
        halves: set[Path] = set()  # temporary files of writes that a kill has torn
        while True:
            process = start(task, folder)
            if done == kills:
                ended(process)
                break
            wait_for_a_sign(process, folder)
            if done % 4:
                time.sleep(rng.uniform(0, LONGEST))  # otherwise at once: the file is half written
            if process.poll() is not None:
                ended(process)
                break
            process.kill()
            process.communicate()
            done += 1
            halves, before = set(folder.glob(".*")), halves
            torn += bool(halves - before)
            finished = len(list(folder.glob("*[0-9].json")))
            with_finished += 0 < finished < seeds
            print(f"{task}: kill {done} of {kills}, {finished} seeds finished", file=sys.stderr)
        found = weights(folder)
        identical += sum(found.get(name) == data for name, data in expected.items())
        compared += len(expected)
        assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
        shutil.rmtree(folder)
    return (
        f"| {task} | {seeds} | {done} | {with_finished} | {torn} | {runs} "
        f"| {identical} of {compared} identical |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Kill training runs and compare what they end with."
    )
    parser.add_argument("--kills", type=int, default=20)
    kills = parser.parse_args().kills
    with tempfile.TemporaryDirectory() as temporary:
        rng = random.Random(0)
        rows = [kill_and_compare(task, kills, Path(temporary), rng) for task in RUNS]
    print("# Killed and taken up again\n")
    print(f"`python benchmarks/killing.py --kills {kills}`\n")
    print(
        "Training runs killed with SIGKILL at random moments and started again with the same "
        "command, until they end; their weights files beside those of a run that nobody killed.\n"
    )
    print(
        "| task | seeds | kills | with some seeds finished | in the middle of a write | runs ",
        end="",
    )
    print("| weights files |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
