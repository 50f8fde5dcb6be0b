"""Plain notation learned from random numbers: spans, then levels and directions, then the proof.

    python benchmarks/plain_learning.py --runs runs/plain > results/plain-learning.md

The paper's ten seeds of four grammars, and `--fresh N` seeds (100) from `--first S` (2000) on,
which nothing was tuned on. Each seed learns spans of one operator from parenthesized expressions of
depth 1 and 2, then the gate of levels from texts of at most five tokens, and the certificate
decides. Runs are kept in the folder and resumed from there. `--only levels` has the fresh seeds
learn levels alone, behind weights that are certified already.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch
from reports import heading, log, parser

from exactformer.api import Model, construct, load
from exactformer.certify import certify
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic_plain, boolean_plain
from exactformer.domains.definition import load_algebra
from exactformer.paper.files import table
from exactformer.problems.accuracy import interval
from exactformer.training.levels import learn_levels
from exactformer.training.recipe import PAPER_SEEDS, recipe_for
from exactformer.training.run import Result, train_seeds
from exactformer.training.state import Seed, Trained

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "plain"
SHIPPED = {"boolean-plain": "boolean/7520", "arithmetic-plain": "arithmetic/7520"}
GRAMMARS = {
    "boolean-plain": boolean_plain,
    "arithmetic-plain": arithmetic_plain,
    "modulo 7 with unary minus": lambda: load_algebra(EXAMPLES / "modulo7.toml"),
    "implication, from the right": lambda: load_algebra(EXAMPLES / "implication.toml"),
}
HEADER = [
    *("grammar", "seeds", "certified", "95% interval", "at the first attempt"),
    *("as declared", "harmless", "steps on levels: median", "most", "not certified"),
]


def line(name: str, results: Sequence[Result]) -> list[str]:
    """A row of the table about the seeds of one grammar."""
    exact = [result for result in results if result.exact]
    low, high = interval(len(exact), len(results))
    groupings = [result.model.certify().findings.grouping for result in exact]
    harmless = sum(bool(grouping and grouping.harmless) for grouping in groupings)
    steps = sorted(result.record["level_steps"] for result in exact)
    failed = ", ".join(f"{result.seed}" for result in results if not result.exact)
    return [
        name,
        f"{len(results)}",
        f"{len(exact)}",
        f"{low:.3f} to {high:.3f}",
        f"{sum(result.record['attempt'] == 1 for result in exact)}",
        f"{len(exact) - harmless}",
        f"{harmless}",
        f"{steps[len(steps) // 2]}" if steps else "-",
        f"{steps[-1]}" if steps else "-",
        failed or "none",
    ]


def section(algebras: dict[str, Algebra], seeds: Sequence[int], folder: Path) -> list[str]:
    rows = []
    for name, algebra in algebras.items():
        results = train_seeds(algebra, seeds, out=folder / algebra.name)
        rows.append(line(name, results))
        log(" | ".join(rows[-1]))
    return table(HEADER, rows)


def levels_alone(algebras: dict[str, Algebra], seeds: Sequence[int]) -> list[str]:
    """The gate of levels from random logits, behind spans that are exact from the start."""
    rows = []
    for name, algebra in algebras.items():
        shipped = SHIPPED.get(name)
        weights = (load(shipped, algebra) if shipped else construct(algebra)).weights
        exact = certify(algebra, weights)
        results = []
        for seed in seeds:
            start = Trained(Seed(seed), weights, exact, 0.0, 0.0, {})
            learned = learn_levels(algebra, start, recipe_for(algebra))
            record = {"verdict": learned.certificate.verdict, "attempt": 1}
            record["level_steps"] = learned.counts["level_steps"]
            results.append(Result(seed, Model(algebra, learned.weights), record))
        rows.append(line(name, results))
        log(" | ".join(rows[-1]))
    return table(HEADER, rows)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--runs", type=Path, help="folder of the runs")
    arguments.add_argument("--fresh", type=int, default=100, help="fresh seeds a grammar")
    arguments.add_argument("--first", type=int, default=2_000, help="the first of them")
    arguments.add_argument("--only", choices=("paper", "fresh", "levels"), help="one section")
    chosen = arguments.parse_args()
    torch.set_num_threads(1)
    algebras = {name: make() for name, make in GRAMMARS.items()}
    recipe = recipe_for(boolean_plain())
    fresh = range(chosen.first, chosen.first + chosen.fresh)
    lines = [heading("Plain notation, learned")]
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.runs or Path(temporary)
        if chosen.only in (None, "paper"):
            lines += ["## The paper's ten seeds, all from random numbers", ""]
            lines += [*section(algebras, PAPER_SEEDS, folder / "paper"), ""]
        if chosen.only in (None, "fresh"):
            lines += [f"## Fresh seeds {fresh[0]} to {fresh[-1]}, all from random numbers", ""]
            lines += [*section(algebras, fresh, folder / "fresh"), ""]
        if chosen.only in (None, "levels"):
            lines += [f"## Fresh seeds {fresh[0]} to {fresh[-1]}, levels alone", ""]
            lines += [*levels_alone(algebras, fresh), ""]
    lines.append(
        f"Spans of one operator are learned first, on parenthesized expressions of depth 1 and 2, "
        f"in at most {recipe.attempts} attempts; then levels and directions, from random logits, "
        f"from at most {recipe.level_texts} texts of up to five tokens, drawn for each seed, until "
        f"all of these come out right or for {recipe.level_steps} steps. Nothing else stops a "
        f"seed, and no longer text is looked at before the verdict. Where levels alone are "
        f"learned, spans are those of boolean/7520, arithmetic/7520 and of constructed weights. "
        f"*harmless* are gates that group some operators otherwise than declared, where that makes "
        f"no difference to any value. Intervals are Wilson's. Constants were chosen "
        f"on seeds from 200 on."
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
