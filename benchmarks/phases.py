"""Shows where training succeeds: first attempts by rate, start and width, as heat maps and a table.

    python benchmarks/phases.py run --workers 14 --limit 600    # the records of results/
    python benchmarks/phases.py draw                            # results/phases.md, .png and .svg

run     sweeps with one attempt a seed, in `--runs`: every rate with the recipe as it is otherwise,
        and then with each other value of the slices: the spread of the start, the open bits of
        attention's, the width of the hidden layer. It may be killed at any moment, or stopped
        after `--limit` seconds; the same command goes on. The record of a task,
        phases-TASK.json, has what has ended in `--runs` so far.
draw    the records as they are, without training. A setting whose seeds have not all ended is
        shown as such: seeds that fail end last, so that their share would mislead.
"""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from phase_records import SLICES, Cell, Record, paper_width, read, write
from reports import log, parser, run_sweep

from exactformer.domains.catalog import CATALOG
from exactformer.sweep import SettingRow, plan, read_rows
from exactformer.sweep.run import SWEEP, claim
from exactformer.training.recipe import Staged, recipe_for
from exactformer.training.record import content_sha256, read_record
from exactformer.training.run import RUN, versions

FIRST = 40_000  # the first of the seeds, which nobody has tuned anything on
SEEDS = {"boolean": 20, "arithmetic": 10, "listops": 10}
RATES = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2]
SPREADS = [0.02, 0.05, 0.1, 0.2, 0.4]
OPEN_BITS = [0.0, 0.05, 0.1, 0.2, 0.4]
WIDTHS = [0.5, 1.0, 1.5, 2.0]  # times the paper's
BLOCK = 5  # seeds trained together on a core: more are hardly faster, and the last end later
RESULTS = Path("results")
OWN = "recipe"  # the sweep in which nothing but the rate varies


def sweeps(task: str, options) -> dict[str, dict[str, list[str]]]:
    """The settings of each sweep by its name. The row that all slices share is one of its own."""
    algebra = CATALOG[task]()
    own = recipe_for(algebra)
    values = {
        "spread": (options.spreads, own.spread),
        "width": ([round(paper_width(task) * f) for f in options.widths], paper_width(task)),
        "open_bits": (options.open_bits, own.open_bits),
    }
    rates = {"attempts": ["1"], "feedforward_rate": [f"{rate:g}" for rate in options.rates]}
    found = {OWN: rates}
    for name in options.slices:
        given, at = values[name]
        if others := [f"{value:g}" for value in given if value != at]:
            found[name] = rates | {name: others}
    return found


def run(options) -> None:
    deadline = time.monotonic() + options.limit
    planned = {task: sweeps(task, options) for task in options.tasks}
    seeds = {task: range(FIRST, FIRST + (options.seeds or SEEDS[task])) for task in planned}
    for task in planned:  # a mistake shows before anything is trained
        for name, settings in planned[task].items():
            out = options.runs / task / name
            claim(out, CATALOG[task](), seeds[task], settings, options.device, options.block)
    for task in planned:
        for name, settings in planned[task].items():
            arguments = [task, "--out", str(options.runs / task / name), "--device", options.device]
            arguments += ["--seeds", f"{seeds[task][0]}-{seeds[task][-1]}"]
            arguments += ["--block", str(options.block)]
            arguments += ["--workers", str(options.workers)] if options.workers else []
            for constant, words in settings.items():
                arguments += ["--set", f"{constant}={','.join(words)}"]
            left = deadline - time.monotonic()
            whole = left > 0 and run_sweep(arguments, None if left == float("inf") else left)
            record = collected(task, options.runs / task)
            write(options.records, record)
            ended = sum(cell.ended for cell in record.cells)
            log(f"{task}: {ended} of {len(record.cells) * len(record.seeds)} seeds have ended")
            if not whole:
                log(f"{task}: {name} is not whole; the same command goes on with it")


