"""Answers of the server behind the page about programs."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import BUILT_IN
from exactformer.domains.program_syntax import parse_program
from exactformer.domains.reference import evaluate_program
from exactformer.explorer import answers
from exactformer.explorer.choices import Choices
from tests.explorer import refused
from tests.programs import HALF_ADDER

JSON = {"content-type": "application/json"}
PIECES = st.sampled_from(
    [
        *";=#()|~+ \n0_",
        "a",
        "x1",
        "MAX",
        "\0",
        "\ud800",
        "a=1;",
        "b=a;",
        "x0=",
        "(a&a)",
        "[",
        "MIN 2 a]",
    ]
)


def test_the_answer_about_a_program(client):
    asked = {"algebra": "boolean", "weights": "7520", "program": HALF_ADDER}
    answer = client.post("/api/trace", json=asked).json()
    traced = ef.load("boolean/7520").trace_program(HALF_ADDER)
    shown = json.loads(json.dumps(traced.to_dict()))
    for found, wanted in zip(answer["statements"], shown["statements"], strict=True):
        assert found.items() >= wanted.items()
        own = answer["traces"][found["trace"]]
        assert own["expression"] == wanted["states"][0]
        assert own["value"] == own["expected"] == wanted["value"]
    assert answer["wires"] == shown["wires"]
    assert answer["value"] == answer["expected"] == "sum=1"
    assert len(answer["traces"]) == 4


def test_what_is_refused_of_programs(client):
    def ask(**more):
        return client.post("/api/trace", json={"algebra": "boolean", "weights": "7520", **more})

    assert "program" in refused(ask(program="a=1;", expression="1"), 400)
    assert "expected a string" in refused(ask(program=1), 400)
    assert ask(program="a=1;b=c;").json()["offset"] == 6
    many = "".join(f"x{i}=1;" for i in range(2_001))
    assert "this program has 2,001 tokens, too many to draw" in refused(ask(program=many), 413)
    assert "characters" in refused(ask(program="x" * 20_001), 413)
    assert "no text" in refused(ask(program=""), 400)
    assert ask(program=many.replace("x2000=1;", "")).status_code == 200


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_random_program(client, name):
    asked = {"algebra": name, "statements": "7", "seed": "3"}
    first, again = (client.get("/api/sample", params=asked).json() for _ in range(2))
    assert first == again
    program = parse_program(BUILT_IN[name](), first["program"])
    assert len(program) == 7
    values = evaluate_program(program)
    found = dict(word.split("=") for word in first["value"].split())
    assert found == {program.names[i]: values[program.names[i]] for i in program.outputs}
    for wrong in ("0", "201", "-1", ""):
        assert "statements" in refused(
            client.get("/api/sample", params=asked | {"statements": wrong}), 400
        )


def test_an_algebra_without_programs():
    """`;` ends a statement: where it is a symbol, only expressions are offered."""
    table = {(i, j): max(i, j) for i in range(2) for j in range(i, 2)}
    algebra = Algebra("semicolons", ("0", "1"), (Operator(";", (2,), table),), "infix")
    shown = answers.models(Choices(algebra))["algebras"][-1]
    assert [*shown["examples"]] == ["expression"]


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PIECES, max_size=12).map("".join), st.sampled_from([*BUILT_IN]))
def test_any_text_is_answered_or_refused_with_its_place(client, text, name):
    asked = {"algebra": name, "weights": "constructed", "program": text}
    answer = client.post("/api/trace", content=json.dumps(asked), headers=JSON)
    if answer.status_code == 200:
        assert answer.json()["value"] == answer.json()["expected"]
    else:
        refused(answer, 400)
        assert 0 <= answer.json()["offset"] <= len(text)
