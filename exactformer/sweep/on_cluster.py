"""Shards of a sweep on the nodes of a cluster. Their files come back, and are written here."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import torch

from exactformer.cluster import connected
from exactformer.progress import bar
from exactformer.sweep.plan import Shard
from exactformer.sweep.run import SHARING, Files, Progress, is_finished, run_shard, save_shard


def run_on_cluster(
    address: str, shards: Sequence[Shard], folder: Path, device: str = "cpu"
) -> None:
    """Run what is not finished: a shard for each CPU at a time, and up to SHARING for each GPU."""
    unfinished = [shard for shard in shards if not is_finished(folder, shard)]
    if not unfinished:
        return
    kind = device.partition(":")[0]  # which one is for the cluster to choose
    gpus = 0 if kind == "cpu" else 1 / SHARING
    progress, job = Progress(shards, folder), partial(_run_there, kind)
    with connected(address) as cluster, bar() as tell:
        for number, files in cluster.as_they_come(job, unfinished, gpus=gpus):
            save_shard(folder, unfinished[number], files)
            tell("seeds", progress.look(), progress.total)


def _run_there(device: str, shard: Shard) -> Files:
    torch.set_num_threads(1)  # as on one machine: other shards have the other cores
    return run_shard(shard, device=device)
