"""How levels are declared: in Python, as plain data and in a TOML file; and what is refused."""

import json
import pickle
import re

import pytest

import exactformer as ef
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import domain_sha256, find_algebra, is_built_in
from exactformer.domains.definition import DefinitionError
from exactformer.domains.precedence import Direction, Level
from tests.plain_algebras import ALGEBRAS, EXAMPLES, MODULO7

# The hashes that proofs and weights files of these have had before there was plain notation.
KNOWN = {
    "boolean": "091b90d17480609a406e06ab07b50781bce5b42aa4b573b3ff748507f531f2e5",
    "arithmetic": "0daa4dd58b9c61a85850fe3e83f7e9cdc99c07f3bfe48725ea7f968df193deb2",
    "listops": "a6c45fdefe460ded50852733c5f461336a8c66cdeff7c88f5e4c76dde82edb2a",
}


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda a: a.name)
def test_an_algebra_survives_being_written(algebra):
    data = json.loads(json.dumps(algebra.to_dict()))
    assert Algebra.from_dict(data) == algebra == pickle.loads(pickle.dumps(algebra))
    assert hash(Algebra.from_dict(data)) == hash(algebra)


def test_levels_make_a_difference():
    data = MODULO7.to_dict()
    data["precedence"][0]["direction"] = "right"
    assert Algebra.from_dict(data) != MODULO7
    assert domain_sha256(Algebra.from_dict(data)) != domain_sha256(MODULO7)


@pytest.mark.parametrize("name", KNOWN)
def test_other_algebras_are_written_as_before(name):
    assert domain_sha256(find_algebra(name)) == KNOWN[name]


def test_levels_by_token():
    assert MODULO7.vocabulary[-3:] == ("+", "-", "*")
    assert MODULO7.declared_levels[:, -3:].tolist() == [[0, 3, 0], [1, 1, 2]]
    assert MODULO7.declared_levels[:, :-3].sum() == 0
    assert MODULO7.declared_directions.tolist() == [0, -1, -1, 0]
    assert ef.boolean().declared_levels.tolist() == [[0] * 7] * 2
    assert ef.boolean().declared_directions.tolist() == [0]


def test_with_all_parentheses():
    algebra = MODULO7.parenthesized
    assert algebra.notation == "infix"
    assert not algebra.precedence
    assert (algebra.values, algebra.operators) == (MODULO7.values, MODULO7.operators)
    assert ef.boolean().parenthesized is ef.boolean()


def test_built_in():
    for name in ("boolean-plain", "arithmetic-plain"):
        assert is_built_in(find_algebra(name))
        assert find_algebra(name).vocabulary == find_algebra(name.split("-")[0]).vocabulary


PLUS = {"symbol": "+", "ordered": False, "rule": "sum", "arities": [2]}
BASE = {"name": "x", "notation": "plain", "values": ["0", "1"], "operators": [PLUS]}
LEFT = {"direction": "left", "operators": ["+"]}


@pytest.mark.parametrize(
    ("levels", "problem"),
    [
        ([], "precedence: expected a list with something in it"),
        ([{"direction": "up", "operators": ["+"]}], "precedence[0].direction: expected 'left'"),
        ([{"direction": "left", "operators": []}], "precedence[0].operators: expected a list"),
        ([{"direction": "left"}], "precedence[0]: there is no 'operators'"),
        ([LEFT, LEFT], "the operator '+' of two operands stands on level 1 and on level 2"),
        ([{"direction": "prefix", "operators": ["+"]}], "no operator '+' takes one operand"),
        ([{"direction": "left", "operators": ["-"]}], "no operator '-' takes two operands"),
        (None, "precedence: the operator '+' of two operands stands on no level"),
    ],
)
def test_data_that_is_refused(levels, problem):
    data = BASE | {"spellings": {}} | ({} if levels is None else {"precedence": levels})
    with pytest.raises(ValueError, match=re.escape(problem)):
        Algebra.from_dict(data)


def test_levels_that_are_none():
    with pytest.raises(ValueError, match="expected direction 'left', 'right' or 'prefix', found"):
        Level("up", ["+"])
    with pytest.raises(TypeError, match="expected operators such as"):
        Level("left", "+")


def test_levels_are_for_plain_notation():
    with pytest.raises(ValueError, match="infix notation has no precedence"):
        Algebra("x", ("0", "1"), ef.boolean().operators[:1], "infix", {}, [Level("left", ("&",))])
    three = ef.Operator.named("M", "max", [3], 2)
    with pytest.raises(ValueError, match="plain notation takes 1 or 2 operands, found 3"):
        Algebra("x", ("0", "1"), (three,), "plain", {}, [Level(Direction.PREFIX, ("M",))])
    with pytest.raises(ValueError, match="expected notation 'infix', 'prefix', 'plain'"):
        Algebra("x", ("0", "1"), ef.boolean().operators[:1], "postfix")


def test_a_file_with_mistakes(tmp_path):
    text = (EXAMPLES / "modulo7.toml").read_text()
    path = tmp_path / "a.toml"
    bad = text.replace('"prefix"', '"before"').replace('operators = ["*"]', "operators = 3")
    path.write_text(bad.replace('operators = ["+", "-"]', 'operators = ["+"]\nside = 1'))
    with pytest.raises(DefinitionError) as failure:
        ef.load_algebra(path)
    assert failure.value.problems == (
        "precedence, level 1: unknown key 'side'",
        'precedence, level 2: operators: expected a list such as ["+", "-"], found 3',
        'precedence, level 3: direction: expected "left", "right" or "prefix", found \'before\'',
    )
    path.write_text(text[: text.index("[[precedence]]")])
    with pytest.raises(DefinitionError, match=r"expected \[\[precedence\]\] sections, found none"):
        ef.load_algebra(path)
    for wrong in ("3", "{}", "[3]", '"left"'):
        path.write_text(f"precedence = {wrong}\n{text[: text.index('[[precedence]]')]}")
        with pytest.raises(DefinitionError, match=r"expected \[\[precedence\]\] sections, found"):
            ef.load_algebra(path)
    path.write_text(text.replace('notation = "plain"', 'notation = "infix"'))
    with pytest.raises(DefinitionError, match="infix notation has no precedence"):
        ef.load_algebra(path)
    path.write_text(text.replace('["*"]', '["+"]'))
    with pytest.raises(DefinitionError, match="'\\+' of two operands stands on level 1 and on"):
        ef.load_algebra(path)
