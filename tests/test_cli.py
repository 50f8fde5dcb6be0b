"""The command line as a user meets it: a process, its output and its exit status."""

import json
import shlex
import signal
import subprocess
import sys

import pytest

from exactformer.domains.catalog import CATALOG
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from tests.test_cli_model import refused as refused_here

COMMAND = [sys.executable, "-m", "exactformer"]


def exactformer(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)


def output(*arguments: str) -> str:
    result = exactformer(*arguments)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def refused(*arguments: str) -> str:
    """The message of a user's mistake: on stderr, with nothing on stdout and no traceback."""
    result = exactformer(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


def test_help_names_the_commands():
    text = output("--help")
    for command in ("info", "sample", "reproduce"):
        assert command in text
        assert "--json" in output(command, "--help")


@pytest.mark.parametrize(
    ("domain", "D", "d_h", "hidden", "activation", "parameters"),
    [
        ("boolean", 7, 4, 14, "square", 280),
        ("arithmetic", 14, 3, 28, "square", 924),
        ("listops", 16, 5, 128, "relu", 4416),
    ],
)
def test_info(domain, D, d_h, hidden, activation, parameters):
    facts = json.loads(output("info", domain, "--json"))
    assert facts["name"] == domain
    assert facts["vocabulary"] == list(CATALOG[domain]().vocabulary)
    assert facts["spellings"] == dict(CATALOG[domain]().spellings)
    sizes = [facts[key] for key in ("D", "d_h", "hidden", "activation", "parameters")]
    assert sizes == [D, d_h, hidden, activation, parameters]
    lines = dict(line.split(maxsplit=1) for line in output("info", domain).splitlines())
    assert lines["parameters"] == str(parameters)
    assert lines["vocabulary"].split() == facts["vocabulary"]


def test_info_tells_the_operators():
    facts = json.loads(output("info", "listops", "--json"))
    assert facts["operators"][0] == {"symbol": "MAX", "arities": [2, 3], "ordered": False}
    assert "MED of 2 or 3" in output("info", "listops")


@pytest.mark.parametrize("domain", CATALOG)
def test_sample(domain):
    algebra = CATALOG[domain]()
    arguments = ("sample", domain, "--depth", "3", "--count", "7", "--seed", "5")
    lines = output(*arguments).splitlines()
    rows = json.loads(output(*arguments, "--json"))
    assert len(lines) == 7
    assert lines == [f"{row['expression']}\t{row['value']}" for row in rows]
    for row in rows:
        expression = parse(algebra, row["expression"])
        assert expression.depth == 3
        assert row["value"] == evaluate(expression)
        assert row["tokens"] == len(expression)


def test_the_seed_decides():
    first, again, other = (output("sample", "boolean", "--seed", seed) for seed in "445")
    assert first == again
    assert first != other


def test_sample_balanced():
    rows = json.loads(output("sample", "listops", "--count", "30", "--balanced", "--json"))
    assert sorted(row["value"] for row in rows) == sorted("0123456789" * 3)


def test_sample_nothing():
    assert output("sample", "boolean", "--count", "0") == ""
    assert json.loads(output("sample", "boolean", "--count", "0", "--json")) == []


def test_sample_more_than_is_drawn_at_once():
    lines = output("sample", "boolean", "--count", "100003", "--depth", "1").splitlines()
    assert len(lines) == 100_003
    assert lines[:10] != lines[100_000:]
    for text, value in (line.split("\t") for line in lines[-20:]):
        assert evaluate(parse(CATALOG["boolean"](), text)) == value


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("boolean --depth 100000", "more than the 2e+08 tokens in all that can be drawn at once"),
        ("boolean --depth 1000000000000", "of depth 100,000 at most"),
        ("boolean --balanced --count 1000000000", "expected at most 5,000,000"),
        ("listops --format lra --count 1000000000", "from 0 to 200,000, found 1,000,000,000"),
    ],
)
def test_samples_that_are_too_large_are_refused_at_once(arguments, words):
    assert words in refused_here("sample", *shlex.split(arguments))


def test_a_sample_that_is_interrupted():
    command = [*COMMAND, "sample", "boolean", "--count", "1000000000"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.stdout.read()
        assert process.stderr.read() == b"exactformer: interrupted\n"
    assert process.returncode == 130


@pytest.mark.parametrize("command", ["info", "sample"])
def test_unknown_domain(command):
    message = refused(command, "bolean")
    assert "expected one of boolean, arithmetic, listops, boolean-plain," in message
    assert "found 'bolean'; did you mean 'boolean'?" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("sample boolean --depth -1", "--depth"),
        ("sample boolean --count -1", "--count"),
        ("sample boolean --seed -1", "--seed"),
        ("sample boolean --depth two", "'--depth'"),
        ("sample", "DOMAIN"),
        ("smaple boolean", "smaple"),
        ("info boolean --jsn", "--jsn"),
    ],
)
def test_mistakes(arguments, words):
    assert words in refused_here(*shlex.split(arguments))


def test_a_reader_that_leaves_early_causes_no_traceback():
    """More than a pipe holds, so that writing goes on after the reader has gone."""
    command = f"{shlex.join(COMMAND)} sample boolean --depth 5 --count 50000 | head -1"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=120)
    assert len(result.stdout.splitlines()) == 1
    assert result.stderr == ""
