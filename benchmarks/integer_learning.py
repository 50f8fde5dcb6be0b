"""Integers learned by futures from short spans and their values, certified, and run on long ones.

    python benchmarks/integer_learning.py --runs runs/integers > results/integers-learned.md

The paper's ten seeds of `integers` and of `integers-2`; `--fresh N` seeds of `integers-2` (100)
from 2000 on; and one of each base from 3 to 5. Nothing was tuned on any of these. Learned weights
are then run on nested sums, on texts with all operators, on a sum with a carry through `--digits N`
digits (100,000) and on a product. The records go to `results/integers-learned.json`. Runs are kept
in the folder and resumed from there. Exit status 1 if a value is wrong.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from reports import heading, log, parser

import exactformer as ef
from exactformer.domains.integer_sampling import draw_integers
from exactformer.domains.integers import Integers, integers
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.host.atomic import write_atomically
from exactformer.paper.files import table
from exactformer.problems.accuracy import interval_in_words
from exactformer.training.integer_texts import operations
from exactformer.training.kinds import recipe_by_method
from exactformer.training.recipe import PAPER_SEEDS
from exactformer.training.run import Result, train_seeds, versions

FIRST_FRESH = 2_000
OTHER_BASES = range(3, 6)
KEPT = ("seed", "verdict", "counterexample", "attempt", "steps_in_all", "rows_right", "rows")
KEPT += ("margin", "states", "texts_asked", "continuations", "fresh_texts_right", "weights_sha256")
HEADER = ["domain", "seeds", "certified", "95% interval", "at the first attempt"]
HEADER += ["right on short spans, refused", "steps, median", "states learned", "margin, least"]
HEADER += ["certificate's rows"]
ASKED = ["domain", "spans asked for", "columns of the longest continuation", "operations"]
ASKED += ["hidden units"]
VALUES = ["domain", "certified seeds", "texts", "how many", "longest, in tokens"]
VALUES += ["wrong, of all seeds", "most iterations"]
VALUES += ["seconds, of all seeds"]
SUMS, MIXED, LONGEST = 100, 100, 20  # nested texts, and digits of their numerals
FACTORS = (200, 50)  # digits


def learn(domain: Integers, seeds: Sequence[int], folder: Path) -> list[Result]:
    results = train_seeds(domain, seeds, method="futures", out=folder / domain.name)
    log(f"{domain.name}: {sum(r.exact for r in results)} of {len(results)} certified")
    return results


def line(domain: Integers, results: Sequence[Result]) -> list[str]:
    """A row of the table about the seeds of one domain."""
    exact = [result.record for result in results if result.exact]
    spans = recipe_by_method("futures", domain, {}).checks * len(operations(domain))  # type: ignore[union-attr]
    refused = [r for r in results if not r.exact and r.record["fresh_texts_right"] == spans]
    cells: list[Any] = [domain.name, len(results), len(exact)]
    cells += [interval_in_words(len(exact), len(results), digits=3)]
    cells += [sum(record["attempt"] == 1 for record in exact), len(refused)]
    cells += [f"{median(r['steps_in_all'] for r in exact):.0f}" if exact else "-"]
    cells += [max(r.record["states"] for r in results)]
    cells += [f"{min(r['margin'] for r in exact):.2f}" if exact else "-"]
    return [str(cell) for cell in [*cells, f"{max(r.record['rows'] for r in results):,}"]]


def nested_sums(domain: Integers, rng: np.random.Generator) -> Iterator[str]:
    """Sums in sums, of depth 1 to 7."""

    def text(depth: int) -> str:
        if not depth:
            digits = rng.integers(domain.base, size=rng.integers(1, LONGEST + 1))
            return "".join(domain.digits[d] for d in digits).lstrip("0") or "0"
        depths = [depth - 1, int(rng.integers(depth))]
        a, b = depths if rng.random() < 0.5 else depths[::-1]
        return f"({text(a)}+{text(b)})"

    return (text(int(rng.integers(1, 8))) for _ in range(SUMS))


def texts(domain: Integers, digits: int) -> Iterator[tuple[str, list[ef.Expression]]]:
    """The texts that learned weights are run on, by their name."""
    rng = np.random.default_rng(0)
    name = f"nested sums of up to {LONGEST} digits"
    yield name, [parse(domain, text) for text in nested_sums(domain, rng)]
    mixed = [draw_integers(domain, d, MIXED // 4, rng, LONGEST) for d in range(1, 5)]
    yield "nested, all operators, depths 1 to 4", [text for some in mixed for text in some]
    nine = domain.digits[-1]
    yield f"{nine}...{nine} + 1", [parse(domain, f"({nine * digits}+1)")]
    a, b = (
        "".join(domain.digits[d] for d in [1, *rng.integers(domain.base, size=size - 1)])
        for size in FACTORS
    )
    yield f"random `(a*b)`, {FACTORS[0]} by {FACTORS[1]} digits", [parse(domain, f"({a}*{b})")]


def run(models: list[ef.Model], name: str, tried: list[ef.Expression]) -> tuple[list[str], int]:
    """A row of the table about some texts, each by all of the models; and how many are wrong."""
    expected = [evaluate(text) for text in tried]
    began = time.perf_counter()
    found = [model.outcomes(tried) for model in models]
    seconds = time.perf_counter() - began
    wrong = sum(o.value != e for some in found for o, e in zip(some, expected, strict=True))
    most = max(outcome.iterations for some in found for outcome in some)
    cells = [models[0].domain.name, len(models), name, len(tried), f"{max(map(len, tried)):,}"]
    cells += [wrong, most, f"{seconds:.1f}"]
    log(" | ".join(map(str, cells)))
    return [*map(str, cells)], wrong


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--runs", type=Path, help="folder of the runs")
    arguments.add_argument("--fresh", type=int, default=100, help="fresh seeds of integers-2")
    arguments.add_argument("--digits", type=int, default=100_000, help="of a long sum")
    arguments.add_argument("--out", type=Path, default=Path("results/integers-learned.json"))
    chosen = arguments.parse_args()
    torch.set_num_threads(1)
    fresh = range(FIRST_FRESH, FIRST_FRESH + chosen.fresh)
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.runs or Path(temporary)
        ten = {d: learn(d, PAPER_SEEDS, folder / "ten") for d in (integers(), integers(2))}
        more = {integers(2): learn(integers(2), fresh, folder / "fresh")}
        for base in OTHER_BASES:
            more[integers(base)] = learn(integers(base), fresh[:1], folder / "fresh")
    values, wrong = [], 0
    for domain, results in ten.items():
        if models := [result.model for result in results if result.exact]:
            for name, tried in texts(domain, chosen.digits):
                cells, faults = run(models, name, tried)
                values.append(cells)
                wrong += faults
    asked = []
    for domain, results in (ten | {d: r for d, r in more.items() if d not in ten}).items():
        record, recipe = results[0].record, recipe_by_method("futures", domain, {})
        cells = [domain.name, f"{record['texts_asked']:,}", record["continuations"]]
        asked.append([*map(str, cells), str(len(operations(domain))), str(recipe.width)])  # type: ignore[union-attr]
    lines = [heading("Integers, learned"), NOTE, ""]
    lines += ["## The paper's ten seeds", "", *table(HEADER, [line(d, r) for d, r in ten.items()])]
    lines += ["", f"## Fresh seeds, from {fresh[0]} on", ""]
    lines += [*table(HEADER, [line(d, r) for d, r in more.items()]), ""]
    lines += ["## What was asked for", "", *table(ASKED, asked), ""]
    lines += ["## Values by learned weights, beside Python's integers", ""]
    lines += [*table(VALUES, values, words=3), "", TUNED]
    kept = {
        kind: {d.name: [{k: r.record[k] for k in KEPT} for r in runs] for d, runs in found.items()}
        for kind, found in (("ten", ten), ("fresh", more))
    }
    data = {"versions": versions(), "seeds": kept}
    write_atomically(chosen.out, json.dumps(data, separators=(",", ":")) + "\n")
    print("\n".join(lines))
    return int(wrong > 0)


NOTE = """\
Given are values of short spans: of one operator with two numerals, either of which may be `?`, and
of single steps of a product, accumulator * base + left operand * digit. Given are also the keys and
gates, so that a span is read a place at a time from the lowest, and the rows of the second reading,
which leaves out zeros at the top and digits below a `?`. Learned are, for every operator and every
digit that a product takes, the states of the first reading (nobody says that there are carries),
what each of them writes and where it leads, as the weights of a perceptron.

Spans are asked for until 2,000 fresh ones of each operation come out right, of up to five digits an
operand. Then a perceptron is trained, from random numbers, on the rows that were found, and starts
again, up to four times, where it does not get the margin. The certificate judges a seed once, at
its end, and decides nothing before. *Right on short spans, refused* are seeds that came out right
on all fresh spans and are not certified. *States learned* are those of all operations together.
Intervals are Wilson's."""

TUNED = """\
## What was tuned

On seeds 300 to 303 of `integers-2`, 300 and 301 of `integers` and 300 of bases 3 and 16: that two
beginnings agree only if there is a continuation that both can go on with, that accumulators may be
of any length, and the constants of the perceptron. The rate and the number of units were tried on
rows that were written down (256 and 512 units, one seed). `run.json` of each run has every
constant."""


if __name__ == "__main__":
    sys.exit(main())
