"""Mutants of plain notation: none that is called exact is wrong under brute force.

    python benchmarks/plain_mutants.py > results/plain-mutants.md

`--count N` and `--seed S` choose other mutants. They are those of `attacks/weights.py`: levels,
directions, gates, routing and feedforwards changed, of learned and constructed weights. Exit status
1 if any claim is broken.
"""

import sys
from collections import Counter
from pathlib import Path

from reports import heading, parser

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `attacks`

from attacks import weights
from exactformer.paper.files import table

VERDICTS = ("exact", "exact, harmless", "inexact", "undecided", "refused")

EXPLANATION = """
A mutant is *harmless* if it is exact and groups operators otherwise than declared, without a
difference to any value. Every other exact one groups as declared. What is inexact has a
counterexample, which the model was run on again. Brute force is the model beside the oracle on the
texts in the last column: short ones, all or evenly chosen, and random ones up to depth 6. What is
*undecided* fails some condition and came out right on all that was tried; *refused* are weights
that no file may hold.
"""


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--count", type=int, default=6_000)
    arguments.add_argument("--seed", type=int, default=0)
    chosen = arguments.parse_args()
    report = weights.attack(chosen.count, chosen.seed, tuple(weights.PLAIN))
    print(heading("Mutants of plain notation"))
    tally: dict[tuple[str, str], Counter[str]] = {}
    for kind, number in sorted(report.tried.items()):
        changed, verdict = kind.split(": ")
        name, _, what = changed.rpartition(", ")
        tally.setdefault((name, what), Counter())[verdict] += number
    tally["all", ""] = sum(tally.values(), Counter())
    rows = []
    for (name, what), counts in tally.items():
        texts = len(weights.problems(name)[1]) if what else ""
        rows.append([name, what, *(f"{counts[v]:,}" for v in VERDICTS), f"{texts}"])
    print("\n".join(table(["weights", "changed", *VERDICTS, "texts tried"], rows, words=2)))
    print(EXPLANATION)
    print(f"{chosen.count:,} mutants of seed {chosen.seed}; {len(report.found)} broke a claim.")
    for found in report.found:
        print(f"- {found}")
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main())
