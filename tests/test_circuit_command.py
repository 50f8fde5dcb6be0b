"""The command `circuit`, run as users run it."""

import json
import subprocess
import sys

import numpy as np
import pytest

from tests import aiger_simulator

HALF_ADDER = b"aag 7 2 0 2 3\n2\n4\n6\n12\n6 13 15\n12 2 4\n14 3 5\ni0 x\no0 sum\n"
LINES = "00\n01\n10\n11\n"
SUMS = "00\n10\n10\n01\n"


@pytest.fixture
def circuit(tmp_path):
    """Runs the command on a file with these bytes, with these lines on standard input."""
    path = tmp_path / "circuit.aag"

    def run(data: bytes, *options: str, lines: str | bytes = "") -> subprocess.CompletedProcess:
        path.write_bytes(data)
        command = [sys.executable, "-m", "exactformer", "circuit", str(path), *options]
        given = lines.encode() if isinstance(lines, str) else lines
        result = subprocess.run(command, input=given, capture_output=True)
        said = (part.decode() for part in (result.stdout, result.stderr))
        return subprocess.CompletedProcess(command, result.returncode, *said)

    return run


def test_facts(circuit):
    facts = circuit(HALF_ADDER).stdout
    wanted = {"format": "aag", "inputs": 2, "outputs": 2, "gates": 3, "levels": 2}
    assert facts == "".join(f"{name:<12}{value}\n" for name, value in wanted.items())
    facts = json.loads(circuit(HALF_ADDER, "--json").stdout)
    assert facts == {
        "format": "aag",
        "inputs": ["x", "i1"],
        "outputs": ["sum", "o1"],
        "gates": 3,
        "levels": 2,
    }


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--engine", "fast", "--weights", "boolean/7520"],
        ["--engine", "model", "--weights", "boolean/8739"],
        ["--engine", "model", "--iterations", "log"],
    ],
    ids=" ".join,
)
def test_outputs(circuit, options):
    result = circuit(HALF_ADDER, "--inputs", "-", *options, lines=LINES)
    assert (result.returncode, result.stdout, result.stderr) == (0, SUMS, "")


def test_lines_may_end_in_other_ways(circuit):
    for lines in (LINES[:-1], LINES.replace("\n", "\r\n")):
        assert circuit(HALF_ADDER, "--inputs", "-", lines=lines).stdout == SUMS


def test_json(circuit):
    result = circuit(HALF_ADDER, "--inputs", "-", "--json", lines=LINES)
    found = json.loads(result.stdout)
    assert found["values"] == SUMS.split()
    assert (found["engine"], found["assignments"], found["gates"]) == ("fast", 4, 3)
    assert "iterations" not in found
    options = ("--inputs", "-", "--json", "--engine", "model", "--iterations", "log")
    found = json.loads(circuit(HALF_ADDER, *options, lines=LINES).stdout)
    assert found["values"] == SUMS.split()
    assert (found["engine"], found["iterations"]) == ("model", 2)


def test_a_circuit_without_inputs_has_empty_lines(circuit):
    result = circuit(b"aag 0 0 0 2 0\n0\n1\n", "--inputs", "-", lines="\n\n\n")
    assert result.stdout == "01\n" * 3


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("00\n012\n", "-: line 2, column 3: expected 0 or 1, found '2'\n  012\n    ^\n"),
        ("00\n011\n", "-: line 2, column 3: expected 2 characters 0 or 1, found 3\n  011\n    ^\n"),
        ("00\n\n11\n", "-: line 2, column 1: expected 2 characters 0 or 1, found 0\n  \n  ^\n"),
        ("00\n0 \n", "-: line 2, column 2: expected 0 or 1, found ' '\n  0 \n   ^\n"),
        ("é0\n", "-: line 1, column 1: expected 0 or 1, found 'é'\n  é0\n  ^\n"),
        ("", "-: expected an assignment on each line, found none\n"),
    ],
)
def test_a_bad_line_is_located_and_nothing_is_printed(circuit, lines, message):
    result = circuit(HALF_ADDER, "--inputs", "-", lines=lines)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == f"exactformer: {message}"


def test_a_bad_circuit_is_located(circuit, tmp_path):
    result = circuit(HALF_ADDER.replace(b"6 13 15", b"6 13 16"), "--inputs", "-", lines=LINES)
    assert (result.returncode, result.stdout) == (2, "")
    expected = "line 6: expected a literal up to 15, found 16"
    assert result.stderr == f"exactformer: {tmp_path / 'circuit.aag'}: {expected}\n"


def test_options_that_do_not_go_together(circuit):
    result = circuit(HALF_ADDER, "--engine", "model")
    assert (result.returncode, result.stdout) == (2, "")
    assert "are for --inputs FILE" in result.stderr
    result = circuit(HALF_ADDER, "--inputs", "-", "--iterations", "log", lines=LINES)
    assert "expected the engine model" in result.stderr


def test_many_lines_in_several_blocks(circuit, tmp_path):
    """More bytes of lines than are read at once."""
    bits = np.random.default_rng(0).integers(0, 2, (3_000_000, 2), dtype=np.uint8)
    rows = np.column_stack([bits + 48, np.full(len(bits), 10, np.uint8)]).astype(np.uint8)
    result = circuit(HALF_ADDER, "--inputs", "-", lines=rows.tobytes())
    wanted = aiger_simulator.simulate(aiger_simulator.read(HALF_ADDER), bits)
    found = np.frombuffer(result.stdout.encode(), np.uint8).reshape(-1, 3)[:, :2] - 48
    np.testing.assert_array_equal(found, wanted)
