"""Peak memory of `exactformer` on files far larger than what it holds.

    python benchmarks/memory.py

Writes `results/memory.md`, or another file (`--out`). Each command runs as a process of its own, on
files written here beforehand: bad lines only, rows of ListOps with their published labels (from a
file and from a pipe), expressions in Python's syntax, and a file without end. The outcome of each
is known beforehand and checked.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from reports import heading, log, parser

from exactformer.domains.catalog import listops
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.paper.files import table, write

MOST_MEMORY = 1e9  # bytes
KINDS = 10_000  # of rows; a file repeats them
WRONG = 3  # rows with another label, at the end of the file


@dataclass(frozen=True)
class Trial:
    """A command, what is piped into it, and what it must say, with which exit status."""

    name: str
    arguments: Sequence[str | Path]
    status: int
    says: str
    piped: Path | None = None


def fill(path: Path, lines: Sequence[str], count: int, last: str = "") -> Path:
    """A file of these lines again and again, `count` with those at its end."""
    block = "".join(f"{line}\n" for line in lines)
    left = count - last.count("\n")
    with path.open("w") as file:
        for _ in range(left // len(lines)):
            file.write(block)
        file.writelines(f"{line}\n" for line in lines[: left % len(lines)])
        file.write(last)
    return path


def trials(folder: Path, count: int) -> list[Trial]:
    expressions = draw(listops(5, "mean"), 2, KINDS, np.random.default_rng(0))
    rows = [f"{evaluate(e)}\t{format_nangia(e)}" for e in expressions]
    bad = fill(folder / "bad.txt", ["x"], count)
    scored = fill(folder / "rows.tsv", rows, count, "0\t[MAX 1 2 ]\n" * WRONG)
    python = fill(folder / "python.txt", ["1 and not 0", "0 or 0"], count)
    right = f"{count - WRONG} of {count} rows right"
    more = f"and {count - 10} more bad lines"
    return [
        Trial("bad lines", ["eval", "boolean", "--file", bad], 2, more),
        Trial("bad rows", ["score", "listops", bad], 2, more),
        Trial("rows", ["score", "listops", scored], 1, right),
        Trial("rows through a pipe", ["score", "listops", "-"], 1, right, scored),
        Trial(
            "lines in Python's syntax",
            ["eval", "boolean", "--syntax", "python", "--file", python],
            0,
            "1\n0\n" * 5,
        ),
        Trial("no end, scored", ["score", "listops", "/dev/zero"], 2, "found a longer line"),
        Trial("no end, evaluated", ["eval", "boolean", "--file", "/dev/zero"], 2, "byte 0"),
    ]


def run(trial: Trial, folder: Path) -> tuple[float, int]:
    """Seconds and peak memory; ends the program if the outcome is not the right one."""
    command = [sys.executable, "-m", "exactformer", *map(str, trial.arguments)]
    said, start = folder / "said", time.perf_counter()
    with said.open("wb") as out, open(trial.piped or os.devnull, "rb") as piped:
        # Through cat it is a pipe, not a file whose size is known.
        source = subprocess.Popen(["cat"], stdin=piped, stdout=subprocess.PIPE)
        process = subprocess.Popen(command, stdin=source.stdout, stdout=out, stderr=out)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if source.stdout:
            source.stdout.close()
        source.wait()
    seconds, peak = time.perf_counter() - start, usage.ru_maxrss * 1024
    if process.returncode != trial.status or trial.says not in said.read_text():
        shown = said.read_text()[:1_000]
        sys.exit(f"{trial.name}: exit status {process.returncode}, said {shown!r}")
    if peak > MOST_MEMORY:
        sys.exit(f"{trial.name}: {peak / 1e6:.0f} MB")
    return seconds, peak


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=5_000_000, help="of each file")
    options.add_argument("--out", type=Path, default=Path("results/memory.md"))
    arguments = options.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for trial in trials(folder, arguments.rows):
            seconds, peak = run(trial, folder)
            words = [a.name if isinstance(a, Path) else a for a in trial.arguments]
            cells = [trial.name, f"`exactformer {' '.join(words)}`", str(trial.status)]
            rows.append([*cells, f"{seconds:.0f}", f"{peak / 1e6:.0f}"])
            log(" ".join(rows[-1]))
    header = ["file", "command", "exit status", "seconds", "peak memory, MB"]
    lines = [
        heading("Memory on large files"),
        f"{arguments.rows:,} lines each, but for the last two."
        " Rows wait on disk for their weights.",
        "",
        *table(header, rows, words=2),
        "",
        f"Load at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
    ]
    text = "\n".join(lines)
    write(arguments.out, text)
    print(text)


if __name__ == "__main__":
    main()
