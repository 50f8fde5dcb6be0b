"""Large files on a cluster: parts of a file are evaluated or scored on its nodes, and put together.

What comes out is what one machine gives, errors and the numbers of lines included. A node gets the
lines of a part and the weights with it, so that it needs no file of ours.
"""

import os
import pickle
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from exactformer.api import Model
from exactformer.cluster import Cluster, connected
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import Median
from exactformer.domains.formats.blocks import Kept
from exactformer.domains.formats.labelled import Format
from exactformer.domains.formats.lines import BadLines, Lines, Part, parts
from exactformer.domains.formats.syntaxes import Syntax
from exactformer.engine.choice import EngineName
from exactformer.named import find_weights, is_constructed
from exactformer.progress import Tell, bar, is_typed
from exactformer.score import (
    Block,
    Progress,
    Score,
    Tally,
    Uses,
    choose,
    read_blocks,
    score_lines,
    settled,
    summary,
    tallies,
)
from exactformer.values import Evaluator

if TYPE_CHECKING:
    from exactformer.engine.cpu import CpuEngine
    from exactformer.engine.rows import Numbers
    from exactformer.model.predict import Outcome


@dataclass(frozen=True)
class OnCluster:
    """Evaluates the lines of a file as an `Evaluator` does, on the cluster at an address."""

    evaluator: Evaluator
    address: str

    def line_values(self, path: Path, syntax: Syntax = "native") -> "Iterator[Numbers]":
        return self._lines(_Values, path, syntax)

    def line_outcomes(self, path: Path, syntax: Syntax = "native") -> "Iterator[Outcome]":
        return chain.from_iterable(self._lines(_Outcomes, path, syntax))

    def _lines(self, kind: "type[_Lines]", path: Path, syntax: Syntax) -> Iterator[Any]:
        device = self.evaluator.device.partition(":")[0]  # which one is for the cluster to choose
        if device not in ("cpu", "cuda"):
            raise ValueError(f"the device {device!r} cannot be used: expected cpu or cuda")
        evaluator, gpus = replace(self.evaluator, device=device), int(device != "cpu")
        replace(evaluator, device="cpu").prepare()  # what is wrong with the weights is told here
        job = kind(evaluator, _Weights.of(evaluator.weights, evaluator.algebra), syntax)
        with connected(self.address) as cluster, bar(shown=not is_typed(path)) as tell:
            told = _Told(tell, "bytes", _size(path))
            yield from _results(cluster, job, parts(path), told, gpus)


def score(
    address: str,
    domain: Algebra,
    path: Path,
    format: Format | None = None,
    weights: str = "constructed",
    median: Median | None = None,
    engine: EngineName = "auto",
    progress: Progress = lambda unit, done, total: None,
    most_work: int | None = None,
) -> Score:
    """What `exactformer.score.score` gives for a file, which is read as it is there: where only all
    of it says which weights it needs, its rows are kept here until all have been read.
    """
    with connected(address) as cluster, Kept[list[bytes]]() as kept:
        cut, size = parts(path), _size(path)
        first = next(cut)
        with Lines.of(first) as file:
            format, median = settled(domain, file, format, median)
        whole, uses = chain([first], cut), Uses()
        model = choose(domain, format, uses, weights, median) if format == "tsv" else None
        told = _Told(progress, "bytes", size)
        if model and model.fast_engine(engine):
            job = _ScoreLines(domain, _Weights.of(weights, domain), engine)
        else:
            for rows, seen in _results(cluster, _Read(domain, format), whole, told):
                kept.keep([[rows]])
                uses = seen | uses
            model = model or choose(domain, format, uses, weights, median)
            sent = _Weights.of(weights, domain)
            facts = (domain, format, uses, sent, median, engine, most_work)
            job, whole = _ScoreRows(str(path), *facts), chain.from_iterable(kept)
            told = _Told(progress, "bytes of rows", kept.file.tell())
        tally = sum(_results(cluster, job, whole, told), Tally())
    return summary(path, format, model, median, weights, engine, tally)


def _size(path: Path) -> int | None:
    return path.stat().st_size if str(path) != "-" and path.is_file() else None


