"""Iterations by the logarithm with every model there is, and as a user asks for them."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.api import Model
from exactformer.domains.catalog import CATALOG
from exactformer.domains.expression import Expression
from exactformer.model.feedforward import MLP
from exactformer.model.iterations import most_iterations, require_feasible
from exactformer.model.predict import Outcome
from exactformer.weights.named import SHIPPED
from tests.algebras import TASKS
from tests.in_process import run_here

EXAMPLES = sorted((Path(__file__).resolve().parent.parent / "examples").glob("*.toml"))
LONGEST = 400  # tokens: enough for every depth, and quick
CONSTRUCTED = [
    (algebra, kind)
    for algebra in TASKS
    for kind in ("closed", "table", "fitted", "dense")
    if (algebra.name, kind) != ("arithmetic", "fitted")  # none can be had
]


def problems(algebra: ef.Algebra) -> list[Expression]:
    """One of every depth from 1 to 30, the bushiest of a dozen that are not too long."""
    rng = np.random.default_rng(30)
    found = []
    for depth in range(1, 31):
        for leaf in (None, 0.8, 0.9, 0.95, 0.99):
            if leaf is None and depth > 5:
                continue  # they grow too fast to be drawn
            drawn = [e for e in ef.draw(algebra, depth, 12, rng, leaf) if len(e) <= LONGEST]
            if drawn:
                break
        found.append(max(drawn, key=ef.strahler))
    assert [e.depth for e in found] == list(range(1, 31))
    assert max(map(ef.strahler, found)) >= 3
    return found


def check(model: Model, asked: list[Expression]) -> None:
    """No value is wrong, and iterations are Strahler numbers; the paper's layer takes the depth."""
    values = [ef.oracle(e) for e in asked]
    by_depth, by_log = model.outcomes(asked, "depth"), model.outcomes(asked, "log")
    assert by_log == list(map(Outcome, values, map(ef.strahler, asked)))
    assert by_depth == [Outcome(v, e.depth) for v, e in zip(values, asked, strict=True)]


@pytest.fixture(scope="module")
def asked() -> dict[str, list[Expression]]:
    return {algebra.name: problems(algebra) for algebra in TASKS}


@pytest.mark.parametrize(
    "name",
    [
        f"{task}/{p.stem}"
        for task in CATALOG
        for p in sorted((SHIPPED / task).glob("*.safetensors"))
    ],
)
def test_shipped(name, asked):
    model = ef.load(name)
    check(model, asked[model.algebra.name])


@pytest.mark.parametrize(
    ("algebra", "kind"), CONSTRUCTED, ids=[f"{a.name}/{kind}" for a, kind in CONSTRUCTED]
)
def test_constructed(algebra, kind, asked):
    model = ef.construct(algebra, None if kind == "dense" else kind, dense=kind == "dense")
    check(model, asked[algebra.name])


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path):
    model = ef.construct(ef.load_algebra(path))
    check(model, problems(model.algebra))


@pytest.mark.parametrize(
    "algebra",
    [ef.listops(None), ef.listops(None, "mean", ("MED", "PM", "FIRST", "SM")), ef.listops(10)],
    ids=lambda algebra: algebra.name,
)
def test_units(algebra):
    model = ef.construct(algebra, "units")
    check(model, problems(algebra))


