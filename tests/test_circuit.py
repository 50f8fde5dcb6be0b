"""The paper's lemmas and theorems, each on random expressions, against plain scans of the text."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exactformer.api import construct
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.catalog import boolean, listops
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.model.circuit import (
    Weights,
    clusters,
    depth_counts,
    gated_residual,
    halted,
    iterate,
    reduction_mask,
    run,
    typed_attention,
)
from exactformer.model.construct import bags, gate, routing
from exactformer.model.encode import encode, initial_state, read_values
from exactformer.model.feedforward import MLP
from exactformer.model.predict import predict
from tests.algebras import ALGEBRAS, TASKS
from tests.cases import CASES
from tests.trees import symbols, trees

ORDER_FREE = [algebra for algebra in ALGEBRAS if not algebra.ordered]
BY_NAME = {algebra.name: algebra for algebra in TASKS}
MODELS = {algebra: construct(algebra, "table") for algebra in ORDER_FREE}


@st.composite
def expressions(draw_from, algebra: Algebra | None = None) -> Expression:
    algebra = algebra or draw_from(st.sampled_from(ORDER_FREE))
    tree = draw_from(trees(algebra))
    return parse(algebra, " ".join(symbols(algebra, tree)))


@st.composite
def states(draw_from) -> tuple[Algebra, torch.Tensor]:
    """A state on the way: of a random expression after some of its iterations."""
    expression = draw_from(expressions().filter(lambda e: e.depth > 0))
    algebra = expression.algebra
    X = encode(torch.from_numpy(expression.positions.copy()), len(algebra.vocabulary))
    for _ in range(draw_from(st.integers(0, expression.depth - 1))):
        X = iterate(X, MODELS[algebra].weights, everywhere(X)).X
    return algebra, X


def tokens(X: torch.Tensor) -> list[int]:
    """The token id of each row, EMPTY for a zero row; a state must have nothing else."""
    assert ((X == 0) | (X == 1)).all()
    assert (X.sum(-1) <= 1).all()
    return [int(row.argmax()) if row.any() else EMPTY for row in X]


def deepest_spans(ids: list[int]) -> list[tuple[int, int]]:
    """First and last place of each deepest span, found with a stack."""
    spans: list[tuple[int, int, int]] = []
    open_places: list[int] = []
    for place, token in enumerate(ids):
        if token == OPEN:
            open_places.append(place)
        elif token == CLOSE:
            spans.append((len(open_places), open_places.pop(), place))
    deepest = max(depth for depth, _, _ in spans)
    return [(first, last) for depth, first, last in spans if depth == deepest]


def span_ids(ids: list[int]) -> torch.Tensor:
    """What Lemma 2 promises: the deepest spans numbered from 1, in order, zero elsewhere."""
    expected = torch.zeros(len(ids), dtype=torch.int64)
    for number, (first, last) in enumerate(deepest_spans(ids), start=1):
        expected[first : last + 1] = number
    return expected


def everywhere(X: torch.Tensor) -> torch.Tensor:
    return torch.ones(X.shape[:-1], dtype=torch.bool)


def bag(algebra: Algebra, ids: list[int]) -> torch.Tensor:
    """How many of each value and operator."""
    counts = torch.zeros(len(algebra.vocabulary))
    for token in ids:
        if token >= FIRST_VALUE:
            counts[token] += 1
    return counts


@given(states())
def test_lemma_1_the_mask_is_the_deepest_spans(state):
    algebra, X = state
    A = depth_counts(X, gate(algebra))
    assert torch.equal(reduction_mask(A, everywhere(X)), span_ids(tokens(X)) > 0)


@given(states())
def test_depth_counts_are_sums_over_the_text(state):
    algebra, X = state
    moves = [{OPEN: 1, CLOSE: -1}.get(token, 0) for token in tokens(X)]
    forwards = [sum(moves[: i + 1]) for i in range(len(moves))]
    backwards = [-sum(moves[i:]) for i in range(len(moves))]
    assert depth_counts(X, gate(algebra)).tolist() == [
        list(pair) for pair in zip(forwards, backwards, strict=True)
    ]


@given(states())
def test_lemma_2_the_clusters_are_the_deepest_spans(state):
    algebra, X = state
    ids = clusters(reduction_mask(depth_counts(X, gate(algebra)), everywhere(X)))
    assert torch.equal(ids, span_ids(tokens(X)))


def test_without_the_empty_slot_neighbours_would_be_one_cluster():
    """Why prefix notation needs it: siblings touch."""
    expression = parse(listops(), "( MAX ( MIN 1 2 ) ( MIN 3 4 ) )")
    for slots, count in ((expression.positions, 2), (expression.ids, 1)):
        X = encode(torch.from_numpy(slots.copy()), 16)
        ids = clusters(reduction_mask(depth_counts(X, gate(listops())), everywhere(X)))
        assert ids.max() == count


@given(states())
def test_lemma_3_the_operator_receives_the_bag_and_all_others_nothing(state):
    algebra, X = state
    held = tokens(X)
    expected = torch.zeros_like(X)
    for first, last in deepest_spans(held):
        span = held[first : last + 1]
        (operator,) = [i for i, token in enumerate(span) if token >= algebra.first_operator]
        expected[first + operator] = bag(algebra, span)
    assert torch.equal(typed_attention(X, span_ids(held), *routing(algebra)), expected)


@given(states(), st.data())
def test_attention_is_the_dense_formula_in_each_cluster(state, data):
    algebra, X = state
    D, width = len(algebra.vocabulary), data.draw(st.integers(1, 5))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 2**31)))
    W_Q, W_K = torch.randint(0, 2, (2, D, width), generator=generator).float()
    if data.draw(st.booleans()):  # clusters that are no spans, and rows that are no tokens
        P = torch.randint(0, 2, (len(X),), generator=generator).bool()
        ids = clusters(P)
        X = torch.randint(0, 3, X.shape, generator=generator).float()
    else:
        ids = span_ids(tokens(X))
    expected = torch.zeros_like(X)
    for number in range(1, int(ids.max()) + 1):
        X_c = X * (ids == number).unsqueeze(-1)
        expected += (X_c @ W_Q) @ (X_c @ W_K).T @ X_c
    assert torch.equal(typed_attention(X, ids, W_Q, W_K), expected)


@pytest.mark.parametrize(
    ("algebra", "kind"),
    [(algebra, kind) for algebra in ORDER_FREE for kind in ("closed", "table")]
    + [(algebra, "fitted") for algebra in TASKS if algebra.name != "arithmetic"],
)
def test_lemma_4_the_feedforward_is_the_table(algebra, kind):
    f = construct(algebra, kind).weights.f
    rows, values = [torch.zeros(len(algebra.vocabulary))], [None]
    for o, operator in enumerate(algebra.operators):
        for key, value in operator.table.items():
            rows.append(bag(algebra, [algebra.first_operator + o, *(FIRST_VALUE + i for i in key)]))
            values.append(FIRST_VALUE + value)
    Y = f(torch.stack(rows)) > 0
    for row, value in zip(Y, values, strict=True):
        assert row.nonzero().flatten().tolist() == ([] if value is None else [value])


def test_bags_are_those_of_depth_1(task):
    """What the feedforward is built on: the operator's row of every depth-1 expression."""
    H, outputs = bags(task)
    assert len(H) == sum(len(operator.table) for operator in task.operators)
    assert len(H.unique(dim=0)) == len(H)
    assert torch.equal(outputs.sum(-1), torch.ones(len(H)))


