"""Compares estimators for the gate, end to end: each is tuned with one budget and judged on fresh
seeds.

For each task and estimator, SETTINGS random settings are drawn from its space and each is trained
from the seeds kept for tuning; the one with the most certified seeds is trained from fresh ones.
Thousands of runs share the leading axis of every tensor, so a GPU takes minutes. The records are
shipped beside this file; `python -m exactformer.paper.estimator_study TASK NAME` makes one.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from exactformer.certify import findings
from exactformer.domains.catalog import CATALOG
from exactformer.model.circuit import Weights
from exactformer.model.construct import gate as constructed_gate
from exactformer.paper.baseline_records import device_name
from exactformer.paper.files import Record, find_record, write_record
from exactformer.training.end_to_end import EndToEndTrainer
from exactformer.training.recipe import EndToEnd, end_to_end_recipe
from exactformer.training.state import begin, export
from exactformer.training.workers import start_workers

SHIPPED = Path(__file__).parent / "records" / "estimators"
TUNING_SEEDS = range(300, 308)
FRESH_SEEDS = range(3000, 3100)
SETTINGS = 16
Space = Mapping[str, Sequence[float]]

COMMON: Space = {"gate_factor": (0.03, 0.1, 0.3, 1.0), "gate_start": (0.0, 0.3)}
PULLED: Space = {"gate_pull": (0.0, 0.3, 1.0)}  # of the task whose own recipe has a pull
THROUGH_THE_MASK: Space = {
    "depth_two_weight": (0.03, 0.1, 0.3),
    "slope": (0.25, 0.5, 1.0),
    "margin": (0.05, 0.1),
}
DRAWN: Space = {"gate_noise": (0.2, 0.4, 0.8)}
# Of each estimator: what is fixed of its recipe, and what is tried beside `COMMON`.
ESTIMATORS: dict[str, tuple[dict[str, Any], Space]] = {
    "straight-through": ({}, THROUGH_THE_MASK),
    "gumbel": (
        {"estimator": "gumbel"},
        {**THROUGH_THE_MASK, **DRAWN, "gumbel_temperature": (0.2, 0.5, 1.0)},
    ),
    "reinmax": ({"estimator": "reinmax"}, {**THROUGH_THE_MASK, **DRAWN}),
    "score": ({"estimator": "score", "score_baseline": 0.0}, DRAWN),
    "score-baseline": ({"estimator": "score", "score_baseline": 1.0}, DRAWN),
    "search": ({"estimator": "search"}, {"gate_start": (0.0, 0.1, 0.3, 0.5)}),
}
# Of straight-through alone: which reading of the paper's words the gate learns by.
FACTORS: Space = {
    "maximum_detached": (0.0, 1.0),
    "through_residual": (0.0, 1.0),
    "through_attention": (0.0, 1.0),
    "temperature": (1.0, 3.0),
    "margin": (0.0001, 0.1),
    "gate_factor": (0.03, 0.1, 0.3),
    "depth_two_weight": (0.03, 0.1, 0.3),
}
SURROGATES = ("exp", "sigmoid", "linear")
FACTOR_SEEDS = dict.fromkeys(CATALOG, range(400, 500)) | {"boolean": range(400, 600)}
# What ListOps' constants of `train --method end-to-end` were chosen from, but for the pull; the
# record is not shipped.
RECIPE = "recipe"
RECIPE_SETTINGS = 64
RECIPE_SPACE: Space = {
    "feedforward_factor": (1.0, 2.0, 3.0, 5.0),
    "gate_factor": (0.2, 0.5, 1.0),
    "gate_start": (0.0, 0.3, 0.5),
    "blended_weight": (1.0, 3.0),
    **THROUGH_THE_MASK,
}


def study_recipe(task: str, name: str) -> EndToEnd:
    """The task's own recipe; in the study ListOps takes smaller batches and half as many steps, to
    be tried in more ways.
    """
    fixed: dict[str, Any] = ESTIMATORS[name][0] if name in ESTIMATORS else {}
    if name in SURROGATES:
        fixed = {"surrogate": name}
    if task == "listops" and name != RECIPE:
        fixed = {"epochs": 80, "batch": 256, **fixed}
    return end_to_end_recipe(CATALOG[task](), **fixed)


def settings_to_try(task: str, name: str) -> list[dict[str, float]]:
    if name == RECIPE:
        return drawn_settings(RECIPE_SPACE, RECIPE_SETTINGS)
    pulled = PULLED if study_recipe(task, name).gate_pull else {}
    return drawn_settings({**COMMON, **ESTIMATORS[name][1], **pulled}, SETTINGS)


def drawn_settings(space: Space, count: int, seed: int = 0) -> list[dict[str, float]]:
    rng = np.random.default_rng(seed)
    return [
        {name: float(rng.choice(choices)) for name, choices in space.items()} for _ in range(count)
    ]


def train_rows(
    task: str,
    name: str,
    seeds: Sequence[int],
    settings: Sequence[Mapping[str, float]],
    device: str,
    doing: str = "",
) -> list[Record]:
    """Train a row for each seed and its setting, all at once; returns the outcome of each."""
    algebra, recipe = CATALOG[task](), study_recipe(task, name)
    names = settings[0].keys()
    varied = {name: torch.tensor([row[name] for row in settings], device=device) for name in names}
    trainer = EndToEndTrainer(algebra, recipe, device, varied, compiled=device == "cuda")
    state = begin(algebra, recipe, seeds)
    state.tensors = {name: tensor.to(device) for name, tensor in state.tensors.items()}
    began = time.monotonic()
    while state.seeds[0].step < recipe.steps:
        trainer.steps(state, slice(0, len(seeds)))
        if state.seeds[0].step % 500 == 0:
            spent = time.monotonic() - began
            steps = f"{state.seeds[0].step} of {recipe.steps} steps"
            print(f"{task} {name}{doing}: {steps}, {spent:.0f} s", file=sys.stderr, flush=True)
    weights = [export(algebra, state.tensors, row).to("cpu") for row in range(len(seeds))]
    bags = len(trainer.rows.token) - 1  # one is empty
    right = [seed.depth_one == bags for seed in state.seeds]
    with start_workers(min(8, os.cpu_count() or 1)) as pool:  # of ListOps each takes seconds
        exact = list(pool.map(_exact, [task] * len(seeds), weights, right))
    gate = constructed_gate(algebra)
    gates = [torch.equal(own.G_PE, gate.to(own.G_PE)) for own in weights]
    return [
        {"seed": seed, **setting, "exact": proved, "depth one": rows, "gate": same}
        for seed, setting, proved, rows, same in zip(
            seeds, settings, exact, right, gates, strict=True
        )
    ]


def _exact(task: str, weights: Weights, depth_one: bool) -> bool:
    return depth_one and findings(CATALOG[task](), weights).exact


def tune(task: str, name: str, device: str) -> Record:
    """Train the random settings of an estimator, and record how many seeds each certifies."""
    settings, each = settings_to_try(task, name), len(TUNING_SEEDS)
    seeds = [*TUNING_SEEDS] * len(settings)
    of_rows = [setting for setting in settings for _ in TUNING_SEEDS]
    rows = train_rows(task, name, seeds, of_rows, device, ", tuning")
    tried = []
    for i, setting in enumerate(settings):
        of_it = rows[i * each : (i + 1) * each]
        found = {key: sum(row[key] for row in of_it) for key in ("exact", "depth one", "gate")}
        tried.append({**setting, "certified": found.pop("exact"), **found})
    best = int(np.argmax([row["certified"] for row in tried]))
    return {"tuning": tried, "chosen": settings[best]}


def judge(task: str, name: str, chosen: Mapping[str, float], device: str) -> Record:
    """Train the chosen setting on the fresh seeds, and record the outcomes."""
    settings = [chosen] * len(FRESH_SEEDS)
    rows = train_rows(task, name, FRESH_SEEDS, settings, device, ", judging")
    kept = ("seed", "exact", "depth one", "gate")
    return {"judged": [{key: row[key] for key in kept} for row in rows]}


def factors(task: str, surrogate: str, device: str) -> Record:
    """Random settings of straight-through, each from a seed of its own."""
    seeds = FACTOR_SEEDS[task]
    settings = drawn_settings(FACTORS, len(seeds), SURROGATES.index(surrogate))
    return {"rows": train_rows(task, surrogate, seeds, settings, device)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune and judge an estimator for the gate.")
    parser.add_argument("task", choices=CATALOG)
    parser.add_argument("name", choices=[*ESTIMATORS, *SURROGATES, RECIPE])
    parser.add_argument("--out", type=Path, default=Path("runs") / "estimators")
    arguments = parser.parse_args()
    task, name = arguments.task, arguments.name
    device = "cuda" if torch.cuda.is_available() else "cpu"
    path = arguments.out / f"{task}-{name}.json"
    record = find_record(path) or {
        "task": task,
        "name": name,
        "command": f"python -m exactformer.paper.estimator_study {task} {name}",
        "device": device_name(torch.device(device)),
        "torch": torch.__version__,
        "steps": study_recipe(task, name).steps,
    }
    if name in SURROGATES:
        record |= factors(task, name, device)
    elif "chosen" not in record:
        record |= tune(task, name, device)
        write_record(path, record)  # so that it is not lost
    if "chosen" in record and "judged" not in record and name != RECIPE:
        record |= judge(task, name, record["chosen"], device)
    write_record(path, record)


if __name__ == "__main__":
    main()