class _Told:
    """Progress through the bytes of a file."""

    def __init__(self, progress: Progress | Tell, unit: str, size: int | None) -> None:
        self.progress, self.unit, self.size = progress, unit, size
        self.done = 0

    def add(self, count: int) -> None:
        self.done += count
        self.progress(self.unit, self.done, self.size)


def _results(
    cluster: Cluster,
    job: "_Job",
    shards: Iterable[Part] | Iterable[bytes],
    told: _Told,
    gpus: int = 0,
) -> Iterator[Any]:
    """Of the parts of a file up to the first mistake. Bad lines are told together at the end."""
    sizes: deque[int] = deque()  # of what has been sent

    def sent() -> Iterator[Part | bytes]:
        for shard in shards:
            sizes.append(len(shard.data if isinstance(shard, Part) else shard))
            yield shard

    bad: BadLines | None = None
    for result in cluster.in_order(job, sent(), gpus=gpus):
        told.add(sizes.popleft())
        if isinstance(result, BadLines):
            bad = bad + result if bad else result
        elif bad is None:
            if isinstance(result, ValueError):
                raise result
            yield result
    if bad:
        raise bad


# What a node does with a part


@dataclass(frozen=True)
class _Job:
    def __call__(self, shard: Any, /) -> Any:
        """A mistake is returned: whether it is told depends on the shards before."""
        try:
            return self.run(shard)
        except BadLines as error:
            return error
        except ValueError as error:
            return ValueError(str(error))

    def run(self, shard: Any, /) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class _Weights:
    """Weights by their name and, where they are no constructed ones, what their file holds."""

    name: str
    data: bytes | None

    @classmethod
    def of(cls, name: str, domain: Algebra) -> "_Weights":
        data = None if is_constructed(name) else find_weights(name, domain.name).read_bytes()
        return cls(name, data)

    @cached_property
    def path(self) -> str:
        """Their name on a node: a file that is gone with the process."""
        if self.data is None:
            return self.name
        file = os.memfd_create(self.name)
        os.write(file, self.data)
        return f"/proc/self/fd/{file}"


@dataclass(frozen=True)
class _Lines(_Job):
    evaluator: Evaluator
    weights: _Weights
    syntax: Syntax

    @cached_property
    def here(self) -> Evaluator:
        return replace(self.evaluator, weights=self.weights.path)


class _Values(_Lines):
    def run(self, part: Part, /) -> "Numbers":
        return np.concatenate(list(self.here.line_values(part, self.syntax)))


class _Outcomes(_Lines):
    def run(self, part: Part, /) -> "list[Outcome]":
        return list(self.here.line_outcomes(part, self.syntax))


@dataclass(frozen=True)
class _Read(_Job):
    domain: Algebra
    format: Format

    def run(self, part: Part, /) -> tuple[bytes, Uses]:
        """Rows as a node wants them back: they are nothing to us."""
        uses: Uses = {}
        with Lines.of(part) as file:
            blocks = list(read_blocks(file, self.format, self.domain, uses))
        return pickle.dumps(blocks), uses


@dataclass(frozen=True)
class _ScoreLines(_Job):
    domain: Algebra
    weights: _Weights
    engine: EngineName

    @cached_property
    def fast(self) -> "CpuEngine | None":
        return choose(self.domain, "tsv", {}, self.weights.path, None).fast_engine(self.engine)

    def run(self, part: Part, /) -> Tally:
        assert self.fast is not None, "the same weights had one before they were sent"
        with Lines.of(part) as file:
            return score_lines(self.fast, file)


@dataclass(frozen=True)
class _ScoreRows(_Job):
    name: str
    domain: Algebra
    format: Format
    uses: Uses
    weights: _Weights
    median: Median | None
    engine: EngineName
    most_work: int | None

    @cached_property
    def model(self) -> Model:
        return choose(self.domain, self.format, self.uses, self.weights.path, self.median)

    def run(self, rows: bytes, /) -> Tally:
        def scored(block: Block) -> Iterator[Tally]:
            how = self.format, self.model, self.engine, block, self.name, self.most_work
            return tallies(*how)

        return sum(chain.from_iterable(map(scored, pickle.loads(rows))), Tally())
