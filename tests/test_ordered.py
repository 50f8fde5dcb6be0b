"""Operators that heed the order of their operands: ranks, slots, proofs, and what is shown."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.api import Model
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_depth
from exactformer.domains.syntax import parse
from exactformer.domains.units import slots_of
from exactformer.model.architecture import paper_architecture
from exactformer.model.circuit import Weights, iterate, ranks, steps, typed_attention
from exactformer.model.construct import rank_gate, routing
from exactformer.model.encode import encode, initial_state
from exactformer.model.feedforward import MLP
from exactformer.verify import verify
from tests.algebras import ENDS, MINUS, MODULO_7, S3
from tests.trees import symbols, trees

D8 = ef.listops(3, "mean", ("MAX", "MIN", "FIRST", "LAST"))  # as in Nangia and Bowman's test_d8
ORDERED = [MINUS, ENDS, MODULO_7, S3, D8]
MODELS = {algebra: ef.construct(algebra) for algebra in ORDERED}


@pytest.fixture(params=ORDERED, ids=lambda algebra: algebra.name)
def ordered(request) -> Algebra:
    return request.param


@st.composite
def expressions(draw_from) -> Expression:
    algebra = draw_from(st.sampled_from(ORDERED))
    tree = draw_from(trees(algebra).filter(lambda tree: not isinstance(tree, str)))
    return parse(algebra, " ".join(symbols(algebra, tree)))


@given(expressions())
def test_the_rank_of_an_operand_is_its_place_among_its_siblings(expression):
    """Against a plain scan of what each state says, in every iteration."""
    algebra = expression.algebra
    weights = MODELS[algebra].weights
    X, inside = initial_state([expression], weights)
    for step in steps(X, weights, inside):
        held = [int(row.argmax()) if row.any() else EMPTY for row in X[0]]
        assert step.R is not None
        rank = 0
        for place, token in enumerate(held):
            if not step.P[0, place]:
                continue
            if place == 0 or not step.P[0, place - 1]:
                rank = 0
            rank += token in algebra.value_ids
            assert step.R[0, place] == rank
        X = step.X


@given(expressions())
def test_the_operator_receives_each_operand_in_its_own_slot(expression):
    algebra = expression.algebra
    weights = MODELS[algebra].weights
    D, S = len(algebra.vocabulary), slots_of(algebra)
    X, inside = initial_state([expression], weights)
    for step in steps(X, weights, inside):
        expected = torch.zeros(X.shape[1], S, D)
        for number in range(1, int(step.ids.max()) + 1):
            span = (step.ids[0] == number).nonzero().flatten().tolist()
            held = [(place, int(X[0, place].argmax())) for place in span if X[0, place].any()]
            (at,) = [place for place, token in held if token >= algebra.first_operator]
            operands = [token for _, token in held if token in algebra.value_ids]
            expected[at, 0, int(X[0, at].argmax())] = 1
            for slot, token in enumerate(operands):
                expected[at, slot, token] = 1
        assert torch.equal(step.H[0], expected.flatten(1))
        X = step.X


@given(expressions(), st.integers(0, 2**31))
def test_any_gate_gives_the_dense_formula_slot_by_slot(expression, seed):
    algebra = expression.algebra
    generator = torch.Generator().manual_seed(seed)
    X = encode(torch.from_numpy(expression.positions.copy()), len(algebra.vocabulary))
    D, S = X.shape[-1], 3
    W_Q, W_K = torch.randint(0, 2, (2, D, 2), generator=generator).float()
    G_R = torch.randint(-1, 2, (D,), generator=generator).float()
    P = torch.rand(len(X), generator=generator) < 0.7
    ids = P * (P & ~torch.cat([torch.tensor([False]), P[:-1]])).cumsum(0)
    expected = torch.zeros(len(X), S, D)
    for number in range(1, int(ids.max()) + 1):
        places = (ids == number).nonzero().flatten().tolist()
        rank, slot = 0, {}
        for place in places:
            rank += int(X[place] @ G_R)
            slot[place] = min(max(rank - 1, 0), S - 1)
        for i, j in product(places, repeat=2):
            expected[i, slot[j]] += (X[i] @ W_Q) @ (X[j] @ W_K) * X[j]
    R = ranks(X, ids, G_R)
    assert torch.equal(typed_attention(X, ids, W_Q, W_K, R, S), expected.flatten(1))


@pytest.mark.parametrize("kind", ["closed", "table"])
def test_constructed_models_are_exact_and_their_proofs_hold(ordered, kind, tmp_path):
    model = ef.construct(ordered, kind)
    assert model.weights.f.slots == slots_of(ordered)
    certificate = model.certify()
    assert certificate.verdict == "exact", str(certificate)
    model.save(tmp_path / "weights")
    certificate.save(tmp_path / "proof")
    assert verify(tmp_path / "proof", tmp_path / "weights") == certificate.findings
    again = ef.load(tmp_path / "weights")
    assert again.weights.G_R is not None
    tuples = sum(len(ordered.values) ** k for op in ordered.operators for k in op.arities)
    assert certificate.findings.rows > 3 * tuples


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dense", [False, True], ids=["one-hot", "dense"])
def test_every_depth_and_format(ordered, dtype, dense):
    model = ef.construct(ordered, dense=dense)
    rng = np.random.default_rng(1)
    batch = [*enumerate_depth(ordered, 0), *draw(ordered, 1, 50, rng)]
    batch += [e for depth in range(2, 9) for e in draw(ordered, depth, 10, rng)]
    assert model.predict(batch, dtype) == [evaluate(e) for e in batch]


def test_order_matters_to_it():
    model = MODELS[MODULO_7]
    assert [model(text) for text in ("(5-3)", "(3-5)", "(5+3)", "(3+5)")] == ["2", "5", "1", "1"]
    assert model("((6-(2-5))*(1-(3-4)))") == "4"
    assert MODELS[D8]("[ LAST [ FIRST 3 9 ] [ MAX 1 [ LAST 2 8 4 ] 0 ] ]") == "4"


def test_a_span_reduced_earlier_keeps_its_place():
    """Its value stands at its operator: in prefix notation left of its operands, never too far."""
    model = MODELS[D8]
    assert model("[ FIRST [ LAST 1 2 ] 3 ]") == "2"
    assert model("[ LAST 3 [ FIRST 1 2 ] ]") == "1"
    assert model("[ FIRST 5 [ LAST 1 2 ] 3 ]") == "5"
    assert model("[ LAST [ FIRST 5 [ LAST 1 2 ] ] [ LAST [ FIRST 8 9 ] 7 6 ] ]") == "6"


def test_the_trace_shows_ranks_and_slots():
    trace = MODELS[MINUS].trace("((5-3)-(-2))")
    assert trace.value == "4"
    first, second = trace.steps
    assert first.ranks == [0, 0, 1, 1, 2, 2, 0, 0, 0, 1, 1, 0]
    assert first.slots[3] == [{"5": 1, "-": 1}, {"3": 1}]
    assert first.routed[3] == {"3": 1, "5": 1, "-": 1}
    assert second.slots[6] == [{"2": 1, "-": 1}, {"5": 1}]
    text = str(trace)
    assert "  rank      · 0 1 1 2 2 · 0 0 1 1 ·\n" in text
    assert (
        "- at 3 receives operand 5 and operator - in slot 1, operand 3 in slot 2, and becomes 2"
        in text
    )
    assert trace.to_dict()["steps"][0]["ranks"] == first.ranks
    free = ef.construct(ef.boolean()).trace("(1&0)")
    assert free.steps[0].ranks is None
    assert "rank" not in str(free)


def test_sizes_are_the_papers_with_a_gate_more_and_slots():
    assert [
        paper_architecture(a).parameters for a in (ef.boolean(), ef.arithmetic(), ef.listops())
    ] == [
        280,
        924,
        4416,
    ]
    shape = paper_architecture(MODULO_7)
    D, d_h, m = 2 + 7 + 3, 4, 2 * 12
    assert (shape.D, shape.d_h, shape.hidden, shape.slots) == (D, d_h, m, 2)
    assert shape.parameters == 2 * D + 2 * D * d_h + (2 * D * m + m + m * D + D)


def test_an_order_free_algebra_has_no_rank_gate(task):
    weights = ef.construct(task).weights
    assert weights.G_R is None
    assert weights.f.slots == 1
    X, inside = initial_state(draw(task, 2, 3, np.random.default_rng(0)), weights)
    assert iterate(X, weights, inside).R is None


def test_slots_and_rank_gate_come_together():
    right = MODELS[MINUS].weights
    with pytest.raises(ValueError, match="a feedforward of 2 slots does not go with no rank gate"):
        Weights(right.G_PE, right.W_Q, right.W_K, right.f)
    free = ef.construct(ef.boolean()).weights
    with pytest.raises(ValueError, match="a feedforward of 1 slot does not go with a rank gate"):
        Weights(free.G_PE, free.W_Q, free.W_K, free.f, G_R=torch.zeros(7))


def test_without_ranks_an_ordered_operator_is_never_exact():
    """The paper's own model: whatever its feedforward, 5-3 and 3-5 look alike."""
    D = len(S3.vocabulary)
    f = MLP(torch.zeros(D, 1), torch.zeros(1), torch.zeros(1, D), torch.zeros(D), "relu")
    W_Q, W_K = routing(S3)
    model = Model(S3, Weights(MODELS[S3].weights.G_PE, W_Q, W_K, f))
    certificate = model.certify()
    assert certificate.verdict == "inexact"
    assert not certificate.findings.conditions["no operator depends on the order of its operands"]


