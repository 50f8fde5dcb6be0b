"""A file of a million rows scored and evaluated in parts on a Ray cluster, beside one process.

    python benchmarks/shards.py

Writes `results/shards.md`, or another file (`--out`); needs Ray (`pip install 'exactformer[ray]'`).
The cluster is two nodes on this machine with a CPU each, unless `--ray ADDRESS` names one. Each
command runs with and without it, on a file of ListOps rows and on one that has wrong rows and bad
lines, too: what is printed, and the exit status, must be the same to the byte.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from reports import heading, log, parser

from exactformer.domains.catalog import listops
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.paper.files import made_with, table, write

SEED, DEPTH, AT_ONCE = 0, 3, 10_000
WRONG_EVERY, BAD_EVERY = 1_000, 10_007  # rows, in the file that has some

NODES = """
import sys
from ray.cluster_utils import Cluster
options = {"num_cpus": 1, "object_store_memory": 200 << 20, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=options)
cluster.add_node(**options)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""


@contextmanager
def two_nodes() -> Iterator[str]:
    """The address of a cluster on this machine."""
    start = [sys.executable, "-W", "ignore", "-c", NODES]
    with subprocess.Popen(
        start,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()


def write_rows(folder: Path, count: int) -> dict[str, Path]:
    """Files of labelled rows in Nangia's notation and in ours, good ones and spoilt ones."""
    algebra, rng = listops(3, "mean"), np.random.default_rng(SEED)
    names = ("nangia", "tsv", "wrong", "bad", "expressions")
    paths = {name: folder / f"{name}.txt" for name in names}
    files = {name: path.open("w") for name, path in paths.items()}
    number = 0
    while number < count:
        for expression in draw(algebra, DEPTH, min(AT_ONCE, count - number), rng):
            number += 1
            value, text = evaluate(expression), format_nangia(expression)
            label = str((int(value) + 1) % 10) if number % WRONG_EVERY == 0 else value
            files["nangia"].write(f"{value}\t{text}\n")
            files["wrong"].write(f"{label}\t{text}\n")
            files["bad"].write(f"{label}\t{text[:-1] if number % BAD_EVERY == 0 else text}\n")
            files["tsv"].write(f"{expression}\t{value}\n")
            files["expressions"].write(f"{expression}\n")
    for file in files.values():
        file.close()
    return paths


def run(*arguments: str | Path) -> tuple[int, bytes, bytes, float]:
    """Exit status, output and errors of a command, and seconds."""
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "exactformer", *arguments], capture_output=True)
    return done.returncode, done.stdout, done.stderr, time.perf_counter() - start


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10**6)
    options.add_argument("--ray", metavar="ADDRESS", help="a cluster that is there")
    options.add_argument("--out", type=Path, default=Path("results/shards.md"))
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log(f"writing {arguments.rows:,} rows")
        paths = write_rows(folder, arguments.rows)
        commands = {
            "score": ("score", "listops", paths["nangia"]),
            "score, native rows": ("score", "listops-3-mean", paths["tsv"], "--json"),
            "score, some wrong": ("score", "listops", paths["wrong"], "--json"),
            "score, some bad lines": ("score", "listops", paths["bad"]),
            "eval": ("eval", "listops-3-mean", "--file", paths["expressions"]),
        }
        alone = {what: run(*command) for what, command in commands.items()}
        rows = []
        with two_nodes() if not arguments.ray else contextmanager(iter)([arguments.ray]) as address:
            for what, command in commands.items():
                *expected, seconds = alone[what]
                *found, spread = run(*command, "--ray", address)
                if found != expected:
                    sys.exit(f"{what}: expected {expected}, found {found}")
                size = next(part for part in command if isinstance(part, Path)).stat().st_size
                digest = hashlib.sha256(expected[1] + expected[2]).hexdigest()[:12]
                line = (what, f"{size / 1e6:.0f}", str(expected[0]), digest)
                rows.append([*line, f"{seconds:.1f}", f"{spread:.1f}"])
                log(" | ".join(rows[-1]))
    cells = (
        "command",
        "MB",
        "exit status",
        "sha256 of what it prints",
        "s alone",
        "s on the cluster",
    )
    where = f"the cluster at {arguments.ray}" if arguments.ray else "two nodes on this machine"
    lines = [
        heading("A file of a million rows in parts on a cluster"),
        f"{arguments.rows:,} rows of ListOps of depth {DEPTH}, seed {SEED}; {where}, a CPU each. Both "
        f"times every command prints the same bytes and has the same exit status: "
        f"{len(rows)} of {len(rows)}.",
        "",
        *table(cells, rows),
        "",
        f"Times include that Ray's workers start and import torch. Load of the machine at the end: "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
        "",
        made_with(),
    ]
    write(arguments.out, "\n".join(lines))


if __name__ == "__main__":
    main()
