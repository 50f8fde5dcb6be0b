"""Training from random weights to proofs: how long, how surely, and with what margins.

    python benchmarks/training.py --runs runs/benchmark > results/training.md

paper      the paper's thirty models, on all cores or as many as `--workers` says: what
           `exactformer reproduce` does first
single     the same seeds together and one at a time, in one process: what the seed axis gains
fresh      N seeds a task from 1000 on, which nobody has tuned anything on, with three attempts
margins    distance of the outputs from the threshold before and after polishing

Runs are kept in the folder and resumed from there; without `--runs` it is a temporary one. `--only`
chooses one section, `--fresh` another N than 30. The thirty models on two cores are `--only paper
--workers 2`.
"""

import json
import os
import platform
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from reports import heading, log, parser

from exactformer.domains.catalog import CATALOG
from exactformer.paper import published
from exactformer.paper.files import table
from exactformer.paper.runs import TrainingRun, train_all
from exactformer.training.run import Result, train_seeds
from exactformer.weights.file import write_atomically

FIRST_FRESH, FRESH_ATTEMPTS = 1_000, 3
PAPER_HOURS = 2  # a seed, at most, on a laptop's CPU; for Boolean, all ten seeds together
PAPER_BOUND = PAPER_HOURS * (1 + 10 + 10)

Record = dict[str, Any]


def paper(folder: Path, options: Namespace) -> list[str]:
    runs = _paper_runs(folder)
    trained, seconds = _timed(runs, folder / "paper" / "seconds.json", options.workers)
    header = ["task", "seeds", "certified", "at the first attempt", "seconds to the last proof"]
    rows = []
    for run in runs:
        records = [result.record for result in trained[run]]
        exact = [record for record in records if record["verdict"] == "exact"]
        first = sum(record["attempt"] == 1 for record in exact)
        last = max(record["seconds"] for record in records)
        rows.append([run.task, f"{len(records)}", f"{len(exact)}", f"{first}", f"{last:.1f}"])
    models = sum(len(run.seeds) for run in runs)
    return [
        f"## The paper's {models} models, from random weights to proofs",
        "",
        *table(header, rows),
        "",
        f"All three tasks, the seeds of each shared among {options.workers} processes, one on each "
        f"core: {seconds:.1f} s on the clock, from the start of the first process to the last "
        f"proof read back. The paper gives bounds, on a laptop's CPU: {PAPER_HOURS} hours for all "
        f"Boolean seeds, and {PAPER_HOURS} for each other one, so {PAPER_BOUND} hours at most. "
        "That is another machine and another method, and no measurement: no ratio follows from it.",
    ]


def single(folder: Path, options: Namespace) -> list[str]:
    header = ["task", "together, s", "one at a time, s", "gain", "together, CPU s"]
    header += ["one at a time, CPU s", "gain", "s a seed", "paper's limit, s a seed"]
    rows = []
    sums = np.zeros(4)
    for task in CATALOG:
        kept = folder / "single" / f"{task}.json"
        if not kept.exists():
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(kept, json.dumps(_together_and_alone(task)))
        times = np.array(json.loads(kept.read_text()))
        sums += times
        rows.append(_gains(task, times, len(published.SEEDS)))
    rows.append(_gains("all", sums, len(CATALOG) * len(published.SEEDS)))
    return [
        "## Ten seeds on a leading axis, beside one at a time",
        "",
        *table(header, rows),
        "",
        "One process, one thread, the paper's ten seeds a task, from random weights to proofs. "
        "Both ways end with the same weights, byte for byte. Polishing and certifying are done "
        "seed by seed either way. The cores may be shared with other programs: CPU seconds are "
        "steadier than those on the clock.",
    ]


def _together_and_alone(task: str) -> list[float]:
    """Seconds on the clock and of CPU: ten seeds together, then each by itself."""
    algebra = CATALOG[task]()
    train_seeds(CATALOG["boolean"](), [0])  # torch loads parts of itself when first used
    clock, cpu = time.perf_counter(), time.process_time()
    together = train_seeds(algebra, published.SEEDS)
    times = [time.perf_counter() - clock, time.process_time() - cpu]
    log(f"{task}: ten seeds together in {times[0]:.1f} s")
    clock, cpu = time.perf_counter(), time.process_time()
    for result in together:
        (alone,) = train_seeds(algebra, [result.seed])
        assert alone.record["weights_sha256"] == result.record["weights_sha256"]
        log(f"{task} {alone.seed}: alone in {alone.record['seconds']:.1f} s")
    return [*times, time.perf_counter() - clock, time.process_time() - cpu]


def _gains(task: str, times: np.ndarray, seeds: int) -> list[str]:
    together, together_cpu, alone, alone_cpu = times
    cells = [f"{together:.1f}", f"{alone:.1f}", f"{alone / together:.2f}×"]
    cells += [f"{together_cpu:.1f}", f"{alone_cpu:.1f}", f"{alone_cpu / together_cpu:.2f}×"]
    return [task, *cells, f"{together / seeds:.2f}", f"{PAPER_HOURS * 3600}"]


