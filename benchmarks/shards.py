"""A file of a million rows scored and evaluated in parts on a Ray cluster, beside one process.

    python benchmarks/shards.py

Writes `results/shards.md`, or another file (`--out`); needs Ray (`pip install 'exactformer[ray]'`).
The cluster is two nodes on this machine with a CPU each, unless `--ray ADDRESS` names one. Each
command runs with and without it, on files of ListOps rows in Nangia's notation and in ours, with
wrong labels and with bad lines: what is printed, and the exit status, must be the same.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from reports import heading, log, parser

from exactformer.domains.catalog import listops
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.paper.files import table, write

SEED, DEPTH, AT_ONCE = 0, 3, 10_000
WRONG_EVERY, BAD_EVERY = 1_000, 10_007  # rows, in the file that has some

COMMANDS = (
    "score listops nangia",
    "score listops-3-mean native",
    "score listops --json wrong",
    "score listops bad",
    "eval listops-3-mean --file expressions",
)

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
        assert process.stdout is not None
        yield process.stdout.readline().strip()


def write_rows(folder: Path, count: int) -> None:
    """Files of labelled rows in Nangia's notation and in ours, good ones and spoilt ones."""
    algebra, rng = listops(3, "mean"), np.random.default_rng(SEED)
    names = ("nangia", "native", "wrong", "bad", "expressions")
    files = {name: (folder / name).open("w") for name in names}
    number = 0
    while number < count:
        for expression in draw(algebra, DEPTH, min(AT_ONCE, count - number), rng):
            number += 1
            value, text = evaluate(expression), format_nangia(expression)
            label = str((int(value) + 1) % 10) if number % WRONG_EVERY == 0 else value
            files["nangia"].write(f"{value}\t{text}\n")
            files["wrong"].write(f"{label}\t{text}\n")
            files["bad"].write(f"{label}\t{text[:-1] if number % BAD_EVERY == 0 else text}\n")
            files["native"].write(f"{expression}\t{value}\n")
            files["expressions"].write(f"{expression}\n")
    for file in files.values():
        file.close()


def run(folder: Path, *arguments: str) -> tuple[int, bytes, bytes, float]:
    """Exit status, output and errors of a command in a folder, and seconds."""
    start, command = time.perf_counter(), [sys.executable, "-m", "exactformer", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True)
    return done.returncode, done.stdout, done.stderr, time.perf_counter() - start


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=10**6)
    options.add_argument("--ray", metavar="ADDRESS", help="a cluster that is there")
    options.add_argument("--out", type=Path, default=Path("results/shards.md"))
    arguments = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        log(f"writing {arguments.rows:,} rows")
        folder = Path(name)
        write_rows(folder, arguments.rows)
        alone = {command: run(folder, *command.split()) for command in COMMANDS}
        rows = []
        with nullcontext(arguments.ray) if arguments.ray else two_nodes() as address:
            for command in COMMANDS:
                *expected, seconds = alone[command]
                *found, spread = run(folder, *command.split(), "--ray", address)
                if found != expected:
                    sys.exit(f"{command}: expected {expected}, found {found}")
                size = (folder / command.split()[-1]).stat().st_size
                printed = hashlib.sha256(expected[1] + expected[2]).hexdigest()[:12]
                facts = [f"`{command}`", f"{size / 1e6:.0f}", str(expected[0]), printed]
                rows.append([*facts, f"{seconds:.1f}", f"{spread:.1f}"])
                log(" | ".join(rows[-1]))
    header = ("command", "MB", "exit status", "sha256 of the output", "s alone", "s on the cluster")
    where = f"the cluster at {arguments.ray}" if arguments.ray else "two nodes on this machine"
    lines = [
        heading("A file of a million rows in parts on a cluster"),
        f"{arguments.rows:,} rows of ListOps of depth {DEPTH} (seed {SEED}), with and without "
        f"`--ray`, on {where}. {len(rows)} of {len(rows)} commands print the same bytes, errors "
        f"included, and end with the same exit status.",
        "",
        *table(header, rows),
        "",
        "Times include that Ray's workers start and import torch; two nodes on one machine have no "
        "more cores than one process has. Load of the machine at the end: "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
    ]
    text = "\n".join(lines)
    write(arguments.out, text)
    print(text)


if __name__ == "__main__":
    main()
