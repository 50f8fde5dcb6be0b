"""One expression far larger than memory, through a pipe into `exactformer eval`.

    python benchmarks/pipe.py

Writes `results/pipe.md`, or another file (`--out`). The expression is `(b+(b*(b+ … b)))`, where
each b is one of a few perfect trees of a megabyte, drawn at random: all of it is text that must be
read, and none of it is kept here. Its value is computed from those of the blocks, which the oracle
evaluates. A block is multiplied only if its value can be divided by again modulo ten, so that the
value depends on all that follows.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from reports import heading, parser
from rich.progress import Progress

from exactformer.bench.shapes import make_ids, text_of
from exactformer.domains.catalog import arithmetic
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.paper.files import write

BLOCK = 1 << 20  # bytes
KINDS = 16  # of blocks
MOST_MEMORY = 1e9  # bytes


def blocks(rng: np.random.Generator) -> list[tuple[bytes, int]]:
    """A few expressions of a megabyte, each with its value."""
    algebra = arithmetic()
    made = [make_ids(algebra, "balanced", BLOCK, rng) for _ in range(KINDS)]
    return [(text_of(algebra, ids), int(evaluate(Expression(algebra, ids)))) for ids in made]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--bytes", type=int, default=10**10, help="of the expression")
    options.add_argument("--out", type=Path, default=Path("results/pipe.md"))
    arguments = options.parse_args()
    rng = np.random.default_rng(0)

    # Started first: on Linux the peak memory of a process begins with that of its parent.
    command = [sys.executable, "-m", "exactformer", "eval", "arithmetic", "--file", "-"]
    reader = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert reader.stdin is not None
    assert reader.stdout is not None
    kinds = blocks(rng)
    drawn = rng.integers(KINDS, size=max(1, round(arguments.bytes / (BLOCK + 3))))
    products = rng.random(len(drawn)) < 0.5

    start, sent = time.perf_counter(), 0
    operations: list[tuple[int, bool]] = []  # value and whether it multiplies what follows
    with Progress(disable=not sys.stderr.isatty()) as progress:
        for number in progress.track(range(len(drawn)), description="sent"):
            text, value = kinds[drawn[number]]
            operations.append((value, bool(products[number]) and value in (1, 3, 7, 9)))
            last = number == len(drawn) - 1
            block = text if last else b"(" + text + (b"*" if operations[-1][1] else b"+")
            sent += reader.stdin.write(block)
    closing = b")" * (len(drawn) - 1) + b"\n"
    sent += reader.stdin.write(closing)
    reader.stdin.close()
    found = reader.stdout.read().decode().strip()
    _, status, usage = os.wait4(reader.pid, 0)
    seconds = time.perf_counter() - start
    peak = usage.ru_maxrss * 1024

    expected, _ = operations.pop()
    for value, multiplies in reversed(operations):
        expected = (value * expected if multiplies else value + expected) % 10
    if status or found != str(expected):
        sys.exit(f"expected {expected}, found {found!r}, exit status {status}")
    if peak > MOST_MEMORY:
        sys.exit(f"the reader took {peak / 1e6:.0f} MB")
    lines = [
        heading("A huge expression through a pipe").rstrip(),
        f"{sent:,} bytes of arithmetic, as many tokens, {len(drawn):,} levels of nesting and more, "
        f"into `exactformer eval arithmetic --file -`. The value {found} is the one computed from "
        f"the blocks that it is made of.",
        f"{seconds:.1f} s from the first byte to the value, {sent / seconds / 1e9:.2f} GB a "
        f"second; peak memory of the reader {peak / 1e6:.0f} MB. Load of the machine at the end: "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.",
    ]
    text = "\n\n".join(lines)
    write(arguments.out, text)
    print(text)


if __name__ == "__main__":
    main()
