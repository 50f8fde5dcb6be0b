"""An Algebra is total, unambiguous and cannot change; and the paper's three are the paper's."""

from dataclasses import FrozenInstanceError
from itertools import product
from typing import Any

import pytest

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import CATALOG, arithmetic, boolean, listops
from tests.algebras import ALGEBRAS, ENDS, KLEENE, MINUS, RULES

BITS = ("1", "0")
AND = Operator.from_rule("&", [2], min, BITS)


def algebra_of(*operators: Operator, values=BITS, notation: Any = "infix", spellings=()) -> Algebra:
    return Algebra("mine", values, operators, notation, dict(spellings))


def test_vocabularies_are_the_papers_in_its_order():
    assert boolean().vocabulary == tuple("()10&|~")
    assert arithmetic().vocabulary == tuple("()0123456789+*")
    assert listops().vocabulary == (*"()0123456789", "MAX", "MIN", "MED", "SM")
    assert list(CATALOG) == ["boolean", "arithmetic", "listops"]
    assert all(make().name == name for name, make in CATALOG.items())


def test_tables_have_the_papers_sizes():
    sizes = [sum(len(op.table) for op in a.operators) for a in (boolean(), arithmetic(), listops())]
    assert sizes == [8, 110, 1100]


def test_every_entry_is_what_the_rule_says(algebra):
    for operator in algebra.operators:
        rule = RULES[algebra.name][operator.symbol]
        for arity in operator.arities:
            for operands in product(range(len(algebra.values)), repeat=arity):
                expected = rule(*(algebra.values[i] for i in operands))
                assert algebra.values[operator(operands)] == expected


@pytest.mark.parametrize(
    ("digits", "lower", "mean"),
    [([2, 9], 2, 5), ([9, 2], 2, 5), ([3, 4], 3, 3), ([8, 2, 5], 5, 5), ([7, 7], 7, 7)],
)
def test_both_rules_for_the_median(digits, lower, mean):
    for median, expected in [("lower", lower), ("mean", mean)]:
        symbols = {op.symbol: op for op in listops(median=median).operators}
        assert symbols["MED"](digits) == expected


def test_median_of_four():
    for median, expected in [("lower", 2), ("mean", 5)]:
        symbols = {op.symbol: op for op in listops(max_fan_in=4, median=median).operators}
        assert symbols["MED"]([9, 0, 2, 8]) == expected


def test_variants_have_names_of_their_own():
    variants = [listops(), listops(5), listops(median="mean"), listops(5, "mean"), arithmetic(7)]
    assert len({variant.name for variant in variants}) == len(variants)
    assert listops(5).max_fan_in == 5
    assert listops(5).operators[0].arities == (2, 3, 4, 5)
    assert arithmetic(12).values[-1] == "11"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: arithmetic(1), "modulus of 2 or more, found 1"),
        (lambda: listops(1), "fan-in bound of 2 or more, found 1"),
        (lambda: listops(median="upper"), "'lower' or 'mean', found 'upper'"),  # pyright: ignore
    ],
)
def test_catalog_rejects(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (Operator("&", (2,), {(0, 0): 0, (0, 1): 1}), "operator '&': no entry for 0 0"),
        (Operator("&", (2,), {**AND.table, (1, 0): 1}), "operator '&': stray entry for 0 1"),
        (Operator("&", (2,), {**AND.table, (0, 2): 1}), "operator '&': stray entry for 1 #2"),
        (Operator("&", (2,), {**AND.table, (1, 1): 2}), "results from 0 to 1, found 2"),
        (Operator("&", (2,), {**AND.table, (1, 1): -1}), "results from 0 to 1, found -1"),
        (Operator("&", (2,), AND.table, ordered=True), "operator '&': no entry for 0 1"),
        (Operator.from_rule("&", [1, 3], min, BITS), "1 or 2 operands, found 1 or 3; use prefix"),
    ],
)
def test_operator_that_does_not_fit_its_algebra(operator, message):
    with pytest.raises(ValueError, match=message):
        algebra_of(operator)


@pytest.mark.parametrize("arities", [(), (0,), (0, 2), (-1,)])
def test_arities_are_positive(arities):
    with pytest.raises(ValueError, match="arities of 1 or more"):
        Operator("&", arities, {})


def test_rule_with_a_result_that_is_no_value():
    with pytest.raises(ValueError, match="'&' on 1, 1: expected one of 1, 0, found '11'"):
        Operator.from_rule("&", [2], lambda a, b: a + b, BITS)


