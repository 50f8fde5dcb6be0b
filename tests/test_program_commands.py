"""eval, trace and certify on programs."""

import json
from dataclasses import replace

import numpy as np
import pytest

import exactformer as ef
from exactformer.certify import certify_program
from exactformer.domains.capabilities import refusal
from exactformer.domains.catalog import find_domain
from exactformer.domains.program import Program
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.reference import evaluate_program
from exactformer.verify.programs import ACYCLIC, DEFINED, GRAMMAR, ONCE, program_conditions
from tests.in_process import run_here
from tests.programs import ALGEBRAS, HALF_ADDER


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "half.txt"
    path.write_text(HALF_ADDER)
    return str(path)


@pytest.mark.parametrize("engine", ["auto", "fast", "model"])
def test_eval_prints_results(engine, file):
    assert run_here(["eval", "boolean", "--program", file, "--engine", engine]) == (
        0,
        "sum=1\n",
        "",
    )
    asked = ["eval", "boolean", "--program", "-", "--outputs", "carry, a", "--engine", engine]
    assert run_here(asked, HALF_ADDER.encode()) == (0, "carry=0\na=1\n", "")


def test_eval_as_json(file):
    asked = ["eval", "boolean", "--program", file, "--json", "--weights", "7520"]
    found = json.loads(run_here([*asked, "--engine", "model", "--iterations", "log"])[1])
    values = {"sum": "1", "carry": "0", "a": "1", "b": "0"}
    assert found == {
        "engine": "model",
        "outputs": {"sum": "1"},
        "values": values,
        "statements": 4,
        "levels": 3,
        "iterations": 3,
    }
    fast = json.loads(run_here(asked)[1])
    assert fast == {k: v for k, v in found.items() if k != "iterations"} | {"engine": "fast"}


@pytest.mark.parametrize("command", ["eval", "trace", "certify"])
def test_a_mistake_is_status_2_with_nothing_on_standard_output(command):
    status, printed, said = run_here([command, "boolean", "--program", "-"], b"a=(b&1);\nb=c;")
    assert (status, printed) == (2, "")
    assert "line 2, column 3: 'c' is used, but never defined\n  b=c;\n    ^" in said
    json_said = run_here([command, "boolean", "--program", "-", "--json"], b"a=1;a=1;")[2]
    assert json.loads(json_said)["column"] == 5


@pytest.mark.parametrize("command", ["eval", "trace", "certify"])
def test_a_mistake_in_a_file_is_told_with_its_name(command, tmp_path):
    path = tmp_path / "half.txt"
    path.write_bytes(b"a=1;\r\nb=(a&c);\r\n")
    status, printed, said = run_here([command, "boolean", "--program", str(path)])
    problem = "line 2, column 6: 'c' is used, but never defined\n  b=(a&c);\n       ^\n"
    assert (status, printed, said) == (2, "", f"exactformer: {path}: {problem}")
    json_said = run_here([command, "boolean", "--program", str(path), "--json"])[2]
    assert (json.loads(json_said)["line"], json.loads(json_said)["column"]) == (2, 6)


def test_a_file_of_another_editor(tmp_path):
    """A byte order mark, line ends of Windows, comments."""
    text = HALF_ADDER.replace(" ", "\r\n").replace(";", "; # ; (\r\n")
    path = tmp_path / "half.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    assert run_here(["eval", "boolean", "--program", str(path)]) == (0, "sum=1\n", "")
    asked = ["eval", "boolean", "--program", "-"]
    assert run_here(asked, b"\xef\xbb\xbf" + text.encode()) == (0, "sum=1\n", "")


@pytest.mark.parametrize("command", ["eval", "trace", "certify"])
def test_programs_are_of_an_algebra(command):
    """The theorem is about values, which a machine that reads a text does not have."""
    status, printed, said = run_here([command, "parity", "--program", "-"], b"a=0 1;b=0;")
    assert (status, printed) == (2, "")
    assert said == f"exactformer: {refusal('programs', find_domain('parity'))}\n"
    assert "programs of named wires: not for 'parity' (machines over texts), since" in said


MANY = 100_000


@pytest.mark.parametrize("turned", [False, True])
def test_a_hundred_thousand_statements_in_a_chain(turned):
    statements = ["x0=1;", *(f"x{i + 1}=(~x{i});" for i in range(MANY))]
    text = "".join(reversed(statements) if turned else statements)
    asked = ["eval", "boolean", "--program", "-"]
    assert run_here(asked, text.encode()) == (0, f"x{MANY}=1\n", "")


@pytest.mark.parametrize("engine", ["fast", "model"])
def test_a_name_that_is_used_a_hundred_thousand_times(engine):
    once = "a=1;o=" + "(" * MANY + "a" + "|a)" * MANY + ";"
    each = "a=1;" + "".join(f"x{i}=(~a);" for i in range(MANY))
    asked = ["eval", "boolean", "--program", "-", "--engine", engine, "--outputs"]
    by = ["--iterations", "log"] if engine == "model" else []
    assert run_here([*asked, "o", *by], once.encode()) == (0, "o=1\n", "")
    assert run_here([*asked, "x7", *by], each.encode()) == (0, "x7=0\n", "")


