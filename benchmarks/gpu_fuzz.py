"""The engine on a GPU against the one on the CPU, on random texts, whole ones and spoiled ones.

    python benchmarks/gpu_fuzz.py [--seconds 60] [--seed 0]

Needs a CUDA GPU, CuPy, and g++ for the trees. Trees of all shapes and sizes from one leaf to a few
million tokens, in their usual spelling, those of plain notation with all of their superfluous
parentheses, some or none; half of them are spoiled by a few changes of bytes. The GPU
reads each twice, where it lies and overwriting it. It must give what the CPU gives, and no value to
what the CPU refuses; it may leave a spoiled text that still is an expression to the CPU. Writes
`results/gpu_fuzz.md`. Exit status 1 if anything differs, 2 without a GPU.
"""

import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from gpu_trees import SHAPES, Ids, Trees, tasks
from reports import heading, log, parser

from exactformer.api import construct
from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.gpu import GpuEngine
from exactformer.engine.read_off import read_off
from exactformer.paper.files import table
from exactformer.weights.file import write_atomically

MOST = 3e6  # tokens
EDITS = 3


def spoiled(text: Ids, rng: np.random.Generator) -> Ids:
    """The text with a few bytes replaced, removed or inserted: mostly bytes of the text itself."""
    text = text.copy()
    for _ in range(rng.integers(1, EDITS, endpoint=True)):
        at = int(rng.integers(len(text)))
        byte = text[rng.integers(len(text))] if rng.random() < 0.8 else rng.integers(256)
        match rng.integers(4):
            case 0:
                text[at] = byte
            case 1 if len(text) > 1:
                text = np.delete(text, at)
            case 2:
                text = np.insert(text, at, byte)
            case _:
                text = text[: at + 1]
    return text


class Pair:
    """The CPU's and the GPU's engine with one automaton."""

    def __init__(self, algebra: Algebra) -> None:
        automaton = read_off(algebra, construct(algebra).weights)
        self.algebra = algebra
        self.cpu, self.gpu = CpuEngine(automaton, algebra), GpuEngine(automaton, algebra)

    def values(self, text: Ids) -> tuple[str | None, str | None]:
        """The values by the CPU and by the GPU; None if there is no value."""
        try:
            by_cpu = self.cpu.value(text.tobytes())
        except ExpressionError:
            by_cpu = None
        kept, overwritten = (
            None if number is None else self.algebra.values[number]
            for number in (
                self.gpu.value(torch.from_numpy(text).cuda()),
                self.gpu.value_of_bytes(text),
            )
        )
        same = kept == overwritten
        return by_cpu, kept if same else f"{kept}, and {overwritten} where it is overwritten"


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--out", type=Path, default=Path("results/gpu_fuzz.md"))
    arguments = options.parse_args()
    if not torch.cuda.is_available():
        log("gpu_fuzz.py: expected a CUDA GPU, found none")
        return 2
    rng, trees = np.random.default_rng(arguments.seed), Trees()
    pairs = [Pair(algebra) for algebra in tasks()]
    counts: Counter[tuple[str, str]] = Counter()
    tokens = 0
    found: list[str] = []
    end = time.monotonic() + arguments.seconds
    while time.monotonic() < end:
        pair = pairs[rng.integers(len(pairs))]
        shape, size = SHAPES[rng.integers(len(SHAPES))], int(MOST ** rng.random())
        seed = int(rng.integers(1 << 31))
        ids = trees.make(pair.algebra, shape, size, seed)
        ids = trees.bare(pair.algebra, ids, seed, kept=[0, 0.1, 0.5, 1][rng.integers(4)])
        text = trees.text(pair.algebra, ids)
        whole = bool(rng.random() < 0.5)
        text = text if whole else spoiled(text, rng)
        by_cpu, by_gpu = pair.values(text)
        tokens += len(ids)
        left = by_gpu is None and by_cpu is not None
        if (by_gpu not in (None, by_cpu)) or (left and whole):
            found.append(f"{pair.algebra.name}, {shape}, {size} tokens, seed {seed}: {by_cpu}, ")
            found[-1] += f"not {by_gpu}" + ("" if whole else ", spoiled")
            log(found[-1])
        kind = "left to the CPU" if left else "refused by both" if by_cpu is None else "a value"
        counts[pair.algebra.name, "whole" if whole else f"spoiled, {kind}"] += 1
    kinds = ["whole", *(f"spoiled, {k}" for k in ("a value", "refused by both", "left to the CPU"))]
    names = [pair.algebra.name for pair in pairs]
    rows = [[name, *(f"{counts[name, kind]:,}" for kind in kinds)] for name in names]
    text = "\n".join(
        [
            heading("The engine on a GPU, fuzzed"),
            f"{torch.cuda.get_device_name()}, seed {arguments.seed}, {arguments.seconds:.0f} s: "
            f"{sum(counts.values()):,} texts with {tokens / 1e6:,.0f} million tokens, of all "
            f"shapes and up to {MOST / 1e6:.0f} million tokens each. {len(found)} differ.",
            "",
            *table(["task", *kinds], rows),
            "",
            *(f"- {line}" for line in found),
        ]
    )
    write_atomically(arguments.out, text.rstrip() + "\n")
    print(text)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
