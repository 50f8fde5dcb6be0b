"""The engine on a GPU: tokens a second by shape and task, memory, and every value checked.

    python benchmarks/engine_gpu.py

Needs a CUDA GPU, CuPy, and g++ for the trees and for the stack machine that checks the values.
Writes `results/engine_gpu.md` and prints it; a few minutes on a large GPU, and 30 GB of the host's
memory. Exit status 1 if a value differs from the stack machine's, 2 without a GPU.
`--tokens 1e6 --large 4e6 --out FILE` tries the script out.
"""

import importlib
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from gpu_trees import SHAPES, Ids, Trees, tasks
from reports import log, parser
from torch import Tensor

from exactformer.api import construct
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic
from exactformer.engine.gpu import CupyLauncher, GpuEngine
from exactformer.engine.read_off import read_off
from exactformer.paper.files import table
from exactformer.weights.file import write_atomically

REPEATS = 20


@dataclass(frozen=True)
class Row:
    task: str
    shape: str
    tokens: int
    text_bytes: int
    seconds: list[float]
    rounds: int
    peak: int  # bytes, the text included
    found: int | None
    expected: int
    kernels: list[tuple[str, float]]  # with their milliseconds

    @property
    def of_kernels(self) -> list[str]:
        """Milliseconds by what kernels do, and all launches."""
        sums = [
            sum(ms for kernel, ms in self.kernels if kernel in stage) for stage in STAGES.values()
        ]
        cells = [f"{ms:.3f}" for ms in (*sums, sum(sums))]
        return [self.task, self.shape, f"{self.tokens:,}", *cells, str(len(self.kernels))]

    @property
    def cells(self) -> list[str]:
        rate = [self.tokens / s / 1e9 for s in (min(self.seconds), median(self.seconds))]
        right = "equal" if self.found == self.expected else f"**{self.found}, not {self.expected}**"
        return [
            self.task,
            self.shape,
            f"{self.tokens:,}",
            f"{self.text_bytes / self.tokens:.2f}",
            f"{min(self.seconds) * 1e3:.2f}",
            f"{rate[0]:.0f}",
            f"{rate[1]:.0f}",
            str(self.rounds),
            f"{self.peak / self.tokens:.2f}",
            right,
        ]


STAGES = {
    "text to units": ("copy_edges", "reduce_tiles", "reduce_words", "reduce_many_words"),
    "units paired": ("pair",),
    "maps composed": ("compose",),
    "all later rounds": ("finish",),
}
HEADER = ["task", "shape", "tokens", "bytes of text a token", "best ms", "best, billion tokens/s"]
HEADER += ["median", "rounds", "peak bytes a token", "value"]


@dataclass(frozen=True)
class Problem:
    algebra: Algebra
    shape: str
    tokens: int  # about
    seed: int

    def prepare(self, trees: Trees) -> tuple["Problem", int, Ids, int]:
        """Number of tokens, text and value, made on the host."""
        ids = trees.make(self.algebra, self.shape, self.tokens, self.seed)
        value = trees.value(self.algebra, ids)
        ids = trees.bare(self.algebra, ids, self.seed)
        return self, len(ids), trees.text(self.algebra, ids), value


def prepared(problems: list[Problem]) -> list[tuple[Problem, int, Ids, int]]:
    """All at once, and before anything is measured: the host is not busy then."""
    trees = Trees()
    with ThreadPoolExecutor(12) as pool:
        return list(pool.map(lambda problem: problem.prepare(trees), problems))


def measure(problem: Problem, tokens: int, text: Ids, expected: int) -> Row:
    engine = engine_of(problem.algebra)
    original = torch.from_numpy(text).cuda()
    engine.value(original)  # compiles, and fills the allocator's cache
    torch.cuda.reset_peak_memory_stats()
    others = torch.cuda.memory_allocated()
    on_gpu = engine.upload(text)
    seconds: list[float] = []
    found: set[int | None] = set()
    for _ in range(REPEATS):
        on_gpu.copy_(original)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        found.add(engine.value(on_gpu, overwrite=True))
        seconds.append(time.perf_counter() - begin)
    row = Row(
        task=problem.algebra.name,
        shape=problem.shape,
        tokens=tokens,
        text_bytes=len(text),
        seconds=seconds,
        rounds=engine.rounds,
        peak=torch.cuda.max_memory_allocated() - others,
        found=found.pop() if len(found) == 1 else None,
        expected=expected,
        kernels=profile(engine, on_gpu, original),
    )
    log(" | ".join(row.cells))
    return row


