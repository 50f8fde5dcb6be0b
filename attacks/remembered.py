"""Tensors changed in every documented way: is anything that was found before used again?

    python -m attacks.remembered [--count 400] [--seed 0]

A model is used, so that it remembers all that it can; it may be copied, pickled or saved then. One
of its tensors is changed (`tensor_changes.py`), and what it says is compared with what a model says
that is made of the changed bytes. A verdict for a content that is no longer there breaks the claim,
and so does an export that writes one.
"""

import copy
import io
import json
import pickle
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attacks.report import Report, numbered, run_alone
from attacks.tensor_changes import CHANGES, NotPossible
from attacks.weights import EXAMPLES
from exactformer.api import Model, construct, load
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import boolean, boolean_plain
from exactformer.domains.definition import load_algebra
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import draw
from exactformer.export.huggingface import export_folder
from exactformer.export.loop import iteration_graph
from exactformer.model.encode import initial_state
from exactformer.verify import verify
from exactformer.weights.named import FOLDER_WEIGHTS

MODELS: dict[str, Callable[[], Model]] = {
    "perceptron, relu": lambda: load("boolean/7520"),
    "perceptron, square": lambda: construct(boolean(), "fitted"),
    "table": lambda: construct(boolean(), "table"),
    "units": lambda: construct(load_algebra(EXAMPLES / "modulo7.toml"), "units"),
    "dense": lambda: construct(boolean(), dense=True),
    "rank gate": lambda: construct(load_algebra(EXAMPLES / "modulo7.toml")),
    "plain": lambda: construct(boolean_plain()),
    "plain with levels": lambda: construct(load_algebra(EXAMPLES / "plain" / "modulo7.toml")),
}


def through_torch(model: Model) -> Model:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


COPIES: dict[str, Callable[[Model], Model]] = {
    "itself": lambda model: model,
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "replace": replace,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "torch.save": through_torch,
}


def places(weights: Any, before: str = "") -> Iterator[tuple[Any, str, str]]:
    """Each tensor: what holds it, the name of the field, and a name for people."""
    for field in fields(weights):
        part = getattr(weights, field.name)
        if isinstance(part, Tensor):
            yield weights, field.name, f"{before}{field.name}"
        elif is_dataclass(part):
            yield from places(part, f"{field.name}.")


def own_tensors(model: Model) -> Model:
    """A copy of the model with memory of its own: an attack changes nothing else."""
    return Model(model.algebra, _rebuilt(model.weights), model.origin)


def _rebuilt(part: Any) -> Any:
    if isinstance(part, Tensor):
        bytes_now = part.detach().cpu().contiguous().numpy().copy()
        return torch.from_numpy(bytes_now)
    if is_dataclass(part) and not isinstance(part, type):
        return type(part)(**{f.name: _rebuilt(getattr(part, f.name)) for f in fields(part)})
    return part


@cache
def problems(algebra: Algebra) -> list[Expression]:
    rng = np.random.default_rng(0)
    return [e for depth in (1, 2, 3) for e in draw(algebra, depth, 6, rng)]


