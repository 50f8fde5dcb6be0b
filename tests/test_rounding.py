"""The bound on rounding holds in any order of summation; weights beyond it are not exact."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from exactformer.api import Model, construct
from exactformer.certify import certify
from exactformer.domains.catalog import boolean, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth
from exactformer.domains.syntax import parse
from exactformer.model.circuit import Weights
from exactformer.model.construct import assemble, closed_form, dense
from exactformer.model.feedforward import MLP
from exactformer.verify import _perceptron
from tests.brute_force import (
    NOT,
    ONE,
    TILDE,
    ZERO,
    brute_force,
    smallest_outputs,
    truth_of,
)


def not_perceptron(W_1, b_1, W_2, b_2, activation) -> Weights:
    return assemble(NOT, MLP(W_1, b_1, W_2, b_2, activation))


def test_within_rounding_of_the_threshold_is_undecided(short_search):
    algebra = boolean()
    model = construct(algebra, "fitted")
    findings = model.certify().findings
    assert isinstance(model.weights.f, MLP)
    margins = smallest_outputs(algebra, model.weights)
    output = int(margins[:, 1].argmin())  # raise the output that is nearest below the threshold
    verdicts = []
    for part in (0.5, 2.0):  # of the rounding bound
        b_2 = model.weights.f.b_2.clone()
        b_2[output] += margins[output, 1] - part * float(findings.rounding_bound)
        near = replace(model.weights, f=replace(model.weights.f, b_2=b_2))
        certificate = certify(algebra, near)
        assert not brute_force([near], truth_of(algebra, None, 4))[0]
        assert not certificate.findings.wrong_rows
        verdicts.append(certificate.verdict)
    assert verdicts == ["undecided", "exact"]


def test_an_output_of_exactly_zero_is_not_exact(short_search):
    """Zero is not above the threshold, so it may be right; but any rounding may change it."""
    f = closed_form(NOT)
    certificate = certify(NOT, assemble(NOT, replace(f, b_2=torch.zeros_like(f.b_2))))
    assert certificate.findings.smallest_margin == 0
    assert certificate.verdict == "undecided"


def test_squares_that_underflow_are_not_exact():
    """Right in exact arithmetic; but the square of 2^-88 is zero in float32."""
    W_1, W_2 = torch.zeros(5, 2), torch.zeros(2, 5)
    W_1[ONE, 0] = W_1[ZERO, 1] = 2.0**-88
    W_2[0, ZERO] = W_2[1, ONE] = 2.0**120
    b_2 = torch.full((5,), -(2.0**-60))
    certificate = certify(NOT, not_perceptron(W_1, torch.zeros(2), W_2, b_2, "square"))
    assert not certificate.findings.wrong_rows
    assert certificate.verdict == "inexact"


@pytest.mark.parametrize("activation", ["relu", "square"])
def test_sums_that_overflow_are_not_exact(activation):
    """Right in exact arithmetic, by a wide margin; but the hidden sums are infinite in float32, and
    the output is the difference of two infinities. Hidden units 0 and 2, 1 and 3 are alike.
    """
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
    certificate = certify(NOT, weights)
    assert not certificate.findings.wrong_rows
    assert Model(NOT, weights).predict([parse(NOT, "(~1)")]) == [None]
    assert certificate.verdict == "inexact"


def test_outputs_that_overflow_are_not_exact():
    W_1, W_2 = torch.zeros(5, 2), torch.zeros(2, 5)
    W_1[ONE, 0] = W_1[ZERO, 1] = 4
    W_2[0, ZERO] = W_2[1, ONE] = 3e38
    b_2 = torch.full((5,), -3e38)
    findings = certify(NOT, not_perceptron(W_1, torch.zeros(2), W_2, b_2, "relu")).findings
    assert not findings.wrong_rows
    assert not findings.exact


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


def in_float32(H: np.ndarray, arrays: dict[str, np.ndarray], activation: str, order: str):
    """Outputs in float32: by torch with the units in some order, or one addition at a time."""
    rng = np.random.default_rng(0)
    m, D = arrays["W_2"].shape
    units, inputs = rng.permutation(m), rng.permutation(D)
    W_1, b_1 = arrays["W_1"][inputs][:, units], arrays["b_1"][units]
    W_2, b_2 = arrays["W_2"][units], arrays["b_2"]
    H = H[:, inputs].astype(np.float32)
    if order == "torch":
        f = MLP(*map(torch.from_numpy, (W_1, b_1, W_2, b_2)), activation)  # pyright: ignore
        return f(torch.from_numpy(H)).double().numpy()

    def one_by_one(A: np.ndarray, B: np.ndarray, bias: np.ndarray) -> np.ndarray:
        total = np.broadcast_to(bias, (len(A), B.shape[1])).astype(np.float32)
        for i in range(len(B)):
            total = total + A[:, i : i + 1] * B[i]
        return total

    hidden = one_by_one(H, W_1, b_1)
    hidden = hidden * hidden if activation == "square" else np.maximum(hidden, 0)
    return one_by_one(hidden, W_2, b_2).astype(np.float64)


@given(perceptrons())
def test_the_rounding_bound_holds_in_any_order(perceptron):
    arrays, activation, H = perceptron
    outputs, scale, bound = _perceptron(H, arrays, activation)
    for order in ("torch", "one by one"):
        found = in_float32(H, arrays, activation, order)
        for exact, computed in zip(outputs.flat, found.flat, strict=True):
            assert abs(Fraction(computed) - Fraction(int(exact), scale)) <= bound


def test_the_rounding_bound_is_not_far_from_what_happens():
    """Ten thousand equal numbers added one by one: a bound ten times smaller would be wrong."""
    m = 10_000
    arrays = {
        "W_1": np.full((1, m), 1 / 3, dtype=np.float32),
        "b_1": np.zeros(m, dtype=np.float32),
        "W_2": np.ones((m, 1), dtype=np.float32),
        "b_2": np.full(1, 1e-3, dtype=np.float32),
    }
    H = np.ones((1, 1), dtype=int)
    outputs, scale, bound = _perceptron(H, arrays, "relu")
    lost = abs(
        Fraction(float(in_float32(H, arrays, "relu", "one by one")[0, 0]))
        - Fraction(int(outputs[0, 0]), scale)
    )
    assert bound / 10 < lost <= bound


def test_the_feedforward_stays_in_float32_under_autocast():
    """ListOps' closed form has whole numbers that bfloat16 cannot hold."""
    model = construct(listops())
    expressions = [e for i, e in enumerate(enumerate_depth(listops(), 1)) if i % 7 == 0]
    expected = [evaluate(expression) for expression in expressions]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model.predict(expressions) == expected


def test_weights_that_a_device_may_take_for_zero_are_not_exact(short_search):
    """Right in exact arithmetic, but none of it is left where denormal numbers are flushed."""
    f = closed_form(boolean())
    scaled = MLP(f.W_1 * 2.0**100, f.b_1 * 2.0**100, f.W_2 * 2.0**-127, f.b_2 * 2.0**-27, "relu")
    certificate = certify(boolean(), assemble(boolean(), scaled))
    assert not certificate.findings.wrong_rows
    assert certificate.verdict == "undecided"