@given(states(), st.integers(0, 2**31))
def test_outside_the_mask_nothing_changes(state, seed):
    _, X = state
    generator = torch.Generator().manual_seed(seed)
    P = torch.rand(len(X), generator=generator) < 0.5
    Y = torch.rand(X.shape, generator=generator)
    after = gated_residual(X, P, Y)
    assert torch.equal(after[~P], X[~P])
    assert torch.equal(after[P], Y[P])


def back_to_text(algebra: Algebra, X: torch.Tensor) -> Expression:
    """The tokens of a state, without its empty positions."""
    return parse(algebra, " ".join(algebra.vocabulary[i] for i in tokens(X) if i != EMPTY))


@given(expressions())
def test_theorem_1_an_iteration_keeps_the_value_and_takes_one_level(expression):
    algebra = expression.algebra
    weights = MODELS[algebra].weights
    X, inside = initial_state([expression], weights)
    value = evaluate(expression)
    for depth in range(expression.depth, 0, -1):
        assert back_to_text(algebra, X[0]).depth == depth
        assert not halted(depth_counts(X, weights.G_PE)).item()
        step = iterate(X, weights, inside)
        mask = span_ids(tokens(X[0])) > 0
        assert torch.equal(step.P[0], mask)
        assert torch.equal(step.X[0, ~mask], X[0, ~mask])
        X = step.X
        after = back_to_text(algebra, X[0])
        assert evaluate(after) == value
        assert after.depth == depth - 1
    assert halted(depth_counts(X, weights.G_PE)).item()
    assert str(back_to_text(algebra, X[0])) == value


