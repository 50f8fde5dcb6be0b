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

ROOT = Path(__file__).resolve().parent.parent
MEMORY = 100 << 20  # bytes for the objects of a node
SECONDS = 120  # until something that must happen has happened


class Nodes(NamedTuple):
    address: str
    second: int  # the process of the second node: workers are its children

    def workers(self) -> dict[int, bytes]:
        """The processes of the second node, and what they call themselves."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # a process that has just ended
                parent = (folder / "stat").read_bytes().rpartition(b")")[2].split()[1]
                if int(parent) == self.second:
                    found[int(folder.name)] = (folder / "cmdline").read_bytes()
        return found

    def is_busy(self) -> bool:
        """Whether the second node is running a shard."""
        return any(name.startswith(b"ray::run") for name in self.workers().values())

    def lose_the_second(self) -> None:
        """In the middle of a shard, as if it had lost its power."""
        deadline = time.monotonic() + SECONDS
        while not self.is_busy():
            assert time.monotonic() < deadline, "the second node has nothing to do"
            time.sleep(0.01)
        for process in (self.second, *self.workers()):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


@contextmanager
def nodes() -> Iterator[Nodes]:
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.nodes"],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout
        address, second = process.stdout.readline().split()
        yield Nodes(address, int(second))


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
