"""The engine on a GPU: tokens a second by shape and task, memory, and every value checked.

    python benchmarks/engine_gpu.py

Needs a CUDA GPU, CuPy, and g++ for the trees and for the stack machine that checks the values.
Writes `results/engine_gpu.md` and prints it; a few minutes on a large GPU, and 30 GB of the host's
memory. Exit status 1 if a value differs from the stack machine's, 2 without a GPU.
`--tokens 1e6 --large 4e6 --out FILE` tries the script out.
"""

import ctypes
import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from reports import log, parser
from torch import Tensor

from exactformer.api import construct
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import (
    arithmetic,
    arithmetic_plain,
    boolean,
    boolean_plain,
    listops,
)
from exactformer.domains.plain_grammar import LEFT
from exactformer.engine.gpu import CupyLauncher, GpuEngine
from exactformer.engine.read_off import read_off
from exactformer.paper.files import table
from exactformer.weights.file import write_atomically

SHAPES = ("balanced", "random splits", "left comb", "right comb", "zigzag comb", "uniformly random")
REPEATS = 20
Ids = NDArray[np.uint8]


# ---------------------------------------------------------------- what to evaluate


def quasigroup() -> Algebra:
    """Two operators on digits that depend on the order and can be undone in each operand: a wrong
    value anywhere is a wrong value at the end.
    """
    values = tuple("0123456789")
    rules = {"-": (1, 9, 0), "/": (3, 7, 1)}  # (x * a + y * b + c) modulo 10, x and y units

    def operator(symbol: str, x: int, y: int, c: int) -> Operator:
        def rule(a: str, b: str) -> str:
            return str((x * int(a) + y * int(b) + c) % 10)

        return Operator.from_rule(symbol, [2], rule, values, ordered=True)

    operators = tuple(operator(symbol, *rule) for symbol, rule in rules.items())
    return Algebra("quasigroup", values, operators, "infix")


def tasks() -> list[Algebra]:
    """What is measured, in infix, prefix and plain notation."""
    found = arithmetic(), quasigroup(), boolean(), listops(), arithmetic_plain(), boolean_plain()
    return list(found)


class Trees:
    """`engine_trees.cpp`, compiled: makes large trees and evaluates them with a stack machine."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("engine_trees.cpp")
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "trees.so"
            command = ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", str(source), "-o"]
            subprocess.run([*command, str(library)], check=True)
            self.library = ctypes.CDLL(str(library))
        for function in (self.library.make_tree, self.library.spell, self.library.bare):
            function.restype = ctypes.c_int64

    def make(self, algebra: Algebra, shape: str, tokens: int, seed: int) -> Ids:
        """Ids of a tree of about this many tokens; a small one tells how many leaves that takes."""
        sample = 100_000
        per_leaf = self._write(algebra, shape, sample, seed, np.empty(0, np.uint8)) / sample
        leaves = max(1, round(tokens / per_leaf))
        ids = np.empty(int(tokens * 1.1) + 10_000, dtype=np.uint8)
        length = self._write(algebra, shape, leaves, seed, ids)
        assert length <= len(ids), "a large tree has as many tokens for each leaf as a small one"
        return ids[:length]

    def _write(self, algebra: Algebra, shape: str, leaves: int, seed: int, out: Ids) -> int:
        arities = [(op.arities[0], op.arities[-1]) for op in algebra.operators]
        least, most = (
            (ctypes.c_int * len(arities))(*column) for column in zip(*arities, strict=True)
        )
        return self.library.make_tree(
            SHAPES.index(shape),
            ctypes.c_int64(leaves),
            len(algebra.values),
            len(algebra.operators),
            algebra.notation.operands_before(2),
            least,
            most,
            int(not algebra.name.startswith("arithmetic")),
            ctypes.c_uint64(seed),
            _pointer(out),
            ctypes.c_int64(len(out)),
        )

    def bare(self, algebra: Algebra, ids: Ids, seed: int, kept: float = 0) -> Ids:
        """In plain notation, without the superfluous pairs of parentheses but for a share of them;
        the ids are overwritten.
        """
        if (levels := levels_of(algebra)) is None:
            return ids
        count = len(algebra.operators)
        of_operators = (levels[start : start + count] for start in (0, count, 2 * count))
        length = self.library.bare(
            _pointer(ids),
            ctypes.c_int64(len(ids)),
            len(algebra.values),
            *((ctypes.c_int * count)(*some) for some in of_operators),
            ctypes.c_double(kept),
            ctypes.c_uint64(seed),
        )
        return ids[:length]

    def text(self, algebra: Algebra, ids: Ids) -> Ids:
        spellings = np.zeros((256, 8), dtype=np.uint8)
        for token, symbol in enumerate(algebra.vocabulary):
            data = symbol.encode()
            spellings[token, : len(data) + 1] = [len(data), *data]
        spaced = not algebra.packs
        room = int(spellings[ids[:1_000_000], 0].mean() * 1.05 * len(ids)) + spaced * len(ids)
        out = np.empty(room + 1000, dtype=np.uint8)
        count = ctypes.c_int64(len(ids))
        length = self.library.spell(
            _pointer(ids), count, _pointer(spellings), int(spaced), _pointer(out)
        )
        assert length <= len(out)
        return out[:length]

    def value(self, algebra: Algebra, ids: Ids) -> int:
        """Value of an expression by the algebra's own tables."""
        tables: list[int] = []
        offsets = np.zeros((len(algebra.operators), 16), dtype=np.int64)
        for o, operator in enumerate(algebra.operators):
            for arity in operator.arities:
                offsets[o, arity] = len(tables)
                keys = product(range(len(algebra.values)), repeat=arity)
                tables += [operator(key) for key in keys]
        return self.library.evaluate(
            _pointer(ids),
            ctypes.c_int64(len(ids)),
            len(algebra.values),
            _pointer(np.array(tables, dtype=np.uint8)),
            _pointer(offsets),
        )


def levels_of(algebra: Algebra) -> Any:
    """Of the operators of plain notation: the levels as prefixes, those between operands, and
    whether these group from the left; None in other notations.
    """
    if not algebra.precedence:
        return None
    prefix, binary = np.asarray(algebra.declared_levels)[:, algebra.first_operator :].tolist()
    directions = np.asarray(algebra.declared_directions).tolist()
    numbers = [*prefix, *binary, *(int(directions[level] == LEFT) for level in binary)]
    return (ctypes.c_int * len(numbers))(*numbers)


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


# ---------------------------------------------------------------- what to measure


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
