"""Interventions in every layer on every shipped model, and causal graphs against brute force.

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
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reports import heading, log, parser

from exactformer.api import Model, construct, load
from exactformer.domains.catalog import BUILT_IN, CATALOG
from exactformer.domains.definition import load_algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.interp.causal import causal_graph
from exactformer.interp.intervene import Intervention, intervene
from exactformer.model.iterations import Iterations
from exactformer.paper.files import table
from exactformer.weights.named import shipped_names
from tests.interventions import alternatives, drawn, expected

DEPTHS = range(1, 9)
EXAMPLES = Path(__file__).parent.parent / "examples" / "plain"


def right(
    model: Model, by: Iterations, interventions: list[Intervention], wanted: list[str]
) -> tuple[int, int]:
    module, answers = model.module(by), []
    for start in range(0, len(interventions), 500):
        answers += intervene(module, interventions[start : start + 500])
    return sum(a == w for a, w in zip(answers, wanted, strict=True)), len(wanted)


def spares(
    model: Model, by: Iterations, count: int, rng: np.random.Generator
) -> list[Intervention]:
    """Every change of every node that is not decisive, in so many expressions."""
    found: list[Intervention] = []
    for i in range(count):
        graph = causal_graph(draw(model.algebra, 1 + i % 5, 1, rng)[0], by)
        for node in graph.tokens.keys() - graph.decisive:
            found += [Intervention(graph, {node: token}) for token in alternatives(graph, node)]
    return found


def chosen() -> Iterator[tuple[str, Model, Iterations, int]]:
    """The models by their names, with a way to iterate and the seed of what is drawn."""
    for task, make in CATALOG.items():
        models = {f"{task}/{name}": load(f"{task}/{name}") for name in shipped_names(task)}
        models[f"{task}, constructed"] = construct(make())
        models[f"{task}, constructed, dense"] = construct(make(), dense=True)
        for number, (name, model) in enumerate(models.items()):
            yield name, model, "depth", number
    for task, make in CATALOG.items():
        yield f"{task}/7520, by the logarithm", load(f"{task}/7520"), "log", 0
        dense = construct(make(), dense=True)
        yield f"{task}, constructed, dense, by the logarithm", dense, "log", 1
    for name in [name for name in BUILT_IN if name not in CATALOG]:
        algebra = BUILT_IN[name]()
        yield f"{name}, constructed", construct(algebra), "depth", 0
        shipped = f"{name.partition('-')[0]}/7520"
        yield f"{name}, weights {shipped}", load(shipped, algebra), "depth", 1
    for path in sorted(EXAMPLES.glob("*.toml")):
        model = construct(load_algebra(path))
        yield f"{model.algebra.name} in plain notation, constructed", model, "depth", 0


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--count", type=int, default=1000)
    count = arguments.parse_args().count
    rows, totals = [], np.zeros((3, 2), dtype=int)
    for name, model, by, number in chosen():
        rng = np.random.default_rng(number)
        swaps = drawn(model.algebra, DEPTHS, count, rng, by, spans=True)
        effects = drawn(model.algebra, DEPTHS, count, rng, by)
        spare = spares(model, by, count, rng)
        counts = [
            right(model, by, swaps, list(map(expected, swaps))),
            right(model, by, effects, list(map(expected, effects))),
            right(model, by, spare, [evaluate(each.graph.expression) for each in spare]),
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
