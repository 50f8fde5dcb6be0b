"""Many short texts on a GPU: tokens a second, memory, and every value checked.

    python benchmarks/gpu_rows.py

Needs a CUDA GPU, CuPy, and g++ for the rows and for the stack machine that checks their values.
Writes `results/gpu_rows.md` and prints it, in about a minute on a large GPU. Exit status 1 if a
value differs from the stack machine's, 2 without a GPU. `--tokens 1e7 --out FILE` tries the script
out; `--sweep` tries sizes that the kernels can be compiled with, and prints how fast each is.
"""

import ctypes
import importlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from gpu_trees import levels_of
from numpy.typing import NDArray
from reports import log, parser
from torch import Tensor

from exactformer.api import construct
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import (
    arithmetic,
    arithmetic_plain,
    boolean,
    boolean_plain,
    listops,
)
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.gpu_rows import GpuRows, RowLayout
from exactformer.engine.read_off import read_off
from exactformer.engine.row_tables import MALFORMED, RowTables
from exactformer.paper.files import table
from exactformer.weights.file import write_atomically

TASKS = arithmetic, boolean, listops, arithmetic_plain, boolean_plain
NAMES = [task().name for task in TASKS]
LENGTHS = 5, 13, 100  # tokens of a row, about
DIFFERENT = 5_000_000  # tokens of different rows, which are then repeated
REPEATS = 20
SWEPT = {"piece": (64, 128, 256, 512), "threads": (128, 256), "ahead": (8, 16)}
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Rows:
    """Different rows of a task, and their codes by the stack machine."""

    algebra: Algebra
    length: int
    tokens: int
    text: Bytes
    codes: Bytes

    def on_gpu(self, tokens: float) -> tuple[int, Tensor, Tensor]:
        """About this many tokens of them, again and again: how many, their text and its codes."""
        times = max(1, round(tokens / self.tokens))
        parts = self.text, self.codes
        text, codes = (torch.from_numpy(part).cuda().repeat(times) for part in parts)
        return times * self.tokens, text, codes


