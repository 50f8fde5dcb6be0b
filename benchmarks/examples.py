"""The algebras of `examples/`: constructed, certified, evaluated to depth 30, and trained.

    python benchmarks/examples.py

Writes `results/examples.md`, or another file (`--out`). Each is constructed in every way it can be,
and each of those models is certified and asked `count` problems at each depth from 1 to 30, whose
values the oracle knows. Then N seeds are trained from random weights on depth 1 and 2, by the
recipe that the number of cases chooses, and the first one that is certified is asked the same
problems. An algebra with an operator that takes any number of operands has no end of cases to learn
from and is not trained. Exit status 1 if any answer is wrong or any model is not certified exact.
Seeds count from 2000; nothing was tuned on them.
"""

import sys
import time
from pathlib import Path

import numpy as np
from reports import parser
from rich.console import Console

from exactformer.api import FeedforwardKind, Model, construct
from exactformer.domains.algebra import Algebra
from exactformer.domains.definition import load_algebra
from exactformer.model.architecture import paper_architecture
from exactformer.paper.files import table, write
from exactformer.problems.accuracy import accuracy_by_depth
from exactformer.training.recipe import recipe_for
from exactformer.training.run import train_seeds

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
KINDS: tuple[FeedforwardKind, ...] = ("closed", "units", "table")
DEPTHS = range(1, 31)
FIRST_SEED = 2_000
LEARNED = ["algebra", "ordered", "parameters", "cases of depth 1", "certified"]
LEARNED += ["at the first attempt", "right to depth 30", "seconds"]
PROGRESS = Console(stderr=True)


def right(model: Model, count: int) -> tuple[int, int]:
    """Problems answered right, and problems asked."""
    problems = np.random.default_rng(0)
    counts = accuracy_by_depth(model, model.algebra, DEPTHS, count, problems).values()
    return sum(c.correct for c in counts), sum(c.total for c in counts)


def models(algebra: Algebra) -> list[Model]:
    """One for each feedforward that can be had."""
    made = []
    for kind in KINDS:
        try:
            made.append(construct(algebra, kind))
        except ValueError as error:
            PROGRESS.print(f"{algebra.name}: no {kind}: {error}", soft_wrap=True)
    return made


def constructed(algebra: Algebra, count: int) -> list[list[str]]:
    rows = []
    for model in models(algebra):
        verdict = model.certify().verdict
        correct, total = right(model, count)
        kind = model.origin["feedforward"]
        rows.append([algebra.name, kind, verdict, f"{correct} of {total}"])
        PROGRESS.print(" ".join(rows[-1]))
    return rows


def trained(algebra: Algebra, seeds: int, count: int) -> list[str]:
    order = "yes" if algebra.ordered else "no"
    size = paper_architecture(algebra)
    cells = [algebra.name, order, f"{size.parameters}"]
    if algebra.max_fan_in is None:
        return [algebra.name, order, "", "any number of operands: not trained", *[""] * 4]
    cases = algebra.count_cases(every_order=size.slots > 1)
    start = time.perf_counter()
    results = train_seeds(algebra, range(FIRST_SEED, FIRST_SEED + seeds))
    seconds = time.perf_counter() - start
    exact = [result for result in results if result.exact]
    first = sum(result.record["attempt"] == 1 for result in exact)
    answers = right(exact[0].model, count) if exact else (0, 0)
    return [
        *cells,
        f"{cases}",
        f"{len(exact)} of {seeds}",
        f"{first} of {seeds}",
        f"{answers[0]} of {answers[1]}",
        f"{seconds:.0f}",
    ]


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--count", type=int, default=20)
    options.add_argument("--out", type=Path, default=Path("results/examples.md"))
    arguments = options.parse_args()
    algebras = [load_algebra(path) for path in sorted(EXAMPLES.glob("*.toml"))]
    by_hand = [cells for algebra in algebras for cells in constructed(algebra, arguments.count)]
    learned = []
    for algebra in algebras:
        learned.append(trained(algebra, arguments.seeds, arguments.count))
        PROGRESS.print(" ".join(learned[-1]))
    attempts = recipe_for(algebras[0]).attempts
    lines = [
        "# Algebras of one's own",
        "",
        f"`python benchmarks/examples.py --seeds {arguments.seeds} --count {arguments.count}`",
        "",
        "## Constructed",
        "",
        f"Problems: {arguments.count} at each depth from 1 to 30, against the oracle.",
        "",
        *table(["algebra", "feedforward", "verdict", "right"], by_hand, words=3),
        "",
        "## Trained from random weights on depth 1 and 2",
        "",
        f"Seeds from {FIRST_SEED} on, up to {attempts} attempts each. The last columns are the "
        f"answers of the first certified seed to the problems above, and seconds for all seeds.",
        "",
        *table(LEARNED, learned, words=2),
    ]
    write(arguments.out, "\n".join(lines))
    print(arguments.out.read_text())
    asked = f"{arguments.count * len(DEPTHS)} of {arguments.count * len(DEPTHS)}"
    fine = all(cells[2:] == ["exact", asked] for cells in by_hand)
    fine &= all(cells[6] in ("", asked) for cells in learned)
    return int(not fine)


if __name__ == "__main__":
    sys.exit(main())
