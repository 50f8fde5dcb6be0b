"""Training runs as the tables need them: several at once, each a process of its own on one core."""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from exactformer.domains.catalog import CATALOG
from exactformer.training.recipe import EndToEnd, Recipe, recipe_by_method
from exactformer.training.run import Result, train_seeds

RUNS = Path("runs")  # of training; one that is finished is not done again


@dataclass(frozen=True)
class Run:
    """A call of `exactformer train`; where the folder holds the finished run, it is only read."""

    task: str
    seeds: tuple[int, ...]
    folder: Path
    method: str = "staged"
    settings: tuple[tuple[str, float], ...] = ()  # constants of the recipe other than its own

    @property
    def recipe(self) -> Recipe | EndToEnd:
        return recipe_by_method(self.method, CATALOG[self.task](), dict(self.settings))

    @property
    def arguments(self) -> list[str]:
        """Of the command."""
        seeds = ",".join(map(str, self.seeds))
        words = ["train", self.task, "--seeds", seeds, "--out", str(self.folder)]
        if self.method != "staged":
            words += ["--method", self.method]
        for name, value in self.settings:
            words += ["--set", f"{name}={value}"]
        return words

    def __str__(self) -> str:
        return " ".join(["exactformer", *self.arguments])


def train_all(runs: Sequence[Run], at_once: int | None = None) -> dict[Run, list[Result]]:
    """Do the runs, `at_once` at a time, passing their progress on to standard error."""
    workers = at_once or min(len(runs), max(2, os.cpu_count() or 1))
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(_do, runs))
    return {
        run: train_seeds(CATALOG[run.task](), run.seeds, recipe=run.recipe, out=run.folder)
        for run in runs
    }


def _do(run: Run) -> None:
    command = [sys.executable, "-m", "exactformer", *run.arguments]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    last: deque[str] = deque(maxlen=5)
    for line in process.stderr:
        last.append(line)
        with _ONE_LINE:
            sys.stderr.write(line)
    if process.wait() not in (0, 1):  # 1: some seed is not exact, which the table will say
        raise ValueError(f"{run} failed:\n{''.join(last)}")


_ONE_LINE = threading.Lock()  # lines of several runs do not mix
