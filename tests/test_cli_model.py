"""The commands that run and prove models, as a user meets them."""

import contextlib
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from exactformer.api import Model, construct
from exactformer.domains.catalog import CATALOG, boolean
from exactformer.model.feedforward import MLP
from exactformer.weights.file import WeightFile
from tests.cases import CASES
from tests.in_process import run_here

COMMAND = [sys.executable, "-m", "exactformer"]


def exactformer(*arguments: str | Path, stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit status, output and errors; the latter without the box that is drawn around some."""
    status, printed, errors = run_here([str(argument) for argument in arguments], stdin)
    return status, printed, " ".join(errors.replace("│", " ").split())


def output(*arguments: str | Path, stdin: bytes = b"") -> str:
    status, printed, errors = exactformer(*arguments, stdin=stdin)
    assert (status, errors) == (0, "")
    return printed


def refused(*arguments: str | Path, stdin: bytes = b"") -> str:
    status, printed, errors = exactformer(*arguments, stdin=stdin)
    assert (status, printed) == (2, "")
    return errors


@pytest.fixture(scope="module")
def wrong(tmp_path_factory) -> Path:
    """Weights that are not exact: every output has the wrong sign."""
    model = construct(boolean(), "fitted")
    f = model.weights.f
    assert isinstance(f, MLP)
    weights = type(model.weights)(
        model.weights.G_PE,
        model.weights.W_Q,
        model.weights.W_K,
        MLP(f.W_1, f.b_1, -f.W_2, -f.b_2, f.activation),
    )
    path = tmp_path_factory.mktemp("wrong") / "wrong.safetensors"
    Model(boolean(), weights).save(path)
    return path


@pytest.mark.parametrize(("text", "status"), [("(~1)", 0), ("(~)", 2), (None, 1)])
def test_the_exit_status_of_a_process(wrong, text, status):
    """The same three outcomes seen from outside: an answer, a no, a mistake."""
    arguments = ["eval", "boolean", text] if text else ["certify", "boolean", "--weights", wrong]
    result = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120)
    assert result.returncode == status
    assert bool(result.stdout) == (status != 2)
    assert bool(result.stderr) == (status == 2)
    assert "Traceback" not in result.stderr


# eval


@pytest.mark.parametrize("domain", CATALOG)
def test_eval_a_file_of_all_cases(tmp_path, domain):
    cases = [case for case in CASES if case.domain == domain]
    path = tmp_path / "cases.txt"
    path.write_text("\n".join(" ".join(case.text.split()) for case in cases))
    lines = [case.value for case in cases]
    assert output("eval", domain, "--file", path).splitlines() == lines
    found = json.loads(output("eval", domain, "--file", path, "--json"))
    assert found == {"engine": "fast", "values": lines}


def test_eval_one_expression():
    assert output("eval", "boolean", "((1|0)&(~0))") == "1\n"
    assert output("eval", "listops", "[MAX 2 9]", "--weights", "constructed/table") == "9\n"
    assert json.loads(output("eval", "arithmetic", "(2 + 3)", "--json"))["value"] == "5"


@pytest.mark.parametrize("weights", ["constructed/fitted", "constructed/dense", "fitted"])
def test_eval_with_other_weights(weights):
    assert output("eval", "boolean", "(~(1&0))", "--weights", weights) == "1\n"


@pytest.mark.parametrize(
    "text",
    [
        b"(1&1)\n(~1)\n0\n",
        b"(1&1)\n(~1)\n0",
        b"(1&1)\r\n(~1)\r\n0\r\n",
        b"\xef\xbb\xbf(1&1)\n(~1)\n0\n",
        b"\xef\xbb\xbf ( 1 & 1 ) \r\n\t(~1)\r\n 0 \r\n",
    ],
    ids=["plain", "no last newline", "CRLF", "BOM", "BOM, CRLF and spaces"],
)
def test_eval_reads_standard_input(text):
    assert output("eval", "boolean", "--file", "-", stdin=text) == "1\n0\n0\n"


def test_eval_a_comb_of_depth_2000():
    text = "(~" * 1999 + "(1&1)" + ")" * 1999
    assert output("eval", "boolean", "--file", "-", stdin=text.encode()) == "0\n"


def test_eval_tells_every_bad_line_and_prints_no_value(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"(1&0)\n(1&&0)\n\n(~0)\n(1&0\n\xff(~1)\n")
    errors = refused("eval", "boolean", "--file", path)
    assert str(path) in errors
    for place in ("line 2, column 4", "line 3, column 1", "line 5, column 5", "line 6, column 1"):
        assert place in errors
    assert "line 1" not in errors
    assert "line 4" not in errors


def test_eval_of_many_bad_lines_counts_the_rest():
    errors = refused("eval", "boolean", "--file", "-", stdin=b"x\n" * 25)
    assert "line 10," in errors
    assert "line 11," not in errors
    assert "and 15 more bad lines" in errors


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)), b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\0" * 100, "(1&0)\n".encode("utf-16")],
    ids=["all bytes", "picture", "zeros", "UTF-16"],
)
def test_eval_of_binary_garbage(tmp_path, data):
    (tmp_path / "garbage").write_bytes(data)
    assert "line 1, column" in refused("eval", "boolean", "--file", tmp_path / "garbage")


@pytest.mark.parametrize("syntax", ["native", "python", "nangia"])
@pytest.mark.parametrize("engine", ["fast", "model"])
def test_eval_of_many_lines_in_blocks(syntax, engine):
    """More than are held at once, in every syntax; then with one bad line at their end."""
    domain, line, value = {
        "native": ("boolean", "(1&(~0))", "1"),
        "python": ("boolean", "1 and not 0", "1"),
        "nangia": ("listops", "[MAX 1 [MIN 2 3 ] ]", "2"),
    }[syntax]
    count = 2_000 if engine == "model" else 40_000
    data = f"{line}\n".encode() * count
    arguments = ("eval", domain, "--file", "-", "--syntax", syntax, "--engine", engine)
    assert output(*arguments, stdin=data) == f"{value}\n" * count
    assert json.loads(output(*arguments, "--json", stdin=data))["values"] == [value] * count
    assert f"line {count + 1}, column" in refused(*arguments, stdin=data + b"(\n")


@pytest.mark.parametrize("options", [[], ["--engine", "model"], ["--syntax", "python"]])
def test_eval_of_a_file_without_end(options):
    errors = refused("eval", "boolean", "--file", "/dev/zero", *options)
    place = "line 1: expected at most 16,777,215 bytes" if options else "byte 0: expected a value"
    assert errors.startswith(f"exactformer: /dev/zero: {place}")


COMB = "(" * 25_000 + "1" + "&1)" * 25_000


def test_what_would_take_the_transformer_hours(tmp_path):
    (tmp_path / "comb").write_text(f"1\n{COMB}\n")
    cost = "the transformer would take 25,000 iterations of 100,001 positions each"
    model = ("eval", "boolean", "--engine", "model")
    for arguments, place in [
        (("trace", "boolean", COMB), ""),
        ((*model, COMB), ""),
        ((*model, "--file", tmp_path / "comb"), f"{tmp_path / 'comb'}: line 2: "),
    ]:
        errors = refused(*arguments)
        assert errors.startswith(f"exactformer: {place}{cost}, more than")
        assert errors.endswith("--no-limit runs it anyway")
    assert output("eval", "boolean", COMB) == "1\n"


def test_no_limit(monkeypatch):
    """With bounds so small that a small expression is beyond them."""
    monkeypatch.setattr("exactformer.cli.expressions.MOST_WORK", 10)
    monkeypatch.setattr("exactformer.cli.steps.MOST_TRACED", 10)
    for arguments in (["trace", "boolean", "(1&(~0))"], ["eval", "boolean", "(1&(~0))"]):
        arguments += ["--engine", "model"] if arguments[0] == "eval" else []
        assert "2 iterations of 8 positions each, more than 10 in all" in refused(*arguments)
        assert "1" in output(*arguments, "--no-limit")


@pytest.mark.parametrize(
    "arguments", [["trace", "boolean", COMB], ["eval", "boolean", COMB, "--engine", "model"]]
)
def test_long_work_that_is_interrupted(arguments):
    """On a terminal, as soon as there is progress to be seen."""
    controller, terminal = pty.openpty()
    command = [*COMMAND, *arguments, "--no-limit"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        shown = b""
        while not re.search(rb"[1-9][0-9,]* (iterations|positions) [0-9,]+/s", shown):
            shown += os.read(controller, 1 << 16)
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # how a terminal tells that nobody writes any more
            while more := os.read(controller, 1 << 16):
                shown += more
        assert process.stdout is not None
        assert process.stdout.read() == b""
    os.close(controller)
    assert process.returncode == 130
    assert shown.endswith(b"exactformer: interrupted\r\n")


def test_eval_of_nothing(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    assert "found an empty file" in refused("eval", "boolean", "--file", tmp_path / "empty")
    assert "found an empty file" in refused("eval", "boolean", "--file", "-")
    assert "found no text" in refused("eval", "boolean", "--file", "-", stdin=b"\n")
    assert "found no text" in refused("eval", "boolean", "")


def test_eval_needs_an_expression_or_a_file(tmp_path):
    (tmp_path / "lines").write_text("1\n")
    message = "expected an expression or --file FILE, found"
    assert message in refused("eval", "boolean")
    assert message in refused("eval", "boolean", "1", "--file", tmp_path / "lines")


def test_eval_of_a_bad_expression_shows_the_place():
    errors = refused("eval", "boolean", "(1&)")
    assert "line 1, column 4: expected a value (1 0) or '(', found ')'" in errors


def test_eval_of_no_file(tmp_path):
    assert "missing" in refused("eval", "boolean", "--file", tmp_path / "missing")
    assert str(tmp_path) in refused("eval", "boolean", "--file", tmp_path)


def test_eval_on_no_device():
    assert "did you mean 'cuda'?" in refused("eval", "boolean", "1", "--device", "cudda")
    errors = refused("eval", "boolean", "1", "--device", "cuda:99")
    assert "the device 'cuda:99' cannot be used" in errors


def test_unknown_weights_name_the_known():
    for command in (("eval", "boolean", "1"), ("certify", "boolean"), ("trace", "boolean", "1")):
        errors = refused(*command, "--weights", "nonesuch")
        assert "expected constructed, 1243, " in errors
        assert "fitted, or a file, found 'nonesuch'" in errors
    assert "constructed/closed, /units, /table, /fitted or /dense" in refused(
        "certify", "boolean", "--weights", "constructed/x"
    )


def test_weights_of_another_domain_are_refused(tmp_path):
    construct(CATALOG["arithmetic"]()).save(tmp_path / "weights")
    errors = refused("eval", "boolean", "1", "--weights", tmp_path / "weights")
    assert "holds weights for 'arithmetic', not for this 'boolean'" in errors
    assert "listops" in refused("eval", "boolean", "1", "--weights", "listops/fitted")


def test_eval_with_weights_that_fail_is_an_error(wrong):
    assert "not exact" in refused("eval", "boolean", "(1&0)", "--weights", wrong)


# construct, certify, verify


def test_construct_certify_verify(tmp_path):
    weights, proof = tmp_path / "weights.safetensors", tmp_path / "proof.json"
    assert output("construct", "listops", "--out", weights) == f"{weights}\n"
    assert WeightFile.read(weights).algebra == CATALOG["listops"]()
    printed = output("certify", "listops", "--weights", weights, "--out", proof)
    assert printed.startswith("exact\n")
    assert json.loads(proof.read_text())["verdict"] == "exact"
    said = output("verify", proof, weights, "--algebra", "listops")
    assert said.startswith("accepted: 5901 rows, margin")
    assert "algebra  listops (built in), sha256 " in said
    answer = json.loads(output("verify", proof, weights, "--json"))
    assert (answer["accepted"], answer["algebra"], answer["is"]) == (True, "listops", "built in")


@pytest.mark.parametrize("weights", ["constructed", "constructed/table", "fitted"])
def test_certify_exact(weights):
    facts = json.loads(output("certify", "boolean", "--weights", weights, "--json"))
    assert facts["verdict"] == "exact"
    assert all(facts["conditions"].values())
    assert (facts["rows"], facts["wrong_rows"]) == (35, 0)
    assert "counterexample" not in facts


def test_certify_inexact_says_where(tmp_path, wrong):
    status, printed, errors = exactformer(
        "certify", "boolean", "--weights", wrong, "--json", "--out", tmp_path / "fault"
    )
    assert (status, errors) == (1, "")
    facts = json.loads(printed)
    assert facts == json.loads((tmp_path / "fault").read_text())
    assert facts["verdict"] == "inexact"
    assert facts["counterexample"]["shortest"] is True
    status, printed, errors = exactformer("certify", "boolean", "--weights", wrong)
    assert (status, errors) == (1, "")
    assert printed.startswith("inexact\n")
    assert "shortest counterexample: (~1) is 0, not" in printed


def test_verify_rejects(tmp_path, wrong):
    weights, proof = tmp_path / "weights", tmp_path / "proof"
    output("construct", "boolean", "--out", weights)
    output("certify", "boolean", "--weights", weights, "--out", proof)
    status, printed, errors = exactformer("verify", proof, wrong)
    assert (status, errors) == (1, "")
    assert printed.startswith("rejected: ")
    proof.write_text(
        proof.read_text().replace('"smallest_margin": "1/2"', '"smallest_margin": "2"')
    )
    status, printed, errors = exactformer("verify", proof, weights, "--json")
    assert (status, errors) == (1, "")
    assert json.loads(printed)["accepted"] is False
    assert "expected a proof file" in refused("verify", weights, weights)
    assert "expected a safetensors file" in refused("verify", proof, proof)
    assert "missing" in refused("verify", tmp_path / "missing", weights)


def test_construct_where_it_cannot_be_written(tmp_path):
    assert "nowhere" in refused("construct", "boolean", "--out", tmp_path / "nowhere" / "model")
    assert str(tmp_path) in refused("construct", "boolean", "--out", tmp_path)
    assert "--out" in refused("construct", "boolean")
    assert list(tmp_path.iterdir()) == []


# trace


def test_trace():
    data = json.loads(output("trace", "boolean", "((1|0)&(~0))", "--json"))
    assert data["value"] == "1"
    assert len(data["steps"]) == 2
    assert output("trace", "boolean", "1").endswith("value 1 after 0 iterations\n")
    assert "line 1, column 1" in refused("trace", "boolean", ")")


def test_trace_as_a_page(tmp_path, wrong):
    page = tmp_path / "trace.html"
    arguments = ("trace", "boolean", "((1|0)&(~0))", "--html", page)
    assert output(*arguments) == f"{page}\n"
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert '"expression":"((1|0)&(~0))"' in text
    assert json.loads(output(*arguments, "--json", "--weights", wrong)) == {"written": str(page)}
    assert '"verdict":"inexact"' in page.read_text()
    assert "line 1, column 1" in refused("trace", "boolean", ")", "--html", page)
    comb = "(" * 999 + "1" + "&1)" * 999
    assert "too many to draw" in refused("trace", "boolean", comb, "--html", page)
    assert "nowhere" in refused(*arguments[:-1], tmp_path / "nowhere" / "page")
    assert '"verdict":"inexact"' in page.read_text()  # nothing was written since


def test_trace_of_weights_that_fail(wrong):
    text = output("trace", "boolean", "((1|0)&(~0))", "--weights", wrong)
    assert "no single value is left after" in text
