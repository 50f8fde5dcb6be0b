"""Hints where people stumble in Python: what was meant, and what to write instead."""

import re

import pytest

import exactformer as ef


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("ef.depth_table(model, boolean, [1], 2)", 'by name, such as {"mine": model}, found'),
        ("ef.depth_table([model], boolean, [1], 2)", "by name, such as"),
        ("ef.depth_table(model)", 'as in depth_table({"mine": model}, algebra, [3, 10], 20)'),
        (
            'ef.depth_table({"a": model})',
            'as in depth_table({"mine": model}, algebra, [3, 10], 20)',
        ),
        (
            'ef.depth_table({"a": model}, boolean)',
            "expected models by name, an algebra, depths and",
        ),
        ('ef.depth_table({"a": model}, boolean, [1])', "expected models by name, an algebra"),
        ('ef.depth_table({"a": model}, boolean, [1], "5")', "problems of each depth, found '5'"),
        ('ef.depth_table({"a": model}, boolean, ["1"], 5)', "depths, such as [3, 10], found '1'"),
        ('ef.train(boolean, ["1"])', "a list of seeds, such as [0, 1, 2] or range(3), found '1'"),
        ('ef.train(boolean, "12")', "a list of seeds, such as [0, 1, 2] or range(3), found '1'"),
        ('ef.score_circuit([], "text")', "such as ef.causal_graph(expression), found 'text'"),
        ("ef.load_algebra(3)", "the path of a .toml file, found 3"),
        ("model.save(3)", "the path of a file to write, found 3"),
        ("model.to(None)", "a device such as 'cpu' or 'cuda', found None"),
        ('ef.depth_table({"a": model}, boolean, 3, 2)', "depths, such as [3, 10], found 3"),
        ('ef.arithmetic("7")', "expected a whole number as modulus, found '7'"),
        ('ef.listops("3")', "or None as max_fan_in, found '3'"),
        ('ef.listops(3, "lower", "MAX")', "operators such as ('MAX', 'MIN'), found 'MAX'"),
        ("model.evaluate(None)", "an expression or several, such as a list of texts, found None"),
        ("ef.train(boolean, seeds=3)", "a list of seeds, such as [0, 1, 2] or range(3), found 3"),
        ("ef.protocol.train(None, boolean, seeds=3)", "or range(3), found 3"),
        ('model.run("(1&0)", patch={(1, "P"): lambda P: None})', "one that returns nothing"),
        ('model.run("(1&0)", patch=[(1, "P")])', "expected a dictionary such as {(1, 'P'): "),
        ('model.run("(1&0)", patch={(1, "P"): 1})', "expected a tensor or a function to one"),
    ],
)
def test_a_slip_of_type(mistake, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        eval(mistake, {"ef": ef, "boolean": ef.boolean(), "model": ef.construct(ef.boolean())})


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ('model.run("(1&0)", patch={(1, "p"): abs})', "found (1, 'p'); did you mean 'P'?"),
        ('model.run("(1&0)", patch={(1, "id"): abs})', "did you mean 'ids'?"),
        ('model.run("(1&0)", patch={(0, "P"): abs})', "an iteration from 1 and one of A, P, ids"),
        ('model.run("(1&0)", patch={(9, "P"): abs})', "it ended after 1 iteration"),
        ('model.evaluate("(1&0)", "fsat")', "did you mean 'fast'?"),
        ('model.trace("(1&0)", "lgo")', "did you mean 'log'?"),
        ('ef.parse(boolean, "1", "pyton")', "did you mean 'python'?"),
        ('ef.construct(boolean, "tabel")', "did you mean 'table'?"),
        ('ef.load_algebra("boolean")', "ef.boolean() is the built-in algebra"),
        ('ef.load_algebra("boolean-plain")', "ef.boolean_plain() is the built-in algebra"),
        ('ef.load_algebra("lisptops")', "expected the path of a .toml file, found 'lisptops'"),
        ('model.to("gpu")', "expected cpu or cuda, found 'gpu'; did you mean 'cuda'?"),
        ('model.to("mps")', "expected cpu or cuda, found 'mps'"),
        ('ef.listops(3, "lower", ("max",))', "did you mean 'MAX'?"),
        ('ef.train(boolean, method="stagd")', "did you mean 'staged'?"),
        ('ef.parse(boolean, "1&0")', "as in (1&0); the domain boolean-plain reads"),
        ('model("1&0")', "as in (1&0); the domain boolean-plain reads"),
        ('model.evaluate(["1", "1&0"])', "as in (1&0); the domain boolean-plain reads"),
    ],
)
def test_a_slip_of_a_word(mistake, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        eval(mistake, {"ef": ef, "boolean": ef.boolean(), "model": ef.construct(ef.boolean())})


# Files of one's own


def mistakes(tmp_path, text: str) -> list[str]:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=r"mine\.toml") as caught:
        ef.load_algebra(tmp_path / "mine.toml")
    return str(caught.value).splitlines()[1:]


def test_numbers_for_values_are_told_with_the_line_to_write(tmp_path):
    """And what else is wrong is found as if they were in quotes."""
    header = 'name = "mod3"\nnotation = "infix"\nvalues = [0, 1, 2]\n'
    operator = '[[operators]]\nsymbol = "+"\narity = 2\nrule = "smu"\n'
    values, rule = mistakes(tmp_path, header + operator)
    assert 'expected text in quotes, values = ["0", "1", "2"], found the number 0' in values
    assert "did you mean 'sum'?" in rule
    line = re.search(r"values = \[.*?\]", values)
    assert line
    mended = (header + operator).replace("values = [0, 1, 2]", line[0]).replace("smu", "sum")
    (tmp_path / "mine.toml").write_text(mended)
    assert ef.load_algebra(tmp_path / "mine.toml").values == ("0", "1", "2")


def test_mistakes_in_precedence_are_told_with_all_others(tmp_path):
    text = """
        name = "mine"
        notation = "plain"
        values = ["0", "1"]
        colour = "red"
        [[operators]]
        symbol = "+"
        arity = 2
        rule = "sum"
        [[operators]]
        symbol = "-"
        arity = [1, 2]
        ordered = true
        table = "0 -> 0"
        [[precedence]]
        direction = "left"
        operators = ["+", "*"]
        [[precedence]]
        direction = "right"
        operators = ["+"]
        [[precedence]]
        direction = "prefix"
        operators = []
    """
    found = "\n".join(mistakes(tmp_path, text))
    for expected in (
        "unknown key 'colour'",
        "operator '-': table: no entry for",
        "precedence: level 1: no operator '*' takes two operands",
        "the operator '+' of two operands stands on level 1 and on level 2",
        "precedence: level 3 has no operators",
        "the operator '-' of one operand stands on no level",
        "the operator '-' of two operands stands on no level",
    ):
        assert expected in found


def test_a_level_that_cannot_be_read_may_hold_any_operator(tmp_path):
    text = """
        name = "mine"
        notation = "plain"
        values = ["0", "1"]
        [[operators]]
        symbol = "+"
        arity = 2
        rule = "sum"
        [[precedence]]
        direction = "lefft"
        operators = ["+"]
    """
    assert len(mistakes(tmp_path, text)) == 1