def test_the_bound_is_the_logarithm_of_the_values():
    model = ef.construct(ef.boolean())
    expressions = [ef.parse(model.algebra, text) for text in ("1", "(~1)", "((1&0)|((1&1)&(~0)))")]
    assert [most_iterations(e, "log") for e in expressions] == [1, 1, 3]
    assert [o.iterations for o in model.outcomes(expressions, "log")] == [0, 1, 3 - 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_predict_in_every_format(dtype):
    model = ef.load("listops/7520")
    asked = problems(model.algebra)
    assert model.predict(asked, dtype, "log") == [ef.oracle(e) for e in asked]


def test_evaluate():
    model = ef.construct(ef.arithmetic())
    assert model.evaluate("((1+2)*(3+4))", "model", iterations="log") == "1"
    assert model.evaluate(["((1+2)*3)", "7"], "model", iterations="log") == ["9", "7"]
    deep = "(" * 30_000 + "1" + "+1)" * 30_000
    with pytest.raises(ValueError, match="30,000 iterations of 120,001 positions each"):
        model.evaluate(deep, "model", most_work=10**9)
    assert model.evaluate(deep, "model", iterations="log", most_work=10**9) == "1"


@pytest.mark.parametrize("engine", ["auto", "fast"])
def test_the_fast_engine_has_no_iterations(engine):
    with pytest.raises(ValueError, match=f"expected the engine model, found {engine}"):
        ef.construct(ef.boolean()).evaluate("1", engine, iterations="log")


def test_what_costs_too_much_is_refused():
    expression = ef.parse(ef.arithmetic(), "((1+2)*(3+4))")
    require_feasible(expression, 3 * 13 * 11, iterations="log")
    with pytest.raises(ValueError, match="3 iterations of 13 positions with 10 values each"):
        require_feasible(expression, 3 * 13 * 11 - 1, iterations="log")


def uncertified() -> Model:
    model = ef.construct(ef.boolean(), "fitted")
    f = model.weights.f
    assert isinstance(f, MLP)
    wrong = replace(f, W_2=-f.W_2, b_2=-f.b_2)
    return Model(model.algebra, replace(model.weights, f=wrong))


def test_weights_without_a_proof_are_refused():
    model = uncertified()
    expression = ef.parse(model.algebra, "(1&0)")
    for ask in (
        lambda: model.predict([expression], iterations="log"),
        lambda: model.outcomes([expression], "log"),
        lambda: model.trace("(1&0)", "log"),
        lambda: model.evaluate("(1&0)", "model", iterations="log"),
    ):
        with pytest.raises(ValueError, match="need weights that are certified exact; not so here"):
            ask()
    assert model.predict([expression]) == [None]


def test_other_words():
    model = ef.construct(ef.boolean())
    other: Any = "linear"
    expression = ef.parse(model.algebra, "(1&0)")
    for ask in (
        lambda: model.trace(expression, other),
        lambda: model.predict([expression], iterations=other),
        lambda: model.outcomes([expression], other),
        lambda: model.evaluate(expression, "model", iterations=other),
    ):
        with pytest.raises(ValueError, match="expected depth or log, found 'linear'"):
            ask()
    text: Any = "(1&0)"
    with pytest.raises(TypeError, match="expected a list of expressions"):
        model.outcomes(text, "log")


def exactformer(*arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
    return run_here([str(argument) for argument in arguments], stdin.encode())


def test_the_command(tmp_path):
    arguments = ("--engine", "model", "--iterations")
    text = "((1|(~(1&0)))&(~0))"
    status, printed, errors = exactformer("eval", "boolean", text, *arguments, "log", "--json")
    assert (status, errors) == (0, "")
    assert json.loads(printed) == {"engine": "model", "value": "1", "iterations": 2}
    lines = f"{text}\n0\n(~1)\n"
    status, printed, _ = exactformer(
        "eval", "boolean", "--file", "-", *arguments, "depth", "--json", stdin=lines
    )
    expected = {"engine": "model", "values": ["1", "0", "0"], "iterations": [4, 0, 1]}
    assert json.loads(printed) == expected
    status, printed, _ = exactformer(
        "eval", "boolean", "--file", "-", *arguments, "log", stdin=lines
    )
    assert (status, printed) == (0, "1\n0\n0\n")


@pytest.mark.parametrize("engine", [(), ("--engine", "fast")])
def test_the_command_refuses_the_fast_engine_in_one_line(engine):
    status, printed, errors = exactformer("eval", "boolean", "1", *engine, "--iterations", "log")
    assert (status, printed) == (2, "")
    assert errors == (
        "exactformer: iterations (log) are the transformer's: expected the engine model, "
        f"found {engine[1] if engine else 'auto'}\n"
    )


def test_the_command_refuses_weights_without_a_proof(tmp_path):
    path = tmp_path / "wrong.safetensors"
    uncertified().save(path)
    for command in (("eval", "--engine", "model"), ("trace",)):
        status, printed, errors = exactformer(
            command[0], "boolean", "(1&0)", *command[1:], "--weights", path, "--iterations", "log"
        )
        assert (status, printed) == (2, "")
        assert "need weights that are certified exact; not so here: every span becomes" in errors
        assert errors.count("\n") == 1


def test_the_benchmark_on_short_expressions(tmp_path):
    """All of it but the combs that are too deep for the paper's layer, and the counts by depth."""
    script = Path(__file__).resolve().parent.parent / "benchmarks" / "iterations.py"
    command = [sys.executable, script, "--tokens", "300", "--count", "0"]
    out = tmp_path / "new" / "iterations.md"
    result = subprocess.run(
        [*command, "--out", out], capture_output=True, text=True, timeout=300, check=True
    )
    assert result.stdout == f"{out.read_text()}\n"
    rows = [line for line in result.stdout.splitlines() if "as the oracle" in line]
    assert len(rows) == 12
