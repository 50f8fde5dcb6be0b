"""Named rules: each is what its name says, and an operator that has one costs nothing to define."""

import copy
import pickle
import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import CATALOG, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.reference import evaluate
from exactformer.domains.rules import RULES, RuleTable
from exactformer.domains.sampling import draw, enumerate_depth, enumerate_length
from exactformer.domains.span_sampling import WIDEST
from exactformer.domains.syntax import parse
from tests.algebras import ALGEBRAS

EVERY = ("MAX", "MIN", "MED", "SM", "PM", "FIRST", "LAST")
VARIANTS = [
    listops(5),
    listops(10, "mean"),
    listops(None),
    listops(None, "mean", EVERY),
    listops(3, "mean", ("MAX", "MIN", "FIRST", "LAST")),
]

# Rule, number of values, operands, result.
CASES = [
    ("max", 10, (2, 7, 7, 1), 7),
    ("min", 10, (2, 7, 7, 1), 1),
    ("median", 10, (9, 2, 8, 0), 2),
    ("median-mean", 10, (9, 2, 8, 0), 5),
    ("median", 10, (9, 2, 8), 8),
    ("majority", 2, (1, 0, 1), 1),
    ("sum", 10, (9, 9, 9), 7),
    ("product", 10, (7, 8, 9), 4),
    ("product", 10, (3,), 3),
    ("saturating-sum", 4, (1, 1), 2),
    ("saturating-sum", 4, (2, 2, 2), 3),
    ("difference", 7, (2, 5), 4),
    ("difference", 7, (2,), 5),
    ("difference", 10, (9, 1, 1), 7),
    ("first", 10, (4, 9, 1), 4),
    ("last", 10, (4, 9, 1), 1),
    ("complement", 3, (0,), 2),
    ("nand", 2, (1, 1), 0),
    ("nand", 2, (0, 1), 1),
    ("nor", 2, (0, 0), 1),
    ("nor", 3, (0, 1), 1),
    ("implies", 3, (2, 1), 1),
    ("implies", 3, (0, 0), 2),
]


@pytest.mark.parametrize(("rule", "n_values", "operands", "result"), CASES)
def test_a_rule_is_what_its_name_says(rule, n_values, operands, result):
    assert Operator.named("f", rule, [len(operands)], n_values)(operands) == result


def test_every_rule_has_a_case_and_a_sentence():
    assert {case[0] for case in CASES} == RULES.keys()
    assert all(rule.says for rule in RULES.values())


@pytest.mark.parametrize("name", RULES)
def test_order_matters_for_the_rules_that_say_so_and_no_others(name):
    rule = RULES[name]
    n_values, arity = rule.n_values or 3, max(rule.fewest, 1 if rule.most == 1 else 2 + rule.odd)
    keys = list(product(range(n_values), repeat=arity))
    differs = any(
        rule.apply(n_values, key) != rule.apply(n_values, tuple(sorted(key))) for key in keys
    )
    assert differs is rule.ordered


@pytest.mark.parametrize("arities", [(1,), (2, 3), (1, 4)])
@pytest.mark.parametrize("rule", ["max", "sum", "difference", "first"])
def test_a_table_by_rule_is_the_table_written_out(rule, arities):
    table = RuleTable(rule, 4, arities)
    assert len(table) == len(list(table)) == len(set(table))
    ordered = RULES[rule].ordered
    for arity in (1, 2, 3, 4, 5):
        for key in product(range(-1, 5), repeat=arity):
            valid = arity in arities and all(0 <= i < 4 for i in key)
            listed = valid and (ordered or list(key) == sorted(key))
            assert (key in table) is listed
            if listed:
                assert table[key] == RULES[rule].apply(4, key)


def test_wide_operators_cost_nothing_to_define():
    start = time.perf_counter()
    wide = listops.__wrapped__(40)  # past the cache
    assert len(wide.operators[0].table) > 10**9
    assert Algebra.from_dict(wide.to_dict()) == wide
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize("algebra", [*ALGEBRAS, *VARIANTS], ids=lambda a: a.name)
def test_plain_data_and_copies_are_equal(algebra):
    assert Algebra.from_dict(algebra.to_dict()) == algebra
    assert pickle.loads(pickle.dumps(algebra)) == algebra
    assert copy.deepcopy(algebra) == algebra
    assert hash(copy.copy(algebra)) == hash(algebra)


def test_the_paper_s_algebras_are_written_out_as_before():
    for make in CATALOG.values():
        assert all(
            set(op) == {"symbol", "ordered", "table"} for op in make().to_dict()["operators"]
        )


