"""Iterations by the logarithm beside the paper's layer: long shapes, and every model by depth.

    python benchmarks/iterations.py [--tokens N] [--device cuda] [--count N] [--out FILE]

Shapes: one expression of N tokens for each task and shape, in both layers of the same shipped
weights. The paper's layer takes an iteration for each level, so on combs it would take days; there
it runs one iteration of that size, and the whole of a comb that is much smaller.

Depths: `count` problems at each depth from 1 to 30, for every shipped and constructed model, every
algebra of examples/ and units for any number of operands, in both layers. `--count 0` leaves these
out. Problems are drawn with the seed of their depth, from the law of `exactformer sample` up to
depth 12, leaner beyond.

Exit status 1 if any value is not the oracle's, if the logarithmic layer takes any other number of
iterations than the Strahler number, or the paper's any other than the depth.
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from exactformer.api import Model, construct, load
from exactformer.bench.shapes import SHAPES, make_ids
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG, listops
from exactformer.domains.definition import load_algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import default_leaf, draw
from exactformer.domains.strahler import strahler
from exactformer.model import circuit, speculate
from exactformer.model.encode import NO_VALUE, initial_state, read_values
from exactformer.model.iterations import Iterations
from exactformer.paper.files import row, write
from exactformer.weights.named import shipped_names

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
ITERATIONS: tuple[Iterations, ...] = ("log", "depth")
WEIGHTS = "7520"
DEPTHS = range(1, 31)
BUSHY = 12  # the depth from which problems are drawn leaner, or they would be too long to run all
MOST_PAPER = 1_000  # iterations of the paper's layer that are run on an expression of full size
SMALL_COMB = 8_000  # tokens


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Timed:
    iterations: int
    seconds: float
    cpu_seconds: float  # of all threads together, which other programs do not add to
    right: bool

    @property
    def cells(self) -> list[str]:
        value = "as the oracle" if self.right else "WRONG"
        return [f"{self.iterations:,}", f"{self.seconds:.2f}", f"{self.cpu_seconds:.2f}", value]


def timed(model: Model, expression: Expression, expected: str, by: Iterations) -> Timed:
    """A whole run in one of the layers, from a state on the device to the value."""
    X, inside = initial_state([expression], model.weights)
    wait = torch.cuda.synchronize if X.is_cuda else lambda: None
    wait()
    start, cpu_start = time.perf_counter(), time.process_time()
    if by == "log":
        X, iterations = circuit.finish(
            X, speculate.steps(X, model.weights, len(model.algebra.values))
        )
    else:
        X, iterations = circuit.run(X, model.weights, inside)
    value = int(read_values(X, model.weights, model.algebra)[0])
    wait()
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    right = value != NO_VALUE and model.algebra.values[value] == expected
    return Timed(int(iterations[0]), seconds, cpu_seconds, right)


def one_iteration(model: Model, expression: Expression) -> float:
    """Seconds of the paper's layer for the first of its iterations."""
    X, inside = initial_state([expression], model.weights)
    wait = torch.cuda.synchronize if X.is_cuda else lambda: None
    wait()
    start = time.perf_counter()
    circuit.iterate(X, model.weights, inside)
    wait()
    return time.perf_counter() - start


def shape_rows(tokens: int, device: str) -> tuple[list[list[str]], list[list[str]], bool]:
    """A row for each task and shape; those of small combs, run whole in both; and whether all is as
    it must be.
    """
    large, small, fine = [], [], True
    for name in CATALOG:
        model = load(f"{name}/{WEIGHTS}").to(device)
        rng = np.random.default_rng(0)
        warm_up = draw(model.algebra, 6, 1, rng)[0]
        timed(model, warm_up, evaluate(warm_up), "log")
        timed(model, warm_up, evaluate(warm_up), "depth")
        for shape in SHAPES:
            expression = Expression(model.algebra, make_ids(model.algebra, shape, tokens, rng))
            depth, value = expression.depth, evaluate(expression)
            found = timed(model, expression, value, "log")
            fine &= found.right and found.iterations == strahler(expression)
            cells = [name, shape, f"{len(expression):,}", f"{depth:,}", *found.cells]
            if depth <= MOST_PAPER:
                paper = timed(model, expression, value, "depth")
                fine &= paper.right and paper.iterations == depth
                cells += paper.cells
            else:
                each = one_iteration(model, expression)
                cells += [f"{depth:,}", f"not run: {each:.3f} each, {each * depth / 3600:,.1f} h"]
                cells += ["", ""]
                few = Expression(model.algebra, make_ids(model.algebra, shape, SMALL_COMB, rng))
                value = evaluate(few)
                found, paper = (timed(model, few, value, by) for by in ITERATIONS)
                fine &= found.right and found.iterations == strahler(few)
                fine &= paper.right and paper.iterations == few.depth
                sizes = [f"{len(few):,}", f"{few.depth:,}"]
                small.append([name, shape, *sizes, *found.cells, *paper.cells])
            large.append(cells)
            log(" ".join(cells))
    return large, small, fine


