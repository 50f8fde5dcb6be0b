"""Large files on a cluster: parts of a file are evaluated or scored on its nodes, and put together.

What comes out is what one machine gives, errors and the numbers of lines included. A node gets the
lines of a part and the weights with it, so that it needs no file of ours.
"""

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from exactformer.api import Model
from exactformer.domains.algebra import Algebra
from exactformer.domains.formats.blocks import Kept
from exactformer.domains.formats.lines import BadLines, Lines, Part, parts
from exactformer.domains.formats.syntaxes import Syntax
from exactformer.engine.choice import EngineUsed
from exactformer.evaluation.score import Block, Score, Tally, Task, Uses, score_lines
from exactformer.evaluation.values import Evaluator
from exactformer.host.cluster import Cluster, connected
from exactformer.host.progress import Tell, bar, is_typed
from exactformer.weights.named import find_weights, is_constructed

if TYPE_CHECKING:
    from exactformer.engine.rows import Numbers
    from exactformer.model.predict import Outcome


_Method = Literal["line_values", "line_outcomes"]  # of an `Evaluator`


@dataclass(frozen=True)
class OnCluster:
    """Evaluates the lines of a file as an `Evaluator` does, on the cluster at an address."""

    evaluator: Evaluator
    address: str

    @property
    def runs(self) -> EngineUsed:
        """Name of the engine on its nodes."""
        return replace(self.evaluator, device="cpu").runs

    def line_values(self, path: Path, syntax: Syntax = "native") -> "Iterator[Numbers]":
        return self._lines("line_values", path, syntax)

    def line_outcomes(self, path: Path, syntax: Syntax = "native") -> "Iterator[Outcome]":
        return self._lines("line_outcomes", path, syntax)

    def _lines(self, method: _Method, path: Path, syntax: Syntax) -> Iterator[Any]:
        device = self.evaluator.device.partition(":")[0]  # which one is for the cluster to choose
        if device not in ("cpu", "cuda"):
            raise ValueError(f"the device {device!r} cannot be used: expected cpu or cuda")
        evaluator, gpus = replace(self.evaluator, device=device), int(device != "cpu")
        # What is wrong with the weights is told here.
        replace(evaluator, device="cpu").fast_engine()
        weights = _Weights.of(evaluator.weights, evaluator.algebra)
        run = _Evaluate(evaluator, weights, method, syntax).run
        with connected(self.address) as cluster, bar(shown=not is_typed(path)) as tell:
            results = _results(cluster, run, parts(path), tell, _size(path), gpus=gpus)
            yield from chain.from_iterable(results)


def score(address: str, task: Task, progress: Tell) -> Score:
    """Score a file on a cluster, with the result of `score` on one machine. The file is read here;
    if only all of it says which weights it needs, its rows are kept until all have been read.
    """
    with connected(address) as cluster, Kept[list[bytes]]() as kept:
        cut, size, unit = parts(task.file), _size(task.file), "bytes"
        first = next(cut)
        with Lines.of(first) as file:
            task = task.settled(file)
        whole, uses = chain([first], cut), Uses()
        model = task.model(uses) if task.format == "tsv" else None
        if model and model.fast_engine(task.engine):
            run = _Score(task, _Weights.of(task.weights, task.domain), uses).lines
        else:
            for rows, seen in _results(cluster, partial(_read, task), whole, progress, size):
                kept.keep([[rows]])
                uses = seen | uses
            model = model or task.model(uses)
            run = _Score(task, _Weights.of(task.weights, task.domain), uses).rows
            whole, unit, size = chain.from_iterable(kept), "bytes of rows", kept.file.tell()
        tally = sum(_results(cluster, run, whole, progress, size, unit), Tally())
    return task.score(model, tally)


def _size(path: Path) -> int | None:
    return path.stat().st_size if str(path) != "-" and path.is_file() else None


def _results(
    cluster: Cluster,
    run: Callable[[Any], Any],
    shards: Iterable[Part] | Iterable[bytes],
    tell: Tell,
    size: int | None,
    unit: str = "bytes",
    gpus: int = 0,
) -> Iterator[Any]:
    """Yield the results of a file's parts up to the first mistake. Bad lines are reported together
    at the end.
    """
    sizes: deque[int] = deque()  # of what has been sent

    def sent() -> Iterator[Part | bytes]:
        for shard in shards:
            sizes.append(len(shard.data if isinstance(shard, Part) else shard))
            yield shard

    bad: BadLines | None = None
    done = 0
    for result in cluster.in_order(partial(_attempt, run), sent(), gpus=gpus):
        done += sizes.popleft()
        tell(unit, done, size)
        if isinstance(result, BadLines):
            bad = bad + result if bad else result
        elif bad is None:
            if isinstance(result, ValueError):
                raise result
            yield result
    if bad:
        raise bad


def _attempt(run: Callable[[Any], Any], shard: Any) -> Any:
    """Run a shard and return a mistake instead of raising it: whether it is reported depends on
    earlier shards.
    """
    try:
        return run(shard)
    except BadLines as error:
        return error
    except ValueError as error:
        return ValueError(str(error))


# What a node does with a part


@dataclass(frozen=True)
class _Weights:
    """Weights by their name and, unless they are constructed, the content of their file."""

    name: str
    data: bytes | None

    @classmethod
    def of(cls, name: str, domain: Algebra) -> "_Weights":
        data = None if is_constructed(name) else find_weights(name, domain.name).read_bytes()
        return cls(name, data)

    @cached_property
    def path(self) -> str:
        """Path of the weights on a node: a file that is removed with the process."""
        if self.data is None:
            return self.name
        file = os.memfd_create(self.name)
        os.write(file, self.data)
        return f"/proc/self/fd/{file}"


@dataclass(frozen=True)
class _Evaluate:
    evaluator: Evaluator
    weights: _Weights
    method: _Method
    syntax: Syntax

    @cached_property
    def here(self) -> Evaluator:
        return replace(self.evaluator, weights=self.weights.path)

    def run(self, part: Part) -> "list[Numbers] | list[Outcome]":
        return list(getattr(self.here, self.method)(part, self.syntax))


def _read(task: Task, part: Part) -> tuple[bytes, Uses]:
    """Read the rows of a part. They are returned pickled: whoever collects them passes them on."""
    uses: Uses = {}
    with Lines.of(part) as file:
        blocks = list(task.blocks(file, uses))
    return pickle.dumps(blocks), uses


@dataclass(frozen=True)
class _Score:
    task: Task
    weights: _Weights
    uses: Uses

    @cached_property
    def model(self) -> Model:
        return replace(self.task, weights=self.weights.path).model(self.uses)

    def lines(self, part: Part) -> Tally:
        fast = self.model.fast_engine(self.task.engine)
        assert fast is not None, "the same weights had one before they were sent"
        with Lines.of(part) as file:
            return score_lines(fast, file)

    def rows(self, kept: bytes) -> Tally:
        blocks: list[Block] = pickle.loads(kept)
        tallies = (self.task.tallies(self.model, block) for block in blocks)
        return sum(chain.from_iterable(tallies), Tally())
