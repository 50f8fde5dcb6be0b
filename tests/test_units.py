"""Gated units: what a rule needs to condense any number of operands, and who is believed."""

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.api import Model, construct
from exactformer.certify import certify
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra, Operator
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.rules import RULES
from exactformer.domains.sampling import draw, enumerate_depth, enumerate_length
from exactformer.domains.syntax import parse
from exactformer.domains.units import UNITS, units_of
from exactformer.model.circuit import Weights
from exactformer.model.encode import MOST_OPERANDS
from exactformer.model.feedforward import Units
from exactformer.verify import ProofRejected, verify

ALL = ("MAX", "MIN", "MED", "SM", "PM", "FIRST", "LAST")
WIDE = [
    ef.listops(5),
    ef.listops(10, "mean"),
    ef.listops(None),
    ef.listops(None, "mean", ("MAX", "MIN", "MED", "SM", "PM", "FIRST")),
    ef.listops(10, "mean", ALL),
]


units_made = cache(lambda rule, n, slots: UNITS[rule](n, slots))


def condensed(rule: str, n: int, slots: int, operands: tuple[int, ...]) -> int:
    """The result of a rule's units for operands, step by step as the module defines it."""
    units = units_made(rule, n, slots)
    code = 0
    for unit in units.units:
        places = [(min(i, slots - 1), operand) for i, operand in enumerate(operands)]
        total = unit.bias + sum(unit.weights[slot][place] for slot, place in places)
        code += unit.code * (total % unit.period if unit.period else min(max(total, 0), unit.cap))
    return units.readout[code]


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("n", [2, 3, 4, 7, 9, 10, 12])
def test_units_are_the_rule_on_every_tuple(name, n):
    rule = RULES[name]
    n = rule.n_values or n
    checked = 0
    for arity in range(rule.fewest, (rule.most or 5) + 1, 2 if rule.odd else 1):
        if n**arity > 5_000:
            break
        for slots in (arity, 5) if rule.ordered else (1, 2, 5):
            for operands in product(range(n), repeat=arity):
                assert condensed(name, n, slots, operands) == rule.apply(n, operands)
                checked += 1
    assert checked >= n


@given(st.data())
def test_units_are_the_rule_for_many_operands(data):
    name = data.draw(st.sampled_from([name for name, rule in RULES.items() if rule.most is None]))
    rule = RULES[name]
    n = rule.n_values or data.draw(st.sampled_from([2, 3, 5, 6, 10, 12, 15]))
    operands = tuple(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=60)))
    operands = operands[: len(operands) - (rule.odd and len(operands) % 2 == 0)]
    slots = len(operands) if name == "last" else max(2, rule.fewest)
    assert condensed(name, n, slots, operands) == rule.apply(n, operands)


def test_the_number_of_units_does_not_depend_on_the_fan_in():
    for fan_in in (5, 50, None):
        algebra = ef.listops(fan_in)
        counts = [len(units_of(algebra, operator).units) for operator in algebra.operators]
        assert counts == [9, 9, 9, 1]


@pytest.mark.parametrize("algebra", WIDE, ids=lambda a: a.name)
@pytest.mark.parametrize("dense", [False, True], ids=["one-hot", "dense"])
def test_wide_listops_by_units(algebra, dense, tmp_path):
    model = construct(algebra, dense=dense)
    assert model.origin["feedforward"] == "units"
    certificate = model.certify()
    assert certificate.verdict == "exact", str(certificate)
    model.save(tmp_path / "weights")
    certificate.save(tmp_path / "proof")
    assert verify(tmp_path / "proof", tmp_path / "weights") == certificate.findings
    again = ef.load(tmp_path / "weights")
    rng = np.random.default_rng(0)
    batch = [e for depth in range(1, 7) for e in draw(algebra, depth, 20, rng)]
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        assert again.predict(batch, dtype) == [evaluate(e) for e in batch]


def test_a_table_and_units_agree_where_both_can_be_had():
    algebra = ef.listops(4, "mean", ALL)
    batch = draw(algebra, 3, 200, np.random.default_rng(0))
    by_units, by_table = (construct(algebra, kind).predict(batch) for kind in ("units", "table"))
    assert by_units == by_table == [evaluate(e) for e in batch]


