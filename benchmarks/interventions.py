"""Interventions on every shipped model, and causal graphs against brute force.

    python benchmarks/interventions.py > results/interventions.md

Three counts for each model. A swap: an expression is drawn, the value of a span that iteration 1
reduced is replaced in the cache by another, and the run goes on; it is right if the answer is the
oracle's for the expression with that value in the place of the span. An effect: the same for any
node of the causal graph, leaves and operators included. A spare: a node that the graph says does
not decide the answer is set to each other token it could be; it is right if the answer stays.
`--count N` chooses how many swaps and effects of each model, and how many expressions for spares.
Exit status 1 if anything is wrong.
"""

import sys

import numpy as np
from reports import heading, log, parser

from exactformer.api import Model, construct, load
from exactformer.domains.catalog import CATALOG
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.interp.causal import causal_graph
from exactformer.interp.intervene import Intervention, intervene
from exactformer.paper.files import table
from exactformer.weights.named import shipped_names
from tests.interventions import alternatives, drawn, expected

DEPTHS = range(1, 9)


def right(model: Model, interventions: list[Intervention], wanted: list[str]) -> tuple[int, int]:
    answers = []
    for start in range(0, len(interventions), 500):
        answers += intervene(model.module(), interventions[start : start + 500])
    return sum(a == w for a, w in zip(answers, wanted, strict=True)), len(wanted)


def spares(model: Model, count: int, rng: np.random.Generator) -> list[Intervention]:
    """Every change of every node that is not decisive, in so many expressions."""
    found: list[Intervention] = []
    for i in range(count):
        graph = causal_graph(draw(model.algebra, 1 + i % 5, 1, rng)[0])
        for node in graph.tokens.keys() - graph.decisive:
            found += [Intervention(graph, {node: token}) for token in alternatives(graph, node)]
    return found


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--count", type=int, default=1000)
    count = arguments.parse_args().count
    rows, totals = [], np.zeros((3, 2), dtype=int)
    for task, make in CATALOG.items():
        models = {f"{task}/{name}": load(f"{task}/{name}") for name in shipped_names(task)}
        models[f"{task}, constructed"] = construct(make())
        models[f"{task}, constructed, dense"] = construct(make(), dense=True)
        for number, (name, model) in enumerate(models.items()):
            rng = np.random.default_rng(number)
            swaps = drawn(model.algebra, DEPTHS, count, rng, spans=True)
            effects = drawn(model.algebra, DEPTHS, count, rng)
            spare = spares(model, count, rng)
            counts = [
                right(model, swaps, list(map(expected, swaps))),
                right(model, effects, list(map(expected, effects))),
                right(model, spare, [evaluate(each.graph.expression) for each in spare]),
            ]
            totals += np.array(counts)
            rows.append([name, *(f"{a:,} of {b:,}" for a, b in counts)])
            log(" | ".join(rows[-1]))
    rows.append(["all", *(f"{a:,} of {b:,}" for a, b in totals.tolist())])
    print(heading("Interventions"))
    print(
        f"Depths 1 to {DEPTHS[-1]}, {count:,} expressions a column and model; of spares, all of "
        "each expression.\n"
    )
    print("\n".join(table(["weights", "swaps right", "effects right", "spares right"], rows)))
    return int((totals[:, 0] != totals[:, 1]).any())


if __name__ == "__main__":
    sys.exit(main())
