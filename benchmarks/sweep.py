"""Thousands of seeds: how many a second, and how many are certified at the first attempt.

    python benchmarks/sweep.py speed                       > results/sweep.md
    python benchmarks/sweep.py speed --device cuda --seeds 1000 --limit 300
    python benchmarks/sweep.py first --device cuda [--method sure]
    python benchmarks/sweep.py kept                        # the table of results/first-attempts.md

speed   `exactformer sweep` of N seeds a task from 10000 on. On the CPU also some of them in one
        process, together and one at a time, whose weights must have the same bytes.
first   1,000 such seeds with one attempt each by a method, and a record of them (`--records`). By
        the sure one they are from 50000 on.
kept    the table of all records of that kind, without training.

A sweep that takes longer than `--limit` seconds is stopped, and the table has what had ended by
then; the same command with the same `--runs` goes on.
"""

import json
import os
import platform
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path

import torch
from reports import heading, log, parser, run_sweep

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG
from exactformer.paper.files import table
from exactformer.problems.accuracy import interval
from exactformer.sweep import SettingRow
from exactformer.sweep.run import SWEEP
from exactformer.training.kinds import TRAININGS, recipe_by_method
from exactformer.training.record import read_record, read_seed_record
from exactformer.training.run import train_seeds, versions
from exactformer.weights.file import write_atomically

METHODS = [*TRAININGS[Algebra.kind].methods]

FIRST = 10_000  # the first of the seeds, which nobody has tuned anything on
# What stops seeds from 10000 on is what the sure recipe was made against; those from 50000 on have
# judged an earlier choice of its constants.
FIRST_SURE = 60_000
TOGETHER = {"boolean": 20, "arithmetic": 4, "listops": 2}  # of one process, and one at a time
RECORDS = Path("results")


def timed_sweep(task: str, seeds: int, folder: Path, options) -> tuple[SettingRow, float, bool]:
    """A sweep by the command line: what has ended, the seconds, and whether that is all."""
    out = folder / f"{options.mode}-{options.method}-{task}-{seeds}"
    start = FIRST_SURE if options.method == "sure" else FIRST
    arguments = [task, "--out", str(out), "--seeds", f"{start}-{start + seeds - 1}"]
    arguments += ["--device", options.device, "--set", f"method={options.method}"]
    arguments += ["--set", "attempts=1"] if options.mode == "first" else []
    for name in ("workers", "block"):
        if (value := getattr(options, name)) is not None:
            arguments += [f"--{name}", str(value)]
    began = time.perf_counter()
    run_sweep(arguments, options.limit)
    seconds = time.perf_counter() - began
    records = []
    for path in sorted(out.glob("*/*/*.json")):
        if path.stem.isdecimal():
            records.append(read_seed_record(path, int(path.stem)))
    if (out / SWEEP).exists():
        read_record(out / SWEEP)  # its hash is right
    return SettingRow((), records), seconds, len(records) == seeds


def share(count: int, total: int) -> str:
    low, high = interval(count, total)
    return f"{count} of {total} ({low:.3f} to {high:.3f})"


def speed(folder: Path, options) -> list[str]:
    header = ["task", "seeds", "ended", "seconds", "seeds a second"]
    header += ["certified (95%)", "at the first attempt (95%)"]
    rows = []
    for task in options.tasks:
        row, seconds, _ = timed_sweep(task, options.seeds, folder, options)
        ended = len(row.records)
        cells = [task, str(options.seeds), str(ended), f"{seconds:.0f}", f"{ended / seconds:.2f}"]
        rows.append([*cells, share(len(row.certified), ended), share(row.at_first, ended)])
        log(" | ".join(rows[-1]))
    lines = ["## `exactformer sweep`, from the command to the last certificate", ""]
    lines += [*table(header, rows), ""]
    if options.device != "cpu":
        return lines
    lines += ["## One process: seeds together, and one at a time", ""]
    header = ["task", "seeds", "together, s of CPU", "one at a time", "ratio", "same bytes"]
    rows = [one_process(task) for task in options.tasks]
    return [*lines, *table(header, rows)]


