"""Thousands of seeds: how many a second, and how many are certified at the first attempt.

    python benchmarks/sweep.py speed                       > results/sweep.md
    python benchmarks/sweep.py speed --device cuda --seeds 1000 --limit 300
    python benchmarks/sweep.py first --device cuda         > results/first-attempts.md

speed   `exactformer sweep` of N seeds a task from 10000 on. On the CPU also some of them in one
        process, together and one at a time, whose weights must have the same bytes.
first   1,000 such seeds with one attempt each, and a record of them (`--records`).

A sweep that takes longer than `--limit` seconds is stopped, and the table has what had ended by
then; the same command with the same `--runs` goes on.
"""

import json
import os
import platform
import tempfile
import time
from pathlib import Path

import torch
from reports import heading, log, parser, run_sweep

from exactformer.domains.catalog import CATALOG
from exactformer.evaluate import interval
from exactformer.paper.files import table
from exactformer.sweep import Row
from exactformer.sweep.run import SWEEP
from exactformer.training.record import read_record, read_seed_record
from exactformer.training.run import train_seeds, versions
from exactformer.weightfile import write_atomically

FIRST = 10_000  # the first of the seeds, which nobody has tuned anything on
TOGETHER = {"boolean": 20, "arithmetic": 4, "listops": 2}  # of one process, and one at a time
RECORDS = Path("results")


def timed_sweep(task: str, seeds: int, folder: Path, options) -> tuple[Row, float, bool]:
    """A sweep by the command line: what has ended, the seconds, and whether that is all."""
    out = folder / f"{options.mode}-{task}-{seeds}"
    arguments = [task, "--out", str(out), "--seeds", f"{FIRST}-{FIRST + seeds - 1}"]
    arguments += ["--device", options.device]
    arguments += ["--set", "attempts=1"] if options.mode == "first" else []
    for name in ("workers", "block"):
        if (value := getattr(options, name)) is not None:
            arguments += [f"--{name}", str(value)]
    start = time.perf_counter()
    run_sweep(arguments, options.limit)
    seconds = time.perf_counter() - start
    records = []
    for path in sorted(out.glob("*/*/*.json")):
        if path.stem.isdecimal():
            records.append(read_seed_record(path, int(path.stem)))
    if (out / SWEEP).exists():
        read_record(out / SWEEP)  # its hash is right
    return Row((), records), seconds, len(records) == seeds


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
    header = ["task", "seeds", "certified at the first attempt", "95% interval"]
    header += ["steps, median", "margin, least", "seconds"]
    rows = []
    for task in options.tasks:
        row, seconds, whole = timed_sweep(task, options.seeds, folder, options)
        low, high = interval(row.at_first, len(row.records))
        cells = [task, str(len(row.records)), str(row.at_first), f"{low:.3f} to {high:.3f}"]
        rows.append([*cells, row.cells[-3], row.cells[-1], f"{seconds:.0f}"])
        log(" | ".join(rows[-1]))
        if whole:
            kept = ("seed", "verdict", "step", "rows_right", "rows", "margin", "weights_sha256")
            record = {
                "task": task,
                "device": options.device,
                "versions": versions(),
                "seeds": [{name: of_seed[name] for name in kept} for of_seed in row.records],
            }
            options.records.mkdir(parents=True, exist_ok=True)
            path = options.records / f"first-attempts-{task}.json"
            lines = json.dumps(record).replace('{"seed"', '\n{"seed"')  # a line for each
            write_atomically(path, lines + "\n")
            log(f"written: {path}")
    return [*table(header, rows), "", f"Seeds from {FIRST} on; none was used to tune a recipe."]


def main() -> None:
    known = parser(__doc__)
    known.add_argument("mode", choices=("speed", "first"))
    known.add_argument("--device", default="cpu")
    known.add_argument("--tasks", nargs="+", choices=list(CATALOG), default=list(CATALOG))
    known.add_argument("--seeds", type=int, metavar="N", help="a task; 40, or 1000 of first")
    known.add_argument("--limit", type=float, metavar="SECONDS", help="of one task's sweep")
    known.add_argument("--workers", type=int)
    known.add_argument("--block", type=int)
    known.add_argument("--runs", type=Path, metavar="FOLDER")
    known.add_argument("--records", type=Path, metavar="FOLDER", default=RECORDS)
    options = known.parse_args()
    options.seeds = options.seeds or {"speed": 40, "first": 1_000}[options.mode]
    title = {"speed": "Sweeps", "first": "First attempts"}[options.mode]
    print(heading(title))
    machine = f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}"
    if options.device != "cpu":
        machine += f", {torch.cuda.get_device_name()}"
    print(f"{machine}.\n", flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        mode = {"speed": speed, "first": first}[options.mode]
        print("\n".join(mode(folder, options)), flush=True)


if __name__ == "__main__":
    main()