class TimedLauncher(CupyLauncher):
    """Notes how long each kernel takes, if asked to."""

    events: list[tuple[str, Any, Any]] | None = None

    def __call__(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        if self.events is None:
            return super().__call__(kernel, blocks, threads, shared, arguments)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        super().__call__(kernel, blocks, threads, shared, arguments)
        end.record()
        self.events.append((kernel, begin, end))
        return None


def profile(engine: GpuEngine, text: Tensor, original: Tensor) -> list[tuple[str, float]]:
    """The kernels of one text in order, with their milliseconds: the least of several runs."""
    launcher = engine.launch
    assert isinstance(launcher, TimedLauncher)
    runs: list[list[tuple[str, float]]] = []
    for _ in range(5):
        launcher.events = []
        text.copy_(original)
        engine.value(text, overwrite=True)
        torch.cuda.synchronize()
        runs.append([(kernel, a.elapsed_time(b)) for kernel, a, b in launcher.events])
    launcher.events = None
    return [(of[0][0], min(ms for _, ms in of)) for of in zip(*runs, strict=True)]


_ENGINES: dict[str, GpuEngine] = {}


def engine_of(algebra: Algebra) -> GpuEngine:
    if algebra.name not in _ENGINES:
        automaton = read_off(algebra, construct(algebra).weights)
        engine = _ENGINES[algebra.name] = GpuEngine(automaton, algebra)
        engine.launch = TimedLauncher(engine.layout.options)
    return _ENGINES[algebra.name]


def copy_bandwidth(size: int = 4 << 30) -> float:
    """Bytes read and written a second by a copy on the GPU."""
    source: Tensor = torch.randint(256, (size,), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    times: list[float] = []
    for _ in range(REPEATS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        target.copy_(source)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / 1e3)
    return 2 * size / median(times)


def report(rows: list[Row], bandwidth: float) -> str:
    cupy = importlib.import_module("cupy")
    lines = [
        "# The engine on a GPU",
        "",
        "`python benchmarks/engine_gpu.py`. Text already on the GPU, to the value on the host, "
        f"one text at a time, validation included; wall clock, best and median of {REPEATS}. Bytes "
        "a token at peak count everything on the GPU, the text too. A text is overwritten where "
        "there is one way to read it (`boolean` has two): another copy, which is not counted, "
        "brings it back before each repetition. Every value is compared with "
        "a stack machine's over the algebra's tables (`engine_trees.cpp`), and equal in every "
        "repetition. `quasigroup` has two operators that depend on the order and can be undone, so "
        "that no wrong value is hidden by a later `*0`. Trees in plain notation lose all "
        "parentheses that precedence makes superfluous, so that fewer tokens are left. "
        "All rows go through the same kernels.",
        "",
        f"{torch.cuda.get_device_name()}; a copy on this GPU moves {bandwidth / 1e12:.2f} TB/s, "
        "bytes read and written, in the same run.",
        "",
        *table(HEADER, [row.cells for row in rows], words=2),
        "",
        "## Where the time goes",
        "",
        "Milliseconds on the GPU by what the kernels do (`exactformer/engine/kernels.cu`), each "
        "timed by events, the least of five runs; the launches themselves are not in it. A text is "
        "read once, in the first kernel.",
        "",
        *table(
            ["task", "shape", "tokens", *STAGES, "sum", "launches"],
            [row.of_kernels for row in rows],
            words=2,
        ),
        "",
        f"torch {torch.__version__}, CuPy {cupy.__version__}, CUDA {torch.version.cuda}, "
        f"numpy {np.__version__}",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--tokens", type=float, default=1 << 28)
    options.add_argument("--large", type=float, default=1e9, help="tokens of the largest texts")
    names = [algebra.name for algebra in tasks()]
    options.add_argument("--tasks", nargs="+", choices=names, default=names)
    options.add_argument("--out", type=Path, default=Path("results/engine_gpu.md"))
    arguments = options.parse_args()
    if not torch.cuda.is_available():
        log("engine_gpu.py: expected a CUDA GPU, found none")
        return 2
    bandwidth = copy_bandwidth()
    torch.cuda.empty_cache()
    problems = [
        Problem(algebra, shape, int(arguments.tokens), seed)
        for seed, algebra in enumerate(tasks())
        if algebra.name in arguments.tasks
        for shape in SHAPES
    ]
    large = int(arguments.large)
    if large:
        problems += [Problem(arithmetic(), shape, large, 9) for shape in SHAPES[:3]]
    rows = [measure(*made) for made in prepared(problems)]
    text = report(rows, bandwidth)
    write_atomically(arguments.out, text)
    print(text)
    return 0 if all(row.found == row.expected for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
