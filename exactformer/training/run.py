"""A training run in a folder, which may be interrupted at any moment and resumed.

run.json                 domain, recipe, seeds and device: what identifies the run
SEED.safetensors         the weights of a seed that has ended
SEED.proof.json          its certificate: a proof, or a counterexample
SEED.json                how it got there; written last, so a seed that has it is finished
checkpoint.safetensors   the seeds still in training
"""

import json
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import torch

import exactformer
from exactformer.api import Model
from exactformer.domains.algebra import AN_ALGEBRA
from exactformer.domains.catalog import describe
from exactformer.domains.data import Place, expect, read_bytes, read_json
from exactformer.domains.domain import Domain
from exactformer.host.atomic import remove_unfinished
from exactformer.host.threads import one_thread
from exactformer.model.storage import from_file, to_file
from exactformer.training.checkpoint import read_checkpoint, write_checkpoint
from exactformer.training.kinds import AnyRecipe, recipe_by_method, training_of
from exactformer.training.recipe import PAPER_SEEDS
from exactformer.training.record import (
    VERDICTS,
    content_sha256,
    finite,
    read_record,
    read_seed_record,
    write_record,
)
from exactformer.training.state import State, Trained
from exactformer.verify import ProofRejected, verify
from exactformer.weights.file import WeightFile

RUN = "run.json"
CHECKPOINT = "checkpoint.safetensors"
SEEDS = "a list of seeds, such as [0, 1, 2] or range(3)"
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
    """Follows a run; each method does nothing unless it is overridden."""

    def evaluated(self, state: State) -> None:
        """Called after each evaluation, with the seeds still in training."""

    def ended(self, result: Result) -> None:
        """Called when a seed has ended."""


def train_seeds(
    domain: Domain,
    seeds: Sequence[int] = PAPER_SEEDS,
    *,
    method: str | None = None,
    recipe: AnyRecipe | None = None,
    out: str | Path | None = None,
    device: str = "cpu",
    observers: Sequence[Observer] = (),
) -> list[Result]:
    """Train a model from each seed and certify it: one result for each, in their order.

    method      of an algebra "staged" (if not given), "sure" or "end-to-end", of a machine
                "futures" (if not given) or "beliefs", of integers "futures": which recipe there is
                for its size.
    recipe      every constant of the run, instead of a method.
    out         folder for weights, proofs, records and checkpoints, in which an interrupted run
                goes on; without it everything stays in memory.
    device      "cpu" or "cuda".
    observers   are called after each evaluation during training, and when a seed has ended.
    """
    expect(domain, Domain, AN_ALGEBRA)
    expect(seeds, Sequence, SEEDS)
    for seed in seeds:
        expect(seed, Integral, SEEDS)
    if recipe is not None and method is not None:
        raise ValueError(f"expected a method or a recipe, found {method!r} and a recipe")
    recipe = recipe or recipe_by_method(method, domain, {})
    require_trainable(domain, recipe, seeds, device)
    training = training_of(domain)
    folder = None if out is None else Path(out)
    results: dict[int, Result] = {}
    state, run = State([], {}), ""
    if folder is not None:
        run = _claim(folder, domain, recipe, seeds, device)
        remove_unfinished(folder)
        results = {s: r for s in seeds if (r := finished_seed(folder, domain, s)) is not None}
        if (folder / CHECKPOINT).exists():
            start = training.begin(domain, recipe, seeds)
            state = read_checkpoint(folder / CHECKPOINT, run, start)
            state.keep([i for i, s in enumerate(state.seeds) if s.seed not in results])
    for result in results.values():
        for observer in observers:
            observer.ended(result)
    unfinished = [seed for seed in seeds if seed not in results]
    if {s.seed for s in state.seeds} != set(unfinished):
        state = training.begin(domain, recipe, unfinished)
    if unfinished:
        due = time.monotonic() + CHECKPOINT_SECONDS
        learner = training.learner(domain, recipe, device)
        state.tensors = {name: tensor.to(device) for name, tensor in state.tensors.items()}
        while state.seeds:
            with one_thread():
                ended = learner.advance(state)
            for trained in ended.values():
                result = _result(domain, trained)
                if folder is not None:
                    _save(folder, result, trained)
                results[result.seed] = result
                for observer in observers:
                    observer.ended(result)
            if ended:
                state.keep([row for row in range(len(state.seeds)) if row not in ended])
            if folder is not None and state.seeds and (start := time.monotonic()) >= due:
                write_checkpoint(folder / CHECKPOINT, state, run)
                took = time.monotonic() - start  # longer for thousands of seeds
                due = time.monotonic() + max(CHECKPOINT_SECONDS, 20 * took)
            for observer in observers:
                observer.evaluated(state)
    if folder is not None:
        (folder / CHECKPOINT).unlink(missing_ok=True)
    return [results[seed] for seed in seeds]