def test_five_operands_by_table():
    certificate = construct(ef.listops(5), "table").certify()
    assert certificate.verdict == "exact"
    bags = [op.table for op in ef.listops(5).operators]
    assert certificate.findings.rows == 1 + sum(3 + len(set(key)) for t in bags for key in t)


def test_a_proof_about_another_algebra_of_a_built_in_name_is_rejected(tmp_path):
    right = ef.listops(10)
    swapped = tuple(
        Operator.named(op.symbol, {"max": "min"}.get(op.rule or "", op.rule or ""), op.arities, 10)
        for op in right.operators
    )
    model = construct(Algebra(right.name, right.values, swapped, "prefix", right.spellings))
    model.save(tmp_path / "weights")
    certificate = model.certify()
    assert certificate.verdict == "exact"  # of what it says it is
    certificate.save(tmp_path / "proof")
    with pytest.raises(ProofRejected, match="than the built-in 'listops-10' it names"):
        verify(tmp_path / "proof", tmp_path / "weights")


def test_routing_must_be_binary_even_if_it_adds_up(short_search):
    """Large numbers that cancel would round in a narrow format."""
    weights = construct(ef.listops(None)).weights
    W_Q, W_K = (torch.cat([W, W.new_zeros(len(W), 2)], 1) for W in (weights.W_Q, weights.W_K))
    W_Q[:, -2:], W_K[:, -2], W_K[:, -1] = 1, 100, -100
    moved = replace(weights, W_Q=W_Q, W_K=W_K)
    assert torch.equal(W_Q @ W_K.T, weights.W_Q @ weights.W_K.T)
    assert Model(ef.listops(None), moved).certify().verdict != "exact"


def flat(algebra: Algebra, symbol: str, operands: np.ndarray) -> Expression:
    """One span with as many operands as you like."""
    ids = np.array(
        [OPEN, algebra.token_ids[symbol], *(FIRST_VALUE + operands), CLOSE], dtype=np.int16
    )
    return Expression(algebra, ids)


@pytest.mark.parametrize("symbol", ["MAX", "MIN", "MED", "SM", "PM", "FIRST"])
def test_a_hundred_thousand_operands(symbol):
    algebra = WIDE[3]
    expression = flat(algebra, symbol, np.random.default_rng(0).integers(1, 10, size=100_001))
    assert construct(algebra).predict([expression]) == [evaluate(expression)]


@pytest.mark.parametrize(("dtype", "most"), [(torch.bfloat16, 2**8), (torch.float16, 2**11)])
def test_a_span_longer_than_the_format_counts_is_refused(dtype, most):
    algebra = ef.listops(None)
    model = construct(algebra)
    digits = np.random.default_rng(0).integers(10, size=most + 1)
    for symbol in ("MAX", "MED", "SM"):
        fits = flat(algebra, symbol, digits[:most])
        assert model.predict([fits], dtype) == [evaluate(fits)]
        with pytest.raises(ValueError, match=rf"has {most + 1} operands: {dtype} counts {most}"):
            model.predict([flat(algebra, symbol, digits)], dtype)
    nested = parse(algebra, f"( MAX {'( MIN 1 2 ) ' * most} ( SM 1 2 ) )")
    with pytest.raises(ValueError, match=f"has {most + 1} operands"):
        model.predict([nested], dtype)
    long = parse(algebra, f"( MAX 1 ( SM {'1 ' * (most - 1)} ( MIN 2 3 ) ) )")
    assert long.widest == most
    assert model.predict([long], dtype) == [evaluate(long)]


