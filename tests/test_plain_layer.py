"""The layer for plain notation: on every short text, in batches, on long runs and chains."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.api import Model
from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.sampling import enumerate_length
from exactformer.model import circuit
from exactformer.model.construct import declared
from exactformer.model.encode import encode, initial_state, read_values
from exactformer.model.precedence import steps
from tests.plain_algebras import ALGEBRAS, MODULO7, derivations, random_algebras, value
from tests.test_strahler import counted, nested

MODELS = {algebra.name: ef.construct(algebra) for algebra in ALGEBRAS}
LEARNED = {
    "boolean/7520": ef.load("boolean/7520", ef.boolean_plain()),
    "arithmetic/7520": ef.load("arithmetic/7520", ef.arithmetic_plain()),
}
DENSE = {
    f"{algebra.name} dense": ef.construct(algebra, dense=True)
    for algebra in (ef.boolean_plain(), MODULO7)
}
EVERY = MODELS | LEARNED | DENSE


def outcome(
    model: Model, expressions: list[Expression], dtype: torch.dtype = torch.float32
) -> tuple[list[str], list[int]]:
    """The values that the layer finds and the iterations it takes."""
    X, _ = initial_state(expressions, model.weights, dtype)
    X, iterations = circuit.finish(X, steps(X, model.weights, len(model.algebra.values)))
    values = read_values(X, model.weights, model.algebra).tolist()
    return [model.algebra.values[v] if v >= 0 else "none" for v in values], iterations.tolist()


def truth(expressions: list[Expression]) -> tuple[list[str], list[int]]:
    return [ef.oracle(e) for e in expressions], [ef.strahler(e) for e in expressions]


def drawn(algebra: Algebra, depths: range, count: int) -> list[Expression]:
    rng = np.random.default_rng(len(depths))
    return [e for depth in depths for e in ef.draw(algebra, depth, count, rng)]


@settings(max_examples=40)
@given(random_algebras())
def test_every_short_text_of_a_random_grammar(algebra):
    """Value and iterations by the productions of the grammar and by counted parentheses."""
    short = derivations(algebra, 6)
    expressions = [ef.parse(algebra, " ".join(words)) for words in short]
    expected = [algebra.values[value(algebra, tree)] for tree in short.values()]
    numbers = [nested(counted(algebra, words)) for words in short]
    assert outcome(ef.construct(algebra), expressions) == (expected, numbers)


@pytest.mark.parametrize(
    ("name", "longest"), [("boolean-plain", 5), ("arithmetic-plain", 3), ("powers", 4)]
)
def test_every_short_text(name, longest):
    model = MODELS[name]
    for length in range(1, longest + 1):
        if expressions := list(enumerate_length(model.algebra, length)):
            assert outcome(model, expressions) == truth(expressions)


@pytest.mark.parametrize("model", EVERY.values(), ids=EVERY)
def test_random_texts_with_and_without_parentheses(model):
    rng = np.random.default_rng(0)
    for parentheses in (0.0, 0.2, 1.0):
        texts = [
            e
            for depth in range(1, 7)
            for e in ef.draw(model.algebra, depth, 10, rng, parentheses=parentheses)
        ]
        assert outcome(model, texts) == truth(texts)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_each_iteration_leaves_a_text_of_the_same_value_and_one_less_number(model):
    algebra, expressions = model.algebra, drawn(model.algebra, range(6), 5)
    X, _ = initial_state(expressions, model.weights)
    values, numbers = truth(expressions)
    for step in steps(X, model.weights, len(algebra.values)):
        numbers = [max(0, number - 1) for number in numbers]
        assert (step.X.sum(-1) <= 1).all()
        left = [[algebra.vocabulary[int(row.argmax())] for row in x if row.any()] for x in step.X]
        assert truth([ef.parse(algebra, " ".join(words)) for words in left]) == (values, numbers)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_narrow_formats(dtype):
    for model in EVERY.values():
        expressions = drawn(model.algebra, range(5), 5)
        assert outcome(model, expressions, dtype) == truth(expressions)


@pytest.mark.parametrize(
    ("name", "begin", "middle", "end", "iterations"),
    [
        ("boolean-plain", "~", "1", "", 1),
        ("boolean-plain", "", "1", "|0", 1),
        ("arithmetic-plain", "3*(", "7", ")+2", 1),
        ("arithmetic-plain", "1+2*", "7", "", 2),  # many products in one run of sums
        ("arithmetic-plain", "(", "7", ")", 1),
        ("modulo7-plain", "-", "3", "-5", 1),
        ("powers", "2**-", "3", "", 1),
    ],
)
def test_long_runs_and_chains(name, begin, middle, end, iterations):
    model = MODELS[name]
    for count in (2, 3, 1_000, 4_097):
        expression = ef.parse(model.algebra, begin * count + middle + end * count)
        assert outcome(model, [expression]) == ([ef.oracle(expression)], [iterations])


def test_beside_python():
    """Where the grammars agree; a long run of minuses is one of ours, too."""
    rng, model = np.random.default_rng(3), MODELS["modulo7-plain"]
    expressions = [e for d in range(1, 8) for e in ef.draw(MODULO7, d, 20, rng)]
    assert outcome(model, expressions)[0] == [str(eval(str(e)) % 7) for e in expressions]


def test_empty_positions_make_no_difference():
    model, rng = MODELS["boolean-plain"], np.random.default_rng(0)
    expressions = drawn(model.algebra, range(5), 5)
    rows = np.full((len(expressions), 200), EMPTY)
    for row, expression in zip(rows, expressions, strict=True):
        row[np.sort(rng.choice(200, len(expression), replace=False))] = expression.ids
    X = encode(torch.from_numpy(rows), 7)
    X, iterations = circuit.finish(X, steps(X, model.weights, 2))
    values = [model.algebra.values[v] for v in read_values(X, model.weights, model.algebra)]
    assert (values, iterations.tolist()) == truth(expressions)


ids = st.lists(st.integers(EMPTY, len(ef.boolean_plain().vocabulary) - 1), min_size=9, max_size=9)


@given(st.lists(ids, min_size=1, max_size=3))
def test_a_state_that_no_expression_leads_to_harms_no_other(damaged):
    """The run ends; what is left of the others is their value, and texts have theirs."""
    model = MODELS["boolean-plain"]
    well = ef.parse(model.algebra, "1&0|~0&~0")
    rows = torch.tensor([well.ids.tolist(), *damaged])
    X = encode(rows, 7)
    X, iterations = circuit.finish(X, steps(X, model.weights, 2))
    values = read_values(X, model.weights, model.algebra).tolist()
    assert model.algebra.values[values[0]] == "1"
    assert iterations[0] == 2
    for row, left in zip(damaged, values[1:], strict=True):
        words = [model.algebra.vocabulary[i] for i in row if i != EMPTY]
        try:
            expected = ef.oracle(ef.parse(model.algebra, " ".join(words)))
        except ef.ExpressionError:
            assert left < 0
        else:
            assert model.algebra.values[left] == expected


def test_sequences_of_one_batch_halt_one_by_one():
    model = MODELS["boolean-plain"]
    texts = ["1", "~~1", "1&0|1&1", "(1&0|1&1)&(0&1|1&0)"]
    X, _ = initial_state([ef.parse(model.algebra, text) for text in texts], model.weights)
    masks = [step.P.any(-1).tolist() for step in steps(X, model.weights, 2)]
    assert masks == [
        [False, True, True, True],
        [False, False, True, True],
        [False, False, False, True],
    ]


def test_more_values_than_are_tried_at_once(monkeypatch):
    monkeypatch.setattr("exactformer.model.speculate.ENTRIES_AT_ONCE", 40)
    expressions = drawn(ef.arithmetic_plain(), range(6), 10)
    assert outcome(MODELS["arithmetic-plain"], expressions) == truth(expressions)


def test_everything_is_made_on_the_device_of_the_state():
    """Were anything made where new tensors are by default, it could not meet what is elsewhere."""
    model, problems = MODELS["modulo7-plain"], drawn(MODULO7, range(5), 5)
    X, _ = initial_state(problems, model.weights)
    torch.set_default_device("meta")
    try:
        X, iterations = circuit.finish(X, steps(X, model.weights, len(model.algebra.values)))
    finally:
        torch.set_default_device(None)
    assert iterations.tolist() == [ef.strahler(e) for e in problems]


def test_a_gate_of_the_depth_that_counts_anything_else_leaves_the_text():
    weights = MODELS["boolean-plain"].weights
    for token, count in ((0, 2), (1, 0), (2, 1), (5, -1)):
        G_PE = weights.G_PE.clone()
        G_PE[token] = count
        broken = Model(ef.boolean_plain(), replace(weights, G_PE=G_PE))
        assert broken.predict([ef.parse(broken.algebra, "~1|1&1")]) == [None]


def test_a_looser_prefix_operator_goes_along_with_a_tighter_one_before_it():
    """The gate has `~` below `&`: wrong by itself, but not where it stands behind `&`."""
    model = MODELS["boolean-plain"]
    G_L = torch.tensor(model.algebra.declared_levels)
    G_L[0, model.algebra.token_ids["~"]] = 1
    loose = Model(model.algebra, replace(model.weights, G_L=G_L))
    texts = ["1&~0&1", "1&~0&0", "0|1&~0&1", "~0&0"]
    assert [loose.predict([ef.parse(loose.algebra, t)])[0] for t in texts] == ["1", "0", "1", "1"]


def test_weights_of_the_papers_kind_serve_with_the_declared_levels():
    model = ef.load("arithmetic/7520")
    plain = declared(ef.arithmetic_plain(), model.weights)
    expressions = list(islice(enumerate_length(ef.arithmetic_plain(), 5), 3_000))[::7]
    assert Model(ef.arithmetic_plain(), plain).predict(expressions) == truth(expressions)[0]
    assert circuit.Weights(*[getattr(plain, f) for f in ("G_PE", "W_Q", "W_K", "f")]).G_L is None


def test_neither_levels_without_directions_nor_directions_without_levels():
    weights = MODELS["powers"].weights
    for change in ({"G_L": None}, {"directions": None}):
        with pytest.raises(ValueError, match="levels with directions, or neither"):
            replace(weights, **change)
