"""Shards of a sweep on this machine, a process for each core, or several that share a GPU; or on
the nodes of a cluster: then their files come back, and are written here.
"""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from exactformer.domains.catalog import describe
from exactformer.domains.domain import Domain
from exactformer.host.atomic import write_atomically
from exactformer.host.cluster import connected
from exactformer.host.progress import bar
from exactformer.sweep.plan import Shard, plan
from exactformer.training.record import read_record, write_record
from exactformer.training.run import CHECKPOINT, seed_files, train_seeds
from exactformer.training.workers import LOOK_SECONDS, start_workers

SWEEP = "sweep.json"  # what identifies a sweep, in its folder
BLOCKS = {"cpu": 20, "cuda": 125}  # seeds of a shard
SHARING = 8  # processes of one GPU: what a seed needs of the CPU is more than of the GPU
LINE_SECONDS = 10.0  # between two lines where there is no terminal to redraw

Files = dict[str, bytes]


def run_shard(shard: Shard, folder: Path | None = None, device: str = "cpu") -> Files:
    """Train the seeds of a shard and return the files of the run by name, without checkpoints. With
    the folder of a sweep, it runs and resumes in there.
    """
    if folder is None:
        with TemporaryDirectory() as temporary:
            return run_shard(shard, Path(temporary), device)
    out = folder / shard.name
    train_seeds(shard.domain, shard.seeds, recipe=shard.recipe, out=out, device=device)
    return {path.name: path.read_bytes() for path in sorted(out.iterdir()) if path.is_file()}


def save_shard(folder: Path, shard: Shard, files: Mapping[str, bytes]) -> None:
    """Write the files that `run_shard` returned elsewhere into the folder of a sweep: the records
    of seeds last, since a seed that has a record is finished.
    """
    out = folder / shard.name
    out.mkdir(parents=True, exist_ok=True)
    records = {f"{seed}.json" for seed in shard.seeds}
    for name in sorted(files, key=lambda name: name in records):
        write_atomically(out / name, files[name])
    (out / CHECKPOINT).unlink(missing_ok=True)  # of a run that was interrupted in there


def is_finished(folder: Path, shard: Shard) -> bool:
    """Whether record, weights and proof of every seed are there; `read_rows` checks them."""
    return _count_finished(folder, shard) == len(shard.seeds)


def _count_finished(folder: Path, shard: Shard) -> int:
    out = folder / shard.name
    there = set(os.listdir(out)) if out.is_dir() else set()
    return sum(there.issuperset(seed_files(seed)) for seed in shard.seeds)


def claim(
    folder: Path,
    domain: Domain,
    seeds: Sequence[int],
    settings: Mapping[str, Sequence[str]],
    device: str = "cpu",
    block: int | None = None,
    *,
    elsewhere: bool = False,
) -> list[Shard]:
    """The shards of a sweep, after writing its description into the folder; a ValueError if the
    folder holds another sweep. A sweep that runs elsewhere needs no device here.
    """
    kind = device.partition(":")[0]
    if kind not in BLOCKS:
        raise ValueError(f"expected the device cpu or cuda, found {device!r}")
    block = BLOCKS[kind] if block is None else block
    shards = plan(domain, seeds, settings, block, "cpu" if elsewhere else device)
    sweep = {
        "algebra": describe(domain),
        "seeds": list(seeds),
        "settings": {name: list(words) for name, words in settings.items()},
        "device": kind,
        "block": block,
    }
    path = folder / SWEEP
    if path.exists():
        held = read_record(path)
        if differing := [name for name in sweep if held.get(name) != sweep[name]]:
            raise ValueError(
                f"{folder} holds another sweep (its {' and '.join(differing)} differ): "
                f"choose another folder, or the same settings to go on with it"
            )
        return shards
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder}: expected a new folder, or that of this sweep")
    folder.mkdir(parents=True, exist_ok=True)
    write_record(path, sweep)
    return shards


class Progress:
    """Counts finished seeds by their records on the disk, and prints a line now and then."""

    def __init__(self, shards: Sequence[Shard], folder: Path) -> None:
        self.folder, self.shards = folder, list(shards)
        self.total, self.finished = sum(len(shard.seeds) for shard in shards), 0
        self.before = self._done()  # which may take a while where shards are many
        self.started = self.last_line = time.monotonic()

    def _done(self) -> int:
        counts = [(shard, _count_finished(self.folder, shard)) for shard in self.shards]
        self.finished += sum(count for shard, count in counts if count == len(shard.seeds))
        self.shards = [shard for shard, count in counts if count < len(shard.seeds)]
        return self.finished + sum(n for shard, n in counts if n < len(shard.seeds))

    def look(self) -> int:
        done = self._done()
        now = time.monotonic()
        if now - self.last_line >= LINE_SECONDS and not sys.stderr.isatty():
            self.last_line = now
            rate = (done - self.before) / (now - self.started)
            left = f", {(self.total - done) / rate:.0f} s left" if rate else ""
            line = f"{done} of {self.total} seeds, {rate:.2f} a second{left}"
            print(line, file=sys.stderr, flush=True)
        return done


def _run_here(
    shards: Sequence[Shard], folder: Path, device: str, workers: int | None, progress: Progress
) -> None:
    """Run `workers` shards at a time: by default one for each core, and up to SHARING for a GPU."""
    if workers is None:
        cores = os.cpu_count() or 1
        workers = cores if device == "cpu" else min(cores, SHARING)
    with start_workers(min(workers, len(shards))) as pool, bar() as tell:
        waiting = {pool.submit(_run_quietly, shard, folder, device) for shard in shards}
        while waiting:
            done, waiting = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
            for future in done:
                future.result()
            tell("seeds", progress.look(), progress.total)


def _run_quietly(shard: Shard, folder: Path, device: str) -> None:
    run_shard(shard, folder, device)  # its files are on the disk


def _run_on_cluster(
    address: str, shards: Sequence[Shard], folder: Path, device: str, progress: Progress
) -> None:
    """Run a shard on each CPU of a cluster at a time, and up to SHARING on each GPU."""
    kind = device.partition(":")[0]  # which one is for the cluster to choose
    gpus = 0 if kind == "cpu" else 1 / SHARING
    with connected(address) as cluster, bar() as tell:
        for number, files in cluster.as_they_come(partial(_run_there, kind), shards, gpus=gpus):
            save_shard(folder, shards[number], files)
            tell("seeds", progress.look(), progress.total)


def _run_there(device: str, shard: Shard) -> Files:
    torch.set_num_threads(1)  # as on one machine: other shards have the other cores
    return run_shard(shard, device=device)


def sweep(
    domain: Domain,
    seeds: Sequence[int],
    out: str | Path,
    *,
    settings: Mapping[str, Sequence[str]] | None = None,
    device: str = "cpu",
    block: int | None = None,
    workers: int | None = None,
    ray: str | None = None,
) -> list[Shard]:
    """Train every seed under every combination of settings, in a folder in which an interrupted
    sweep goes on; returns its shards, whose results `read_rows` reads. `ray` is the address of a
    cluster whose nodes train them.
    """
    folder, elsewhere = Path(out), ray is not None
    shards = claim(folder, domain, seeds, settings or {}, device, block, elsewhere=elsewhere)
    unfinished = [shard for shard in shards if not is_finished(folder, shard)]
    if unfinished:
        progress = Progress(shards, folder)
        if ray is None:
            _run_here(unfinished, folder, device, workers, progress)
        else:
            _run_on_cluster(ray, unfinished, folder, device, progress)
    return shards
