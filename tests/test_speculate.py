"""The logarithmic layer: on every small tree, in batches, on chains, beside the paper's layer."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.api import Model
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, Algebra, Operator
from exactformer.domains.expression import EMPTY
from exactformer.model import circuit
from exactformer.model.encode import encode, initial_state, read_values
from exactformer.model.speculate import count_holes, enter, reduce, span_values, steps
from tests.algebras import ALGEBRAS
from tests.trees import symbols, trees

WIDE = ef.listops(max_fan_in=None)
MODELS = {algebra.name: ef.construct(algebra) for algebra in (*ALGEBRAS, WIDE)}
DENSE = {name: ef.construct(MODELS[name].algebra, dense=True) for name in ("boolean", "minus")}


def at_the_end(algebra: Algebra) -> Model:
    """A model that is as exact and leaves the value of a span where its `)` was."""
    model = ef.construct(algebra, "table")
    D, first = len(algebra.vocabulary), algebra.first_operator
    W_Q, W_K = torch.zeros(2, D, 2)
    W_Q[CLOSE], W_K[FIRST_VALUE:first, 0], W_K[first:, 1] = 1, 1, 1
    return Model(algebra, replace(model.weights, W_Q=W_Q, W_K=W_K))


AT_THE_END = at_the_end(ef.listops())


@st.composite
def batches(draw_from) -> tuple[Model, list[ef.Expression]]:
    model = draw_from(st.sampled_from([*MODELS.values(), *DENSE.values(), AT_THE_END]))
    drawn = draw_from(st.lists(trees(model.algebra, 12), min_size=1, max_size=5))
    texts = [" ".join(symbols(model.algebra, tree)) for tree in drawn]
    return model, [ef.parse(model.algebra, text) for text in texts]


def outcome(
    model: Model, expressions: list[ef.Expression], dtype: torch.dtype = torch.float32
) -> tuple[list[str], list[int]]:
    """The values that the layer finds and the iterations it takes."""
    X, _ = initial_state(expressions, model.weights, dtype)
    X, iterations = circuit.finish(X, steps(X, model.weights, len(model.algebra.values)))
    values = read_values(X, model.weights, model.algebra).tolist()
    return [model.algebra.values[v] if v >= 0 else "none" for v in values], iterations.tolist()


def truth(expressions: list[ef.Expression]) -> tuple[list[str], list[int]]:
    return [ef.oracle(e) for e in expressions], [ef.strahler(e) for e in expressions]


@given(batches())
def test_the_value_in_as_many_iterations_as_the_strahler_number(batch):
    model, expressions = batch
    assert outcome(model, expressions) == truth(expressions)


@given(batches())
def test_each_iteration_leaves_an_expression_of_the_same_value_and_one_less_number(batch):
    model, expressions = batch
    algebra = model.algebra
    X, _ = initial_state(expressions, model.weights)
    values, numbers = truth(expressions)
    for step in steps(X, model.weights, len(algebra.values)):
        numbers = [max(0, number - 1) for number in numbers]
        rows = circuit.read_tokens(step.X, model.weights)
        assert (rows.sum(-1) <= 1).all()
        left = [[algebra.vocabulary[int(row.argmax())] for row in x if row.any()] for x in rows]
        assert truth([ef.parse(algebra, " ".join(words)) for words in left]) == (values, numbers)


@given(batches())
def test_the_papers_layer_is_the_case_of_the_deepest_spans(batch):
    """Taken for the outermost ones, they are reduced to the paper's next state, bit by bit."""
    model, expressions = batch
    X, inside = initial_state(expressions, model.weights)
    for step in circuit.steps(X, model.weights, inside):
        entries = enter(circuit.read_tokens(X, model.weights), step.A)
        deepest = torch.zeros_like(count_holes(entries), dtype=torch.bool)
        deepest[entries.ids[step.P.flatten()[entries.position] & ~entries.hole] - 1] = True
        assert not count_holes(entries)[deepest].any()
        positions, inner = step.P.flatten().nonzero().squeeze(-1), torch.zeros_like(deepest).long()
        after = reduce(X, positions, entries.of(deepest), inner, model.weights)
        assert torch.equal(after, step.X)
        X = step.X


def random_algebra(notation: str, arities: tuple[int, ...], rng: np.random.Generator) -> Algebra:
    """Three values, and an operator with random results for every tuple of operands."""
    keys = [key for arity in arities for key in product(range(3), repeat=arity)]
    table = {key: int(rng.integers(3)) for key in keys}
    operator = Operator("#", arities, table, ordered=True)
    return Algebra("random", ("a", "b", "c"), (operator,), notation)  # pyright: ignore[reportArgumentType]


@cache
def shapes(arities: tuple[int, ...], nodes: int) -> list[tuple]:
    """Every tree of so many nodes; a leaf is the empty tuple."""
    if nodes == 1:
        return [()]
    return [tree for arity in arities for tree in forests(arities, arity, nodes - 1)]


@cache
def forests(arities: tuple[int, ...], trees: int, nodes: int) -> list[tuple]:
    if trees == 0:
        return [()] if nodes == 0 else []
    return [
        (first, *others)
        for size in range(1, nodes - trees + 2)
        for first in shapes(arities, size)
        for others in forests(arities, trees - 1, nodes - size)
    ]


