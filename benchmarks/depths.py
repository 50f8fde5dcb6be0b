"""The paper's evaluation: 100 problems at each depth from 1 to 30, for each of its three tasks.

    python benchmarks/depths.py > results/depths.md

`--weights NAME` and `--count N` choose others. Prints a Markdown table of whole numbers: problems
that the transformer answered right of those asked, those that the fast engine answered right from
their text, problems that took as many iterations as they are deep, and tokens in all. Problems are
drawn with the seed of their depth; weights are named as on the command line (`exactformer eval
--help`). Exit status 1 if any answer is wrong.
"""

import sys
from collections.abc import Iterator
from operator import eq

import numpy as np
import torch
from reports import parser
from rich.console import Console
from rich.progress import track

from exactformer.api import Model, load
from exactformer.domains.catalog import CATALOG
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.circuit import run
from exactformer.model.encode import initial_state, read_values
from exactformer.paper.files import row, table

DEPTHS = range(1, 31)
POSITIONS = 1 << 18  # of one batch, padding included


def batches(problems: list[Expression]) -> Iterator[list[Expression]]:
    """Shortest first, so that little is padded."""
    batch: list[Expression] = []
    for problem in sorted(problems, key=len):
        if batch and (len(batch) + 1) * len(problem) > POSITIONS:
            yield batch
            batch = []
        batch.append(problem)
    yield batch


@torch.no_grad()
def score(model: Model, depth: int, count: int) -> tuple[int, int, int, int]:
    """Numbers of problems that the transformer and the engine get right, and that take `depth`
    iterations, with the tokens of all problems.
    """
    problems = draw(model.algebra, depth, count, np.random.default_rng(depth))
    right = on_time = 0
    values = model.evaluate([str(problem) for problem in problems], "fast")
    fast = sum(map(eq, values, map(evaluate, problems)))
    for batch in batches(problems):
        X, inside = initial_state(batch, model.weights)
        X, iterations = run(X, model.weights, inside)
        found = read_values(X, model.weights, model.algebra).tolist()
        expected = [model.algebra.values.index(evaluate(problem)) for problem in batch]
        right += sum(a == b for a, b in zip(found, expected, strict=True))
        on_time += int((iterations == depth).sum())
    return right, fast, on_time, sum(map(len, problems))


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--weights", default="constructed")
    options.add_argument("--count", type=int, default=100)
    arguments = options.parse_args()
    models = [load(arguments.weights, make()) for make in CATALOG.values()]
    progress = Console(stderr=True)
    command = f"python benchmarks/depths.py --weights {arguments.weights}"
    print(f"`{command} --count {arguments.count}`\n")
    print("Right by the model / by the engine / as many iterations as the depth / tokens in all.\n")
    print("\n".join(table(["depth", *(model.algebra.name for model in models)], [], words=0)))
    totals = np.zeros((len(models), 4), dtype=int)
    for depth in track(DEPTHS, "depths 1 to 30", console=progress):
        rows = np.array([score(model, depth, arguments.count) for model in models])
        totals += rows
        cells = [f"{r} of {arguments.count} / {f} / {i} / {t:,}" for r, f, i, t in rows.tolist()]
        print(row([str(depth), *cells]), flush=True)
    asked = arguments.count * len(DEPTHS)
    cells = [f"{r} of {asked} / {f} / {i} / {t:,}" for r, f, i, t in totals.tolist()]
    print(row(["all", *cells]))
    return int((totals[:, :3] != asked).any())


if __name__ == "__main__":
    sys.exit(main())
