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
from typing import TYPE_CHECKING, Any

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
        return self._lines(Evaluator.line_values, path, syntax)

    def line_outcomes(self, path: Path, syntax: Syntax = "native") -> "Iterator[list[Outcome]]":
        return self._lines(Evaluator.line_outcomes, path, syntax)

    def _lines(self, method: Callable[..., Any], path: Path, syntax: Syntax) -> Iterator[Any]:
        device = self.evaluator.device.partition(":")[0]  # which one is for the cluster to choose
        if device not in ("cpu", "cuda"):
            raise ValueError(f"the device {device!r} cannot be used: expected cpu or cuda")
        evaluator, gpus = replace(self.evaluator, device=device), int(device != "cpu")
        _ = replace(evaluator, device="cpu").fast  # what is wrong with the weights is told here
        run = partial(_Sent.of(evaluator).lines, method, syntax)
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
        evaluator = task.evaluator(uses) if task.format == "tsv" else None
        if evaluator and evaluator.fast:
            run = _Sent.of(evaluator).score_lines
        else:
            for rows, seen in _results(cluster, partial(_read, task), whole, progress, size):
                kept.keep([[rows]])
                uses = seen | uses
            evaluator = evaluator or task.evaluator(uses)
            run = partial(_Sent.of(evaluator).score_rows, task)
            whole, unit, size = chain.from_iterable(kept), "bytes of rows", kept.file.tell()
        tally = sum(_results(cluster, run, whole, progress, size, unit), Tally())
    return task.score(evaluator, tally)


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
class _Sent:
    """An evaluator for the nodes, with the content of its weights file unless it needs none."""

    evaluator: Evaluator
    data: bytes | None

    @classmethod
    def of(cls, evaluator: Evaluator) -> "_Sent":
        name = evaluator.weights
        assert isinstance(name, str | Path), "only those given by name are sent"
        file = None if is_constructed(name) else find_weights(name, evaluator.domain.name)
        return cls(replace(evaluator), file and file.read_bytes())  # nothing that was found here

    @cached_property
    def here(self) -> Evaluator:
        """The evaluator on a node, with a weights file that is removed with the process."""
        if self.data is None:
            return self.evaluator
        file = os.memfd_create("weights")
        os.write(file, self.data)
        return replace(self.evaluator, weights=f"/proc/self/fd/{file}")

    def lines(self, method: Callable[..., Any], syntax: Syntax, part: Part) -> list[Any]:
        return list(method(self.here, part, syntax))

    def score_lines(self, part: Part) -> Tally:
        fast = self.here.fast
        assert fast is not None, "the same weights had one before they were sent"
        with Lines.of(part) as file:
            return score_lines(fast, file)

    def score_rows(self, task: Task, kept: bytes) -> Tally:
        blocks: list[Block] = pickle.loads(kept)
        return sum(chain.from_iterable(task.tallies(self.here, block) for block in blocks), Tally())


def _read(task: Task, part: Part) -> tuple[bytes, Uses]:
    """Read the rows of a part. They are returned pickled: whoever collects them passes them on."""
    uses: Uses = {}
    with Lines.of(part) as file:
        blocks = list(task.blocks(file, uses))
    return pickle.dumps(blocks), uses
