"""Causal graphs, against brute force."""

import json

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.catalog import boolean
from exactformer.domains.sampling import draw, enumerate_depth
from exactformer.interp.causal import CausalGraph, Node, causal_graph
from exactformer.interp.intervene import Intervention, intervene
from tests.algebras import ALGEBRAS, KLEENE
from tests.interventions import alternatives, changed, drawn, expected
from tests.plain_algebras import ALGEBRAS as PLAIN
from tests.plain_algebras import MODULO7
from tests.polish_algebras import CALCULATOR

EACH = 30  # expressions an algebra; benchmarks/interventions.py does thousands

# Every algebra in every layer that reads it.
IN_LAYERS = [(a, by) for by in ("depth", "log") for a in ALGEBRAS] + [(a, "depth") for a in PLAIN]
in_layers = pytest.mark.parametrize(
    ("algebra", "iterations"), IN_LAYERS, ids=[f"{a.name}-{a.layer(by)}" for a, by in IN_LAYERS]
)


def expressions(algebra: ef.Algebra) -> list[ef.Expression]:
    rng = np.random.default_rng(2)
    return [e for depth in (0, 1, 2, 3, 5) for e in draw(algebra, depth, EACH // 5, rng)]


@in_layers
def test_the_answer_and_the_effect_of_every_change_are_the_oracles(algebra, iterations):
    for expression in expressions(algebra):
        graph = causal_graph(expression, iterations)
        assert graph.tokens[graph.answer] == ef.oracle(expression)
        assert (
            graph.answer
            == {
                "depth": (expression.depth, expression.root),
                "log": (ef.strahler(expression), expression.root),
                "plain": (ef.strahler(expression), 0),
            }[graph.layer]
        )
        for node in graph.tokens:
            effect = graph.effects[node]
            assert effect[graph.tokens[node]] == ef.oracle(expression)
            for token in alternatives(graph, node):
                assert effect[token] == ef.oracle(changed(graph, node, token))


@in_layers
def test_nothing_but_an_ancestor_changes_a_node(algebra, iterations):
    """Every other token that could be elsewhere; the value of each span is looked up again."""
    for expression in expressions(algebra)[::2]:
        graph = causal_graph(expression, iterations)
        for node in graph.tokens:
            if node.iteration:
                continue
            for token in alternatives(graph, node):
                after = causal_graph(changed(graph, node, token), iterations)
                assert after.edges == graph.edges
                for span in graph.causes:
                    if node not in graph.ancestors(span):
                        assert after.tokens[span] == graph.tokens[span]


@in_layers
def test_nodes_are_what_the_model_writes(algebra, iterations):
    """In each iteration, the positions that it reduces and that hold a token after it."""
    model = ef.construct(algebra)
    for expression in expressions(algebra):
        graph, run = causal_graph(expression, iterations), model.run(expression, None, iterations)
        found = {node for node in graph.tokens if node.iteration == 0}
        for i in range(1, run.iterations + 1):
            reduced = run.cache[i, "P"] & run.cache[i, "X"].any(-1)
            found |= {(i, place) for place in reduced.nonzero().flatten().tolist()}
        assert found == graph.tokens.keys()
        for node, token in graph.tokens.items():
            for i in graph.lifetime(node):
                held = run.cache[i, "X"][node.position].nonzero().flatten().tolist()
                assert held == [algebra.token_ids[token]]
            if node != graph.answer:
                after = run.cache[graph.target[node].iteration, "P"]
                assert after[node.position]


SHIPPED = [("boolean/7520", None), ("arithmetic/8739", None), ("listops/fitted", None)]
AS_PLAIN = [("boolean/7520", ef.boolean_plain()), ("arithmetic/7520", ef.arithmetic_plain())]
AS_POLISH = [("boolean/7520", ef.boolean_polish()), ("constructed", CALCULATOR)]


@pytest.mark.parametrize("iterations", ["depth", "log"])
@pytest.mark.parametrize(("name", "domain"), [*SHIPPED, *AS_PLAIN, *AS_POLISH])
def test_an_intervention_gives_the_oracles_answer_to_the_changed_expression(
    name, domain, iterations
):
    model, rng = ef.load(name, domain), np.random.default_rng(3)
    made = drawn(model.algebra, range(1, 8), 100, rng, iterations)
    made += drawn(model.algebra, range(1, 8), 100, rng, iterations, spans=True)
    assert intervene(model.module(iterations), made) == list(map(expected, made))


@pytest.mark.parametrize("algebra", PLAIN, ids=lambda algebra: algebra.name)
@pytest.mark.parametrize("dense", [False, True], ids=["one-hot", "dense"])
def test_so_it_does_in_plain_notation(algebra, dense):
    made = drawn(algebra, range(1, 8), 100, np.random.default_rng(4))
    made += drawn(algebra, range(1, 8), 100, np.random.default_rng(5), spans=True)
    module = ef.construct(algebra, dense=dense).module()
    assert intervene(module, made) == list(map(expected, made))


@pytest.mark.parametrize("iterations", ["depth", "log"])
@pytest.mark.parametrize(("name", "domain"), [*SHIPPED, AS_PLAIN[0], AS_POLISH[1]])
def test_no_change_of_what_is_not_decisive_changes_the_models_answer(name, domain, iterations):
    model = ef.load(name, domain)
    rest = []
    for expression in expressions(model.algebra):
        graph = causal_graph(expression, iterations)
        for node in graph.tokens.keys() - graph.decisive:
            rest += [Intervention(graph, {node: token}) for token in alternatives(graph, node)]
    rest = [rest[i] for i in np.random.default_rng(0).permutation(len(rest))[:500]]
    answers = intervene(model.module(iterations), rest)
    assert answers == [ef.oracle(each.graph.expression) for each in rest]


@pytest.mark.parametrize("iterations", ["depth", "log"])
@pytest.mark.parametrize(
    "algebra", [boolean(), KLEENE, ef.boolean_plain()], ids=lambda algebra: algebra.name
)
def test_every_value_is_decisive_beside_some_others(algebra, iterations):
    """So no edge of theirs is there for nothing. All expressions of depth 2, by their shapes."""
    graphs: dict[tuple, list[CausalGraph]] = {}
    for expression in enumerate_depth(algebra, 2):
        graph = causal_graph(expression, iterations)
        operators = {node: t for node, t in graph.tokens.items() if t not in algebra.values}
        shape = tuple(operators.items()), tuple(graph.tokens)
        graphs.setdefault(shape, []).append(graph)
    for (operators, _), alike in graphs.items():
        values = alike[0].tokens.keys() - dict(operators).keys()
        assert values <= frozenset().union(*(graph.decisive for graph in alike))


def test_what_is_composed_is_never_written():
    text = "((1|(~(1&0)))&(~0))"
    graph = causal_graph(ef.parse(ef.boolean(), text), "log")
    assert [node for node in graph.tokens if node.iteration] == [(1, 3), (1, 15), (2, 13)]
    left = ["1", "|", "~", "1", "&", "0"]
    assert sorted(graph.tokens[node] for node in graph.causes[Node(1, 3)]) == sorted(left)


def test_a_run_of_one_level_is_one_span_and_its_operators_are_exchanged_within_the_level():
    graph = causal_graph(ef.parse(MODULO7, "1-2+3*(4)-5"))
    assert [node for node in graph.tokens if node.iteration] == [(1, 0)]
    assert graph.effects[Node(0, 1)].keys() == {"+", "-"}
    assert graph.effects[Node(0, 5)].keys() == {"*"}
    assert graph.effects[Node(0, 1)]["+"] == ef.oracle(ef.parse(MODULO7, "1+2+3*(4)-5"))


def test_graph_and_module_are_of_the_same_layer():
    model = ef.construct(boolean())
    graph = causal_graph(ef.parse(boolean(), "(1&0)"))
    with pytest.raises(ValueError, match="found one of the layer 'depth'"):
        intervene(model.module("log"), [Intervention(graph, {(0, 3): "1"})])
    with pytest.raises(ValueError, match="iterations: expected depth or log, found 'logs'"):
        causal_graph(graph.expression, "logs")  # type: ignore[reportArgumentType]


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
    for iterations in ("depth", "log"):
        graph = causal_graph(expression, iterations)
        assert graph.tokens[graph.answer] == "1"
    assert len(graph.decisive) == len(graph.tokens)
    with pytest.raises(TypeError, match="expected an Expression"):
        causal_graph("(1&0)")  # type: ignore[reportArgumentType]
