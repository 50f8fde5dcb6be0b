"""Algebras of one's own, and variants of the built-in ones, wherever a command takes a domain."""

import json
from pathlib import Path

import exactformer as ef
from exactformer.domains.catalog import listops
from tests.test_cli_model import output, refused

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_a_users_algebra_wherever_a_domain_is(tmp_path):
    kleene = EXAMPLES / "kleene.toml"
    assert output("eval", kleene, "(true and (not unknown))") == "unknown\n"
    assert json.loads(output("info", kleene, "--json"))["name"] == "kleene"
    assert len(output("sample", kleene).splitlines()) == 10
    assert "value unknown after 1 iteration" in output("trace", kleene, "(not unknown)")
    weights, proof = tmp_path / "weights", tmp_path / "proof"
    output("construct", kleene, "--out", weights)
    assert output("certify", kleene, "--weights", weights, "--out", proof).startswith("exact")
    said = output("verify", proof, weights, "--algebra", kleene)
    assert said.startswith("accepted: 67 rows")
    assert "kleene (as asked for)" in said
    assert output("eval", kleene, "true", "--weights", weights) == "true\n"
    assert ef.load(weights).algebra == ef.load_algebra(kleene)


def test_a_users_algebra_with_mistakes(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nvalues = ["0", 1]\n')
    for command in (["info", path], ["eval", path, "1"], ["score", path, path]):
        errors = refused(*command)
        assert f"{path}: 3 mistakes notation: expected" in errors
        assert "values: expected" in errors
    assert "missing.toml" in refused("info", tmp_path / "missing.toml")


def test_variants_have_names():
    for name, algebra in {
        "listops-10-mean": listops(10, "mean"),
        "listops-any-max-first": listops(None, operators=("MAX", "FIRST")),
        "listops-mean": listops(median="mean"),
        "arithmetic-mod-7": ef.arithmetic(7),
    }.items():
        assert algebra.name == name
        facts = json.loads(output("info", name, "--json"))
        assert facts["vocabulary"] == list(algebra.vocabulary)
    for name in ("listops-mean-5", "arithmetic-mod-1", "arithmetic-7", "boolean-3"):
        assert "expected" in refused("info", name)
