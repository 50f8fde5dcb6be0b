"""The paper's ten seeds while they train end to end: the joint loss, and what comes out wrong; for
Fig. 4A.
"""

import csv
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from exactformer.domains.catalog import CATALOG
from exactformer.paper import published
from exactformer.paper.files import write
from exactformer.training.recipe import EndToEnd, end_to_end_recipe
from exactformer.training.run import Observer, train_seeds
from exactformer.training.state import State


class Point(NamedTuple):
    """A seed at one of its evaluations."""

    loss: float  # of the last step, on both depths
    one: float  # fraction of all depth-1 cases that the discrete model gets wrong,
    two: float  # and of the step's depth-2 problems


Curve = dict[int, Point]  # by step
Curves = dict[str, dict[int, Curve]]  # by task and seed

HEADER = "# exactformer reproduce fig4, end to end"
COLUMNS = "task,seed,step,loss,depth 1 wrong,depth 2 wrong"


class Recorder(Observer):
    """Records every seed's loss and errors at those evaluations that follow a joint step."""

    def __init__(self, cases: int, recipe: EndToEnd) -> None:
        self.cases, self.recipe = cases, recipe
        self.curves: dict[int, Curve] = {}

    def evaluated(self, state: State) -> None:
        for seed in state.seeds:
            if seed.depth_two is not None and self.recipe.joint_step(seed.step - 1) >= 0:
                one = seed.depth_one / self.cases
                two = seed.depth_two / self.recipe.depth_two_batch
                curve = self.curves.setdefault(seed.seed, {})
                curve[seed.step] = Point(float(f"{seed.loss:.4g}"), round(1 - one, 5), 1 - two)


def loss_curves(path: Path) -> Curves:
    """The curves in the file, training those seeds that it lacks, and keeping each as it ends."""
    curves = _read(path)
    console = Console(stderr=True)
    for task, make in CATALOG.items():
        algebra, held = make(), curves.setdefault(task, {})
        recipe = end_to_end_recipe(algebra)
        for seed in published.SEEDS:
            if seed not in held:
                recorder = Recorder(algebra.count_cases(every_order=False), recipe)
                with console.status(f"{task} {seed}: training end to end for its losses"):
                    train_seeds(algebra, [seed], recipe=recipe, observers=[recorder])
                held |= recorder.curves
                _write(path, curves)
    return curves


def _read(path: Path) -> Curves:
    if not path.exists():
        return {}
    curves: Curves = {}
    try:
        first, second, *lines = path.read_text().splitlines()
        if (first, second) != (HEADER, COLUMNS):
            raise ValueError(f"expected {HEADER!r} and {COLUMNS!r} in its first lines")
        for task, seed, step, *numbers in csv.reader(lines):
            curve = curves.setdefault(task, {}).setdefault(int(seed), {})
            curve[int(step)] = Point(*map(float, numbers))
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}; remove it to train again") from None
    return curves


def _write(path: Path, curves: Curves) -> None:
    lines = [HEADER, COLUMNS]
    for task, seeds in curves.items():
        for seed, curve in seeds.items():
            for step, point in curve.items():
                lines.append(",".join([task, str(seed), str(step), *(f"{n:.6g}" for n in point)]))
    write(path, "\n".join(lines) + "\n")