def collected(task: str, folder: Path) -> Record:
    """The seeds that have ended in the sweeps of a task, which have the same seeds, device and
    versions.
    """
    algebra = CATALOG[task]()
    cells: list[Cell] = []
    common: dict[str, Any] = {}
    for path in (folder / name / SWEEP for name in (OWN, *SLICES)):
        if not path.exists():
            continue
        held = read_record(path)
        shards = plan(algebra, held["seeds"], held["settings"], held["block"])
        recipes = {shard.setting: shard.recipe for shard in shards}
        rows = read_rows(path.parent, shards)
        cells += [cell(task, recipes[row.setting], row) for row in rows]
        runs = [path.parent / shard.name / RUN for shard in shards]
        found = [{"versions": read_record(run)["versions"]} for run in runs if run.exists()]
        for facts in ({name: held[name] for name in ("seeds", "device")}, *found):
            for name, fact in facts.items():
                if common.setdefault(name, fact) != fact:
                    raise ValueError(f"{path.parent}: its {name} are not those of other sweeps")
    own = asdict(replace(recipe_for(algebra), attempts=1))
    seeds, used = tuple(common["seeds"]), common.get("versions", versions())
    return Record(task, own, seeds, common["device"], used, tuple(cells))


def cell(task: str, recipe, row: SettingRow) -> Cell:
    assert isinstance(recipe, Staged)
    exact = {record["seed"] for record in row.certified}
    learned = {r["seed"] for r in row.records if r["rows_right"] == r["rows"]}
    every = sorted(record["seed"] for record in row.records)
    hashes = {str(record["seed"]): record["weights_sha256"] for record in row.records}
    return Cell(
        feedforward_rate=recipe.feedforward_rate,
        spread=recipe.spread,
        width=recipe.width or paper_width(task),
        open_bits=recipe.open_bits,
        exact=tuple(seed for seed in every if seed in exact),
        rows_wrong=tuple(seed for seed in every if seed not in exact | learned),
        rest_wrong=tuple(seed for seed in every if seed in learned - exact),
        weights_sha256=content_sha256(hashes),
    )


def draw(options) -> None:
    from phase_pages import figure, page

    records = [record for task in options.tasks if (record := read(options.records, task))]
    if not records:
        raise ValueError(f"{options.records}: expected a record phases-TASK.json, found none")
    for path in (page(options.out, records), *figure(options.out, records)):
        log(f"written: {path}")


def main() -> None:
    known = parser(__doc__)
    known.add_argument("mode", choices=("run", "draw"))
    known.add_argument("--tasks", nargs="+", choices=list(CATALOG), default=list(SEEDS))
    known.add_argument("--records", type=Path, metavar="FOLDER", default=RESULTS)
    known.add_argument("--out", type=Path, metavar="FOLDER", default=RESULTS, help="of draw")
    known.add_argument("--runs", type=Path, metavar="FOLDER", default=Path("runs/phases"))
    known.add_argument("--slices", nargs="+", choices=SLICES, default=list(SLICES))
    known.add_argument("--seeds", type=int, metavar="N", help="a setting; 20, or 10")
    known.add_argument("--limit", type=float, metavar="SECONDS", default=float("inf"))
    known.add_argument("--device", default="cpu")
    known.add_argument("--workers", type=int, metavar="N")
    known.add_argument("--block", type=int, metavar="N", default=BLOCK)
    known.add_argument("--rates", nargs="+", type=float, metavar="X", default=RATES)
    known.add_argument("--spreads", nargs="+", type=float, metavar="X", default=SPREADS)
    known.add_argument("--open-bits", nargs="+", type=float, metavar="X", default=OPEN_BITS)
    times = "times the paper's"
    known.add_argument("--widths", nargs="+", type=float, metavar="X", default=WIDTHS, help=times)
    options = known.parse_args()
    try:
        {"run": run, "draw": draw}[options.mode](options)
    except ValueError as error:
        known.error(str(error))


if __name__ == "__main__":
    main()
