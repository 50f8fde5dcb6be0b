"""A training run in a folder, which may be interrupted at any moment and taken up again.

run.json                 algebra, recipe and seeds: what makes this run this run
SEED.safetensors         the weights of a seed that has ended
SEED.proof.json          its certificate: a proof, or a counterexample
SEED.json                how it got there; written last, so a seed that has it is finished
checkpoint.safetensors   the seeds still in training
"""

import json
import platform
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from exactformer.api import Model
from exactformer.domains.algebra import Algebra
from exactformer.domains.bounds import MOST_LEARNED, MOST_NUMBERS, require
from exactformer.domains.units import slots_of
from exactformer.model.storage import from_file, to_file
from exactformer.training.checkpoint import read_checkpoint, write_checkpoint
from exactformer.training.depth_one import padded
from exactformer.training.estimators import ESTIMATORS, RANK_ESTIMATORS
from exactformer.training.loop import State, Trained, Trainer, begin
from exactformer.training.recipe import PAPER_SEEDS, Recipe, recipe_for
from exactformer.weightfile import WeightFile, write_atomically

CHECKPOINT = "checkpoint.safetensors"
CHECKPOINT_SECONDS = 2.0  # at least so long between two checkpoints


@dataclass(frozen=True)
class Result:
    """A seed that has ended: its model and the record of how it got there."""

    seed: int
    model: Model
    record: dict[str, Any]

    @property
    def exact(self) -> bool:
        return self.record["verdict"] == "exact"


class Observer:
    """What may watch a run; each method does nothing unless it is overridden."""

    def looked(self, state: State) -> None: ...

    def ended(self, result: Result) -> None: ...


def train_seeds(
    algebra: Algebra,
    seeds: Sequence[int] = PAPER_SEEDS,
    *,
    recipe: Recipe | None = None,
    out: str | Path | None = None,
    device: str = "cpu",
    observers: Sequence[Observer] = (),
) -> list[Result]:
    """Train a model from each seed and certify it; with `out`, in a folder that can be resumed."""
    recipe = recipe or recipe_for(algebra)
    _check(algebra, recipe, seeds, device)
    folder = None if out is None else Path(out)
    results: dict[int, Result] = {}
    state: State | None = None
    if folder is not None:
        _claim(folder, algebra, recipe, seeds, device)
        results = {s: r for s in seeds if (r := _finished(folder, algebra, s)) is not None}
        if (folder / CHECKPOINT).exists():
            state = read_checkpoint(folder / CHECKPOINT)
            state.keep([i for i, s in enumerate(state.seeds) if s.seed not in results])
    for result in results.values():
        for observer in observers:
            observer.ended(result)
    unfinished = [seed for seed in seeds if seed not in results]
    if state is None or {s.seed for s in state.seeds} != set(unfinished):
        state = begin(algebra, recipe, unfinished) if unfinished else None
    if state is not None:
        saver = _saver(folder)

        def looked(state: State) -> None:
            saver(state)
            for observer in observers:
                observer.looked(state)

        for trained in Trainer(algebra, recipe, device).train(state, looked):
            result = _result(algebra, trained)
            if folder is not None:
                _save(folder, result, trained)
            results[trained.seed] = result
            for observer in observers:
                observer.ended(result)
    if folder is not None:
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return [results[seed] for seed in seeds]


def _check(algebra: Algebra, recipe: Recipe, seeds: Sequence[int], device: str) -> None:
    cases = algebra.count_cases(every_order=slots_of(algebra) > 1)
    what = f"cases of depth 1 of {algebra.name!r} to learn from"
    require(what, cases, MOST_LEARNED, "construct it instead")
    numbers = cases * (algebra.require_fan_in() + 3) * padded(len(algebra.vocabulary))
    require(f"numbers of all {what}", numbers, MOST_NUMBERS, "construct it instead")
    if slots_of(algebra) > 1 and recipe.estimator not in RANK_ESTIMATORS:
        raise ValueError(
            f"expected the estimator {' or '.join(RANK_ESTIMATORS)}, which can learn the rank gate "
            f"of {algebra.name!r}, found {recipe.estimator!r}"
        )
    if recipe.estimator not in ESTIMATORS:
        raise ValueError(f"expected one of {', '.join(ESTIMATORS)}, found {recipe.estimator!r}")
    if not seeds:
        raise ValueError("expected at least one seed, found none")
    if len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ValueError(f"expected different seeds of 0 or more, found {list(seeds)}")
    for name in ("steps", "attempts", "look_every", "strings"):
        if getattr(recipe, name) < 1:
            raise ValueError(f"expected {name} of 1 or more, found {getattr(recipe, name)}")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f"expected the device cpu or cuda, found {device!r}")
    if device != "cpu" and not torch.cuda.is_available():
        raise ValueError("expected a CUDA device, found none on this machine")