def test_the_bound_is_in_the_proof(tmp_path):
    model = construct(ef.listops(None))
    certificate = model.certify()
    assert certificate.findings.most_operands == {
        "float32": 2**24,
        "float16": 2**11,
        "bfloat16": 2**8,
    }
    assert "up to 16777216 in float32" in str(certificate)
    data = certificate.to_dict()
    model.save(tmp_path / "weights")
    for claim in ({"float32": 2**60}, None):
        (tmp_path / "proof").write_text(json.dumps(data | {"most_operands": claim}))
        with pytest.raises(ProofRejected, match="most_operands"):
            verify(tmp_path / "proof", tmp_path / "weights")
    assert construct(ef.listops(10)).certify().findings.most_operands is None
    refused_above = {str(dtype).removeprefix("torch."): n for dtype, n in MOST_OPERANDS.items()}
    assert refused_above == certificate.findings.most_operands


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: construct(ef.listops(None, operators=("MAX", "LAST"))), "'LAST'.*give it a bound"),
        (
            lambda: construct(ef.boolean(), "units"),
            "'&' of 'boolean' has a table and no named rule",
        ),
        (
            lambda: construct(
                Algebra(
                    "eights",
                    tuple("01234567"),
                    (Operator.named("*", "product", [2], 8, unbounded=True),),
                    "prefix",
                )
            ),
            "'\\*' of 'eights': products modulo 8 have no units.*cannot be listed",
        ),
        (
            lambda: construct(ef.listops(None), "table"),
            "'MAX'.*2 or more operands.*without a bound",
        ),
        (
            lambda: construct(ef.listops(None), "closed"),
            "'MAX' of 'listops-any'.*without a bound",
        ),
    ],
)
def test_what_cannot_be_built_names_the_operator(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_fan_in_that_weights_do_not_cover_is_refused():
    model = construct(ef.listops(5))
    with pytest.raises(ValueError, match="MAX takes 2 to 5 operands here, not more"):
        model("( MAX 1 2 3 4 5 6 )")
    with pytest.raises(ValueError, match="expected an expression of 'listops-5', found one of"):
        model(parse(ef.listops(10), "( MAX 1 2 3 4 5 6 )"))


# Mutants: on small algebras, where brute force can look at every bag up to six operands.

SMALL = [
    Algebra(
        "small",
        tuple("012"),
        tuple(
            Operator.named(rule.upper(), rule, [2], 3, unbounded=True)
            for rule in ("max", "min", "median", "median-mean", "sum", "product")
        ),
        "prefix",
    ),
    Algebra(
        "small-ordered",
        tuple("012"),
        (
            Operator.named("MINUS", "difference", [1, 2, 3], 3),
            Operator.named("LAST", "last", [2, 3], 3),
            Operator.named("IF", "implies", [2], 3),
            Operator.named("MAX", "max", [2, 3], 3),
        ),
        "prefix",
    ),
]


def mutants(weights: Weights, rng: np.random.Generator, count: int) -> list[Weights]:
    """One whole number moved in the units, the routing or a gate."""
    pool = []
    f = weights.f
    assert isinstance(f, Units)
    parts = ["W", "b", "cap", "period", "code", "readout"] * 2 + ["G_PE", "W_Q", "W_K"]
    parts += ["G_R"] if weights.G_R is not None else []
    for _ in range(count):
        name = str(rng.choice(parts))
        owner = f if hasattr(f, name) else weights
        tensor = getattr(owner, name).clone()
        place = rng.integers(tensor.numel())
        if name == "readout":
            tensor.view(-1)[place] = int(rng.integers(-1, f.D))
        elif name in ("W_Q", "W_K"):
            tensor.view(-1)[place] = 1 - tensor.view(-1)[place]
        else:
            tensor.view(-1)[place] += int(rng.choice([-2, -1, 1, 2]))
        moved = {name: tensor}
        pool.append(
            replace(weights, f=replace(f, **moved)) if owner is f else replace(weights, **moved)
        )
    return pool


@pytest.mark.parametrize("algebra", SMALL, ids=lambda a: a.name)
def test_no_mutant_is_believed_unless_nothing_changed(algebra, short_search):
    right = construct(algebra, "units").weights
    expressions = [e for length in range(1, 8) for e in enumerate_length(algebra, length)]
    rng = np.random.default_rng(2)
    if algebra.max_fan_in is None:
        for symbol in (op.symbol for op in algebra.operators):
            expressions += [flat(algebra, symbol, rng.integers(3, size=k)) for k in (7, 20, 21)]
    else:
        expressions += list(enumerate_depth(algebra, 1))
    expressions = expressions[:600] + draw(algebra, 3, 60, rng)
    values = [evaluate(e) for e in expressions]
    assert Model(algebra, right).predict(expressions) == values
    tally: Counter[tuple[str, bool]] = Counter()
    for weights in mutants(right, rng, 20):
        certificate = certify(algebra, weights)
        wrong = Model(algebra, weights).predict(expressions) != values
        tally[certificate.verdict, wrong] += 1
        assert not (wrong and certificate.verdict == "exact")
        if example := certificate.counterexample:
            found = Model(algebra, weights).predict([example.expression])[0]
            assert found == example.found != example.expected == evaluate(example.expression)
    assert tally["inexact", True] > 6, tally
