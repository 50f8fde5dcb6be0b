"""Hints where people stumble at a terminal: what to write instead."""

import re

import pytest

from exactformer.cli import app
from tests.test_cli_model import output, refused


def said(*arguments: str, stdin: bytes = b"") -> str:
    """A refusal as one line, without the box that it may be in."""
    return " ".join(re.sub(r"[╭─╮╰╯│]", " ", refused(*arguments, stdin=stdin)).split())


@pytest.mark.parametrize(
    ("domain", "text", "hint"),
    [
        ("boolean", "1&0", "as in (1&0); the domain boolean-plain reads text without them"),
        ("boolean", "(1&0)|1", "as in (1|0); the domain boolean-plain reads text without them"),
        ("boolean", "~1", "as in (~1); the domain boolean-plain reads text without them"),
        ("arithmetic", "1+2*3", "as in (0+1); the domain arithmetic-plain reads text without"),
        ("arithmetic-mod-7", "1+2", '(0+1); an algebra of notation "plain" reads text without'),
        ("listops", "MAX 1 2", "each operator needs its parentheses, as in ( MAX 0 1 )"),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "model"])
def test_an_operator_outside_parentheses(domain, text, hint, engine, tmp_path):
    assert hint in said("eval", domain, text, "--engine", engine)
    (tmp_path / "lines").write_text(text)
    assert hint in said("eval", domain, "--file", str(tmp_path / "lines"), "--engine", engine)


def test_what_the_hint_on_parentheses_shows_can_be_evaluated():
    found = re.search(r"as in (\(.*\)); the domain (\S+)", said("eval", "boolean", "1&0"))
    assert found
    assert output("eval", "boolean", found[1]) == output("eval", found[2], "1&0") == "0\n"


def test_a_wrong_domain(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text("")
    expected = "or the path of a .toml file that defines one"
    assert expected in said("eval", "nonesuch", "1")
    assert "(docs/own-algebras.md shows how)" in said("eval", "nonesuch", "1")
    assert "did you mean 'boolean'?" in said("eval", "bolean", "1")
    assert "did you mean the file 'mine.toml'?" in said("eval", "mine", "1")
    assert "an expression, which comes after the DOMAIN" in said("eval", "(1&0)", "boolean")


def test_text_on_standard_input_is_asked_for():
    for arguments in (["boolean"], ["boolean", "-"]):
        assert "--file - reads standard input" in said("eval", *arguments, stdin=b"(1&0)\n")
    assert "found both" in said("eval", "boolean", "1", "--file", "-")
    assert output("eval", "boolean", "--file", "-", stdin=b"(1&0)\n") == "0\n"


@pytest.mark.parametrize("text", ["-1+2", "-(1+2)", "--1+2"])
def test_text_that_begins_with_a_minus_sign(text):
    assert f"goes behind --, as in -- '{text}'" in said("eval", "arithmetic-plain", text)


def test_an_option_that_is_not_there_is_no_text():
    assert "goes behind --" not in said("eval", "boolean", "1", "--weight", "7520")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("eval boolean 1 --engine fsat", "expected auto, fast or model, found 'fsat'; did you "),
        ("eval boolean 1 --syntax pyton", "did you mean 'python'?"),
        ("eval boolean 1 --device gpu", "expected cpu or cuda, found 'gpu'; did you mean 'cuda'?"),
        ("eval boolean 1 --engine model --iterations logs", "did you mean 'log'?"),
        ("trace boolean 1 --iterations dept", "did you mean 'depth'?"),
        ("sample boolean --format json", "did you mean 'jsonl'?"),
        ("score boolean rows --format tvs", "did you mean 'tsv'?"),
        ("score listops rows --median men", "did you mean 'mean'?"),
        ("score listops rows --engine modle", "did you mean 'model'?"),
        ("export onx boolean --out a", "did you mean 'onnx'?"),
        ("export dataset boolean --out a --format json", "did you mean 'jsonl'?"),
        ("train boolean --out a --method surre", "did you mean 'sure'?"),
        ("train boolean --out a --estimator scor", "did you mean 'score'?"),
        ("train boolean --out a --set estimator=gumble", "did you mean 'gumbel'?"),
        ("train boolean --out a --device gpu", "did you mean 'cuda'?"),
        ("sweep boolean --seeds 1 --out a --device CUDA", "did you mean 'cuda'?"),
        ("sweep boolean --seeds 1 --out a --set method=stagd", "did you mean 'staged'?"),
        ("eval listops-maxx 1", "did you mean 'MAX'?"),
    ],
)
def test_a_word_that_is_nearly_one_of_a_fixed_set(line, hint, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert hint in said(*line.split())
    assert not list(tmp_path.iterdir())


def test_help_begins_with_what_a_newcomer_needs():
    text = output("--help")
    assert 'exactformer eval arithmetic "((1+2)*(3+4))"' in text
    names = re.findall(r"│ ([a-z]+)  ", text)
    assert names[:5] == ["eval", "trace", "explore", "info", "sample"]
    commands = {
        command.name or getattr(command.callback, "__name__", "")
        for command in app.registered_commands
    }
    assert set(names) == commands
    assert len(re.findall(r"╭─ (Evaluate|Make|Score)", text)) == 3


@pytest.mark.parametrize("command", ["eval", "trace", "info", "sample", "explore", "verify"])
def test_help_says_what_a_domain_is(command):
    text = " ".join(re.sub(r"[╭─╮╰╯│]", " ", output(command, "--help")).split())
    assert "boolean" in text
    assert ".toml" in text
