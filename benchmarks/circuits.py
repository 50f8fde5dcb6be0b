"""Standard methods of interpretability on models whose circuits are known, for numbers to beat.

    python benchmarks/circuits.py > results/circuits.md

Each method says how much speaks for each edge of an expression's circuit. Its one threshold is
chosen, for each model, on the expressions to learn from; precision and recall of the edges, and
faithfulness under patching, are of those to test on, which are deeper. `--models all` takes every
model of the suite, not one in a few; `--count N` chooses how many expressions of each depth, and
`--variants N` how many variants of each a method may run.
"""

import sys
import time

import numpy as np
from reports import heading, log, parser

from exactformer.domains.capabilities import refusal
from exactformer.interp.causal import causal_graph
from exactformer.interp.methods import METHODS, above, best_threshold
from exactformer.interp.score import CircuitScore, score_circuit
from exactformer.paper.files import table
from exactformer.suite import DEPTHS, models, split

FEW = (
    *("boolean/7520", "boolean/fitted", "arithmetic/7520", "listops/7520", "listops/fitted"),
    *("trained/arithmetic-mod-3", "trained/arithmetic-mod-7"),
    *("constructed/boolean", "constructed/listops", "constructed/arithmetic"),
    *("constructed/arithmetic-mod-3", "constructed/arithmetic-mod-13", "constructed/listops-10"),
    *("dense/boolean", "dense/listops", "dense/arithmetic"),
)


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--models", choices=["few", "all"], default="few")
    arguments.add_argument("--count", type=int, default=5)
    arguments.add_argument("--variants", type=int, default=32)
    chosen = arguments.parse_args()
    known, rows = models(), []
    for name in known if chosen.models == "all" else FEW:
        model = known[name]()
        module = model.module(straight_through=not refusal("gradients", model.domain))
        cells, began = [name], time.monotonic()
        train, test = (split(model.algebra, which, chosen.count) for which in ("train", "test"))
        for method, find in METHODS.items():
            if refusal(method, model.domain):
                cells.append("–")
                continue
            rng = np.random.default_rng(0)
            found = [find(module, expression, chosen.variants, rng) for expression in train]
            threshold = best_threshold(found, [causal_graph(e).edges for e in train])
            score = CircuitScore(0, 0, 0)
            for expression in test:
                edges = above(find(module, expression, chosen.variants, rng), threshold)
                score += score_circuit(edges, causal_graph(expression), module)
            cells.append(f"{score.precision:.2f} / {score.recall:.2f} / {score.faithfulness:.2f}")
        rows.append(cells)
        log(f"{' | '.join(cells)} | {time.monotonic() - began:.0f} s")
    print(heading("Circuits that standard methods find"))
    print(
        f"Precision / recall / faithfulness on {chosen.count} expressions of each of the depths "
        f"{', '.join(map(str, DEPTHS['test']))}, with {chosen.variants} variants each; thresholds "
        f"from the depths {', '.join(map(str, DEPTHS['train']))}. The true circuit has 1.00 each.\n"
    )
    print("\n".join(table(["model", *METHODS], rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
