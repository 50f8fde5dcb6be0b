"""Algebras from TOML files: what they define, and every mistake in one of them at once."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.definition import DefinitionError, load_algebra
from exactformer.domains.rules import RULES

HEAD = 'name = "mine"\nnotation = "infix"\nvalues = ["0", "1", "2"]\n'
MINUS = '[[operators]]\nsymbol = "-"\narity = 2\nordered = true\ntable = """{}"""\n'
PLUS = '[[operators]]\nsymbol = "+"\narity = 2\nrule = "sum"\n'
ROWS = "0 -> 0 2 1\n1 -> 1 0 2\n2 -> 2 1 0"


@pytest.fixture
def load(tmp_path):
    def load(text: str) -> ef.Algebra:
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return load_algebra(path)

    return load


@pytest.fixture
def problems(load):
    def problems(text: str) -> tuple[str, ...]:
        with pytest.raises(DefinitionError, match=r"mine\.toml: [0-9]+ mistake") as caught:
            load(text)
        assert all(problem in str(caught.value) for problem in caught.value.problems)
        return caught.value.problems

    return problems


def test_a_whole_file(load):
    mine = load(HEAD + '[spellings]\n"−" = "-"\n' + MINUS.format(ROWS) + PLUS)
    difference = ef.Operator.from_rule(
        "-", [2], lambda a, b: str((int(a) - int(b)) % 3), "012", ordered=True
    )
    plus = ef.Operator.named("+", "sum", [2], 3)
    assert mine == ef.Algebra("mine", tuple("012"), (difference, plus), "infix", {"−": "-"})
    assert ef.oracle(ef.parse(mine, "((1−2)+2)")) == "1"


def test_the_file_in_the_docs(load):
    page = Path(__file__).resolve().parent.parent / "docs" / "own-algebras.md"
    (text,) = re.findall(
        r"^```toml mod3.toml\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL
    )
    mine = load(text)
    plus = ef.Operator.named("+", "sum", [2], 3)
    minus = ef.Operator.named("-", "difference", [1, 2], 3)
    assert mine == ef.Algebra(
        "mod3",
        tuple("012"),
        (plus, ef.Operator("-", (1, 2), dict(minus.table), ordered=True)),
        "infix",
        {"−": "-"},
    )


@pytest.mark.parametrize(
    ("table", "arity", "ordered"),
    [
        (ROWS, 2, True),
        ("0 0->0\n0 1 ->2\n0 2-> 1\n1 -> 1 0 2\n\n2 0 -> 2\n2 1 -> 1\n2 2 -> 0\n", 2, True),
        ("0 -> 0 0 0\n1 -> 0 1 1\n2 -> 0 1 2", 2, False),
        ("0 0 -> 0\n0 1 -> 0\n2 0 -> 0\n1 1 -> 1\n1 2 -> 1\n2 2 -> 2", 2, False),
        ("-> 0 2 1", 1, False),
        ("0 -> 0\n1 -> 2\n2 -> 1", 1, False),
        ("-> 0 2 1\n" + ROWS, [1, 2], True),
        ("0 -> 0\n1 -> 2\n2 -> 1\n" + ROWS, [2, 1], True),
    ],
)
def test_ways_to_write_a_table(load, table, arity, ordered):
    mine = load(
        HEAD
        + f'[[operators]]\nsymbol = "o"\narity = {arity}\nordered = {str(ordered).lower()}\n'
        + f'table = """{table}"""'
    )

    def rule(*operands: str) -> str:
        numbers = list(map(int, operands))
        if len(numbers) == 2 and not ordered:
            return str(min(numbers))
        return str((numbers[0] - numbers[1] if len(numbers) == 2 else -numbers[0]) % 3)

    arities = arity if isinstance(arity, list) else [arity]
    assert mine.operators == (ef.Operator.from_rule("o", arities, rule, "012", ordered=ordered),)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_by_name(load, rule):
    arity = 3 if RULES[rule].odd else RULES[rule].most or 2
    mine = load(
        'name = "mine"\nnotation = "prefix"\nvalues = ["n", "y"]\n'
        f'[[operators]]\nsymbol = "o"\narity = {arity}\nrule = "{rule}"\n'
    )
    assert mine.operators == (ef.Operator.named("o", rule, [arity], 2),)


def test_any_number_of_operands(load):
    mine = load(HEAD.replace("infix", "prefix") + PLUS.replace("arity = 2", 'arity = "2+"'))
    assert mine.operators[0].unbounded
    assert ef.oracle(ef.parse(mine, "(+" + " 2" * 100 + ")")) == "2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["name: expected", "notation: expected", "values: expected", "operators: expected"]),
        ("x = " + "[" * 5_000, ["this is not TOML: maximum recursion depth"]),
        ("name = ", ["this is not TOML: Invalid value (at end of document)"]),
        (HEAD + PLUS + 'name = "x"', ["+': unknown key 'name'"]),
        (
            HEAD + PLUS.replace("symbol", "symbl"),
            ["symbol: expected text", "'symbl'; did you mean"],
        ),
        (HEAD.replace("notation", "Notation") + PLUS, ["notation: ", "'Notation'; did you mean"]),
        (HEAD.replace('"mine"', '"my own"') + PLUS, ["name: expected 1 to 64 letters"]),
        (HEAD.replace('"mine"', '"boolean"') + PLUS, ["name: expected a name of its own"]),
        (HEAD.replace('"mine"', '"listops-10-mean"') + PLUS, ["name: expected a name of its own"]),
        (HEAD.replace('"mine"', '"Boolean"') + PLUS, ["name: expected a name of its own"]),
        (
            HEAD.replace('"mine"', '"arithmetic-mod-999"') + PLUS,
            ["name: expected a name of its own"],
        ),
        (HEAD.replace('"mine"', '"b\u043e\u043elean"') + PLUS, ["name: expected 1 to 64 letters"]),
        (HEAD.replace('"mine"', '"' + "m" * 65 + '"') + PLUS, ["name: expected 1 to 64 letters"]),
        (
            HEAD.replace('"2"', '"2\u200b"') + PLUS,
            ["of a value has characters in it that cannot be"],
        ),
        (HEAD.replace('"2"', '"\u0301"') + PLUS, ["of a value begins with a mark that combines"]),
        (
            HEAD.replace('"2"', '"' + "2" * 65 + '"') + PLUS,
            ["has 65 characters: expected 64 at most"],
        ),
        (HEAD + PLUS * 251, ["operators: expected 250 at most, found 251"]),
        (HEAD + f"x = {'1' * 5000}", ["this is not TOML: Exceeds the limit"]),
        (
            HEAD.replace('"0", "1", "2"', "0, 1") + PLUS,
            ["values: expected text in quotes, values ="],
        ),
        (HEAD.replace('"2"', '"1"') + PLUS, ["the symbol '1' is used twice, as a value"]),
        (HEAD.replace('"2"', '"+"') + PLUS, ["'+' is used twice, as a value and as an operator"]),
        (HEAD.replace('"2"', '"2 "') + PLUS, ["'2 ' of a value is empty or has white space"]),
        (HEAD.replace('"2"', '"f()"') + PLUS, ["'f()' of a value contains a bracket"]),
        (HEAD + PLUS + PLUS, ["the symbol '+' is used twice, as an operator"]),
        (HEAD + '[spellings]\n"1" = "+"\n' + PLUS, ["'1' is used twice, as a value and as a sp"]),
        (HEAD + '[spellings]\np = "plus"\n' + PLUS, ["'p' stands for 'plus', which is no"]),
        (HEAD + '[spellings]\n"[" = "("\n' + PLUS, ["the only other brackets, found '[' for '('"]),
        (HEAD + "spellings = 1\n" + PLUS, ["spellings: expected lines such as"]),
        (HEAD + "operators = 1", ["operators: expected [[operators]] sections, found 1"]),
        (HEAD + PLUS.replace('"sum"', '"summ"'), ["found 'summ'; did you mean 'sum'?"]),
        (HEAD + PLUS.replace('"sum"', "[]"), ["rule: expected one of max, min"]),
        (HEAD + PLUS.replace("arity = 2", ""), ["arity: expected a number", "found none"]),
        (HEAD + PLUS.replace("arity = 2", "arity = 0"), ["arity: expected a number", "found 0"]),
        (HEAD + PLUS.replace("arity = 2", "arity = 1000"), ["arity: expected 256 at most, found"]),
        (HEAD + PLUS.replace("arity = 2", "arity = true"), ["arity: expected a number"]),
        (HEAD + PLUS.replace("arity = 2", "arity = [2, 2]"), ["a number is there twice"]),
        (HEAD + PLUS.replace("arity = 2", "arity = 3"), ["infix notation takes 1 or 2 operands"]),
        (HEAD + PLUS.replace("arity = 2", 'arity = "2+"'), ["infix notation takes 1 or 2"]),
        (HEAD + PLUS + "ordered = true", ["the rule 'sum' does not depend on the order"]),
        (HEAD + PLUS + "ordered = 1", ["ordered: expected true or false, found 1"]),
        (HEAD + PLUS + 'table = ""', ["expected a table or a rule, found both"]),
        (HEAD + PLUS.replace('rule = "sum"', ""), ["expected a table or a rule, found neither"]),
        (HEAD + PLUS.replace('"sum"', '"majority"'), ["'majority' takes 2 values, found 3"]),
        (HEAD + MINUS.format("0 -> 0 2 1\n1 -> 1 0 2"), ["no entry for '2 0', '2 1', '2 2'"]),
        (HEAD + MINUS.format(ROWS + "\n1 2 -> 2\n"), ["two entries for '1 2'"]),
        (HEAD + MINUS.format(ROWS.replace("2", "3")), ["'3'", "no entry for"]),
        (HEAD + MINUS.format(ROWS + "\n1 1 1"), ["expected 'operands -> result' in a line"]),
        (HEAD + MINUS.format(ROWS + "\n1 1 1 -> 1"), ["found 3 and 1"]),
        (HEAD + MINUS.format(ROWS + "\n1 -> 1 1"), ["found 1 and 2"]),
        (HEAD + MINUS.format(ROWS).replace("true", "false"), ["0 1 -> 2, but 1 0 -> 1", "and 2 m"]),
        (HEAD + MINUS.format(ROWS).replace("2\nordered", "[]\nordered"), ["arity: expected"]),
        (HEAD + PLUS.replace("rule", "table"), ["expected 'operands -> result'", "no entry for"]),
        (HEAD + '[[operators]]\nsymbol = "o"\narity = 2\ntable = [1]', ["expected lines of text"]),
        (
            HEAD.replace("infix", "prefix")
            + '[[operators]]\nsymbol="o"\narity=99\nordered=true\ntable=""',
            ["too many for a table; use a rule"],
        ),
        (
            HEAD.replace("infix", "prefix") + '[[operators]]\nsymbol="o"\narity="2+"\ntable="-> 1"',
            ["a table cannot hold any number of operands"],
        ),
    ],
)
def test_every_kind_of_mistake(problems, text, expected):
    found = "\n".join(problems(text))
    for part in expected:
        assert part in found


def test_all_mistakes_of_a_file_are_told(problems):
    text = (
        'nam = "x"\nnotation = "infx"\nvalues = ["0", "1", "1"]\n'
        + PLUS.replace("sum", "maks")
        + MINUS.format("0 -> 0 2\n0 -> 0 1\n1 0 -> 1")
        + "[[operators]]\n"
    )
    found = problems(text)
    for part in (
        "unknown key 'nam'; did you mean 'name'?",
        "name: expected",
        "notation: expected",
        "operator '+': rule: expected one of",
        "operator '-': table: '0 -> 0 2': no value is written '2'",
        "operator '-': table: no entry for '1 1'",
        "operator number 3: symbol: expected",
        "operator number 3: arity: expected",
        "operator number 3: expected a table or a rule, found neither",
        "the symbol '1' is used twice",
    ):
        assert sum(part in problem for problem in found) == 1, part
    assert len(found) == 10


def test_a_file_that_is_no_text(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(bytes(range(256)))
    with pytest.raises(DefinitionError, match="this is not TOML"):
        load_algebra(path)
    with pytest.raises(FileNotFoundError):
        load_algebra(tmp_path / "missing.toml")


JSON = st.recursive(
    st.integers(-2, 12)
    | st.booleans()
    | st.sampled_from(["", "0", "1", "+", "sum", "2+", "infix"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(
    st.dictionaries(st.sampled_from(["name", "notation", "values", "spellings", "x"]), JSON),
    st.lists(
        st.dictionaries(
            st.sampled_from(["symbol", "arity", "ordered", "table", "rule", "x"]), JSON
        ),
        max_size=2,
    ),
)
def test_whatever_the_types_are_the_problems_are_told(tmp_path_factory, top, operators):
    def toml(value) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(toml, value))}]"
        return f'"{value}"' if isinstance(value, str) else str(value).lower()

    lines = [f"{key} = {toml(value)}" for key, value in top.items()]
    for operator in operators:
        lines += ["[[operators]]", *(f"{key} = {toml(value)}" for key, value in operator.items())]
    path = tmp_path_factory.getbasetemp() / "random.toml"
    path.write_text("\n".join(lines))
    try:
        algebra = load_algebra(path)
    except DefinitionError:
        return
    assert ef.draw(algebra, 2, 3, np.random.default_rng(0))