def _claim(
    folder: Path, algebra: Algebra, recipe: Recipe, seeds: Sequence[int], device: str
) -> None:
    """Write run.json into a new folder; in an old one, insist that it holds this very run."""
    run = {
        "algebra": algebra.to_dict(),
        "recipe": json.loads(json.dumps(asdict(recipe))),
        "seeds": list(seeds),
        "device": torch.device(device).type,
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "run.json"
    if not path.exists():
        if there := [seed for seed in seeds if (folder / f"{seed}.safetensors").exists()]:
            raise ValueError(
                f"{folder} holds weights of {', '.join(map(str, there))} and no run.json: "
                f"choose another folder"
            )
        write_atomically(path, json.dumps(run | {"versions": versions()}, indent=1) + "\n")
        return
    try:
        held = json.loads(path.read_text())
        differing = [name for name in run if held[name] != run[name]]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected the description of a run: {error}") from None
    if differing:
        raise ValueError(
            f"{folder} holds another run (its {' and '.join(differing)} differ): "
            f"choose another folder, or the same settings to go on with it"
        )


def versions() -> dict[str, str]:
    """What the bits of a result depend on besides recipe and seed."""
    found = {name: version(name) for name in ("exactformer", "torch", "numpy")}
    return found | {"python": platform.python_version()}


def _finished(folder: Path, algebra: Algebra, seed: int) -> Result | None:
    path = folder / f"{seed}.json"
    if not path.exists():
        return None
    try:
        record = json.loads(path.read_text())
        sha256 = record["weights_sha256"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected the record of a seed: {error}") from None
    file = WeightFile.read(folder / f"{seed}.safetensors")
    if file.sha256 != sha256 or file.algebra != algebra:
        raise ValueError(f"{path} is about other weights than {folder / f'{seed}.safetensors'}")
    return Result(seed, Model(algebra, from_file(file), file.origin), record)


def _result(algebra: Algebra, trained: Trained) -> Result:
    findings, example = trained.certificate.findings, trained.certificate.counterexample
    record = {
        "seed": trained.seed,
        "verdict": trained.certificate.verdict,
        "counterexample": str(example.expression) if example else None,
        "attempt": trained.attempt,
        "step": trained.step,
        "steps_in_all": trained.spent,
        "rows_right": findings.rows - len(findings.wrong_rows),
        "rows": findings.rows,
        "margin_before_polish": trained.margin_before,
        "margin": trained.margin,
        "rounding_bound": float(findings.rounding_bound),
        "weights_sha256": trained.certificate.weights_sha256,
        "seconds": round(trained.seconds, 2),
    }
    origin = {"made": "trained", "seed": trained.seed, "attempt": trained.attempt}
    return Result(trained.seed, Model(algebra, trained.weights, origin), record)


def _save(folder: Path, result: Result, trained: Trained) -> None:
    """The record comes last: without it the seed counts as unfinished and is trained again."""
    file = to_file(result.model.algebra, result.model.weights, result.model.origin, trained.logits)
    file.write(folder / f"{result.seed}.safetensors")
    trained.certificate.save(folder / f"{result.seed}.proof.json")
    write_atomically(folder / f"{result.seed}.json", json.dumps(result.record, indent=1) + "\n")


def _saver(folder: Path | None) -> Callable[[State], None]:
    """Writes a checkpoint when the last one is old enough."""
    last = time.monotonic()

    def save(state: State) -> None:
        nonlocal last
        if folder is not None and state.seeds and time.monotonic() - last >= CHECKPOINT_SECONDS:
            write_checkpoint(folder / CHECKPOINT, state)
            last = time.monotonic()

    return save


def summary(results: Sequence[Result]) -> str:
    """A table of the seeds and the count that matters."""
    lines = ["| seed | verdict | attempt | steps | margin before | margin | rounding | seconds |"]
    lines.append("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for record in (result.record for result in results):
        lines.append(
            f"| {record['seed']} | {record['verdict']} | {record['attempt']} "
            f"| {record['steps_in_all']} | {record['margin_before_polish']:.2f} "
            f"| {record['margin']:.2f} | {record['rounding_bound']:.1g} | {record['seconds']:.1f} |"
        )
    exact = [result for result in results if result.exact]
    first = sum(result.record["attempt"] == 1 for result in exact)
    for result in results:
        if not result.exact:
            example = result.record["counterexample"]
            fault = f"fails on {example}" if example else "has no proof and no counterexample"
            lines.append(f"{result.seed} {fault}")
    seconds = max(result.record["seconds"] for result in results)
    lines.append(
        f"\ncertified {len(exact)} of {len(results)}, {first} at the first attempt, {seconds:.1f} s"
    )
    return "\n".join(lines)
