"""Two nodes of a Ray cluster on this machine, for tests that lose one.

`python -m tests.nodes` starts them, prints the address and the process of the second one, and stops
them when its input ends.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import psutil

ROOT = Path(__file__).resolve().parent.parent
MEMORY = 100 << 20  # bytes for the objects of a node
SECONDS = 120  # until something that must happen has happened


class Nodes(NamedTuple):
    address: str
    second: int  # the process of the second node: workers are its children

    def is_busy(self) -> bool:
        """Whether the second node is running a shard."""
        with suppress(psutil.Error):  # a process that has just ended
            children = psutil.Process(self.second).children()
            return any(child.cmdline()[:1] == ["ray::run"] for child in children)
        return False

    def lose_the_second(self) -> None:
        """In the middle of a shard, as if it had lost its power."""
        deadline = time.monotonic() + SECONDS
        while not self.is_busy():
            assert time.monotonic() < deadline, "the second node has nothing to do"
            time.sleep(0.01)
        children = psutil.Process(self.second).children()
        os.kill(self.second, signal.SIGKILL)
        for child in children:
            child.kill()


@contextmanager
def nodes() -> Iterator[Nodes]:
    start = [sys.executable, "-W", "ignore", "-m", "tests.nodes"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(start, cwd=ROOT, text=True, **pipes) as process:
        assert process.stdin
        assert process.stdout
        address, second = process.stdout.readline().split()
        yield Nodes(address, int(second))
        process.stdin.close()
        process.stdout.read()


def main() -> None:
    from ray.cluster_utils import Cluster  # pyright: ignore[reportMissingImports]

    options = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args=options)
    second = cluster.add_node(**options)
    print(cluster.address, second.all_processes["raylet"][0].process.pid, flush=True)
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()