def fresh(folder: Path, options: Namespace) -> list[str]:
    seeds = tuple(range(FIRST_FRESH, FIRST_FRESH + options.fresh))
    attempts = (("attempts", FRESH_ATTEMPTS),)
    runs = [
        TrainingRun(task, seeds, folder / "fresh" / f"{task}-{options.fresh}", settings=attempts)
        for task in CATALOG
    ]
    trained = train_all(runs, options.workers)
    header = ["task", "seeds", "certified at the first attempt", f"within {FRESH_ATTEMPTS}"]
    header += ["steps in all: least", "lower quartile", "median", "upper quartile", "most"]
    header += ["smallest margin", "not certified"]
    rows = []
    for run in runs:
        records = [result.record for result in trained[run]]
        exact = [record for record in records if record["verdict"] == "exact"]
        first = sum(record["attempt"] == 1 for record in exact)
        missed = [str(record["seed"]) for record in records if record["verdict"] != "exact"]
        shown = ["", "", "", "", "", ""]
        if exact:
            steps = np.quantile([record["steps_in_all"] for record in exact], np.arange(5) / 4)
            margin = min(record["margin"] for record in exact)
            shown = [*(f"{step:,.0f}" for step in steps), f"{margin:.1f}"]
        within = f"{len(exact)} of {len(records)}"
        cells = [f"{first} of {len(records)}", within, *shown, " ".join(missed) or "none"]
        rows.append([run.task, f"{len(records)}", *cells])
    return [
        f"## Fresh seeds {seeds[0]} to {seeds[-1]}",
        "",
        *table(header, rows),
        "",
        f"Never used for tuning. Steps are those of depth 1 over all of a seed's attempts, of "
        f"which it had at most {FRESH_ATTEMPTS}; quartiles are over the certified seeds.",
    ]


def margins(folder: Path, options: Namespace) -> list[str]:
    trained = train_all(_paper_runs(folder), options.workers)
    header = ["task", "before polishing: smallest", "median", "after: smallest", "median"]
    header += ["largest rounding bound", "least margin over its bound"]
    rows = []
    for run, results in trained.items():
        records = [result.record for result in results if result.exact]
        before, after, bounds = (
            np.array([record[name] for record in records])
            for name in ("margin_before_polish", "margin", "rounding_bound")
        )
        cells = [before.min(), np.median(before), after.min(), np.median(after)]
        shown = [*(f"{cell:.3f}" for cell in cells), f"{bounds.max():.2g}"]
        rows.append([run.task, *shown, f"{(after / bounds).min():,.0f}×"])
    return [
        "## Margins of the paper's seeds",
        "",
        *table(header, rows),
        "",
        "The margin of a model is the least distance of any of its outputs from the threshold "
        "over all rows of the certificate; the rounding bound is the most that rounding in "
        "float64 can move an output, in any order of summation. A proof needs the first to exceed "
        "the second.",
    ]


SECTIONS: dict[str, Callable[[Path, Namespace], list[str]]] = {
    "paper": paper,
    "single": single,
    "fresh": fresh,
    "margins": margins,
}


def _paper_runs(folder: Path) -> list[TrainingRun]:
    return [TrainingRun(task, published.SEEDS, folder / "paper" / task) for task in CATALOG]


def _timed(
    runs: list[TrainingRun], kept: Path, workers: int
) -> tuple[dict[TrainingRun, list[Result]], float]:
    """The runs' results and the seconds they took, those of interrupted calls included."""
    before = json.loads(kept.read_text()) if kept.exists() else 0.0
    finished = all((run.folder / f"{seed}.json").exists() for run in runs for seed in run.seeds)
    if finished and before:
        return train_all(runs, workers), before
    start = time.perf_counter()
    try:
        trained = train_all(runs, workers)
    finally:
        before += time.perf_counter() - start
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(kept, json.dumps(before))
    return trained, before


def main() -> None:
    known = parser(__doc__)
    known.add_argument("--fresh", type=int, default=30, metavar="N")
    known.add_argument("--workers", type=int, default=os.cpu_count() or 1, metavar="N")
    known.add_argument("--only", choices=list(SECTIONS))
    known.add_argument("--runs", type=Path, metavar="FOLDER")
    options = known.parse_args()
    for name in ("fresh", "workers"):
        if (value := getattr(options, name)) < 1:
            known.error(f"expected --{name} of 1 or more, found {value}")
    print(heading("Training"))
    print(f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}, CPU, float32.")
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.runs or Path(temporary)
        for name in [options.only] if options.only else SECTIONS:
            print("\n" + "\n".join(SECTIONS[name](folder, options)), flush=True)


if __name__ == "__main__":
    main()