def models() -> Iterator[tuple[str, Model]]:
    """All that are shipped, all that are constructed, and those of other algebras."""
    for make in CATALOG.values():
        algebra = make()
        for name in shipped_names(algebra.name):
            yield f"shipped {name}", load(name, algebra)
        yield "constructed, closed", construct(algebra, "closed")
        yield "constructed, table", construct(algebra, "table")
        yield "constructed, dense", construct(algebra, dense=True)
    for path in sorted(EXAMPLES.glob("*.toml")):
        model = construct(load_algebra(path))
        yield f"constructed, {model.origin['feedforward']}", model
    for algebra in (listops(None), listops(None, "mean", ("MED", "PM", "FIRST", "SM"))):
        yield "constructed, units", construct(algebra, "units")


def problems(algebra: Algebra, count: int) -> list[Expression]:
    lean = 1 - 0.15 * (1 - default_leaf(algebra))
    return [
        problem
        for depth in DEPTHS
        for problem in draw(
            algebra,
            depth,
            count,
            np.random.default_rng(depth),
            None if depth <= BUSHY else lean,
        )
    ]


def depth_rows(count: int, device: str) -> tuple[list[list[str]], bool]:
    rows, fine = [], True
    drawn: dict[Algebra, tuple[list[Expression], list[str], list[int]]] = {}
    for name, model in models():
        algebra = model.algebra
        if algebra not in drawn:
            asked = problems(algebra, count)
            drawn[algebra] = asked, list(map(evaluate, asked)), list(map(strahler, asked))
        asked, values, numbers = drawn[algebra]
        moved, cells = model.to(device), []
        expected_of: dict[Iterations, list[int]] = {
            "log": numbers,
            "depth": [e.depth for e in asked],
        }
        for by, expected in expected_of.items():
            start = time.perf_counter()
            found = moved.outcomes(asked, by)
            seconds = time.perf_counter() - start
            right = sum(o.value == v for o, v in zip(found, values, strict=True))
            on_time = sum(o.iterations == n for o, n in zip(found, expected, strict=True))
            fine &= right == on_time == len(asked)
            cells += [f"{right}", f"{on_time}", f"{max(expected)}", f"{seconds:.0f}"]
        rows.append([algebra.name, name, f"{len(asked)}", f"{sum(map(len, asked)):,}", *cells])
        log(" ".join(rows[-1]))
    return rows, fine


def table(names: list[str], rows: list[list[str]], left: int = 2) -> list[str]:
    return [row(names), row(["---"] * left + ["---:"] * (len(names) - left)), *map(row, rows)]


@torch.no_grad()
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("results/iterations.md"))
    arguments = parser.parse_args()
    tokens, device, count = arguments.tokens, arguments.device, arguments.count
    where = f"{os.cpu_count()} cores, {torch.get_num_threads()} threads"
    if device != "cpu":
        where = torch.cuda.get_device_name(device)
    large, small, fine = shape_rows(tokens, device)
    layers = ["iterations", "seconds", "CPU seconds", "value"]
    layers += [f"paper: {name}" for name in layers]
    lines = [
        "# Iterations by the logarithm",
        "",
        f"`python benchmarks/iterations.py --tokens {tokens} --device {device} --count {count}`",
        "",
        f"On {where}. Shipped weights {WEIGHTS} of each task; one expression each, run once in "
        f"either layer in turn, float32, from a state on the device to the value. Other programs "
        f"were running, too; CPU seconds are of all threads together and steadier.",
        "",
        "## Long expressions",
        "",
        "Iterations of the logarithmic layer are checked against the Strahler number. Where the "
        "paper's layer would take more than a thousand, the time of one is measured.",
        "",
        *table(["task", "shape", "tokens", "depth", *layers], large),
        "",
        "## Combs that both layers can run",
        "",
        *table(["task", "shape", "tokens", "depth", *layers], small),
    ]
    if count:
        rows, as_expected = depth_rows(count, device)
        fine &= as_expected
        names = ["right", "iterations = Strahler number", "most", "seconds"]
        names += ["paper: right", "iterations = depth", "most", "seconds"]
        asked = sum(int(cells[2]) for cells in rows)
        right, paper = (sum(int(cells[i]) for cells in rows) for i in (4, 8))
        lines += [
            "",
            f"## {count} problems at each depth from 1 to 30",
            "",
            f"In all {asked:,} evaluations by each layer: {right:,} right by the logarithmic one, "
            f"{paper:,} by the paper's.",
            "",
            *table(["algebra", "weights", "problems", "tokens", *names], rows),
        ]
    write(arguments.out, "\n".join(lines))
    print(arguments.out.read_text())
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