@given(expressions())
def test_theorem_2_as_many_iterations_as_levels_and_the_right_value(expression):
    algebra = expression.algebra
    weights = MODELS[algebra].weights
    X, inside = initial_state([expression], weights)
    X, iterations = run(X, weights, inside)
    assert iterations.tolist() == [expression.depth]
    assert algebra.values[int(read_values(X, weights, algebra))] == evaluate(expression)
    assert int(X[0, expression.root].sum()) == int(X.sum()) == 1


@pytest.mark.parametrize(
    ("algebra", "kind"),
    [(algebra, kind) for algebra in TASKS for kind in ("closed", "dense")]
    + [(algebra, "fitted") for algebra in TASKS if algebra.name != "arithmetic"],
)
def test_theorem_2_for_other_feedforwards(algebra, kind):
    model = construct(algebra, dense=True) if kind == "dense" else construct(algebra, kind)
    rng = np.random.default_rng(0)
    drawn = [e for depth in range(9) for e in draw(algebra, depth, 10, rng)]
    X, inside = initial_state(drawn, model.weights)
    X, iterations = run(X, model.weights, inside)
    assert iterations.tolist() == [e.depth for e in drawn]
    values = [algebra.values[i] for i in read_values(X, model.weights, algebra).tolist()]
    assert values == [evaluate(e) for e in drawn]


@given(st.sampled_from(TASKS).flatmap(lambda a: st.lists(expressions(a), min_size=1, max_size=8)))
def test_a_batch_of_mixed_depths_is_as_one_by_one(batch):
    """Depth 0 among them: it is there already, with no iteration."""
    algebra = batch[0].algebra
    batch = [*batch, parse(algebra, algebra.values[0])]
    weights = MODELS[algebra].weights
    X, inside = initial_state(batch, weights)
    together, iterations = run(X, weights, inside)
    assert iterations.tolist() == [e.depth for e in batch]
    assert iterations[-1] == 0
    for row, expression in enumerate(batch):
        alone, _ = run(*with_weights(initial_state([expression], weights), weights))
        assert torch.equal(together[row, : alone.shape[1]], alone[0])
        assert not together[row, alone.shape[1] :].any()
    assert predict(algebra, weights, batch) == [evaluate(e) for e in batch]


def with_weights(state, weights: Weights):
    X, inside = state
    return X, weights, inside


@given(expressions())
def test_a_state_needs_no_leading_axis(expression):
    weights = MODELS[expression.algebra].weights
    X, inside = initial_state([expression], weights)
    one, iterations = run(X[0], weights, inside[0])
    assert iterations.item() == expression.depth
    assert torch.equal(one, run(X, weights, inside)[0][0])


