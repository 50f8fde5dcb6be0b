"""The bound on rounding holds in any order of summation; weights beyond it are not exact."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from exactformer.api import Model, construct
from exactformer.certify import certify
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import boolean
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth
from exactformer.model.circuit import Weights
from exactformer.model.construct import assemble, closed_form, dense
from exactformer.model.feedforward import MLP
from exactformer.verify import rounding
from tests.brute_force import (
    NOT,
    ONE,
    TILDE,
    ZERO,
    brute_force,
    truth_of,
)


def not_perceptron(W_1, b_1, W_2, b_2, activation) -> Weights:
    return assemble(NOT, MLP(W_1, b_1, W_2, b_2, activation))


def with_constants(f: MLP, output: int, terms: list[tuple[float, float]]) -> MLP:
    """With the products of these pairs of numbers added to one output, whatever the input."""
    hidden, added = (
        torch.tensor(column, dtype=torch.float32) for column in zip(*terms, strict=True)
    )
    W_2 = torch.zeros(len(terms), f.W_2.shape[1])
    W_2[:, output] = added
    W_1 = torch.cat([f.W_1, torch.zeros(len(f.W_1), len(terms))], 1)
    return MLP(W_1, torch.cat([f.b_1, hidden]), torch.cat([f.W_2, W_2]), f.b_2, f.activation)


def test_within_rounding_of_the_threshold_is_undecided(short_search):
    """An output of -1/2 is raised to almost zero, by a sum of products of 48 bits that cancel."""
    a, c = 1 - 3 / 2**24, 1 - 5 / 2**24  # of 24 bits each; their product has 48
    rounded = float(np.float32(a * c))
    terms = [(a, c), (1.0, -rounded), (1.0, rounded - a * c), (2.0**-60, 2.0**-60), (1.0, 0.5)]
    verdicts = []
    bound = 2.0**-3
    for part in (1.0, 0.5, 2.0):  # of the rounding bound, once that is known
        f = with_constants(closed_form(NOT), ZERO, [*terms, (1.0, -part * bound)])
        near = assemble(NOT, f)
        certificate = certify(NOT, near)
        assert not brute_force([near], truth_of(NOT, None, 4))[0]
        assert not certificate.findings.wrong_rows
        assert certificate.findings.smallest_margin < 1.01 * part * bound
        verdicts.append(certificate.verdict)
        bound = float(certificate.findings.rounding_bound)
    assert verdicts[1:] == ["undecided", "exact"]


def test_an_output_of_exactly_zero_is_not_exact(short_search):
    """Zero is not above the threshold, so it may be right; but any rounding may change it."""
    f = closed_form(NOT)
    certificate = certify(NOT, assemble(NOT, replace(f, b_2=torch.zeros_like(f.b_2))))
    assert certificate.findings.smallest_margin == 0
    assert certificate.verdict == "undecided"


def all_right(weights: Weights) -> bool:
    expressions = [e for depth in range(5) for e in enumerate_depth(NOT, depth)]
    return Model(NOT, weights).predict(expressions) == [evaluate(e) for e in expressions]


def test_squares_that_float32_would_lose_are_exact():
    """The square of 2^-88 is zero in float32."""
    W_1, W_2 = torch.zeros(5, 2), torch.zeros(2, 5)
    W_1[ONE, 0] = W_1[ZERO, 1] = 2.0**-88
    W_2[0, ZERO] = W_2[1, ONE] = 2.0**120
    b_2 = torch.full((5,), -(2.0**-60))
    weights = not_perceptron(W_1, torch.zeros(2), W_2, b_2, "square")
    assert certify(NOT, weights).verdict == "exact"
    assert all_right(weights)


@pytest.mark.parametrize("activation", ["relu", "square"])
def test_sums_that_float32_cannot_hold_are_exact(activation):
    """The hidden sums are infinite in float32. Hidden units 0 and 2, 1 and 3 are alike."""
    big, small = (3e38, 2.0**-120) if activation == "relu" else (3e19, 2.0**-121)
    W_1, W_2 = torch.zeros(5, 4), torch.zeros(4, 5)
    W_1[TILDE] = big
    W_1[ONE] = torch.tensor([big, -big, big, -big])
    W_1[ZERO] = -W_1[ONE]
    W_2[:, ZERO] = torch.tensor([small, 0, -small / 4, 0])
    W_2[:, ONE] = torch.tensor([0, small, 0, -small / 4])
    threshold = 4.5 if activation == "relu" else 12
    unit = big * small if activation == "relu" else big * (big * small) / 3
    b_2 = torch.full((5,), -unit * threshold / 3)
    weights = not_perceptron(W_1, torch.full((4,), big), W_2, b_2, activation)
    assert certify(NOT, weights).verdict == "exact"
    assert all_right(weights)


def test_the_largest_float32_numbers_stay_far_from_overflow():
    """What the bound on rounding takes for granted."""
    largest = torch.finfo(torch.float32).max
    f = MLP(
        torch.full((5, 1000), largest),
        torch.full((1000,), largest),
        torch.full((1000, 5), largest),
        torch.full((5,), largest),
        "square",
    )
    Z = f(torch.full((1, 5), 256.0))
    assert torch.isfinite(Z).all()
    assert (Z < 2.0**500).all()


def test_a_sum_of_the_smallest_weights_is_not_lost():
    tiny = torch.finfo(torch.float32).tiny
    f = MLP(
        torch.full((5, 1), tiny),
        torch.full((1,), -tiny * (1 - 2.0**-23) * 2),  # leaves a last bit of 2^-148
        torch.full((1, 5), tiny),
        torch.zeros(5),
        "square",
    )
    H = torch.tensor([[1.0, 1, 0, 0, 0]])
    assert (f(H) > 0).all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_only_float32_is_certified(dtype):
    """The bound is float32's; in another precision the model itself would compute otherwise."""
    f = closed_form(NOT)
    other = MLP(f.W_1.to(dtype), f.b_1.to(dtype), f.W_2.to(dtype), f.b_2.to(dtype), f.activation)
    with pytest.raises(ValueError, match="expected float32"):
        certify(NOT, assemble(NOT, other))


