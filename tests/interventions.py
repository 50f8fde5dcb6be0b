"""Interventions, and what must come of them: the oracle on the changed expression."""

import numpy as np

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.interp.causal import CausalGraph, Node, causal_graph
from exactformer.interp.intervene import Intervention
from exactformer.model.iterations import Iterations


def changed(graph: CausalGraph, node: Node, token: str) -> Expression:
    """The expression with another token at a node; the span whose value it is goes."""
    expression = graph.expression
    algebra, positions = expression.algebra, expression.positions.tolist()
    start = stop = node.position
    if node.iteration and algebra.parenthesized is not algebra:
        part = next(part for part in reversed(graph.parts.values()) if part.node == node)
        start, stop = part.first, part.last
    elif node.iteration:  # outwards to the parentheses around
        level = 0
        while level < 1:
            start -= 1
            level += {OPEN: 1, CLOSE: -1}.get(positions[start], 0)
        while level > 0:
            stop += 1
            level += {OPEN: 1, CLOSE: -1}.get(positions[stop], 0)
    ids = [*positions[:start], algebra.token_ids[token], *positions[stop + 1 :]]
    return parse(algebra, " ".join(algebra.vocabulary[each] for each in ids if each != EMPTY))


def alternatives(graph: CausalGraph, node: Node) -> list[str]:
    return [token for token in graph.effects[node] if token != graph.tokens[node]]


def drawn(
    algebra: Algebra,
    depths: range,
    count: int,
    rng: np.random.Generator,
    iterations: Iterations = "depth",
    *,
    spans: bool = False,
) -> list[Intervention]:
    """So many, one to an expression: another token at any node, or at one that iteration 1 wrote.

    Expressions in which no such node can be anything else are passed over.
    """
    found: list[Intervention] = []
    while len(found) < count:
        depth = int(rng.integers(depths.start, depths.stop))
        graph = causal_graph(draw(algebra, depth, 1, rng)[0], iterations)
        nodes = [n for n in graph.tokens if n.iteration == 1] if spans else list(graph.tokens)
        node = nodes[rng.integers(len(nodes))]
        if others := alternatives(graph, node):
            found.append(Intervention(graph, {node: others[rng.integers(len(others))]}))
    return found


def expected(intervention: Intervention) -> str:
    ((node, token),) = intervention.tokens.items()
    return evaluate(changed(intervention.graph, Node(*node), token))