def test_variants_of_listops_have_different_names():
    assert [algebra.name for algebra in VARIANTS] == [
        "listops-5",
        "listops-10-mean",
        "listops-any",
        "listops-any-mean-max-min-med-sm-pm-first-last",
        "listops-mean-max-min-first-last",
    ]
    assert [algebra.max_fan_in for algebra in VARIANTS] == [5, 10, None, None, 3]


@given(st.lists(st.integers(0, 9), min_size=2, max_size=30), st.sampled_from(EVERY))
def test_any_number_of_operands(digits, name):
    algebra = VARIANTS[3]
    expected = {
        "MAX": max(digits),
        "MIN": min(digits),
        "MED": (sorted(digits)[(len(digits) - 1) // 2] + sorted(digits)[len(digits) // 2]) // 2,
        "SM": sum(digits) % 10,
        "PM": int(np.prod(np.array(digits, dtype=object)) % 10),
        "FIRST": digits[0],
        "LAST": digits[-1],
    }[name]
    text = f"[ {name} {' '.join(map(str, digits))} ]"
    assert evaluate(parse(algebra, text)) == str(expected)


def test_too_few_operands_are_refused_with_the_numbers_it_takes():
    with pytest.raises(ExpressionError, match="MAX takes 2 or more operands, not 1"):
        parse(listops(None), "(MAX 1)")
    with pytest.raises(ExpressionError, match="SM takes 2 to 5 operands here, not more"):
        parse(listops(5), "(SM 1 2 3 4 5 6)")


def test_sampling_an_unbounded_operator():
    algebra = listops(None)
    drawn = draw(algebra, 3, 200, np.random.default_rng(0))
    assert all(expression.depth == 3 for expression in drawn)
    assert all(parse(algebra, str(expression)) == expression for expression in drawn)
    flat = draw(algebra, 1, 2_000, np.random.default_rng(0))
    assert {len(expression) - 3 for expression in flat} == set(range(2, WIDEST + 1))


def test_all_of_a_length_but_never_all_of_a_depth():
    tiny = Algebra(
        "tiny", ("0", "1"), (Operator.named("+", "sum", [2], 2, unbounded=True),), "prefix"
    )
    texts: list[str] = []
    for length in range(1, 10):
        texts = [str(expression) for expression in enumerate_length(tiny, length)]
        assert len(texts) == len(set(texts))
        assert all(len(parse(tiny, text)) == length for text in texts)
    assert any("0 0 0 0 0 0" in text for text in texts)
    assert len(list(enumerate_depth(tiny, 0))) == 2
    with pytest.raises(ValueError, match="'\\+' takes 2 or more operands: there is no end"):
        next(enumerate_depth(tiny, 1))
    with pytest.raises(ValueError, match="has no end"):
        len(tiny.operators[0].table)
    with pytest.raises(ValueError, match="has no end"):
        list(tiny.operators[0].table)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Operator.named("f", "maximum", [2], 3), "one of the rules max, min, .* 'maximum'"),
        (lambda: Operator.named("f", "implies", [3], 3), "'f': .*'implies' takes 2 operands"),
        (lambda: Operator.named("f", "majority", [2], 2), "an odd number of operands, found 2"),
        (lambda: Operator.named("f", "majority", [3], 3), "takes 2 values, found 3"),
        (lambda: Operator.named("f", "complement", [1], 2, unbounded=True), "no unbounded number"),
        (lambda: Operator.named("f", "max", [], 2), "arities of 1 or more"),
        (lambda: listops(operators=("MAX", "AVG")), "among MAX, .*, found 'AVG'"),
        (lambda: listops(operators=("MAX", "MAX")), "'MAX' is used twice"),
        (
            lambda: Algebra("a", ("0", "1"), (Operator.named("f", "max", [2], 3),), "infix"),
            "its rule is for 3 values, found 2",
        ),
        (
            lambda: Algebra(
                "a", ("0", "1"), (Operator.named("f", "max", [2], 2, unbounded=True),), "infix"
            ),
            "infix notation takes 1 or 2 operands, found 2 or more; use prefix",
        ),
    ],
)
def test_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_rule_is_not_declared_free_of_order_by_mistake():
    data = listops(None, operators=("FIRST",)).to_dict()
    data["operators"][0]["ordered"] = False
    with pytest.raises(ValueError, match="the rule 'first' is ordered"):
        Algebra.from_dict(data)
