"""Shards of work on the nodes of a Ray cluster.

A shard is what one call of a function takes. It is sent to some node, and its result comes back:
nodes need no file system in common. What a lost node had is run again elsewhere; a mistake in the
input is not, and is told as on one machine.

Every node must have this code and the same versions of what computes, so that it does not matter
which of them takes a shard.
"""

import hashlib
import os
import pickle
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

CONNECT_SECONDS = 10  # until a port that does not answer is given up
RETRIES = 5  # retries of a shard that was lost with its node or its process
LONGEST_MESSAGE = 300  # characters of what Ray says
AHEAD = 3  # shards under way for each that runs: the next ones are at hand when it ends

# Ray reads these when it is imported. It is not to wait for minutes for what is no cluster, and a
# shard that asks for no GPU sees none.
SETTINGS = {
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    "RAY_py_gcs_connect_timeout_s": "5",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "1",
}

Shard = TypeVar("Shard")
Result = TypeVar("Result")


class ShardResult(NamedTuple):
    """The outcome of a shard: its result, or a mistake that running it again would not help."""

    result: Any = None
    mistake: str | None = None

    def right(self) -> Any:
        if self.mistake is not None:
            raise ValueError(self.mistake)
        return self.result


class Cluster:
    """A cluster that we are connected to; see `connected`."""

    def __init__(self, ray: Any, address: str) -> None:
        self.ray, self.address = ray, address

    def as_they_come(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], *, gpus: float = 0
    ) -> Iterator[tuple[int, Result]]:
        """Yield the number of each shard, from 0, and its result, in the order in which they
        finish. A mistake in a shard raises a ValueError at once. Each takes a CPU, and `gpus` of a
        GPU.
        """
        for number, outcome in self._outcomes(function, shards, gpus, {}):
            yield number, outcome.right()

    def in_order(
        self, function: Callable[[Shard], Result], shards: Iterable[Shard], *, gpus: float = 0
    ) -> Iterator[Result]:
        """Yield the results of shards in their order; a mistake is raised in its turn."""
        waiting: dict[int, ShardResult] = {}
        following = 0
        for number, outcome in self._outcomes(function, shards, gpus, waiting):
            waiting[number] = outcome
            while following in waiting:
                yield waiting.pop(following).right()
                following += 1

    def _outcomes(
        self,
        function: Callable[[Shard], Result],
        shards: Iterable[Shard],
        gpus: float,
        waiting: Mapping[int, ShardResult],
    ) -> Iterator[tuple[int, ShardResult]]:
        """Yield the outcomes by shard number. There may be more shards than the memory holds, so no
        more of them run or wait than keep all nodes busy.
        """
        remote = self.ray.remote(_on_node()).options(
            num_cpus=1, num_gpus=gpus, max_retries=RETRIES, retry_exceptions=False
        )
        expected, call = versions(), pickle.dumps(function)
        running: dict[Any, int] = {}
        numbered = enumerate(shards)
        upcoming = next(numbered, None)
        if not self._places(gpus):
            kind = "GPU" if gpus else "CPU"
            raise ValueError(f"expected a cluster with a {kind} at {self.address!r}, found none")
        while upcoming or running:
            most = AHEAD * max(1, self._places(gpus))  # nodes come and go
            while upcoming and (not running or len(running) + len(waiting) < most):
                number, shard = upcoming
                running[remote.remote(expected, call, pickle.dumps(shard))] = number
                upcoming = next(numbered, None)
            for done in self.ray.wait(list(running))[0]:
                yield running.pop(done), self._outcome(done)

    def _places(self, gpus: float) -> int:
        """Number of shards that run at a time."""
        resources = self.ray.cluster_resources()
        cpus = int(resources.get("CPU", 0))
        return min(cpus, int(resources.get("GPU", 0) / gpus)) if gpus else cpus

    def _outcome(self, done: Any) -> ShardResult:
        try:
            return ShardResult(*self.ray.get(done))
        except self.ray.exceptions.RayError as error:
            what = f"did not finish a shard: {_one_line(error)}"
            return ShardResult(mistake=f"the cluster at {self.address} {what}")


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster at an address: `auto` (the one of this machine, or $RAY_ADDRESS), HOST:PORT, or
    ray://HOST:PORT. What is not one, or does not answer, is a ValueError.

    Ray tells of its own affairs on standard output, which is ours: until the end it is muted.
    """
    for name, value in SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ValueError("a cluster needs Ray: pip install 'exactformer[ray]'") from None
    _knock(os.environ.get("RAY_ADDRESS", address) if address == "auto" else address)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except Exception as error:  # Ray's are of many kinds
            raise ValueError(f"expected a Ray cluster at {address!r}: {_one_line(error)}") from None
        try:
            yield Cluster(ray, address)
        finally:
            ray.shutdown()  # what still runs for us is ended by it


def _knock(address: str) -> None:
    """Raise a ValueError at once if nobody answers at a port: Ray itself would try for minutes."""
    if address == "auto":
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) < 1 << 16):
        raise ValueError(f"expected auto, HOST:PORT or ray://HOST:PORT, found {address!r}")
    try:
        socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        raise ValueError(
            f"expected a Ray cluster at {address!r}: {error.strerror or error}"
        ) from None


def _on_node() -> Callable[[dict[str, str], bytes, bytes], tuple[Any, str | None]]:
    """The function that a node runs. It is nested, so that Ray sends it as code and a node without
    this package can say so.
    """

    def run(expected: dict[str, str], call: bytes, shard: bytes) -> tuple[Any, str | None]:
        try:
            from exactformer.host.cluster import run_here
        except ImportError as error:
            from socket import gethostname

            return None, f"{gethostname()}: expected exactformer there as here: {error}"
        return run_here(expected, call, shard)

    return run


def run_here(expected: dict[str, str], call: bytes, shard: bytes) -> ShardResult:
    """Run a pickled function on a pickled shard, on a node."""
    place = socket.gethostname()
    for name, found in versions().items():
        if found != expected.get(name):
            wanted = f"expected {name} {expected.get(name)}, as here"
            return ShardResult(mistake=f"{place}: {wanted}, found {found}")
    try:
        return ShardResult(_function(call)(pickle.loads(shard)))
    except ValueError as error:
        return ShardResult(mistake=str(error))
    except Exception as error:  # a traceback of another machine helps nobody
        return ShardResult(mistake=f"{place}: {type(error).__name__}: {_one_line(error)}")


@lru_cache(maxsize=1)
def _function(call: bytes) -> Callable[[Any], Any]:
    """Unpickle the function once for all shards: what it has cached serves the next shard, too."""
    return pickle.loads(call)


@cache
def versions() -> dict[str, str]:
    """Versions of the packages that results depend on. Builds of torch for CUDA and for the CPU
    count as equal.
    """
    python = ".".join(map(str, sys.version_info[:3]))
    ours = f"{version('exactformer')} ({_code()})"
    others = {name: version(name).partition("+")[0] for name in ("torch", "numpy")}
    return {"exactformer": ours, "Python": python, **others}


def _code() -> str:
    """A hash of this package's code, which changes more often than its version."""
    digest, package = hashlib.sha256(), Path(__file__).parent.parent
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:8]


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:LONGEST_MESSAGE]
