"""Whether a second reader pays when the other core is free, and what it costs when it is not.

    python benchmarks/second_reader.py [--tokens N] [--repeats N]

Prints a table, of which no file is kept.
The same text is read by one reader and by two, by turns: as the machine is, and then with a process
beside it that does nothing but count. The best time of each counts. A ratio above 1 says how many
times as fast two readers are; much below 1 it would say that a second reader does harm.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from reports import parser

from exactformer.api import construct
from exactformer.bench.rivals import ENGINE, ONE_CORE, programs
from exactformer.bench.shapes import make_ids, text_of
from exactformer.domains.catalog import CATALOG

SHAPES = ("balanced", "random", "comb")
COUNTING = [sys.executable, "-c", "while True: pass"]


@contextmanager
def counting_beside(processes: int) -> Iterator[None]:
    others = [subprocess.Popen(COUNTING) for _ in range(processes)]
    try:
        time.sleep(0.2)  # until they run
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def best(readers: list[Callable[[bytes], str]], text: bytes, repeats: int) -> list[float]:
    """Seconds of each, by turns, so that whatever else runs meets all of them."""
    times: list[list[float]] = [[] for _ in readers]
    for _ in range(repeats):
        for reader, spent in zip(readers, times, strict=True):
            start = time.perf_counter()
            reader(text)
            spent.append(time.perf_counter() - start)
    return [min(spent) for spent in times]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--tokens", type=int, default=4_000_000)
    options.add_argument("--repeats", type=int, default=20)
    arguments = options.parse_args()
    print(f"{'task':12}{'shape':10}{'other core':12}{'one, MB/s':>10}{'two, MB/s':>10}{'ratio':>7}")
    for task, make in CATALOG.items():
        algebra = make()
        known = programs(construct(algebra))
        for shape in SHAPES:
            ids = make_ids(algebra, shape, arguments.tokens, np.random.default_rng(0))
            text = text_of(algebra, ids)
            for other_core, processes in (("quiet", 0), ("busy", 1)):
                with counting_beside(processes):
                    one, two = best([known[ONE_CORE], known[ENGINE]], text, arguments.repeats)
                speeds = f"{len(text) / one / 1e6:10.0f}{len(text) / two / 1e6:10.0f}"
                print(f"{task:12}{shape:10}{other_core:12}{speeds}{one / two:7.2f}", flush=True)


if __name__ == "__main__":
    main()