@pytest.mark.parametrize("name", ["G_PE", "W_Q", "W_K"])
def test_soft_gates_and_routing_are_not_certified(name):
    """Rounding 0.4 to 0 would certify other weights than the ones that run."""
    weights = construct(NOT).weights
    with pytest.raises(ValueError, match="whole numbers"):
        certify(NOT, replace(weights, **{name: getattr(weights, name) + 0.4}))


@pytest.mark.parametrize(
    ("scale", "exact"), [(1.0, True), (0.9, True), (0.6, False), (0.0, False), (70_000.0, False)]
)
def test_dense_vectors_must_read_back_in_every_format(scale, exact, short_search):
    weights = dense(construct(NOT).weights, torch.Generator().manual_seed(0))
    assert weights.E is not None
    certificate = certify(NOT, replace(weights, E=scale * weights.E))
    assert (certificate.verdict == "exact") is exact


def test_dense_vectors_that_are_alike_are_not_exact(short_search):
    weights = dense(construct(NOT).weights, torch.Generator().manual_seed(0))
    assert weights.E is not None
    E = weights.E.clone()
    E[ONE] = 0.8 * E[ONE] + 0.6 * E[ZERO]
    assert certify(NOT, replace(weights, E=E)).verdict == "inexact"


@st.composite
def perceptrons(draw_from) -> tuple[dict[str, np.ndarray], str, np.ndarray]:
    """Random perceptrons, from coarse grids to numbers of all sizes, and bags to put in."""
    rng = np.random.default_rng(draw_from(st.integers(0, 2**32 - 1)))
    D, m = draw_from(st.integers(1, 16)), draw_from(st.integers(1, 200))
    spread = draw_from(st.sampled_from([0, 0, 3, 12]))
    sign = draw_from(st.sampled_from([None, 1]))  # numbers of one sign lose most

    def numbers(*shape: int) -> np.ndarray:
        values = rng.standard_normal(shape) * 2.0 ** rng.uniform(-spread, spread, shape)
        if draw_from(st.booleans()):
            values = np.round(values * 8) / 8
        return (abs(values) if sign else values).astype(np.float32)

    arrays = {"W_1": numbers(D, m), "b_1": numbers(m), "W_2": numbers(m, D), "b_2": numbers(D)}
    H = rng.integers(0, draw_from(st.sampled_from([2, 4, 256])), size=(20, D))
    return arrays, draw_from(st.sampled_from(["relu", "square"])), H


def in_float64(H: np.ndarray, arrays: dict[str, np.ndarray], activation: str, order: str):
    """Outputs in float64: as the model computes them, or one addition at a time."""
    if order == "model":
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        f = MLP(**tensors, activation=activation)  # pyright: ignore[reportArgumentType]
        return f._rows(torch.from_numpy(H).float()).numpy()
    rng = np.random.default_rng(0)
    W_1, b_1, W_2, b_2 = (arrays[name].astype(np.float64) for name in ("W_1", "b_1", "W_2", "b_2"))

    def one_by_one(A: np.ndarray, B: np.ndarray, bias: np.ndarray) -> np.ndarray:
        total = np.broadcast_to(bias, (len(A), B.shape[1]))
        for i in rng.permutation(len(B)):
            total = total + A[:, i : i + 1] * B[i]
        return total

    hidden = one_by_one(H.astype(np.float64), W_1, b_1)
    hidden = hidden * hidden if activation == "square" else np.maximum(hidden, 0)
    return one_by_one(hidden, W_2, b_2)


