"""Algebras of more than 400 cases, and one below, trained from random weights to a proof.

    python benchmarks/large_algebras.py --runs runs/large

Writes `results/large-algebras.md`, or another file (`--out`). Seeds count from `--first` (1000) on;
nothing was tuned on them. Each is trained alone by the recipe that `exactformer train` chooses, on
one core, and kept in the folder, from where the same command goes on. `--only NAME` trains those
of one algebra and writes no report.
"""

import itertools
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from reports import log, parser

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import arithmetic
from exactformer.model.architecture import paper_architecture
from exactformer.paper.files import table, write
from exactformer.problems.accuracy import interval
from exactformer.training.recipe import count_bags, recipe_for
from exactformer.training.run import Result, train_seeds

HEADER = [
    *("algebra", "cases", "units", "steps of an attempt", "cases a step", "certified"),
    *("95% interval", "at the first attempt", "steps in all: median", "seconds: median", "most"),
]


def gf16() -> Algebra:
    """The field of sixteen elements: polynomials over two modulo x^4 + x + 1, written as digits."""

    def product(a: int, b: int) -> int:
        total = 0
        for bit in range(4):
            total ^= (a << bit) * (b >> bit & 1)
        for bit in (6, 5, 4):
            total ^= (0b10011 << (bit - 4)) * (total >> bit & 1)
        return total

    digits = [f"{i:x}" for i in range(16)]
    operators = [
        Operator.from_rule(
            symbol, [2], lambda a, b, rule=rule: f"{rule(int(a, 16), int(b, 16)):x}", digits
        )
        for symbol, rule in (("+", int.__xor__), ("*", product))
    ]
    return Algebra("gf16", digits, operators, "infix")


def s4() -> Algebra:
    """The permutations of four letters; `x . y` applies y first."""
    values = ["".join(letters) for letters in itertools.permutations("abcd")]

    def composed(x: str, y: str) -> str:
        return "".join(x["abcd".index(letter)] for letter in y)

    return Algebra(
        "s4", values, [Operator.from_rule(".", [2], composed, values, ordered=True)], "infix"
    )


def modulo(n: int) -> Callable[[], Algebra]:
    return lambda: arithmetic(n)


# By name: an algebra, and how many seeds.
ALGEBRAS: dict[str, tuple[Callable[[], Algebra], int]] = {
    "gf16": (gf16, 5),
    "mod-20": (modulo(20), 5),
    "mod-23": (modulo(23), 5),
    "s4": (s4, 5),
    "mod-31": (modulo(31), 3),
    "mod-64": (modulo(64), 2),
    "mod-97": (modulo(97), 2),
}


def trained(name: str, first: int, runs: Path) -> list[Result]:
    make, count = ALGEBRAS[name]
    algebra, results = make(), []
    for seed in range(first, first + count):
        results += train_seeds(algebra, [seed], out=runs / name / f"{seed}")
        record = results[-1].record
        kept = {key: record[key] for key in ("seed", "verdict", "attempt", "steps_in_all")}
        log(f"{name} {kept} {record['seconds']} s")
    return results


def line(name: str, results: Sequence[Result]) -> list[str]:
    algebra = ALGEBRAS[name][0]()
    recipe = recipe_for(algebra)
    exact = [result for result in results if result.exact]
    low, high = interval(len(exact), len(results))
    seconds = [result.record["seconds"] for result in results]
    return [
        name,
        f"{count_bags(algebra):,}",
        f"{paper_architecture(algebra, recipe.width).hidden}",
        f"{recipe.steps:,}",
        f"{recipe.batch or 'all'}",
        f"{len(exact)} of {len(results)}",
        f"{low:.3f} to {high:.3f}",
        f"{sum(result.record['attempt'] == 1 for result in exact)}",
        f"{statistics.median(result.record['steps_in_all'] for result in results):,.0f}",
        f"{statistics.median(seconds):.0f}",
        f"{max(seconds):.0f}",
    ]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--runs", type=Path, required=True)
    options.add_argument("--first", type=int, default=1_000)
    options.add_argument("--only", choices=ALGEBRAS)
    options.add_argument("--out", type=Path, default=Path("results/large-algebras.md"))
    arguments = options.parse_args()
    torch.set_num_threads(1)
    if arguments.only:
        trained(arguments.only, arguments.first, arguments.runs)
        return 0
    found = {name: trained(name, arguments.first, arguments.runs) for name in ALGEBRAS}
    lines = [
        "# Large algebras, trained",
        "",
        f"`python benchmarks/large_algebras.py --runs {arguments.runs} --first {arguments.first}`",
        "",
        f"Sum and product modulo n (`mod-n`), those of the field of 16 elements (`gf16`), "
        f"and the composition of the permutations of four letters (`s4`, ordered). Seeds from "
        f"{arguments.first} on, by the recipe that `exactformer train` chooses, each alone on one "
        f"core of {platform.machine()} that it shared with other work; `gf16` is below 400 cases "
        f"and has the recipe that it always had. Intervals are Wilson's.",
        "",
        *table(HEADER, [line(name, results) for name, results in found.items()]),
    ]
    write(arguments.out, "\n".join(lines))
    print(arguments.out.read_text())
    return int(not all(result.exact for results in found.values() for result in results))


if __name__ == "__main__":
    sys.exit(main())
