"""The files of training that are attacked: of runs that ended, of one that was stopped, and of a
baseline. Each class says how its files are damaged, read, and judged when accepted.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import torch

import exactformer as ef
from attacks.mutants import Tensors, content_sha256, record_sha256
from attacks.target import Target
from exactformer.protocol.state import NetworkState
from exactformer.training import run
from exactformer.training.checkpoint import read_checkpoint, write_checkpoint
from exactformer.training.recipe import recipe_for
from exactformer.training.run import CHECKPOINT, Observer, train_seeds
from exactformer.training.state import begin
from tests.runs import Enough, StopAtFirstLook

SEED = 7520  # of the run whose files are damaged
SEEDS = [SEED, 8739]  # of the run that was stopped


class Stop(Observer):
    """Nothing is to be trained: all seeds have ended."""

    def evaluated(self, state: Any) -> None:
        raise AssertionError("a seed that has ended is trained again")


class Record(Target):
    """A file of a run that has ended: run.json, the record of a seed or its proof."""

    def mutate(self, rng: Random) -> None:
        if rng.random() < 0.2:
            self.mutate_file(self.paths[0], rng)
        else:
            hash_it = None if self.paths[0].name.endswith(".proof.json") else record_sha256
            self.mutate_json(self.paths[0], rng, hash_it)

    def read(self, rng: Random) -> str | None:
        folder = self.paths[0].parent
        weights = (folder / f"{SEED}.safetensors").read_bytes()
        (result,) = train_seeds(ef.boolean(), [SEED], out=folder, observers=[Stop()])
        if (folder / f"{SEED}.safetensors").read_bytes() != weights or not result.exact:
            return "believed, and the run ends otherwise"
        return None

    def named(self) -> list[Path]:
        return [*self.paths, self.paths[0].parent]  # the folder, if it holds another run

    def command(self) -> list[str | Path]:
        return ["train", "boolean", "--seeds", str(SEED), "--out", self.paths[0].parent]


class Checkpoint(Target):
    """A checkpoint of two seeds."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.path = self.paths[0]
        self.recipe = recipe_for(ef.boolean())
        self.start = begin(ef.boolean(), self.recipe, SEEDS)
        self.run = Tensors.of(self.originals[self.path]).header["run"]

    def mutate(self, rng: Random) -> None:
        self.rehashed = False
        if rng.random() < 0.2:
            self.mutate_file(self.path, rng)
            return
        file = self.mutate_part(Tensors.of(self.originals[self.path]), rng, 0.5)
        self.rehash(file, rng, 0.7, content_sha256)
        self.path.write_bytes(file.write(rng))

    def read(self, rng: Random) -> str | None:
        state = read_checkpoint(self.path, self.run, self.start)
        if self.rehashed:
            return self._go_on(rng)
        write_checkpoint(self.path, state, self.run)
        same = self.path.read_bytes() == self.originals[self.path]
        return None if same else "believed, and not what was written"

    def _go_on(self, rng: Random) -> str | None:
        """A forged state is another state, but training on it must not fall over."""
        if rng.random() > 0.02:
            return None
        try:
            with suppress(Enough):
                train_seeds(
                    ef.boolean(), SEEDS, out=self.path.parent, observers=[StopAtFirstLook()]
                )
        finally:
            for path in self.path.parent.iterdir():
                if path not in self.paths and path.name != "run.json":
                    path.unlink()
        return None

    def command(self) -> list[str | Path]:
        return ["train", "boolean", "--seeds", ",".join(map(str, SEEDS)), "--out", self.path.parent]


class SmallNetwork:
    """A network with the smallest state that a baseline can have."""

    def initial(self, generator: torch.Generator) -> dict[str, torch.Tensor]:
        return {"in": torch.randn(3, 4, generator=generator), "out": torch.zeros(4)}

    def forward(self, p, inputs, training=False):
        raise NotImplementedError


class Baseline(Checkpoint):
    """The state of a baseline in training."""

    HEADER: dict[str, Any] = {"recipe": {"task": "boolean", "epochs": 3}, "seeds": [1, 2]}  # noqa: RUF012

    def __post_init__(self) -> None:
        Target.__post_init__(self)
        self.path = self.paths[0]

    def read(self, rng: Random) -> str | None:
        start = NetworkState.start(SmallNetwork(), [1, 2], torch.device("cpu"))
        state = NetworkState.read(self.path, self.HEADER, start)
        if self.rehashed:
            return None
        state.write(self.path, self.HEADER)
        same = self.path.read_bytes() == self.originals[self.path]
        return None if same else "believed, and not what was written"

    def command(self) -> list[str | Path]:
        return []


def run_files(folder: Path) -> Iterator[Target]:
    ended = folder / "ended"
    train_seeds(ef.boolean(), [SEED], out=ended)
    for name in ("run.json", f"{SEED}.json", f"{SEED}.proof.json"):
        yield Record(f"run ({name})", [ended / name])

    stopped, seconds = folder / "stopped", run.CHECKPOINT_SECONDS
    run.CHECKPOINT_SECONDS = 0.0
    try:
        with suppress(Enough):
            train_seeds(ef.boolean(), SEEDS, out=stopped, observers=[StopAtFirstLook()])
    finally:
        run.CHECKPOINT_SECONDS = seconds
    yield Checkpoint("checkpoint", [stopped / CHECKPOINT])


def baseline_files(folder: Path) -> Iterator[Target]:
    state = folder / "state.safetensors"
    start = NetworkState.start(SmallNetwork(), [1, 2], torch.device("cpu"))
    start.curve = [{"epoch": 1, "loss": [0.5, None], "depth 1": [0.5, 1.0], "depth 2": [0.1, 0.2]}]
    start.write(state, Baseline.HEADER)
    yield Baseline("baseline", [state])
