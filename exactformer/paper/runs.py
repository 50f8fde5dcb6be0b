"""Training runs as the tables need them: several at once, each a process of its own on one core."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from exactformer.domains.catalog import CATALOG
from exactformer.host.atomic import write_atomically
from exactformer.training.display import Terminal
from exactformer.training.kinds import AnyRecipe, recipe_by_method
from exactformer.training.run import RUN, Result, describe_run, train_seeds, write_run
from exactformer.training.workers import start_workers

RUNS = Path("runs")  # of training; one that is finished is not done again


@dataclass(frozen=True)
class TrainingRun:
    """A call of `exactformer train`; where the folder holds the finished run, it is only read."""

    task: str
    seeds: tuple[int, ...]
    folder: Path
    method: str = "staged"
    settings: tuple[tuple[str, float], ...] = ()  # constants of the recipe other than its own

    @property
    def recipe(self) -> AnyRecipe:
        return recipe_by_method(self.method, CATALOG[self.task](), dict(self.settings))

    def __str__(self) -> str:
        """The command line of the run."""
        seeds = ",".join(map(str, self.seeds))
        words = ["exactformer train", self.task, "--seeds", seeds, "--out", str(self.folder)]
        if self.method != "staged":
            words += ["--method", self.method]
        for name, value in self.settings:
            words += ["--set", f"{name}={value}"]
        return " ".join(words)


def train_all(
    runs: Sequence[TrainingRun], at_once: int | None = None
) -> dict[TrainingRun, list[Result]]:
    """Do the runs, `at_once` processes at a time, passing their progress on to standard error.

    A run that has not begun is done in parts, so that all cores have as much to do.
    """
    workers = at_once or os.cpu_count() or 1
    parts = {run: _parts(run, workers) for run in runs}
    todo = [part for of_run in parts.values() for part in of_run]
    with start_workers(min(workers, len(todo))) as pool:
        list(pool.map(_do, todo))
    for run, of_run in parts.items():
        _join(run, of_run)
    return {
        run: train_seeds(CATALOG[run.task](), run.seeds, recipe=run.recipe, out=run.folder)
        for run in runs
    }


def _parts(run: TrainingRun, count: int) -> list[TrainingRun]:
    """Split a run by seeds into runs in folders within its own; one that has begun stays whole."""
    if (run.folder / RUN).exists() or run.method != "staged" or count < 2:
        return [run]
    shares = [run.seeds[i::count] for i in range(min(count, len(run.seeds)))]
    return [
        replace(run, seeds=seeds, folder=run.folder / f"part-{i}-of-{len(shares)}")
        for i, seeds in enumerate(shares, start=1)
    ]


def _do(run: TrainingRun) -> None:
    algebra, recipe = CATALOG[run.task](), run.recipe
    console = Console(stderr=True, force_terminal=False)  # lines, since others write there too
    with Terminal(algebra, recipe, run.seeds, console) as terminal:
        train_seeds(algebra, run.seeds, recipe=recipe, out=run.folder, observers=[terminal])


def _join(run: TrainingRun, parts: Sequence[TrainingRun]) -> None:
    """Join the files of all parts into one run. Its description is written last, so that an
    interrupted join can be repeated.
    """
    if parts == [run]:
        return
    for part in parts:
        for path in part.folder.iterdir():
            if path.name != RUN:
                write_atomically(run.folder / path.name, path.read_bytes())
    write_run(run.folder, describe_run(CATALOG[run.task](), run.recipe, run.seeds))
    for part in parts:
        shutil.rmtree(part.folder)