def test_another_gate_that_tells_slots_apart_is_exact_too():
    """In infix notation `(` and the operator may be counted instead of the operands."""
    right = MODELS[S3].weights
    G_R = torch.zeros(len(S3.vocabulary))
    G_R[0] = G_R[S3.first_operator] = 1
    moved = right.f
    assert isinstance(moved, MLP)
    # The operator now is of rank 2: its weight moves to the second slot.
    W_1 = moved.W_1.clone().unflatten(0, (2, -1))
    W_1[1, S3.first_operator] = W_1[0, S3.first_operator]
    W_1[0, S3.first_operator] = 0
    f = MLP(W_1.flatten(0, 1), moved.b_1, moved.W_2, moved.b_2, "relu")
    model = Model(S3, Weights(right.G_PE, right.W_Q, right.W_K, f, G_R=G_R))
    assert model.certify().verdict == "exact"
    rng = np.random.default_rng(0)
    batch = [e for depth in range(1, 8) for e in draw(S3, depth, 20, rng)]
    assert model.predict(batch) == [evaluate(e) for e in batch]
    wrong = Model(S3, Weights(right.G_PE, right.W_Q, right.W_K, right.f, G_R=G_R))
    assert wrong.certify().verdict == "inexact"


def test_only_unary_operators_need_no_slots():
    negative = Algebra("neg", tuple("012"), (Operator.named("-", "difference", [1], 3),), "infix")
    model = ef.construct(negative)
    assert model.weights.G_R is None
    assert model("(-(-(-2)))") == "1"
    assert torch.equal(rank_gate(negative), torch.tensor([0.0, 0, 1, 1, 1, 0]))
