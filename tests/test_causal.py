"""Causal graphs, against brute force."""

import json

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.catalog import boolean
from exactformer.domains.sampling import draw, enumerate_depth
from exactformer.interp.causal import CausalGraph, causal_graph
from exactformer.interp.intervene import Intervention, intervene
from tests.algebras import KLEENE
from tests.interventions import alternatives, changed

EACH = 30  # expressions an algebra; benchmarks/interventions.py does thousands


def expressions(algebra: ef.Algebra) -> list[ef.Expression]:
    rng = np.random.default_rng(2)
    return [e for depth in (0, 1, 2, 3, 5) for e in draw(algebra, depth, EACH // 5, rng)]


def test_the_answer_and_the_effect_of_every_change_are_the_oracles(algebra):
    for expression in expressions(algebra):
        graph = causal_graph(expression)
        assert graph.tokens[graph.answer] == ef.oracle(expression)
        assert graph.answer == (expression.depth, expression.root)
        for node in graph.tokens:
            effect = graph.effects[node]
            assert effect[graph.tokens[node]] == ef.oracle(expression)
            for token in alternatives(graph, node):
                assert effect[token] == ef.oracle(changed(graph, node, token))


def test_nothing_but_an_ancestor_changes_a_node(algebra):
    """Every other token that could be elsewhere; the value of each span is looked up again."""
    for expression in expressions(algebra)[::2]:
        graph = causal_graph(expression)
        for node in graph.tokens:
            if node.iteration:
                continue
            for token in alternatives(graph, node):
                after = causal_graph(changed(graph, node, token))
                assert after.edges == graph.edges
                for span in graph.causes:
                    if node not in graph.ancestors(span):
                        assert after.tokens[span] == graph.tokens[span]


@pytest.mark.parametrize("name", ["boolean/7520", "arithmetic/8739", "listops/fitted"])
def test_no_change_of_what_is_not_decisive_changes_the_models_answer(name):
    model = ef.load(name)
    rest = []
    for expression in expressions(model.algebra):
        graph = causal_graph(expression)
        for node in graph.tokens.keys() - graph.decisive:
            rest += [Intervention(graph, {node: token}) for token in alternatives(graph, node)]
    rest = [rest[i] for i in np.random.default_rng(0).permutation(len(rest))[:500]]
    answers = intervene(model.module(), rest)
    assert answers == [ef.oracle(each.graph.expression) for each in rest]


@pytest.mark.parametrize("algebra", [boolean(), KLEENE], ids=lambda algebra: algebra.name)
def test_every_value_is_decisive_beside_some_others(algebra):
    """So no edge of theirs is there for nothing. All expressions of depth 2, by their operators."""
    graphs: dict[tuple, list[CausalGraph]] = {}
    for expression in enumerate_depth(algebra, 2):
        graph = causal_graph(expression)
        operators = {node: t for node, t in graph.tokens.items() if t not in algebra.values}
        graphs.setdefault(tuple(operators.items()), []).append(graph)
    for operators, alike in graphs.items():
        values = alike[0].tokens.keys() - dict(operators).keys()
        assert values <= frozenset().union(*(graph.decisive for graph in alike))


def test_as_data():
    graph = causal_graph(ef.parse(ef.boolean(), "((1|0)&(~0))"))
    data = json.loads(json.dumps(graph.to_dict()))
    assert data["answer"] == [2, 6]
    assert [[0, 2], [1, 3]] in data["edges"]
    assert len(data["edges"]) == len(graph.edges) == 8
    left = next(node for node in data["nodes"] if node["node"] == [1, 3])
    assert left == {"node": [1, 3], "token": "1", "until": 2, "effect": {"1": "1", "0": "0"}}


def test_a_long_chain_is_no_trouble():
    model = ef.construct(ef.arithmetic())
    expression = ef.parse(model.algebra, "(" * 3000 + "1" + "+1)" * 3000)
    graph = causal_graph(expression)
    assert graph.tokens[graph.answer] == "1"
    assert len(graph.decisive) == len(graph.tokens)
    with pytest.raises(TypeError, match="expected an Expression"):
        causal_graph("(1&0)")  # type: ignore[reportArgumentType]
