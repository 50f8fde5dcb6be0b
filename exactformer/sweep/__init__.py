"""Sweeps: thousands of seeds under many settings, in shards that any machine can run.

    shards = plan(domain, seeds, {"spread": ["0.1", "0.2"]}, block=100)   # settings x seeds
    files = run_shard(shards[0])           # pure and picklable: {"17.safetensors": bytes, ...}
    save_shard(folder, shards[0], files)   # whole or not at all: records come last
    is_finished(folder, shards[0])

A `Shard` is one setting and a block of seeds. It is exactly one run of `exactformer train`, in the
folder FOLDER/SETTING/BLOCK, so that its files have the bytes that `train` gives, and what was
interrupted goes on as a run of `train` does: `run_shard(shard, folder)` runs it there, seed by seed
on the disk as they end; `run_shard(shard)` runs it nowhere in particular and returns the files,
which is for other machines. `device` is "cpu" or "cuda". On the CPU the bytes do not depend on the
machine's other work, on the block, nor on who runs the shard.

`sweep(...)` does all of it on this machine; `results.py` reads the records of a folder into a
table, and `plots.py` draws it.
"""

from exactformer.sweep.plan import Shard, plan
from exactformer.sweep.results import SettingRow, read_rows, write_results
from exactformer.sweep.run import is_finished, run_shard, save_shard, sweep

__all__ = [
    "SettingRow",
    "Shard",
    "is_finished",
    "plan",
    "read_rows",
    "run_shard",
    "save_shard",
    "sweep",
    "write_results",
]
