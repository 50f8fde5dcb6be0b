"""Random programs over many algebras, by the transformer and by tables, against the oracle.

    python benchmarks/programs.py > results/programs.md

Programs of 1 to 60 statements, each written as text and read back. The oracle evaluates each alone,
statement by statement; tables evaluate each alone, too. The transformer runs all of an algebra side
by side, by the depth and by the logarithm: as one program, in which no name is used by another's
statements. Every name of every program is compared, and so are the iterations of each program with
the largest sum of its statements' own along a chain of names. Exit status 1 if anything differs.
`--count N` chooses how many programs of each algebra, `--seed N` the generator's seed.
"""

import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numba
import numpy as np
import torch
from reports import heading, log, parser

import exactformer as ef
from exactformer.domains.algebra import Algebra
from exactformer.domains.program import Program
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.reference import evaluate_program
from exactformer.domains.strahler import strahler
from exactformer.model.iterations import Iterations
from exactformer.model.wires import run
from exactformer.paper.files import table

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
BUILT_IN = (ef.boolean(), ef.arithmetic(), ef.listops(), ef.boolean_plain(), ef.arithmetic_plain())
MOST_STATEMENTS = 60
WAYS: tuple[Iterations, ...] = ("depth", "log")


def side_by_side(programs: Sequence[Program]) -> Program:
    """One program whose statements are those of all, with names of each one's own."""
    sizes = [len(program) for program in programs]
    first = np.repeat(np.cumsum(sizes) - sizes, [len(program.wires) for program in programs])
    return Program(
        programs[0].domain,
        tuple(f"p{i}.{name}" for i, program in enumerate(programs) for name in program.names),
        0,
        np.concatenate([program.ids for program in programs]),
        np.concatenate([program.lengths for program in programs]),
        first + np.concatenate([program.wires for program in programs]),
        (),
    )


def expected_iterations(program: Program, known: Sequence[str], by: Iterations) -> int:
    """The largest sum of iterations along a chain of names, from the expressions alone."""
    algebra, end = program.algebra, np.zeros(len(program.names), dtype=np.int64)
    for i in np.argsort(program.levels, kind="stable").tolist():
        uses = program.uses(i).tolist()
        expression = program.expression(i, [algebra.token_ids[known[name]] for name in uses])
        own = expression.depth if algebra.layer(by) == "depth" else strahler(expression)
        end[i] = max((int(end[name]) for name in uses), default=0) + max(own, 1 if uses else 0)
    return int(end.max())


def measure(algebra: Algebra, count: int, seed: int) -> tuple[list[str], int]:
    """A row of the table, and how much is wrong in it."""
    began, rng, model = time.monotonic(), np.random.default_rng(seed), ef.construct(algebra)
    sizes = rng.integers(1, MOST_STATEMENTS + 1, size=count)
    programs = [draw_program(algebra, int(size), rng) for size in sizes]
    programs = [ef.parse_program(algebra, str(program)) for program in programs]
    wanted = [[*evaluate_program(program).values()] for program in programs]
    names = sum(map(len, wanted))
    tables = [model.run_program(program, engine="fast").values for program in programs]
    wrong = {"tables": 0}
    for want, values in zip(wanted, tables, strict=True):
        wrong["tables"] += sum(a != b for a, b in zip(want, values.values(), strict=True))
    whole, ends = side_by_side(programs), np.cumsum(sizes)
    taken = 0
    for by in WAYS:
        ran = run(whole, model.weights, iterations=by)
        found = [algebra.values[v] for v in ran.values[0].tolist()]
        flat = [value for want in wanted for value in want]
        wrong[by] = sum(a != b for a, b in zip(flat, found, strict=True))
        for program, want, end, size in zip(programs, wanted, ends, sizes, strict=True):
            iterations = int(ran.end[end - size : end].max())
            taken += iterations != expected_iterations(program, want, by)
    levels = max(int(program.levels.max()) for program in programs)
    cells = [algebra.name, str(algebra.notation), f"{count:,}", f"{names:,}"]
    cells += [f"{len(whole.wires):,}", str(levels), *(str(wrong[by]) for by in (*WAYS, "tables"))]
    log(f"{' | '.join([*cells, str(taken)])} | {time.monotonic() - began:.0f} s")
    return [*cells, str(taken)], sum(wrong.values()) + taken


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--count", type=int, default=1_000)
    arguments.add_argument("--seed", type=int, default=0)
    chosen = arguments.parse_args()
    files = sorted([*EXAMPLES.glob("*.toml"), *EXAMPLES.glob("plain/*.toml")])
    algebras = [*BUILT_IN, *map(ef.load_algebra, files)]
    rows, faults = [], 0
    for algebra in algebras:
        cells, wrong = measure(algebra, chosen.count, chosen.seed)
        rows.append(cells)
        faults += wrong
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    versions += f", numpy {np.__version__}, numba {numba.__version__}"
    print(heading("Random programs against the oracle"))
    print(
        f"Programs of 1 to {MOST_STATEMENTS} statements from the seed {chosen.seed}, in a random "
        f"order, by constructed weights. *Wrong* counts names whose value is not the oracle's, and "
        f"programs that took other iterations than their chains of names ask for. {versions}.\n"
    )
    columns = ["algebra", "notation", "programs", "names", "uses of names", "most levels"]
    columns += ["wrong by the depth", "wrong by the logarithm", "wrong by tables"]
    print("\n".join(table([*columns, "wrong iterations"], rows)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
