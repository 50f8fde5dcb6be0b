"""Plain notation on the command line, as a user meets it: every command works, or says why not."""

import json

import pytest

import exactformer as ef
from tests.plain_algebras import EXAMPLES
from tests.test_cli_model import exactformer, output, refused

ROWS = """\
not ( True ) and ( True )\tFalse
True or not ( ( False ) )\tTrue
1\tnot not True
~(0|1)&1\t0
"""


@pytest.mark.parametrize(
    ("domain", "text", "value"),
    [
        ("boolean-plain", "~1|0&1", "0"),
        ("boolean-plain", "not False and ( True ) or False", "1"),
        ("arithmetic-plain", "1+2*3", "7"),
        ("arithmetic-plain", "((4))", "4"),
        (EXAMPLES / "modulo7.toml", "2*-3-(1-2)", "2"),
        (EXAMPLES / "implication.toml", "1 → 0 → 0 <-> ~ 1 /\\ 1", "0"),
    ],
)
def test_eval(domain, text, value):
    assert output("eval", domain, text) == f"{value}\n"
    for options in (["--engine", "fast"], ["--engine", "model"]):
        assert output("eval", domain, *options, "--", text) == f"{value}\n"
    lines = f"{text}\n({text})\n".encode()
    assert output("eval", domain, "--file", "-", stdin=lines) == f"{value}\n" * 2


def test_eval_with_shipped_weights_and_iterations():
    shipped = ("--weights", "arithmetic/7520", "--engine", "model", "--json")
    found = output("eval", "arithmetic-plain", "1+2*3*4+5", *shipped, "--iterations", "log")
    assert json.loads(found) == {"engine": "model", "value": "0", "iterations": 1}
    assert "boolean/7520 holds weights for 'boolean', not for this 'arithmetic-plain'" in refused(
        "eval", "arithmetic-plain", "1", "--weights", "boolean/7520"
    )


def test_a_mistake_is_shown_at_its_place():
    said = refused("eval", "boolean-plain", "1 and (or 0)")
    assert said.startswith("exactformer: line 1, column 8: expected a value (1 0), '(' or a prefix")
    assert said.endswith("found 'or': | has no operand before it 1 and (or 0) ^")
    said = refused("eval", "boolean-plain", "--file", "-", stdin=b"1\n1 1\n(0\n")
    assert "line 2, column 3: expected an operator (& |) or the end of the text" in said
    assert "line 3, column 3: expected an operator (& |) or ')', found the end" in said


def test_python_text_is_read_for_plain_algebras():
    python = ("--syntax", "python")
    assert output("eval", "arithmetic-plain", "2 + 3*14 - 5", *python) == "9\n"
    assert output("eval", "boolean-plain", "not True or True", *python) == "1\n"
    said = refused("eval", EXAMPLES / "implication.toml", "1", *python)
    assert "Python's text is for infix and plain algebras" in said


def test_published_rows_are_scored_as_they_stand(tmp_path):
    (path := tmp_path / "rows.tsv").write_text(ROWS)
    for options in ([], ["--engine", "model", "--weights", "boolean/7520"]):
        found = json.loads(output("score", "boolean-plain", path, *options, "--json"))
        assert (found["correct"], found["total"]) == (4, 4)
        assert found["algebra"] == "boolean-plain"
    path.write_text(ROWS.replace("( True )\tFalse", "( True )\tTrue"))
    status, printed, errors = exactformer("score", "boolean-plain", path)
    assert (status, errors) == (1, "")
    assert "3 of 4 rows right" in printed
    assert "line 1: expected 1, found 0" in printed
    path.write_text(ROWS.replace("True or", "True xor"))
    said = refused("score", "boolean-plain", path)
    assert "line 2, column 6: expected an operator (& |) or the end of the text" in said
    path.write_text(ROWS.replace("\tFalse", "\tNo"))
    assert "expected one of 1 0 TRUE FALSE True False, found 'No'" in refused(
        "score", "boolean-plain", path
    )


@pytest.mark.parametrize("domain", ["boolean-plain", EXAMPLES / "modulo7.toml"])
def test_what_is_drawn_is_scored(domain):
    for share in ("0", "1"):
        arguments = ("--depth", "3", "--count", "30", "--parentheses", share, "--seed", "5")
        drawn = output("sample", domain, *arguments)
        assert ("(" in drawn.splitlines()[0]) or share == "0"
        assert "30 of 30 rows right" in output("score", domain, "-", stdin=drawn.encode())
    assert "a share of parentheses that are not needed: not for" in refused(
        "sample", "boolean", "--parentheses", "0.5"
    )


def test_info_names_the_levels():
    assert "precedence  | (left), then & (left), then ~ (prefix)\n" in output(
        "info", "boolean-plain"
    )
    facts = json.loads(output("info", "boolean-plain", "--json"))
    assert facts["precedence"] == [level.to_dict() for level in ef.boolean_plain().precedence]
    assert "precedence" not in json.loads(output("info", "boolean", "--json"))


def test_weights_are_written_certified_and_verified(tmp_path):
    weights, proof = tmp_path / "plain.safetensors", tmp_path / "proof.json"
    output("construct", "boolean-plain", "--weights", "boolean/7520", "--out", weights)
    certified = output("certify", "boolean-plain", "--weights", weights, "--out", proof)
    assert certified.startswith("exact\n")
    found = output("verify", proof, weights, "--algebra", "boolean-plain")
    assert found.startswith("accepted: ")
    assert exactformer("verify", proof, weights, "--algebra", "boolean")[0] == 1
    assert "holds weights for 'boolean-plain', not for this 'boolean'" in refused(
        "eval", "boolean", "1", "--weights", weights
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bench", "boolean-plain"], "measurements beside other programs: not for"),
        (["eval", "boolean-plain", "1", "--syntax", "nangia"], "the notation of ListOps is for"),
        (
            ["sample", "boolean-plain", "--format", "lra"],
            "the Long Range Arena's set is of listops",
        ),
        (["score", "boolean-plain", "-", "--format", "bowman"], "pairs of formulas are for the"),
        (["score", "boolean-plain", "-", "--format", "nangia"], "expected an expression on each"),
        (["eval", "boolean-plane", "1"], "did you mean 'boolean-plain'?"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_is_for_others_is_refused(arguments, said):
    assert said in refused(*arguments)
