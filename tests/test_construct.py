"""Models made without training: what they compute, how large they are, and what cannot be made."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from exactformer.api import FeedforwardKind, Model, construct
from exactformer.certify import certify
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import CATALOG, arithmetic, boolean, listops
from exactformer.domains.reference import evaluate
from exactformer.domains.rules import operand_keys
from exactformer.domains.sampling import draw, enumerate_depth
from exactformer.domains.syntax import parse
from exactformer.model.architecture import paper_architecture
from exactformer.model.construct import assemble, closed_form, gate, routing
from exactformer.model.feedforward import MLP
from exactformer.model.fit import fit
from tests.algebras import ENDS, KLEENE, LETTERS, MINUS, TASKS
from tests.cases import CASES

KINDS: list[tuple[str, FeedforwardKind, bool]] = [
    *((task.name, "closed", False) for task in TASKS),
    *((task.name, "table", False) for task in TASKS),
    *((task.name, "closed", True) for task in TASKS),
    ("arithmetic", "table", True),
    ("boolean", "fitted", False),
    ("boolean", "fitted", True),
    ("listops", "fitted", False),
]


@pytest.mark.parametrize(("domain", "kind", "dense"), KINDS)
def test_the_table_of_cases(domain, kind, dense):
    model = construct(CATALOG[domain](), kind, dense=dense)
    cases = [case for case in CASES if case.domain == domain]
    expressions = [parse(model.algebra, case.text) for case in cases]
    assert model.predict(expressions) == [case.value for case in cases]
    assert [model(case.text) for case in cases] == [case.value for case in cases]
    assert (model.weights.E is not None) == dense


@pytest.mark.parametrize(
    "algebra", [KLEENE, LETTERS, MINUS, ENDS], ids=lambda algebra: algebra.name
)
@pytest.mark.parametrize("kind", ["closed", "table"])
def test_other_algebras_work_too(algebra, kind):
    model = construct(algebra, kind)
    expressions = [e for depth in range(2) for e in enumerate_depth(algebra, depth)]
    expressions += draw(algebra, 6, 20, np.random.default_rng(0))
    assert model.predict(expressions) == [evaluate(e) for e in expressions]
    assert model.certify().verdict == "exact"


@pytest.mark.parametrize(
    ("algebra", "parameters"), [(boolean(), 280), (listops(), 4416)], ids=["boolean", "listops"]
)
def test_the_fitted_models_have_the_size_of_the_paper(algebra, parameters):
    weights = construct(algebra, "fitted").weights
    f = weights.f
    assert isinstance(f, MLP)
    tensors = [weights.G_PE, weights.W_Q, weights.W_K, f.W_1, f.b_1, f.W_2, f.b_2]
    assert sum(tensor.numel() for tensor in tensors) == parameters
    shape = paper_architecture(algebra)
    assert shape.parameters == parameters
    assert f.activation == shape.activation


def test_gate_and_routing_are_those_of_the_paper():
    """Eq. 2 and Fig. 2B, row by row in the paper's order of tokens."""
    assert boolean().vocabulary == ("(", ")", "1", "0", "&", "|", "~")
    assert gate(boolean()).tolist() == [1, -1, 0, 0, 0, 0, 0]
    W_Q, W_K = routing(boolean())
    assert W_Q.tolist() == [
        [0, 0, 0, 0],  # (
        [0, 0, 0, 0],  # )
        [0, 0, 0, 0],  # 1
        [0, 0, 0, 0],  # 0
        [1, 1, 0, 0],  # &
        [1, 0, 1, 0],  # |
        [1, 0, 0, 1],  # ~
    ]
    assert W_K.tolist() == [
        [0, 0, 0, 0],  # (
        [0, 0, 0, 0],  # )
        [1, 0, 0, 0],  # 1
        [1, 0, 0, 0],  # 0
        [0, 1, 0, 0],  # &
        [0, 0, 1, 0],  # |
        [0, 0, 0, 1],  # ~
    ]


def test_too_many_bags_for_a_closed_form_is_an_error():
    large = arithmetic(150)
    with pytest.raises(ValueError, match=r"'\*'.*too many bags.*use the table"):
        construct(large, "closed")
    model = construct(large)
    assert model.origin["feedforward"] == "table"
    assert model("((149*149)+(7*30))") == "61"


def test_no_such_feedforward():
    with pytest.raises(ValueError, match="expected feedforward closed, units, table or fitted"):
        construct(boolean(), "tabel")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="no fitted perceptron is shipped for 'arithmetic'"):
        construct(arithmetic(), "fitted")


@st.composite
def algebras(draw_from) -> Algebra:
    """Algebras with random tables, some operators free of order and some not."""
    n_values = draw_from(st.integers(2, 5))
    notation = draw_from(st.sampled_from(["infix", "prefix"]))
    widest = 2 if notation == "infix" else 3
    result = st.integers(0, n_values - 1)
    operators = []
    for symbol in "+*~"[: draw_from(st.integers(1, 3))]:
        arities = draw_from(st.sets(st.integers(1, widest), min_size=1))
        ordered = draw_from(st.booleans())
        keys = list(operand_keys(n_values, sorted(arities), ordered))
        results = draw_from(st.lists(result, min_size=len(keys), max_size=len(keys)))
        table = dict(zip(keys, results, strict=True))
        operators.append(Operator(symbol, tuple(arities), table, ordered))
    values = tuple("abcde"[:n_values])
    return Algebra("random", values, tuple(operators), notation)


