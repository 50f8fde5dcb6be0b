"""The loss by step of the paper's ten seeds, recorded while they train; for Fig. 4A."""

import csv
import math
from pathlib import Path

import torch
from rich.console import Console
from torch.nn.functional import binary_cross_entropy_with_logits

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG
from exactformer.model.circuit import Weights
from exactformer.paper import published
from exactformer.paper.files import write
from exactformer.training.depth_one import depth_one_rows
from exactformer.training.parameters import export
from exactformer.training.recipe import recipe_for
from exactformer.training.run import Observer, Result, train_seeds
from exactformer.training.state import State, begin

Curve = dict[int, float]  # loss by step
Curves = dict[str, dict[int, Curve]]  # by task and seed

HEADER = "# exactformer reproduce fig4"


class LossRecorder(Observer):
    """The depth-1 loss of every seed: at the start, at each evaluation, and at the end.

    Steps are counted over all attempts, so a restart is a jump upwards.
    """

    def __init__(self, algebra: Algebra, start: State) -> None:
        self.algebra = algebra
        self.curves: dict[int, Curve] = {
            seed.seed: {0: depth_one_loss(algebra, export(algebra, start.tensors, row))}
            for row, seed in enumerate(start.seeds)
        }

    def evaluated(self, state: State) -> None:
        for seed in state.seeds:
            if not math.isnan(seed.loss):  # a seed that has just started again has none yet
                self.curves[seed.seed][seed.spent] = seed.loss

    def ended(self, result: Result) -> None:
        loss = depth_one_loss(self.algebra, result.model.weights)
        self.curves[result.seed][result.record["steps_in_all"]] = loss


@torch.no_grad()
def depth_one_loss(algebra: Algebra, weights: Weights) -> float:
    """The loss that training minimises, over all depth-1 expressions."""
    rows, D = depth_one_rows(algebra), len(algebra.vocabulary)
    token, bag, target, weight = (
        tensor[..., :D]
        for tensor in (rows.token, rows.bags(None)[:, :, 0], rows.target, rows.weight)
    )
    Z = weights.f(bag * (token @ weights.W_Q @ weights.W_K.mT))
    return float((binary_cross_entropy_with_logits(Z, target, reduction="none") * weight).sum())


def loss_curves(path: Path) -> Curves:
    """The curves in the file, training those tasks that it lacks."""
    curves = _read(path)
    console = Console(stderr=True)
    for task, make in CATALOG.items():
        if curves.get(task, {}).keys() == set(published.SEEDS):
            continue
        algebra = make()
        recorder = LossRecorder(algebra, begin(algebra, recipe_for(algebra), published.SEEDS))
        with console.status(f"{task}: training ten seeds for their losses"):
            train_seeds(algebra, published.SEEDS, observers=[recorder])
        _write(path, curves | {task: recorder.curves})
        curves = _read(path)  # in the precision of the file, so that it gives the same figure
    return curves


def _read(path: Path) -> Curves:
    if not path.exists():
        return {}
    curves: Curves = {}
    try:
        first, *lines = path.read_text().splitlines()
        if first != HEADER:
            raise ValueError(f"expected {HEADER!r} in its first line, found {first!r}")
        for row in csv.DictReader(lines):
            curve = curves.setdefault(row["task"], {}).setdefault(int(row["seed"]), {})
            curve[int(row["step"])] = float(row["loss"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: {error}; remove it to train again") from None
    return curves


def _write(path: Path, curves: Curves) -> None:
    lines = [HEADER, "task,seed,step,loss"]
    for task, seeds in curves.items():
        for seed, curve in seeds.items():
            lines += [f"{task},{seed},{step},{loss:.6g}" for step, loss in curve.items()]
    write(path, "\n".join(lines) + "\n")
