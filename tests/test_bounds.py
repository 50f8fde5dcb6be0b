"""Algebras from data that nobody trusts: every mistake names its place, and nothing large is made
before its size was counted.
"""

import copy
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.bounds import LARGEST_ARITY, MOST_VALUES
from exactformer.domains.catalog import find_algebra
from exactformer.domains.data import read_json
from exactformer.model.storage import from_file, to_file
from exactformer.weights.file import WeightFile

DATA: dict[str, Any] = {
    "name": "mine",
    "notation": "prefix",
    "values": ["0", "1"],
    "operators": [
        {"symbol": "+", "ordered": False, "rule": "sum", "arities": [2, 3]},
        {"symbol": "~", "ordered": False, "table": [["0", "1"], ["1", "0"]]},
    ],
    "spellings": {"plus": "+"},
}
RULE, TABLE = ("operators", 0), ("operators", 1)


def changed(*path: Any) -> dict[str, Any]:
    """The data with the last item at the place that those before it lead to."""
    data = copy.deepcopy(DATA)
    *places, key, value = path
    holder: Any = data
    for place in places:
        holder = holder[place]
    holder[key] = value
    return data


def test_the_data_are_right():
    assert Algebra.from_dict(DATA).to_dict() == DATA


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], "expected an object, found an empty list"),
        (changed("more", 1), "unknown field 'more'"),
        ({"name": "mine"}, "there is no 'notation'"),
        (changed("name", 5), "name: expected text, found 5"),
        (changed("name", None), "name: expected text, found null"),
        (changed("name", "evil\rboolean"), "expected a name of 1 to 64 letters"),
        (changed("name", "bо\u043elean"), "expected a name of 1 to 64 letters"),
        (changed("name", "n" * 65), "expected a name of 1 to 64 letters"),
        (
            changed("notation", ["prefix"]),
            "'infix', 'prefix', 'plain', 'polish' or 'reverse-polish', found a list",
        ),
        (changed("values", "01"), "values: expected a list with something in it, found '01'"),
        (changed("values", []), "values: expected a list with something in it, found an empty"),
        (changed("values", 1, 1), r"values\[1\]: expected text, found 1"),
        (changed("values", ["0", "1", "0"]), "'0' is used twice"),
        (changed("values", ["0", "1", "1\u200b"]), "has characters in it that cannot be seen"),
        (changed("values", ["0", "1", "\u3164"]), "has characters in it that cannot be seen"),
        (changed("values", ["0", "1", "\ud800"]), "has characters in it that cannot be seen"),
        (changed("values", ["0", "1", "\u0301"]), "begins with a mark that combines"),
        (changed("values", ["0", "1", "1" * 65]), "has 65 characters: expected 64 at most"),
        (changed("values", [str(i) for i in range(1001)]), "values: expected 1000 at most, found"),
        (changed("operators", {}), "operators: expected a list"),
        (changed("operators", 0, None), r"operators\[0\]: expected an object, found null"),
        (changed("operators", DATA["operators"] * 126), "operators: expected 250 at most, found"),
        (changed(*RULE, "symbol", 7), r"operators\[0\].symbol: expected text, found 7"),
        (changed(*RULE, "ordered", 0), r"operators\[0\].ordered: expected true or false, found 0"),
        (changed(*RULE, "ordered", True), r"ordered: the rule 'sum' is free of order"),
        (changed(*RULE, "rule", "plus"), r"operators\[0\].rule: expected 'max', 'min'"),
        (changed(*RULE, "unbounded", 1), r"operators\[0\].unbounded: expected true or false"),
        (changed(*RULE, "table", []), r"operators\[0\]: unknown field 'table'"),
        (changed(*RULE, "arities", []), r"arities: expected a list with something in it"),
        (changed(*RULE, "arities", [3, 2]), r"arities: expected ascending numbers, each once"),
        *(
            (changed(*RULE, "arities", 1, odd), r"operators\[0\].arities\[1\]: expected a whole")
            for odd in (True, 2.0, 2.5, float("nan"), float("inf"), "3", None, -1, 0, 257, 10**400)
        ),
        (changed(*TABLE, "table", []), r"operators\[1\].table: expected a list with something"),
        (changed(*TABLE, "table", 1, []), r"operators\[1\].table\[1\]: expected a list with"),
        (changed(*TABLE, "table", 1, ["1"]), r"operators\[1\].table\[1\]: expected a list with"),
        (changed(*TABLE, "table", 1, 0, "2"), r"table\[1\]\[0\]: expected one of the values"),
        (changed(*TABLE, "table", 1, 0, ["1"]), r"table\[1\]\[0\]: expected text, found a list"),
        (changed(*TABLE, "table", 1, ["0", "0"]), r"table\[1\]: these operands are there twice"),
        (changed(*TABLE, "table", [["0"] * 258]), r"table\[0\]: expected 257 at most, found 258"),
        (changed(*TABLE, "table", [["0"] * 61]), "'~': no entry for"),
        (changed(*TABLE, "arities", [1]), r"operators\[1\]: unknown field 'arities'"),
        (changed("spellings", []), "spellings: expected an object, found an empty list"),
        (changed("spellings", "plus", 1), "spellings.plus: expected text, found 1"),
    ],
)
def test_every_mistake_names_its_place(data, message):
    with pytest.raises(ValueError, match=message) as caught:
        Algebra.from_dict(data)
    assert "\n" not in str(caught.value)