@pytest.mark.parametrize(
    ("notation", "arities", "nodes"), [("infix", (1, 2), 12), ("prefix", (1, 2, 3, 4), 9)]
)
def test_every_small_tree_with_random_tables(notation, arities, nodes):
    """Leaves are drawn; the tables depend on the order of operands."""
    rng = np.random.default_rng(nodes)
    every = [shape for size in range(1, nodes + 1) for shape in shapes(arities, size)]
    for _ in range(2):
        model = ef.construct(random_algebra(notation, arities, rng))
        assert model.weights.G_R is not None

        def named(shape: tuple, algebra: Algebra = model.algebra):
            return ("#", *map(named, shape)) if shape else str(rng.choice(algebra.values))

        texts = [" ".join(symbols(model.algebra, named(shape))) for shape in every]
        expressions = [ef.parse(model.algebra, text) for text in texts]
        assert outcome(model, expressions) == truth(expressions)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", ["boolean", "arithmetic", "listops", "minus", WIDE.name])
def test_narrow_formats(name, dtype):
    model, rng = MODELS[name], np.random.default_rng(0)
    problems = [e for depth in range(6) for e in ef.draw(model.algebra, depth, 10, rng)]
    assert outcome(model, problems, dtype) == truth(problems)


@pytest.mark.parametrize(
    ("name", "begin", "middle", "end"),
    [
        ("boolean", "(~", "(1&0)", ")"),
        ("arithmetic", "(", "7", "+3)"),
        ("arithmetic", "(9*", "(4+4)", ")"),
        ("listops", "( SM 3 ", "4", " 9 )"),
        ("minus", "(3-", "5", ")"),
        ("ends", "( FIRST 1 ", "2", " 0 )"),
    ],
)
def test_a_chain_takes_one_iteration_however_deep(name, begin, middle, end):
    model = MODELS[name]
    for depth in (1, 2, 3, 1_000, 4_097):
        chain = ef.parse(model.algebra, begin * depth + middle + end * depth)
        assert outcome(model, [chain]) == ([ef.oracle(chain)], [1])


def test_a_span_of_many_operands():
    """Two of them spans, of which one is a chain: the span waits, then has none left."""
    text = f"( SM {'7 ' * 5_000} ( MAX 1 ( MIN 2 8 ) ) {'3 ' * 5_000} ( MED 4 5 6 ) )"
    expression = ef.parse(WIDE, text)
    assert outcome(MODELS[WIDE.name], [expression]) == ([ef.oracle(expression)], [2])


def test_more_values_than_are_tried_at_once(monkeypatch):
    monkeypatch.setattr("exactformer.model.speculate.ENTRIES_AT_ONCE", 40)
    problems = ef.draw(ef.arithmetic(), 6, 20, np.random.default_rng(0))
    assert outcome(MODELS["arithmetic"], problems) == truth(problems)


ids = st.lists(st.integers(EMPTY, len(ef.boolean().vocabulary) - 1), min_size=11, max_size=11)


@settings(max_examples=100)
@given(st.lists(ids, min_size=1, max_size=3))
def test_a_state_that_no_expression_leads_to_harms_no_other(damaged):
    """The run ends; what is left of the others is their value."""
    model = MODELS["boolean"]
    well = ef.parse(model.algebra, "((1&0)|(~0))")
    rows = torch.tensor([[*row, EMPTY] for row in damaged] + [well.ids.tolist()])
    X = encode(rows.roll(1, 0), 7)
    X, iterations = circuit.finish(X, steps(X, model.weights, 2))
    assert model.algebra.values[int(read_values(X, model.weights, model.algebra)[0])] == "1"
    assert iterations[0] == 2


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("(1)", "(1)"),
        ("()", "()"),
        ("(1&0&1)", "(1&0&1)"),
        ("((1&0)(0|1))", "(01)"),
        ("(~((1&)))", "(~((1&)))"),
        ("(&(~0))", "(&1)"),  # a map without a value does not take its inner one along
    ],
)
def test_a_span_without_a_value_stays(text, left):
    model = ef.construct(ef.boolean(), "table")  # which has nothing for what is no case
    X = encode(torch.tensor([[model.algebra.token_ids[c] for c in text]]), 7)
    X, _ = circuit.finish(X, steps(X, model.weights, 2))
    assert "".join(model.algebra.vocabulary[i] for _, i in X[0].nonzero().tolist()) == left


def test_a_span_has_a_value_if_that_is_all_it_becomes():
    """Spans of two positions each: a value, an operator, two values, two tokens, nothing."""
    outputs = [[3], [], [5], [], [2], [2], [2, 3], [], [], []]
    Z = torch.tensor([[[0.5 if i in row else -0.5 for i in range(7)] for row in outputs]])
    ids = torch.arange(1, 6).repeat_interleave(2)
    assert span_values(Z, ids, 5, V=2).tolist() == [[1], [2], [2], [2], [2]]


def test_sequences_of_one_batch_halt_one_by_one():
    model = MODELS["boolean"]
    texts = ["1", "(~(~1))", "((1&0)|(~0))", "(~((1&0)|(~0)))"]
    expressions = [ef.parse(model.algebra, text) for text in texts]
    X, _ = initial_state(expressions, model.weights)
    masks = [step.P.any(-1).tolist() for step in steps(X, model.weights, 2)]
    assert masks == [[False, True, True, True], [False, False, True, True]]


def test_everything_is_made_on_the_device_of_the_state():
    """Were anything made where new tensors are by default, it could not meet what is elsewhere."""
    problems = [e for d in range(5) for e in ef.draw(ef.listops(), d, 5, np.random.default_rng(d))]
    model = ef.load("listops/7520")
    X, _ = initial_state(problems, model.weights)
    torch.set_default_device("meta")
    try:
        X, iterations = circuit.finish(X, steps(X, model.weights, len(model.algebra.values)))
    finally:
        torch.set_default_device(None)
    assert iterations.tolist() == [ef.strahler(e) for e in problems]
