"""Compares a circuit that was found with the true one: by its edges, and by what it leaves out."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from exactformer.domains.data import expect
from exactformer.interp.causal import CausalGraph, Edge, Node, with_ancestors
from exactformer.interp.intervene import Intervention, intervene
from exactformer.interp.module import LayerModule


@dataclass(frozen=True)
class CircuitScore:
    """Counts of edges: found, true, and both; and of patched runs: all, and those with the same
    answer.
    """

    right: int
    found: int
    true: int
    kept: int = 0
    patched: int = 0

    @property
    def precision(self) -> float:
        """Share of the found edges that are true; 1 if none was found."""
        return self.right / self.found if self.found else 1.0

    @property
    def recall(self) -> float:
        """Share of the true edges that were found; 1 if there is none."""
        return self.right / self.true if self.true else 1.0

    @property
    def faithfulness(self) -> float:
        """Share of runs whose answer stays the same when everything outside the circuit is patched;
        1 if there was no such run.
        """
        return self.kept / self.patched if self.patched else 1.0

    def __add__(self, other: "CircuitScore") -> "CircuitScore":
        """Counts add up over expressions."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return CircuitScore(*(a + b for a, b in pairs))


def score_circuit(
    found: Iterable[tuple[tuple[int, int], tuple[int, int]]],
    truth: CausalGraph,
    module: LayerModule | None = None,
    *,
    count: int = 16,
    seed: int = 0,
) -> CircuitScore:
    """Compare edges with those of the causal graph; each is a pair of nodes, (iteration, position).

    module   an exact model to measure faithfulness with: every node from which the circuit has no
             path to the answer is set to a random other token, in `count` ways.
    """
    expect(truth, CausalGraph, "a causal graph, such as ef.causal_graph(expression)")
    edges = {Edge(Node(*source), Node(*target)) for source, target in found}
    score = CircuitScore(len(edges & truth.edges), len(edges), len(truth.edges))
    if module is None:
        return score
    causes: dict[Node, list[Node]] = {}
    for edge in edges:
        causes.setdefault(edge.target, []).append(edge.source)
    inside = with_ancestors(truth.answer, causes)
    outside = [node for node in truth.tokens if node not in inside]
    rng = np.random.default_rng(seed)
    interventions = []
    for _ in range(count):
        tokens = {}
        for node in outside:
            others = [token for token in truth.effects[node] if token != truth.tokens[node]]
            if others:
                tokens[node] = others[rng.integers(len(others))]
        interventions.append(Intervention(truth, tokens))
    answers = intervene(module, interventions)
    kept = answers.count(truth.tokens[truth.answer])
    return CircuitScore(score.right, score.found, score.true, kept, count)