def exact_outputs(H: np.ndarray, arrays: dict[str, np.ndarray], activation: str) -> np.ndarray:
    """In Python's fractions, without any scaling."""
    H, W_1, b_1, W_2, b_2 = (
        np.array([Fraction(float(x)) for x in array.flat], dtype=object).reshape(array.shape)
        for array in (H, *(arrays[name] for name in ("W_1", "b_1", "W_2", "b_2")))
    )
    hidden = H @ W_1 + b_1
    hidden = hidden**2 if activation == "square" else np.maximum(hidden, 0)
    return hidden @ W_2 + b_2


@settings(max_examples=25)
@given(perceptrons())
def test_the_rounding_bound_holds_in_any_order(numbers):
    arrays, activation, H = numbers
    (found,) = rounding.perceptrons(H, [tuple(arrays.values())], activation)
    exact = exact_outputs(H, arrays, activation)
    assert (found.positive == (exact > 0)).all()
    assert found.smallest == abs(exact).min()
    for order in ("model", "one by one"):
        computed = in_float64(H, arrays, activation, order)
        lost = [abs(Fraction(float(c)) - e) for c, e in zip(computed.flat, exact.flat, strict=True)]
        assert max(lost) <= found.error


def test_the_rounding_bound_is_not_far_from_what_happens():
    """Ten thousand equal numbers added one by one: a bound 100 times smaller would be wrong."""
    m = 10_000
    arrays = {
        "W_1": np.full((1, m), 1 / 3, dtype=np.float32),
        "b_1": np.zeros(m, dtype=np.float32),
        "W_2": np.full((m, 1), 1 / 7, dtype=np.float32),
        "b_2": np.full(1, 1e-3, dtype=np.float32),
    }
    H = np.ones((1, 1), dtype=int)
    bound = rounding.perceptrons(H, [tuple(arrays.values())], "square")[0].error
    computed = Fraction(float(in_float64(H, arrays, "square", "one by one")[0, 0]))
    lost = abs(computed - exact_outputs(H, arrays, "square")[0, 0])
    assert bound / 100 < lost <= bound


def test_weights_that_a_device_may_take_for_zero_are_not_exact(short_search):
    """Right in exact arithmetic, but none of it is left where subnormal numbers are flushed."""
    f = closed_form(boolean())
    scaled = MLP(f.W_1 * 2.0**100, f.b_1 * 2.0**100, f.W_2 * 2.0**-127, f.b_2 * 2.0**-27, "relu")
    certificate = certify(boolean(), assemble(boolean(), scaled))
    assert not certificate.findings.wrong_rows
    assert certificate.verdict == "undecided"


def test_routing_may_hold_any_small_whole_numbers():
    """W_Q doubled and W_1 halved: the same function."""
    weights = construct(boolean(), "fitted").weights
    assert isinstance(weights.f, MLP)
    same = replace(weights, W_Q=2 * weights.W_Q, f=replace(weights.f, W_1=weights.f.W_1 / 2))
    assert certify(boolean(), same).verdict == "exact"
    assert not brute_force([same], truth_of(boolean(), None, 4))[0]


def test_routed_sums_that_a_format_cannot_hold_are_not_exact(short_search):
    weights = construct(boolean(), "fitted").weights
    assert isinstance(weights.f, MLP)
    f = replace(weights.f, W_1=weights.f.W_1 / 256)
    large = replace(weights, W_Q=64 * weights.W_Q, W_K=4 * weights.W_K, f=f)
    findings = certify(boolean(), large).findings
    assert findings.failed == ["routed sums are whole numbers that every format holds"]


def test_dense_vectors_of_many_tokens_are_exact():
    count = 130
    values = tuple(f"v{i}" for i in range(count))
    step = Operator("S", (1,), {(i,): (i + 1) % count for i in range(count)}, True)
    algebra = Algebra("successor", values, (step,), "prefix")
    model = construct(algebra, "table", dense=True)
    assert model.certify().verdict == "exact"
    expressions = list(enumerate_depth(algebra, 1))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert model.predict(expressions, dtype) == [evaluate(e) for e in expressions]


def test_whole_numbers_longer_than_a_machine_word_do_not_wrap():
    """Weights of 2^-70 beside none: a scale that 64 bits cannot hold, and a right model."""
    W_1, W_2 = torch.zeros(5, 3), torch.zeros(3, 5)
    W_1[ONE, 0] = W_1[ZERO, 1] = 2.0**-70
    W_2[0, ZERO] = W_2[1, ONE] = 1
    W_2[2] = -1
    b_1 = torch.tensor([0, 0, 2.0**-71])
    weights = not_perceptron(W_1, b_1, W_2, torch.zeros(5), "relu")
    certificate = certify(NOT, weights)
    assert certificate.verdict == "exact"
    assert certificate.findings.smallest_margin == Fraction(1, 2**71)
    assert all_right(weights)