def require_trainable(domain: Domain, recipe: AnyRecipe, seeds: Sequence[int], device: str) -> None:
    """Raise a ValueError for a domain that cannot be trained, before anything is written."""
    training = training_of(domain)
    if type(recipe) not in {method.recipe for method in training.methods.values()}:
        found = type(recipe).__name__
        raise ValueError(f"expected a recipe for {domain.name!r}, found one of the type {found}")
    training.require(domain, recipe)
    if not seeds:
        raise ValueError("expected at least one seed, found none")
    if len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise ValueError(f"expected different seeds of 0 or more, found {list(seeds)}")
    for name in training.counts(recipe):
        if getattr(recipe, name) < 1:
            raise ValueError(f"expected {name} of 1 or more, found {getattr(recipe, name)}")
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise ValueError(f"expected the device cpu or cuda, found {device!r}")
    if device != "cpu" and not torch.cuda.is_available():
        raise ValueError("expected a CUDA device, found none on this machine")


def describe_run(
    domain: Domain, recipe: AnyRecipe, seeds: Sequence[int], device: str = "cpu"
) -> dict[str, Any]:
    """The data that identify a run."""
    return {
        "algebra": describe(domain),
        "recipe": json.loads(json.dumps(asdict(recipe))),
        "seeds": list(seeds),
        "device": torch.device(device).type,
    }


def write_run(folder: Path, run: dict[str, Any]) -> None:
    """Write the data that identify a run into its folder."""
    write_record(folder / RUN, run | {"versions": versions()})


def _claim(
    folder: Path, domain: Domain, recipe: AnyRecipe, seeds: Sequence[int], device: str
) -> str:
    """Write run.json into a new folder; require the same run in an old one. Returns a hash of the
    run's description.
    """
    run = describe_run(domain, recipe, seeds, device)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RUN
    if not path.exists():
        if there := [seed for seed in seeds if (folder / f"{seed}.safetensors").exists()]:
            raise ValueError(
                f"{folder} holds weights of {', '.join(map(str, there))} and no run.json: "
                f"choose another folder"
            )
        write_run(folder, run)
        return content_sha256(run)
    try:
        held = read_record(path)
        Place(held).fields((*run, "versions"))
    except ValueError as error:
        raise ValueError(
            f"{path}: expected the description of a run: {error}; choose another folder"
        ) from None
    # As records were written at first: the algebra in full, and fewer constants.
    in_full = run | {"algebra": domain.to_dict()}
    if isinstance(held["recipe"], dict):
        in_full["recipe"] = {k: v for k, v in run["recipe"].items() if k in held["recipe"]}
    if differing := [name for name in run if held[name] not in (run[name], in_full[name])]:
        raise ValueError(
            f"{folder} holds another run (its {' and '.join(differing)} differ): "
            f"choose another folder, or the same settings to go on with it"
        )
    return content_sha256({name: held[name] for name in run})  # as checkpoints know it


def versions() -> dict[str, str]:
    """Versions that the bits of a result depend on, besides recipe and seed."""
    return {
        "exactformer": exactformer.__version__,
        "numpy": np.__version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }


def seed_files(seed: int) -> tuple[str, str, str]:
    """The names of a finished seed's record, weights and proof."""
    return f"{seed}.json", f"{seed}.safetensors", f"{seed}.proof.json"


def finished_seed(folder: Path, domain: Domain, seed: int) -> Result | None:
    """A seed that has ended, if its files agree: the record is about these weights, and the proof
    is verified. A proof that is missing is made again; None without weights or without a record.
    """
    path, weights, proof = (folder / name for name in seed_files(seed))
    if not path.exists() or not weights.exists():
        return None
    try:
        record = read_seed_record(path, seed)
        file = WeightFile.read(weights)
    except ValueError as error:
        raise ValueError(f"{error}; remove it to train the seed again") from None
    if file.sha256 != record["weights_sha256"] or file.domain != domain:
        raise ValueError(f"{path} is about other weights than {weights}: remove one of them")
    model = Model(domain, from_file(file), file.origin)
    if proof.exists():
        verdict = _proved(proof, weights, file)
    else:
        certificate = model.certify()
        certificate.save(proof)
        verdict = certificate.verdict
    if verdict != record["verdict"]:
        raise ValueError(f"{path} says {record['verdict']}, but {proof} {verdict}: remove one")
    return Result(seed, model, record)


def _proved(proof: Path, weights: Path, file: WeightFile) -> str:
    """The verdict of a proof file: an exact one is verified, any other must be about these
    weights.
    """
    try:
        held = read_json(read_bytes(proof))
        if not isinstance(held, dict) or held.get("verdict") not in VERDICTS:
            raise ValueError(f"{proof}: expected a verdict, found none")
        if held["verdict"] == "exact":
            verify(proof, weights, file.domain)
        elif held.get("weights_sha256") != file.sha256:
            raise ValueError(f"{proof} is about other weights than {weights}")
    except (ValueError, ProofRejected) as error:
        reason = str(error) if str(proof) in str(error) else f"{proof}: {error}"
        raise ValueError(f"{reason}; remove it to have it made again") from None
    return held["verdict"]


def _result(domain: Domain, trained: Trained) -> Result:
    findings, example = trained.certificate.findings, trained.certificate.counterexample
    seed = trained.seed
    record = {
        "seed": seed.seed,
        "verdict": trained.certificate.verdict,
        "counterexample": str(example.expression) if example else None,
        "attempt": seed.attempt,
        "step": seed.step,
        "steps_in_all": seed.spent,
        "rows_right": findings.rows - len(findings.wrong_rows),
        "rows": findings.rows,
        "margin_before_polish": finite(trained.margin_before),
        "margin": float(findings.smallest_margin),
        "rounding_bound": float(findings.rounding_bound),
        "weights_sha256": trained.certificate.weights_sha256,
        "seconds": round(trained.seconds, 2),
    }
    record |= trained.counts
    origin = {"made": "trained", "seed": seed.seed, "attempt": seed.attempt}
    return Result(seed.seed, Model(domain, trained.weights, origin), record)


def _save(folder: Path, result: Result, trained: Trained) -> None:
    """Write the files of a seed. The record comes last: without it the seed counts as unfinished
    and is trained again.
    """
    file = to_file(result.model.domain, result.model.weights, result.model.origin, trained.logits)
    record, weights, proof = (folder / name for name in seed_files(result.seed))
    file.write(weights)
    trained.certificate.save(proof)
    write_record(record, result.record)


def summary(results: Sequence[Result]) -> str:
    """A table of the seeds, and the number of certified ones."""
    lines = ["| seed | verdict | attempt | steps | margin before | margin | rounding | seconds |"]
    lines.append("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for record in (result.record for result in results):
        before = record["margin_before_polish"]
        lines.append(
            f"| {record['seed']} | {record['verdict']} | {record['attempt']} "
            f"| {record['steps_in_all']} | {'-' if before is None else f'{before:.2f}'} "
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