DIGITS = tuple("0123456789")
BOMBS: dict[str, Callable[[], object]] = {
    "a table of sixty operands": lambda: Algebra.from_dict(
        DATA | {"values": list(DIGITS), "operators": [ROW_OF_SIXTY], "spellings": {}}
    ),
    "an arity of ten digits": lambda: Operator.named("f", "sum", [10**10], 1),
    "endless arities": lambda: Operator.named("f", "sum", range(1, 10**12), 1),
    "a table for Python": lambda: Operator.from_rule("f", [40], max, DIGITS),
    "arithmetic-mod-999": lambda: find_algebra("arithmetic-mod-999"),
    "listops-999": lambda: find_algebra("listops-999"),
    "more values than ids": lambda: Algebra(
        "m", tuple(map(str, range(40_000))), (Operator.named("f", "max", [2], 40_000),), "prefix"
    ),
    "a table of listops-20": lambda: ef.construct(ef.listops(20), "table"),
    "a closed form of listops-20": lambda: ef.construct(ef.listops(20), "closed"),
    "units of many slots": lambda: ef.construct(
        Algebra(
            "m", tuple(map(str, range(900))), (Operator.named("f", "last", [256], 900),), "prefix"
        ),
        "units",
    ),
    "training on listops-20": lambda: ef.train(ef.listops(20), seeds=[1]),
}
ROW_OF_SIXTY = {"symbol": "f", "ordered": False, "table": [["0"] * 61]}


@pytest.mark.parametrize("name", BOMBS)
def test_what_is_too_large_is_refused_before_it_is_made(name):
    _ = ef.construct, ef.train  # imports take memory, too
    tracemalloc.start()
    with pytest.raises(ValueError, match="at most, found"):
        BOMBS[name]()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50_000_000


def test_certifying_more_cases_than_can_be_listed_says_what_to_do():
    algebra = ef.listops(20)
    arrays = dict(to_file(algebra, ef.construct(algebra).weights, {}).arrays)
    units = [name for name in arrays if name.startswith("U_")]
    D = len(algebra.vocabulary)
    arrays = {name: array for name, array in arrays.items() if name not in units}
    arrays |= {"W_1": np.zeros((D, 1), np.float32), "W_2": np.zeros((1, D), np.float32)}
    arrays |= {"b_1": np.zeros(1, np.float32), "b_2": np.zeros(D, np.float32)}
    model = ef.Model(algebra, from_file(WeightFile(algebra, arrays, "relu")))
    with pytest.raises(ValueError, match=r"expected 200000 at most.*constructed/units"):
        model.certify()


def test_what_is_just_small_enough():
    values = tuple(map(str, range(MOST_VALUES)))
    wide = Operator.named("f", "max", [LARGEST_ARITY], MOST_VALUES)
    algebra = Algebra("m" * 64, values, (wide,), "prefix")
    assert Algebra.from_dict(algebra.to_dict()) == algebra
    assert ef.construct(algebra).certify().verdict == "exact"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1, "a": 2}', "the field 'a' is there twice"),
        ('{"a": NaN}', "expected numbers, found NaN"),
        ("[-Infinity]", "expected numbers, found -Infinity"),
        ("[" * 100_000, "nested too deeply"),
        (b"\xff\xfe1", "utf-8"),
    ],
)
def test_json_to_the_letter(text, message):
    with pytest.raises(ValueError, match=message):
        read_json(text)