@settings(max_examples=60)
@given(algebras())
def test_a_closed_form_is_exact_for_any_table(algebra):
    weights = assemble(algebra, closed_form(algebra))
    certificate = certify(algebra, weights)
    assert certificate.verdict == "exact"
    assert certificate.findings.rounding_bound == 0
    expressions = draw(algebra, 4, 10, np.random.default_rng(0))
    assert Model(algebra, weights).predict(expressions) == [evaluate(e) for e in expressions]


# Why the paper's perceptron of squares cannot do arithmetic modulo 10 behind the paper's routing


def separable(algebra: Algebra, values: str, output: str) -> bool:
    """Whether some quadratic function of the bag is above zero exactly where the value is `output`.

    That is all a hidden layer of squares can compute, at any width: a quadratic form, linear terms
    and a constant. Bags have operands from `values` only. A linear programme in the coefficients.
    """
    operands = [algebra.values.index(value) for value in values]
    width = len(operands) + len(algebra.operators)
    rows, signs = [np.zeros(width)], [-1]
    for o, operator in enumerate(algebra.operators):
        for arity in operator.arities:
            for key in combinations_with_replacement(range(len(operands)), arity):
                bag = np.zeros(width)
                np.add.at(bag, [*key, len(operands) + o], 1)
                rows.append(bag)
                value = algebra.values[operator(operands[i] for i in key)]
                signs.append(1 if value == output else -1)
    upper = np.triu_indices(width)
    features = np.array([[*np.outer(bag, bag)[upper], *bag, 1] for bag in rows])
    result = linprog(
        np.zeros(features.shape[1]),
        A_ub=-features * np.array(signs)[:, None],
        b_ub=-np.ones(len(rows)),
        bounds=(None, None),
    )
    assert result.status in (0, 2), result.message  # solved, or proved infeasible
    return result.status == 0


def test_no_quadratic_function_gives_the_zeros_of_arithmetic():
    assert not separable(arithmetic(), "258", "0")
    assert not separable(arithmetic(), "0123456789", "0")


@pytest.mark.parametrize("output", ["0", "1"])
def test_a_quadratic_function_gives_boolean_formulas(output):
    assert separable(boolean(), "01", output)


def test_the_contradiction_in_short():
    """2+8 and 5+5 are 0 where 2+5 and 5+8 are not; 2*5 and 5*8 are 0 where 2*8 and 5*5 are not.

    Sum the quadratic function over the first two less the other two: for + what is left is
    2 (M28 + M55 - M25 - M58), for * its opposite. Both would have to be above zero.
    """
    task = arithmetic()
    zero, other = ["(2+8)", "(5+5)", "(2*5)", "(5*8)"], ["(2+5)", "(5+8)", "(2*8)", "(5*5)"]
    assert all(evaluate(parse(task, text)) == "0" for text in zero)
    assert all(evaluate(parse(task, text)) != "0" for text in other)

    def bag(text: str) -> np.ndarray:
        return np.bincount([i for i in parse(task, text).ids if i > 1], minlength=14)

    rng = np.random.default_rng(0)
    for _ in range(100):
        M = rng.integers(-9, 10, size=(14, 14))
        M = M + M.T
        linear, constant = rng.integers(-9, 10, size=14), rng.integers(-9, 10)

        def quadratic(text: str, M=M, linear=linear, constant=constant) -> int:
            return int(bag(text) @ M @ bag(text) + linear @ bag(text) + constant)

        def excess(sign: str, quadratic=quadratic) -> int:
            return sum(quadratic(t) for t in zero if sign in t) - sum(
                quadratic(t) for t in other if sign in t
            )

        two, five, eight = (task.token_ids[digit] for digit in "258")
        left = M[two, eight] + M[five, five] - M[two, five] - M[five, eight]
        assert excess("+") == 2 * left
        assert excess("*") == -2 * left


def test_fitting_it_fails_and_says_so():
    with pytest.raises(ValueError, match=r"of the 111 rows of 'arithmetic' could not be fitted"):
        fit(arithmetic(), torch.Generator().manual_seed(0))


def test_fitting_boolean_works():
    f = fit(boolean(), torch.Generator().manual_seed(0))
    assert certify(boolean(), assemble(boolean(), f)).verdict == "exact"


@pytest.mark.parametrize("median", ["lower", "mean"])
def test_a_closed_form_for_four_operands(median):
    assert construct(listops(4, median)).certify().verdict == "exact"


def test_a_fitted_perceptron_is_for_its_own_algebra_only():
    other = Algebra(
        "boolean", ("1", "0"), (Operator.from_rule("&", [2], max, ("1", "0")),), "infix"
    )
    with pytest.raises(ValueError, match="another algebra"):
        construct(other, "fitted")


def test_an_expression_of_another_algebra_is_refused():
    with pytest.raises(ValueError, match="expected an expression of 'boolean', found one of"):
        construct(boolean())(parse(arithmetic(2), "(1+1)"))