def _uses(folder: Path) -> dict[str, Callable[[Model], Any]]:
    """All that rests on what is remembered; what each gives can be compared."""

    def trace(model: Model) -> Any:
        return model.trace(problems(model.algebra)[-1]).to_dict()

    def run(model: Model) -> Any:
        found = model.run(problems(model.algebra)[-1])
        return found.value, found.iterations, [t.tolist() for t in found.cache.values()]

    def module(model: Model) -> Any:
        made = model.module()
        return made(*made.encode(problems(model.algebra)[:3])).tolist()

    def feedforward(model: Model) -> Any:
        X, _ = initial_state(problems(model.algebra)[:3], model.weights)
        H = X.repeat(1, 1, model.weights.f.slots)
        return model.weights.f(H).tolist()

    def graph(model: Model) -> Any:
        made = iteration_graph(model)
        return [buffer.tolist() for buffer in made.buffers()]

    def export(model: Model) -> Any:
        out = folder / f"{len(list(folder.iterdir()))}"
        export_folder(model, out)
        verify(out / "proof.json", out / FOLDER_WEIGHTS, model.algebra)
        claimed = json.loads((out / "config.json").read_text())["weights_sha256"]
        return claimed, load(out).sha256, (out / "README.md").read_text()

    def save(model: Model) -> Any:
        path = folder / f"{len(list(folder.iterdir()))}.safetensors"
        model.save(path)
        return path.read_bytes()

    def certify(model: Model) -> Any:
        """Without the search for a counterexample, which takes long, if none was made before."""
        if model._loaded.findings.exact or "certificate" in vars(model._loaded):
            return model.certify().to_dict()
        return model._loaded.findings.failed

    return {
        "sha256": lambda model: model.sha256,
        "hash": hash,
        "certify": certify,
        "predict": lambda model: model.predict(problems(model.algebra)),
        "predict by the logarithm": lambda model: model.predict(
            problems(model.algebra), iterations="log"
        ),
        "engine": lambda model: model.evaluate(problems(model.algebra), "fast"),
        "evaluate": lambda model: model.evaluate(problems(model.algebra)),
        "call": lambda model: model(str(problems(model.algebra)[0])),
        "trace": trace,
        "run": run,
        "module": module,
        "feedforward": feedforward,
        "graph": graph,
        "folder": export,
        "save": save,
    }


def said(use: Callable[[Model], Any], model: Model) -> str:
    """The result of a use, or the kind of its error: two models may word one differently."""
    try:
        return repr(use(model))
    except (ValueError, RuntimeError, IndexError) as error:
        return f"{type(error).__name__}: {str(error)[:60]}"


def use_all(model: Model, folder: Path) -> None:
    for use in _uses(folder).values():
        said(use, model)
    assert model.certify().verdict == "exact"


def differences(model: Model, fresh: Model, folder: Path) -> Iterator[str]:
    """The uses in which a model is not what a fresh one is."""
    for name, use in _uses(folder).items():
        ours, theirs = said(use, model), said(use, fresh)
        if ours != theirs:
            yield f"{name}: {ours[:80]} instead of {theirs[:80]}"


def case(name: str, way: str, change: str, which: int, seed: list[int]) -> tuple[str, list[str]]:
    """The name of the tensor that was changed, and what is stale after it."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = own_tensors(MODELS[name]())
        use_all(model, folder)
        try:
            model = COPIES[way](model)
        except Exception as error:  # whatever is in the way of a pickle
            return "nothing", [f"cannot be copied after use: {error!r}"[:160]]
        if way != "itself" and rng.random() < 0.5:
            use_all(model, folder)
        holders = list(places(model.weights))
        holder, field, shown = holders[which % len(holders)]
        before = getattr(holder, field).detach().clone()
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(1 << 30)))
            CHANGES[change](getattr(holder, field), rng)
        after = getattr(holder, field)
        if before.dtype == after.dtype and torch.equal(_bytes(before), _bytes(after)):
            raise NotPossible("nothing was changed")
        try:
            fresh = own_tensors(model)
        except ValueError:
            raise NotPossible("no model can be made of these tensors") from None
        return shown, list(differences(model, fresh, folder))


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().view(-1).view(torch.uint8)


def attack(count: int, seed: int) -> Report:
    """Every change with every model and every kind of copy, in a random order, a tensor at a time
    in turn; `count` cases of it.
    """
    report = Report("nothing that was found of other weights is used, whatever changed them")
    cases = [(m, w, c) for m in MODELS for w in COPIES for c in CHANGES]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(cases))
    for number in numbered(count):
        name, way, change = cases[order[number % len(cases)]]
        try:
            shown, stale = case(name, way, change, int(rng.integers(1 << 20)), [seed, number])
        except NotPossible as reason:
            report.count(f"no case: {reason}")
            continue
        report.count(change)
        report.count(f"model: {name}")
        report.count(f"copied by: {way}")
        for what in stale:
            at = f"{name}, {way}, {change}, {shown}, case {number} of seed {seed}"
            report.found.append(f"{at}: {what}")
    return report


if __name__ == "__main__":
    run_alone(attack, count=400)
