"""The packed layer has the states, iterations and values of the paper's, for less work."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from attacks.packed import differences, random_weights
from exactformer.bench.shapes import make_ids
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import draw
from exactformer.model import alike, kinds, packed
from exactformer.model.circuit import Weights
from exactformer.model.encode import MOST_OPERANDS, flat_positions
from exactformer.model.feedforward import MLP
from exactformer.model.kinds import Kinds
from exactformer.model.predict import outcomes
from tests.algebras import ALGEBRAS
from tests.trees import symbols, trees

MODELS = [ef.construct(algebra) for algebra in ALGEBRAS]
MODELS += [ef.construct(ef.listops(None)), ef.construct(ef.boolean(), dense=True)]
DTYPES = st.sampled_from(list(MOST_OPERANDS))


@st.composite
def batches(draw_from) -> tuple[ef.Model, list[Expression]]:
    model = draw_from(st.sampled_from(MODELS))
    names = {algebra.name for algebra in ALGEBRAS}
    algebra = model.algebra if model.algebra.name in names else ef.listops()
    drawn = draw_from(st.lists(trees(algebra, 12), min_size=1, max_size=6))
    texts = [" ".join(symbols(model.algebra, tree)) for tree in drawn]
    return model, [ef.parse(model.algebra, text) for text in texts]


@settings(max_examples=60)
@given(batches(), DTYPES)
def test_the_same_states_values_and_iterations(batch, dtype):
    model, expressions = batch
    assert differences(model, expressions, dtype) == []
    found = outcomes(model.algebra, model.weights, expressions, dtype)
    assert found == [(ef.oracle(e), e.depth) for e in expressions]


@settings(max_examples=60)
@given(batches(), DTYPES, st.integers(0, 2**31))
def test_the_same_states_for_any_weights(batch, dtype, seed):
    model, expressions = batch
    weights = random_weights(model.weights, np.random.default_rng(seed))
    assert differences(replace(model, weights=weights), expressions, dtype) == []


def with_bias(weights: Weights, token: int, bias: float) -> Weights:
    """A perceptron that gives a token wherever it is not held back."""
    f = weights.f
    assert isinstance(f, MLP)
    b_2 = f.b_2.clone()
    b_2[token] = bias
    return replace(weights, f=replace(f, b_2=b_2))


def test_zeros_are_dropped_only_where_they_stay_zero():
    model = ef.construct(ef.listops(2))
    expressions = draw(model.algebra, 3, 20, np.random.default_rng(0))
    for bias, stay in ((-0.5, True), (0.0, True), (1e-30, False)):
        weights = with_bias(model.weights, model.algebra.value_ids[0], bias)
        assert Kinds(weights, torch.float32).zeros_stay is stay
        assert differences(replace(model, weights=weights), expressions, torch.float32) == []
        assert (outcomes(model.algebra, weights, expressions)[0].value is None) is not stay


def test_spans_with_a_zero_between_them_are_two_clusters():
    model = ef.load("listops/7520")
    expression = ef.parse(model.algebra, "( MAX ( MIN 4 2 ) ( MIN 3 5 ) )")
    of_listops = Kinds(model.weights, torch.float32)
    ids, lengths = map(torch.from_numpy, flat_positions([expression]))
    state = packed.pack(ids, lengths, of_listops)
    assert len(state.symbols) == len(expression) < len(ids)  # no zero is left
    _, found = packed.clusters(state, packed.count(state, of_listops))
    assert found.lengths.tolist() == [5, 5]
    assert model.predict([expression]) == ["3"]


@pytest.mark.parametrize("task", ["boolean", "arithmetic", "listops"])
def test_the_work_of_all_levels_is_in_proportion_to_the_tokens(task):
    algebra = ef.load(f"{task}/7520").algebra
    model = ef.construct(algebra)
    expression = Expression(algebra, make_ids(algebra, "balanced", 4000, np.random.default_rng(0)))
    of_task = Kinds(model.weights, torch.float32)
    ids, lengths = map(torch.from_numpy, flat_positions([expression]))
    state = packed.pack(ids, lengths, of_task)
    left = [len(state.symbols)]
    packed.run(state, of_task, lambda state: left.append(len(state.symbols)))
    assert len(left) == expression.depth + 1 > 9
    assert sum(left) < 3 * len(expression)
    assert left[-1] == 1


def test_an_expression_that_has_halted_costs_nothing_any_more():
    model = ef.construct(ef.boolean())
    comb = ef.parse(model.algebra, "(~" * 30 + "1" + ")" * 30)
    others = draw(model.algebra, 1, 500, np.random.default_rng(0))
    of_boolean = Kinds(model.weights, torch.float32)
    ids, lengths = map(torch.from_numpy, flat_positions([comb, *others]))
    seen: list[int] = []
    packed.run(
        packed.pack(ids, lengths, of_boolean),
        of_boolean,
        lambda state: seen.append(len(state.sequence)),
    )
    assert seen == [501] + [1] * 29


@settings(max_examples=15)
@given(batches(), st.integers(0, 2**31))
def test_clusters_with_one_hash_are_told_apart(batch, seed):
    model, expressions = batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alike, "ODD", 0)  # so that all hashes are 0
        for weights in (model.weights, random_weights(model.weights, np.random.default_rng(seed))):
            forgetful = replace(model, weights=replace(weights))
            assert differences(forgetful, expressions, torch.float32) == []


@settings(max_examples=15)
@given(batches(), st.integers(1, 30))
def test_little_memory_and_large_counts_change_nothing(batch, most):
    model, expressions = batch
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kinds, "MOST_REMEMBERED", most)
        patch.setattr(packed, "MOST_INT32", 0)
        forgetful = replace(model, weights=replace(model.weights))
        for _ in range(2):
            assert differences(forgetful, expressions, torch.float32) == []


def test_what_is_known_is_not_computed_again(monkeypatch):
    model = ef.construct(ef.arithmetic())
    expressions = draw(model.algebra, 4, 50, np.random.default_rng(0))
    expected = model.predict(expressions)
    monkeypatch.setattr(kinds, "evaluate_clusters", None)
    assert model.predict(expressions) == expected
    with pytest.raises(TypeError):  # of another format nothing is known yet
        model.predict(expressions, torch.bfloat16)


def test_threads_do_not_disturb_each_other():
    """With weights that leave many tokens in a position, so that both number new rows."""
    model = ef.construct(ef.arithmetic())
    weights = random_weights(model.weights, np.random.default_rng(3))
    rng = np.random.default_rng(0)
    parts = [draw(model.algebra, 4, 20, rng) for _ in range(8)]
    alone = [outcomes(model.algebra, replace(weights), part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda part: outcomes(model.algebra, weights, part), parts * 4))
    assert together == alone * 4