@pytest.mark.parametrize("algebra", TASKS, ids=lambda algebra: algebra.name)
def test_seeds_are_a_leading_axis(algebra):
    """Models side by side, most of them wrong, give what each gives alone, step by step."""
    right = construct(algebra).weights
    assert isinstance(right.f, MLP)
    generator = torch.Generator().manual_seed(3)
    D, width = right.W_Q.shape
    models = [right]
    for _ in range(4):
        flip = (torch.rand(2, D, width, generator=generator) < 0.05).float()
        moved = right.G_PE.roll(int(torch.randint(0, 2, (), generator=generator)))
        models.append(
            Weights(moved, (right.W_Q - flip[0]).abs(), (right.W_K - flip[1]).abs(), right.f)
        )
    parts = {
        name: torch.stack([getattr(right.f, name)] * 5).unsqueeze(1)
        for name in ("W_1", "b_1", "W_2", "b_2")
    }
    routes = [
        torch.stack([getattr(weights, name) for weights in models]).unsqueeze(1)
        for name in ("G_PE", "W_Q", "W_K")
    ]
    gates, W_Q, W_K = routes
    stack = Weights(gates, W_Q, W_K, MLP(**parts, activation=right.f.activation))
    rng = np.random.default_rng(0)
    batch = [e for depth in range(5) for e in draw(algebra, depth, 3, rng)]
    X, inside = initial_state(batch, right)
    seeds = X.expand(5, *X.shape)
    together = iterate(seeds, stack, inside)
    last, iterations = run(seeds, stack, inside)
    for seed, weights in enumerate(models):
        alone = iterate(X, weights, inside)
        for name in ("A", "P", "ids", "H", "Y", "X"):
            assert torch.equal(getattr(together, name)[seed], getattr(alone, name)), name
        expected, count = run(X, weights, inside)
        assert torch.equal(last[seed], expected)
        assert torch.equal(iterations[seed], count)
    assert iterations[0].tolist() == [e.depth for e in batch]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dense", [False, True], ids=["one-hot", "dense"])
def test_every_format_gives_the_same_values(task, dtype, dense):
    model = construct(task, dense=dense)
    rng = np.random.default_rng(1)
    known = [parse(task, case.text) for case in CASES if case.domain == task.name]
    batch = known + [e for depth in range(1, 8) for e in draw(task, depth, 5, rng)]
    assert model.predict(batch, dtype) == [evaluate(e) for e in batch]


def test_depth_is_counted_beyond_what_float32_can_count():
    """2^24 + 3 levels open, and in the middle one more span: float32 would stop at 2^24."""
    levels = 2**24 + 3
    ids = torch.full((2 * levels,), OPEN, dtype=torch.int8)
    ids[levels:] = CLOSE
    ids[levels + 1] = OPEN  # ...((( ) ( )))...: two deepest spans, two places apart
    ids = torch.cat([ids, torch.tensor([CLOSE] * 2, dtype=torch.int8)])
    A = depth_counts(encode(ids, 3, torch.bfloat16), torch.tensor([1.0, -1.0, 0.0]))
    assert A[levels - 1].tolist() == [levels, levels - 1]
    assert A[levels].tolist() == [levels - 1, levels]
    assert A[-1].tolist() == [0, 1]
    P = reduction_mask(A, torch.ones(len(ids), dtype=torch.bool))
    assert P.nonzero().flatten().tolist() == list(range(levels - 1, levels + 3))
    assert torch.tensor(levels, dtype=torch.float32).item() != levels


@pytest.mark.parametrize("text", ["((1|0)&(~0))", "(~1)", "1"])
def test_weights_that_never_halt_are_stopped(text):
    """A gate that also counts values never sees zero."""
    weights = construct(boolean()).weights
    gates = weights.G_PE.clone()
    gates[2:4] = 1
    never = Weights(gates, weights.W_Q, weights.W_K, weights.f)
    expression = parse(boolean(), text)
    X, inside = initial_state([expression], never)
    X, iterations = run(X, never, inside)
    assert not halted(depth_counts(X, never.G_PE)).all() or text == "1"
    assert iterations.item() == int((expression.ids == OPEN).sum())


@settings(max_examples=30)
@given(expressions(boolean()), st.integers(0, 2**31))
def test_any_weights_stop(expression, seed):
    generator = torch.Generator().manual_seed(seed)
    W_1, b_1, W_2, b_2 = (
        torch.randn(shape, generator=generator) for shape in ((7, 14), (14,), (14, 7), (7,))
    )
    f = MLP(W_1, b_1, W_2, b_2, "square")
    W_Q, W_K = torch.randint(0, 2, (2, 7, 4), generator=generator).float()
    weights = Weights(torch.randint(-1, 2, (7,), generator=generator).float(), W_Q, W_K, f)
    X, inside = initial_state([expression], weights)
    X, iterations = run(X, weights, inside)
    assert iterations.item() <= int((expression.ids == OPEN).sum())
    assert predict(boolean(), weights, [expression])[0] in ("0", "1", None)