def test_rule_declared_free_of_order_that_is_not():
    def first(*operands: str) -> str:
        return operands[0]

    with pytest.raises(ValueError, match="'&' is declared free of order, but its rule is not on"):
        Operator.from_rule("&", [2], first, BITS)
    assert Operator.from_rule("&", [2], first, BITS, ordered=True)([1, 0]) == 1


@pytest.mark.parametrize(
    ("symbols", "spellings", "message"),
    [
        (("1", "1"), {}, "'1' is used twice"),
        (("1", "&"), {}, "'&' is used twice"),
        (("1", "("), {}, r"'\(' is used twice"),
        (("1", "0"), {"0": "1"}, "'0' is used twice"),
        (("1", ""), {}, "'' is empty or has white space"),
        (("1", "a b"), {}, "'a b' is empty or has white space"),
        (("1", "0"), {"A\tND": "&"}, "is empty or has white space"),
        (("1", "f(x)"), {}, "contains a bracket"),
        (("1", "["), {}, "contains a bracket"),
        (("1", "0"), {"[]": "&"}, "contains a bracket"),
        (("1", "0"), {"AND": "and"}, "stands for 'and', which is not in the vocabulary"),
        (("1", "0"), {"[": "("}, "as the only other brackets, found '\\[' for '\\('"),
        (("1", "0"), {"[": ")", "]": "("}, "as the only other brackets"),
        (("1", "0"), {"{": "(", "}": ")"}, "as the only other brackets"),
        (("1", "0"), {"[": "1", "]": "0"}, "as the only other brackets"),
        (("1", "0"), {"8": "("}, "a word for each, as the only other brackets, found '8' for"),
        (("1", "0"), {"8": "(", "9": "("}, "as the only other brackets"),
        (("1", "0"), {"8": "(", "9": ")", "b": "("}, "as the only other brackets"),
        (("1", "0"), {"8": "(", "9": ")", "[": "(", "]": ")"}, "as the only other brackets"),
        (("1", "0"), {"8": "(", "->": ")"}, "as the only other brackets"),
    ],
)
def test_symbols_that_clash_or_cannot_be_read(symbols, spellings, message):
    operator = Operator("&", (2,), AND.table)
    with pytest.raises(ValueError, match=message):
        algebra_of(operator, values=symbols, spellings=spellings)


def test_an_algebra_needs_values_operators_and_a_notation():
    with pytest.raises(ValueError, match="at least one value and one operator"):
        algebra_of()
    with pytest.raises(ValueError, match="at least one value and one operator"):
        algebra_of(AND, values=())
    with pytest.raises(ValueError, match="or 'reverse-polish', found 'postfix'"):
        algebra_of(AND, notation="postfix")


def test_an_algebra_cannot_change(algebra):
    with pytest.raises(FrozenInstanceError):
        algebra.name = "other"
    with pytest.raises(FrozenInstanceError):
        algebra.operators[0].symbol = "other"
    with pytest.raises(TypeError):
        algebra.spellings["x"] = "("
    with pytest.raises(TypeError):
        algebra.operators[0].table[0, 0] = 0


def test_changing_what_it_was_made_from_changes_nothing():
    values, table, spellings = ["1", "0"], dict(AND.table), {"AND": "&"}
    mine = Algebra("mine", values, [Operator("&", [2], table)], "infix", spellings)  # pyright: ignore
    values.append("2")
    table.clear()
    spellings.clear()
    assert mine == algebra_of(AND, spellings={"AND": "&"})


def test_equal_when_equally_defined():
    rebuilt = Algebra(
        "boolean", boolean().values, boolean().operators, "infix", boolean().spellings
    )
    assert rebuilt == boolean()
    assert hash(rebuilt) == hash(boolean())
    assert listops() != listops(median="mean")
    assert len(set(ALGEBRAS)) == len(ALGEBRAS)


def test_facts_about_the_whole():
    assert [a.ordered for a in (boolean(), MINUS, ENDS, KLEENE)] == [False, True, True, False]
    assert [a.empty_after_close for a in (boolean(), listops(), ENDS)] == [False, True, True]
    assert [a.max_fan_in for a in (boolean(), listops(), ENDS)] == [2, 3, 3]
    assert boolean().token_ids["AND"] == boolean().vocabulary.index("&")
    assert listops().token_ids["["] == listops().token_ids["("]


def test_a_rule_of_many_operands_is_expanded_at_once():
    values = ("1", "0")
    every = Operator.from_rule("ALL", range(2, 13), min, values)
    assert len(every.table) == sum(arity + 1 for arity in range(2, 13))
    with pytest.raises(ValueError, match="free of order"):
        Operator.from_rule("FIRST", [12], lambda first, *rest: first, values)