@pytest.mark.parametrize(
    "more",
    [["(1&0)"], ["--file", "-"], ["--syntax", "python"], ["--outputs", "z"], ["--ray", "auto"]],
)
def test_options_that_do_not_go_with_a_program(more, file):
    assert run_here(["eval", "boolean", "--program", file, *more])[:2] == (2, "")


def test_outputs_are_for_programs():
    assert run_here(["eval", "boolean", "1", "--outputs", "a"])[:2] == (2, "")
    assert run_here(["trace", "boolean"])[:2] == (2, "")
    assert run_here(["trace", "boolean", "1", "--program", "x"])[:2] == (2, "")


def test_what_would_take_hours_is_refused_by_its_name():
    deep = "(~" * 20_000 + "a" + ")" * 20_000
    asked = ["eval", "boolean", "--program", "-", "--engine", "model"]
    status, printed, said = run_here(asked, f"a=1;deep={deep};".encode())
    assert (status, printed) == (2, "")
    assert "deep: the transformer would take 20,000 iterations" in said
    assert run_here(asked[:-2], f"a=1;deep={deep};".encode())[:2] == (0, "deep=1\n")


def test_trace_shows_a_column_an_iteration(file):
    status, printed, _ = run_here(["trace", "boolean", "--program", file])
    assert status == 0
    lines = printed.splitlines()
    assert lines[0].split() == ["start", "iteration", "1", "iteration", "2", "iteration", "3"]
    cells = ["sum", "=", "((a|b)&(~carry))", "·", "·", "((1|0)&(~0))", ">", "(1&1)", "1"]
    assert lines[1].split() == cells
    assert lines[-1] == "sum=1 after 3 iterations"


@pytest.mark.parametrize("by", ["depth", "log"])
@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_a_trace_agrees_with_the_run(algebra, by):
    program, model = draw_program(algebra, 12, np.random.default_rng(5)), ef.construct(algebra)
    traced, known = model.trace_program(program, by), evaluate_program(program)
    assert traced.iterations == model.run_program(program, iterations=by).iterations
    assert {s.name: s.value for s in traced.statements} == known
    for statement in traced.statements:
        assert statement.states[-1] == statement.value
        copy = statement.reads and len(statement.states) == 1
        assert statement.end - statement.start == len(statement.states) - 1 + copy
        columns = [statement.cell(i) for i in range(traced.iterations + 1)]
        assert columns[statement.end].endswith(statement.value)
    data = traced.to_dict()
    assert len(data["wires"]) == len(program.wires)
    for defines, uses in data["wires"]:
        assert data["statements"][defines]["end"] <= data["statements"][uses]["start"]


def test_certify_says_what_the_proof_implies(file):
    status, printed, _ = run_here(["certify", "boolean", "--program", file])
    assert status == 0
    assert "program: exact\n" in printed
    assert printed.count("  yes  ") == 6 + 4
    data = json.loads(run_here(["certify", "boolean", "--program", file, "--json"])[1])
    assert data["verdict"] == "exact"
    assert data["program"] == {
        "exact": True,
        "conditions": dict.fromkeys((ONCE, DEFINED, ACYCLIC, GRAMMAR), True),
        "statements": 4,
        "inputs": 0,
        "uses": 5,
        "levels": 3,
    }


def test_nothing_follows_from_weights_without_a_proof(tmp_path):
    model = ef.construct(ef.boolean(), "table")
    wrong = replace(model.weights.f, outputs=model.weights.f.outputs[:, [0, 1, 3, 2, 4, 5, 6]])
    wrong = ef.Model(model.domain, replace(model.weights, f=wrong))
    found = certify_program(wrong.certify(), ef.parse_program(ef.boolean(), HALF_ADDER))
    assert not found.exact
    assert all(found.conditions.values())
    assert "program: not proved" in str(found)


def broken(**parts) -> dict[str, bool]:
    """The conditions on the half adder with other arrays."""
    program = ef.parse_program(ef.boolean(), HALF_ADDER)
    fields = ("domain", "names", "inputs", "ids", "lengths", "wires", "outputs")
    return program_conditions(Program(**{name: getattr(program, name) for name in fields} | parts))


def test_each_condition_can_fail():
    ids = ef.parse_program(ef.boolean(), HALF_ADDER).ids.copy()
    assert [name for name, ok in broken(names=("a", "b", "a", "c")).items() if not ok] == [ONCE]
    out = np.array([2, 3, 1, 2, 9])
    assert [name for name, ok in broken(wires=out).items() if not ok] == [DEFINED, ACYCLIC]
    circle = np.array([2, 3, 1, 0, 3])
    assert [name for name, ok in broken(wires=circle).items() if not ok] == [ACYCLIC]
    pair = ef.parse_program(ef.boolean(), "a=1;b=a;c=b;")
    for wires in ([2, 1], [1, 2]):  # names that depend on each other, and on themselves
        other = Program(
            pair.domain, pair.names, 1, pair.ids[1:], pair.lengths[1:], np.array(wires), ()
        )
        assert [name for name, ok in program_conditions(other).items() if not ok] == [ACYCLIC]
    ids[0] = 1
    assert [name for name, ok in broken(ids=ids).items() if not ok] == [GRAMMAR]
    assert not any(broken(lengths=np.array([10, 5, 2, 1])).values())
