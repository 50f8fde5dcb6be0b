"""The score of a circuit, and the methods that are scored."""

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.catalog import BUILT_IN, CATALOG
from exactformer.interp.causal import CausalGraph, causal_graph
from exactformer.interp.methods import METHODS, above, best_threshold, variants
from exactformer.interp.score import CircuitScore, score_circuit
from exactformer.suite import models, split


@pytest.fixture(scope="module")
def model() -> ef.Model:
    return ef.load("arithmetic/7520")


def graph_of(model: ef.Model, text: str) -> CausalGraph:
    return causal_graph(ef.parse(model.algebra, text))


def test_the_true_circuit_has_ones(model):
    graph = graph_of(model, "((3+4)*(1+(2*5)))")
    score = ef.score_circuit(graph.edges, graph, model.module())
    assert (score.precision, score.recall, score.faithfulness) == (1, 1, 1)
    assert (score.right, score.patched) == (len(graph.edges), 16)


def test_edges_that_are_missing_or_wrong_cost(model):
    graph = graph_of(model, "((3+4)*(1+2))")
    left = [edge for edge in graph.edges if edge.target != (1, 3)]  # all but those into (3+4)
    score = score_circuit([*left, ((0, 2), (2, 6))], graph, model.module())
    assert (score.right, score.found, score.true) == (6, 7, 9)
    assert (score.precision, score.recall) == (6 / 7, 6 / 9)
    assert score.faithfulness < 0.5  # its value is made of what was patched


def test_no_edges_at_all(model):
    graph = graph_of(model, "((3+4)*(1+2))")
    score = score_circuit([], graph, model.module())
    assert (score.precision, score.recall) == (1, 0)
    assert score.faithfulness < 1
    value = graph_of(model, "7")
    assert score_circuit([], value, model.module()).faithfulness == 1


def test_scores_add_up():
    total = CircuitScore(1, 2, 4, 3, 4) + CircuitScore(1, 2, 4, 1, 4)
    assert (total.precision, total.recall, total.faithfulness) == (0.5, 0.25, 0.5)


def test_variants_keep_the_circuit(algebra):
    rng = np.random.default_rng(0)
    for expression in ef.draw(algebra, 3, 5, rng):
        graph = causal_graph(expression)
        made = variants(expression, 4, rng)
        assert {causal_graph(other).edges for other in made} == {graph.edges}
        for other in made:
            assert ef.parse(algebra, str(other)).positions.tolist() == other.positions.tolist()


@pytest.mark.parametrize("name", ["arithmetic/7520", "dense/boolean", "constructed/listops-10"])
def test_methods_find_true_edges(name):
    model = models()[name]()
    module = model.module(straight_through=True)
    expression = split(model.algebra, "test", 1)[1]
    truth = causal_graph(expression)
    for method, find in METHODS.items():
        found = find(module, expression, 16, np.random.default_rng(0))
        sources = {source for source, _ in found}
        assert sources <= truth.tokens.keys()  # written where and when the graph says
        score = score_circuit(above(found, 0.0), truth)
        assert score.right > 0
        if method == "activation patching":
            assert score.precision == 1  # what changes a target determines it
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.parametrize(
    ("algebra", "iterations"),
    [(ef.boolean(), "log"), (ef.listops(), "log"), (ef.arithmetic_plain(), "depth")],
    ids=lambda asked: str(getattr(asked, "name", asked)),
)
def test_activation_patching_sees_all_that_is_written_in_every_layer(algebra, iterations):
    module, rng = ef.construct(algebra).module(iterations), np.random.default_rng(0)
    for expression in ef.draw(algebra, 4, 5, rng):
        truth = causal_graph(expression, iterations)
        found = METHODS["activation patching"](module, expression, 16, rng)
        assert {target for _, target in found} == truth.causes.keys()
        assert above(found, 0.0) <= truth.edges
        with pytest.raises(ValueError, match="edge attribution: not for"):
            METHODS["edge attribution"](module, expression, 16, rng)


def test_a_threshold_is_chosen_by_f1():
    graph = graph_of(ef.construct(ef.boolean()), "((1|0)&(~0))")
    true, (other, *_) = (
        sorted(graph.edges),
        sorted(causal_graph(ef.parse(ef.boolean(), "(1|1)")).edges),
    )
    weighted = {edge: 0.6 for edge in true[:6]} | {other: 0.3}
    threshold = best_threshold([weighted], [graph.edges])
    assert above(weighted, threshold) == set(true[:6])


def test_the_suite_is_exact_and_its_splits_do_not_overlap():
    known = models()
    assert {f"{task}/{seed}" for task in CATALOG for seed in (7520, 8739)} < known.keys()
    assert len(known) == 32 + 3 + 2 * 13
    for name in ("constructed/arithmetic-mod-13", "dense/arithmetic-mod-2", "dense/boolean-polish"):
        assert known[name]().certify().verdict == "exact"
    for make in BUILT_IN.values():
        train, test = ({str(e) for e in split(make(), which, 20)} for which in ("train", "test"))
        assert not train & test
        assert len(split(make(), "test", 20)) == 80
