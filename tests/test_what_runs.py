"""What gives a value, the transformer or the tables of certified weights, and who says which."""

import json
import re
from dataclasses import replace

import pytest

import exactformer as ef
from exactformer.model import predict
from exactformer.model.feedforward import Table
from tests.in_process import run_here

TEXT = "((1|0)&(~0))"


@pytest.fixture
def runs(monkeypatch) -> list[int]:
    """How many expressions each run of the transformer had."""
    found: list[int] = []

    def counted(run):
        def counting(*given):
            found.append(len(next(part for part in given if isinstance(part, list))))
            return run(*given)

        return counting

    for name in ("_run_packed", "_run_padded"):
        monkeypatch.setattr(predict, name, counted(getattr(predict, name)))
    return found


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("boolean", TEXT, "1"), ("boolean", b"(~0)", "1"), ("boolean_plain", "~1|0&1", "0")],
)
def test_calling_a_model_runs_the_transformer(name, text, value, runs):
    model = ef.construct(getattr(ef, name)())
    assert model(text) == value
    assert model(ef.parse(model.algebra, text)) == value
    assert runs == [1, 1]
    assert model.evaluate([text] * 3) == [value] * 3
    assert runs == [1, 1]  # tables, as `fast_engine` says
    assert model.fast_engine() is not None
    assert model(text) == value  # also where there are tables by now
    assert runs == [1, 1, 1]


def swapped() -> ef.Model:
    """A Boolean model that writes 0 for 1 and 1 for 0."""
    model = ef.construct(ef.boolean(), "table")
    f = model.weights.f
    assert isinstance(f, Table)
    other = replace(f, outputs=f.outputs[:, [0, 1, 3, 2, 4, 5, 6]])
    return ef.Model(model.algebra, replace(model.weights, f=other))


def test_calling_a_model_with_inexact_weights_gives_what_they_make_of_it():
    assert swapped()("(1&1)") == "0"  # the transformer's answer, not the algebra's
    model = ef.construct(ef.boolean())
    silent = ef.Model(model.algebra, replace(model.weights, G_PE=0 * model.weights.G_PE))
    with pytest.raises(ValueError, match="no single value is left: the weights are not exact"):
        silent("(1&1)")


def test_calling_a_model_on_very_deep_text_says_what_to_do_instead(runs):
    model = ef.construct(ef.boolean())
    text = "(~" * 100_000 + "1" + ")" * 100_000
    said = re.escape(
        "the transformer would take 100,000 iterations of 300,001 positions each, more than "
        "1,000,000,000 in all: evaluate(text) may use certified tables, and "
        'evaluate(text, "model") has no bound'
    )
    with pytest.raises(ValueError, match=said):
        model(text)
    assert model.evaluate(text) == "1"
    assert model.evaluate(text, "model", iterations="log") == "1"
    assert runs == [1]


def test_calling_a_model_does_not_certify_it(monkeypatch):
    """A transformer is run, whatever is known of its weights."""

    def never(*_):
        raise AssertionError

    monkeypatch.setattr("exactformer.engine.loaded.findings", never)
    assert ef.construct(ef.arithmetic())("((1+2)*(3+4))") == "1"


def told(*arguments: str, stdin: bytes = b"") -> dict:
    status, printed, errors = run_here([*arguments, "--json"], stdin)
    assert (status, errors) == (0, "")
    return json.loads(printed)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), {"engine": "fast"}),
        (("--engine", "fast"), {"engine": "fast"}),
        (("--engine", "model"), {"engine": "model", "iterations": 2}),
    ],
)
def test_eval_tells_the_engine_and_what_iterations_there_were(options, expected, runs):
    assert told("eval", "boolean", TEXT, *options) == {"value": "1"} | expected
    lines = f"{TEXT}\n0\n".encode()
    found = told("eval", "boolean", "--file", "-", *options, stdin=lines)
    several = {"iterations": [2, 0]} if "iterations" in expected else {}
    assert found == expected | {"values": ["1", "0"]} | several
    assert bool(runs) is (expected["engine"] == "model")


def test_eval_tells_that_the_transformer_ran_where_tables_could_not_be_made(tmp_path, runs):
    """Operators of any number of operands, and weights that are not certified."""
    found = told("eval", "listops-any", "( MAX 1 ( MIN 5 3 ) )")
    assert found == {"engine": "model", "value": "3", "iterations": 2}
    path = tmp_path / "wrong.safetensors"
    swapped().save(path)
    found = told("eval", "boolean", "(1&1)", "--weights", str(path))
    assert found == {"engine": "model", "value": "0", "iterations": 1}
    assert runs == [1, 1]


def test_eval_of_no_lines_is_refused_with_json_too():
    status, printed, _ = run_here(["eval", "boolean", "--file", "-", "--json"])
    assert (status, printed) == (2, "")


@pytest.mark.parametrize("engine", ["fast", "model"])
def test_score_tells_the_engine_by_the_same_key(engine, runs):
    row = f"{TEXT}\t1\n".encode()
    assert told("score", "boolean", "-", "--engine", engine, stdin=row)["engine"] == engine
    assert bool(runs) is (engine == "model")
    _, printed, _ = run_here(["score", "boolean", "-", "--engine", engine], row)
    words = {"fast": "tables of certified weights", "model": "the transformer itself"}
    assert f"engine   {engine}: {words[engine]}\n" in printed


@pytest.mark.parametrize("command", ["eval", "score"])
def test_the_help_says_what_each_engine_runs(command):
    _, printed, _ = run_here([command, "--help"])
    words = " ".join(printed.replace("│", " ").split())
    assert "look up the tables of certified weights" in words
    assert "run the transformer itself" in words