class Maker:
    """`gpu_rows.cpp`, compiled."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("gpu_rows.cpp")
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "rows.so"
            command = ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", str(source), "-o"]
            subprocess.run([*command, str(library)], check=True)
            self.library = ctypes.CDLL(str(library))
        self.library.make_rows.restype = ctypes.c_int64

    def make(self, algebra: Algebra, length: int, tokens: float) -> Rows:
        rows = max(1000, int(min(tokens, DIFFERENT) / length))
        tables: list[int] = []
        offsets = np.zeros((len(algebra.operators), 16), dtype=np.int64)
        for o, operator in enumerate(algebra.operators):
            for arity in operator.arities:
                offsets[o, arity] = len(tables)
                keys = product(range(len(algebra.values)), repeat=arity)
                tables += [operator(key) for key in keys]
        arities = [(op.arities[0], op.arities[-1]) for op in algebra.operators]
        least, most = np.array(arities, dtype=np.int32).T.copy()
        spellings = np.zeros((256, 8), dtype=np.uint8)
        for token, symbol in enumerate(algebra.vocabulary):
            data = symbol.encode()
            spellings[token, : len(data) + 1] = [len(data), *data]
        codes, count = np.empty(rows, dtype=np.uint8), np.empty(1, dtype=np.int64)
        text = np.empty(rows * (5 * length + 10), dtype=np.uint8)
        size = self.library.make_rows(
            ctypes.c_int64(rows),
            ctypes.c_int64(length),
            len(algebra.values),
            len(algebra.operators),
            algebra.notation.operands_before(2),
            *map(_pointer, (least, most)),
            ctypes.c_uint64(length),
            *map(_pointer, (np.array(tables, dtype=np.uint8), offsets, spellings)),
            int(not algebra.packs),
            ctypes.c_uint8(MALFORMED),
            levels_of(algebra),
            *map(_pointer, (text, codes, count)),
        )
        return Rows(algebra, length, int(count[0]), text[:size].copy(), codes)


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def all_rows(tokens: float, names: Sequence[str] = NAMES) -> Iterator[Rows]:
    """Rows of each task and length; the next ones are made in parallel."""
    maker = Maker()
    kinds = [(task(), length) for task in TASKS if task().name in names for length in LENGTHS]
    with ThreadPoolExecutor(len(kinds)) as pool:
        yield from pool.map(lambda kind: maker.make(kind[0], kind[1], tokens), kinds)


@cache
def automaton_of(task: str) -> tuple[SpanAutomaton, RowTables]:
    algebra = next(make() for make in TASKS if make().name == task)
    automaton = read_off(algebra, construct(algebra).weights)
    return automaton, RowTables(automaton, algebra)


# ---------------------------------------------------------------- what to measure


def measure(reader: GpuRows, text: Tensor, codes: Tensor, repeats: int) -> tuple[list[float], int]:
    """Seconds of each run, from text on the GPU to codes on the GPU, and how many codes differ."""
    seconds: list[float] = []
    wrong = 0
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        found = reader.values(text)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        same = found.shape == codes.shape
        wrong += int((found != codes).sum()) if same else len(codes)
    return seconds, wrong


HEADER = ["task", "tokens a row", "rows", "tokens", "bytes of text a token", "best ms"]
HEADER += ["best, billion tokens/s", "median", "peak bytes a token", "values"]


def report_row(rows: Rows, tokens: float) -> tuple[list[str], int]:
    automaton, tables = automaton_of(rows.algebra.name)
    reader = GpuRows(automaton, rows.algebra, layout=RowLayout(tables))
    many, text, codes = rows.on_gpu(tokens)
    reader.values(text)  # compiles, and fills the allocator's cache
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    others = torch.cuda.memory_allocated() - text.nbytes
    reader.values(text)
    peak = torch.cuda.max_memory_allocated() - others
    seconds, wrong = measure(reader, text, codes, REPEATS)
    cells = [
        rows.algebra.name,
        f"{many / len(codes):.1f}",
        f"{len(codes):,}",
        f"{many:,}",
        f"{len(text) / many:.2f}",
        f"{min(seconds) * 1e3:.2f}",
        f"{many / min(seconds) / 1e9:.0f}",
        f"{many / median(seconds) / 1e9:.0f}",
        f"{peak / many:.2f}",
        f"**{wrong:,} differ**" if wrong else "equal",
    ]
    log(" | ".join(cells))
    return cells, wrong


def report(cells: list[list[str]]) -> str:
    cupy = importlib.import_module("cupy")
    lines = [
        "# Many short texts on a GPU",
        "",
        "`python benchmarks/gpu_rows.py`. Lines of text already on the GPU, to a byte for each on "
        f"the GPU, all in one call, validation included; wall clock, best and median of {REPEATS}. "
        f"Random trees, {DIFFERENT:,} tokens of different ones, repeated. Every byte is compared "
        "with a stack machine's value over the algebra's tables (`gpu_rows.cpp`), in every "
        "repetition; one line in a thousand lacks its last token, and must be marked. Lines of "
        "plain notation have no superfluous parentheses. Bytes "
        "a token at peak count everything on the GPU, the text too.",
        "",
        f"{torch.cuda.get_device_name()}.",
        "",
        *table(HEADER, cells, words=1),
        "",
        f"torch {torch.__version__}, CuPy {cupy.__version__}, CUDA {torch.version.cuda}, "
        f"numpy {np.__version__}",
    ]
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- sizes to compile with


class Timed:
    """A launcher that notes how long each kernel takes."""

    def __init__(self, reader: GpuRows) -> None:
        self.launch, self.events = reader.launch, dict[str, tuple[Any, Any]]()
        reader.launch = self

    def __call__(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self.launch(kernel, blocks, threads, shared, arguments)
        end.record()
        self.events[kernel] = begin, end

    def __str__(self) -> str:
        times = [f"{name} {a.elapsed_time(b):.3f} ms" for name, (a, b) in self.events.items()]
        return ", ".join(times)


def sweep(tokens: float) -> int:
    """Prints the speed of each kind of rows with all sizes, the fastest first."""
    wrong = 0
    kinds = list(all_rows(tokens))
    readers: dict[str, list[tuple[str, GpuRows]]] = {}
    for task in TASKS:
        automaton, tables = automaton_of(task().name)
        made = readers[task().name] = []
        for sizes in product(*SWEPT.values()):
            layout = RowLayout(tables, **dict(zip(SWEPT, sizes, strict=True)))
            name = " ".join(f"{n} {s:>3}" for n, s in zip(SWEPT, sizes, strict=True))
            made.append((name, GpuRows(automaton, task(), layout=layout)))
    for rows in kinds:
        many, text, codes = rows.on_gpu(tokens)
        found: list[tuple[float, str]] = []
        for name, reader in readers[rows.algebra.name]:
            reader.values(text)  # compiles
            seconds, differ = measure(reader, text, codes, 4)
            wrong += differ
            plain, timed = reader.launch, Timed(reader)
            reader.values(text)
            torch.cuda.synchronize()
            reader.launch = plain
            best = many / min(seconds) / 1e9
            found.append((best, f"{name}: {best:4.0f} billion tokens/s; {timed}; {differ} differ"))
        print(f"{rows.algebra.name}, {many / len(codes):.1f} tokens a row, {many:,} tokens")
        print("".join(f"  {line}\n" for _, line in sorted(found, reverse=True)), flush=True)
    return int(wrong > 0)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--tokens", type=float, default=1e9)
    options.add_argument("--tasks", nargs="+", choices=NAMES, default=NAMES)
    options.add_argument("--sweep", action="store_true", help="try sizes of the kernels")
    options.add_argument("--out", type=Path, default=Path("results/gpu_rows.md"))
    arguments = options.parse_args()
    if not torch.cuda.is_available():
        log("gpu_rows.py: expected a CUDA GPU, found none")
        return 2
    if arguments.sweep:
        return sweep(arguments.tokens)
    rows = [
        report_row(rows, arguments.tokens) for rows in all_rows(arguments.tokens, arguments.tasks)
    ]
    text = report([cells for cells, _ in rows])
    write_atomically(arguments.out, text)
    print(text)
    return int(any(wrong for _, wrong in rows))


if __name__ == "__main__":
    sys.exit(main())