def one_process(task: str) -> list[str]:
    seeds = range(FIRST, FIRST + TOGETHER[task])
    with tempfile.TemporaryDirectory() as temporary:
        start = time.process_time()
        train_seeds(CATALOG[task](), seeds, out=Path(temporary, "together"))
        middle = time.process_time()
        same = 0
        for seed in seeds:
            train_seeds(CATALOG[task](), [seed], out=Path(temporary, str(seed)))
            files = (Path(temporary, f, f"{seed}.safetensors") for f in ("together", str(seed)))
            first, second = (file.read_bytes() for file in files)
            same += first == second
        end = time.process_time()
    assert same == len(seeds), f"{task}: {len(seeds) - same} seeds have other bytes alone"
    together, alone = middle - start, end - middle
    cells = [task, str(len(seeds)), f"{together:.1f}", f"{alone:.1f}", f"{alone / together:.2f}×"]
    log(" | ".join(cells))
    return [*cells, f"{same} of {len(seeds)}"]


def first(folder: Path, options) -> list[str]:
    rows = []
    for task in options.tasks:
        row, seconds, whole = timed_sweep(task, options.seeds, folder, options)
        rows.append(attempts(options.method, task, row, seconds))
        log(" | ".join(rows[-1]))
        if whole:
            fields = ("seed", "verdict", "step", "rows_right", "rows", "margin", "weights_sha256")
            recipe = recipe_by_method(options.method, CATALOG[task](), {"attempts": 1})
            record = {
                "task": task,
                "method": options.method,
                "recipe": asdict(recipe),
                "device": options.device,
                "versions": versions(),
                "seconds": round(seconds),
                "seeds": [{name: of_seed[name] for name in fields} for of_seed in row.records],
            }
            options.records.mkdir(parents=True, exist_ok=True)
            path = record_path(options.records, options.method, task)
            lines = json.dumps(record).replace('{"seed"', '\n{"seed"')  # a line for each
            write_atomically(path, lines + "\n")
            log(f"written: {path}")
    return first_table(rows)


def kept(_: Path, options) -> list[str]:
    rows = []
    for method, task in product(METHODS, options.tasks):
        if (path := record_path(options.records, method, task)).exists():
            record = json.loads(path.read_text())
            once = [{**s, "attempt": 1, "steps_in_all": s["step"]} for s in record["seeds"]]
            rows.append(
                attempts(record["method"], record["task"], SettingRow((), once), record["seconds"])
            )
    return first_table(rows)


def record_path(folder: Path, method: str, task: str) -> Path:
    name = task if method == "staged" else f"{method}-{task}"
    return folder / f"first-attempts-{name}.json"


def attempts(method: str, task: str, row: SettingRow, seconds: float) -> list[str]:
    low, high = interval(row.at_first, len(row.records))
    seeds = [record["seed"] for record in row.records]
    which = f"{min(seeds)} to {max(seeds)}" if seeds else "-"
    cells = [task, method, which, str(len(seeds)), str(row.at_first), f"{low:.3f} to {high:.3f}"]
    return [*cells, row.cells[-3], row.cells[-1], f"{seconds:.0f}"]


def first_table(rows: Sequence[Sequence[str]]) -> list[str]:
    header = ["task", "method", "seeds", "ended", "certified at the first attempt", "95% interval"]
    header += ["steps, median", "margin, least", "seconds"]
    return [*table(header, rows, words=3), "", "None of these seeds was used to tune the recipe."]


def main() -> None:
    known = parser(__doc__)
    known.add_argument("mode", choices=("speed", "first", "kept"))
    known.add_argument("--method", choices=METHODS, default="staged")
    known.add_argument("--device", default="cpu")
    known.add_argument("--tasks", nargs="+", choices=list(CATALOG), default=list(CATALOG))
    known.add_argument("--seeds", type=int, metavar="N", help="a task; 40, or 1000 of first")
    known.add_argument("--limit", type=float, metavar="SECONDS", help="of one task's sweep")
    known.add_argument("--workers", type=int)
    known.add_argument("--block", type=int)
    known.add_argument("--runs", type=Path, metavar="FOLDER")
    known.add_argument("--records", type=Path, metavar="FOLDER", default=RECORDS)
    options = known.parse_args()
    options.seeds = options.seeds or (40 if options.mode == "speed" else 1_000)
    print(heading("Sweeps" if options.mode == "speed" else "First attempts"))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"
    if options.device != "cpu":
        machine += f", {torch.cuda.get_device_name()}"
    if options.mode != "kept":
        print(f"{machine}.\n", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        mode = {"speed": speed, "first": first, "kept": kept}[options.mode]
        print("\n".join(mode(folder, options)), flush=True)


if __name__ == "__main__":
    main()
