"""Readers of netlists: what they read, and where they say a mistake is."""

from random import Random

import numpy as np
import pytest

from exactformer.domains.formats.netlists import read_netlist
from tests.aiger_simulator import Circuit
from tests.netlists import as_aag, as_aig, as_blif, random_circuit, varint

HALF_ADDER = b"aag 7 2 0 2 3\n2\n4\n6\n12\n6 13 15\n12 2 4\n14 3 5\n"


@pytest.fixture
def read(tmp_path):
    """The netlist in a file with these bytes."""
    path = tmp_path / "circuit"

    def reader(data: bytes | str):
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return read_netlist(path)

    return reader


def statements(netlist) -> list[str]:
    return [f"{name}={text.replace(' ', '')}" for name, text in netlist.program.statements()]


def test_gates_become_statements(read):
    netlist = read(HALF_ADDER + b"i0 x\ni1 y\no0 sum of both\nc\nanything\0\xff")
    assert statements(netlist) == ["n3=(~(n6|n7))", "n6=(n1&n2)", "n7=(~(n1|n2))"]
    assert (netlist.inputs, netlist.outputs) == (("x", "y"), ("sum of both", "o1"))
    assert (netlist.gates, netlist.levels, netlist.format) == (3, 2, "aag")
    assert [netlist.program.names[i] for i in netlist.program.outputs] == ["n3", "n6"]


def test_inverted_and_constant_literals(read):
    netlist = read(b"aag 3 2 0 5 1\n2\n4\n0\n1\n4\n7\n7\n6 3 1\n")
    assert statements(netlist) == ["n3=((~n1)&1)", "o0=0", "o1=1", "o3=(~n3)", "o4=(~n3)"]
    names = [netlist.program.names[i] for i in netlist.program.outputs]
    assert names == ["o0", "o1", "n2", "o3", "o4"]
    assert (netlist.gates, netlist.levels) == (1, 1)


@pytest.mark.parametrize("data", [b"aig 0 0 0 0 0\n", b"aag 0 0 0 0 0\nc", b"aig 2 2 0 1 0\n5\n"])
def test_circuits_without_gates(read, data):
    netlist = read(data)
    assert netlist.gates == netlist.levels == 0


def test_binary_and_ascii_are_the_same_circuit(read):
    rng = Random(0)
    for _ in range(100):
        circuit = random_circuit(rng, rng.randrange(5), rng.randrange(30), rng.randrange(4))
        binary, text = read(as_aig(circuit)).program, read(as_aag(circuit)).program
        assert str(binary) == str(text)
        assert binary.outputs == text.outputs


def test_large_differences_take_several_bytes(read):
    gates = [(2 * (i + 301), 2 * i + 3, 1 + i % 2) for i in range(300)]
    circuit = Circuit([*range(1, 301)], [1200], gates)
    assert str(read(as_aig(circuit)).program) == str(read(as_aag(circuit)).program)


def test_covers(read):
    netlist = read(
        "# a circuit\n.model m\n.inputs a b c\n.outputs y z one c\n"
        ".names a b \\\n c y # majority\n11- 1\n1-1 1\n-11 1\n"
        ".names a b z\n01 0\n.names one\n1\n.names none\n.names a b c all\n--- 1\n.end\n"
    )
    majority = "(((n0&n1)|(n0&n2))|(n1&n2))"
    sides = [majority, "(~((~n0)&n1))", "1", "0", "1"]
    assert [line.split("=")[1] for line in statements(netlist)] == sides
    assert netlist.inputs == ("a", "b", "c")
    assert netlist.outputs == ("y", "z", "one", "c")
    assert netlist.gates == 5


def test_what_no_cube_asks_for_is_no_cycle(read):
    netlist = read(".inputs a\n.outputs y\n.names y a y\n-0 1\n")
    assert statements(netlist) == ["n1=(~n0)"]


def test_statements_of_blif_in_any_order(read):
    rng = Random(1)
    for _ in range(20):
        netlist = read(as_blif(random_circuit(rng, 3, 20, 2), rng))
        assert netlist.program.cycle == []


MANY = b"aag 3 1 0 1 2\n2\n6\n4 2 2\n6 4 3\n"
REFUSALS = [
    (b"", "an empty file"),
    (b"hello", "found 'hello'"),
    (b"aig\n", "found 'aig"),
    (b"aig 1 1 0 0\n", "line 1|byte 0"),
    (b"aag x 1 0 0 0\n", "line 1: expected a header"),
    (b"aag -1 0 0 0 0\n", "line 1: expected a header"),
    (b"aag 1 1 0 0 0 0 0 0 0 0\n2\n", "line 1: expected a header"),
    (b"aag 1 0 1 0 0\n2 2\n", "line 1: expected a circuit without latches, found 1 of them"),
    (b"aig 1 1 0 0 0 1 0 2\n", "byte 0: .* found 1 bad states and 2 justice properties"),
    (b"aig 3 1 0 0 1\n\0\0", "byte 0: expected 2 variables"),
    (b"aag 1 1 0 0 1\n", "line 1: expected 2 variables or more"),
    (b"aig 999999999 999999999 0 0 0\n", "byte 0: expected 1,048,576 inputs at most"),
    (b"aig 9999999999999999 0 0 0 9999999999999999\n", "byte 0: expected 4,294,967,296 variables"),
    (b"aig 3000000 0 0 0 3000000\n\1\1", "byte 28: expected 0 outputs and 3000000 gates"),
    (b"aag 9 0 0 0 9\n", "line 2: expected 0 outputs and 9 gates"),
    (MANY[:-2], "line 5: expected 1 outputs and 2 gates, which take 16 bytes or more, found 14"),
    (MANY[:-2] + b"\nc  ", "line 5: expected a line of 3 literals .* found '6 4 '"),
    (MANY.replace(b"6 4 3", b"6  43"), "line 5: expected a line of 3 literals"),
    (MANY.replace(b"2\n6\n", b"2 6\n", 1), "line 2: expected a line of a literal"),
    (MANY.replace(b"6 4 3", b"6 4 8"), "line 5: expected a literal up to 7, found 8"),
    (MANY.replace(b"6 4 3", b"4 2 3"), "line 5: expected each variable defined once, found 4"),
    (MANY.replace(b"6 4 3", b"7 4 3"), "line 5: expected a literal that is even"),
    (MANY.replace(b"\n2\n6", b"\n0\n6"), "line 2: expected a literal that is even"),
    (MANY.replace(b"4 2 2", b"4 6 2"), "line 4: expected a gate that does not depend on itself"),
    (MANY.replace(b"4 2 2", b"4 2 4"), "line 4: expected a gate that does not depend on itself"),
    (b"aag 4 1 0 1 2\n2\n8\n4 2 2\n6 4 3\n", "line 3: expected a literal that is defined, found 8"),
    (MANY + b"x0 y\n", "line 6: expected a name such as"),
    (MANY + b"i1 y\n", "line 6: expected the name of one of 1 inputs, found i1"),
    (MANY + b"l0 y\n", "line 6: expected the name of one of 0 latches"),
    (MANY + b"i0 y\ni0 z\n", "line 7: expected one name each, found a second one of i0"),
    (MANY + b"i0 \xff\n", "line 6: expected a name in UTF-8, found the byte 0xff"),
    (MANY + b"i0 y", "line 6: expected a name such as"),
    (MANY + b"\n", "line 6: expected a name such as"),
    (b"aig 2 1 0 0 1\n\0\0", "byte 14: expected a difference from 1 to 4, found 0"),
    (b"aig 2 1 0 0 1\n\5\0", "byte 14: expected a difference from 1 to 4, found 5"),
    (b"aig 2 1 0 0 1\n\1\4", "byte 15: expected a difference from 0 to 3, found 4"),
    (b"aig 2 1 0 0 1\n\1\x80", "byte 16: expected the differences of 1 gates, found the end"),
    (b"aig 2 1 0 0 1\n\1" + b"\x80" * 9, "byte 15: expected a difference of 5 bytes at most"),
    (b"aig 2 1 0 0 1\n\1" + b"\x80" * 6 + b"\1", "byte 15: expected a difference of 5 bytes"),
    (b"aig 2 1 0 0 1\n\1\1rest", "byte 16: expected a name such as"),
    (b"aig 1 1 0 1 0\n4\n", "byte 14: expected a literal up to 3, found 4"),
    (".model a\n.model b\n", "line 2: expected one .model"),
    (
        ".model a\r.inputs b\r.outputs b\r",
        "line 1: expected one name behind .model, found '.inputs'",
    ),
    (".model a\n.inputs a a\n", "line 2: expected each input once, found 'a' again"),
    (".inputs a\n.outputs y\n.names a y\n1 1\n.names a y\n0 1\n", "line 5: expected each wire def"),
    (".inputs a\n.names a\n1\n", "line 2: expected each wire defined once"),
    (".names a\n1\n.inputs a\n", "line 3: expected inputs that no gate defines, found 'a'"),
    (".inputs a\n.outputs y\n", "line 2: expected an output that is defined, found 'y'"),
    (".inputs a\n\n.names a b y\n11 1\n", "line 3: expected a wire that is defined, found 'b'"),
    (
        ".names a b\n1 1\n.names b a\n1 1\n",
        "line 1: expected a gate that does not depend on itself",
    ),
    (".model a\n.latch a b 0\n.latch b c 0\n", "line 2: .* without latches, found 2 of them"),
    (".model a\n.subckt b x=y\n", "line 2: expected one of .model .* found '.subckt'"),
    (".model a\n.gate nand2 A=a\n", "found '.gate'"),
    (".model a\n11 1\n", "line 2: expected a declaration such as .names, found '11'"),
    (".inputs a\n.names a y\n11 1\n", "line 3: expected 1 of 0, 1 and -, a space, and 0 or 1"),
    (".inputs a\n.names a y\n2 1\n", "line 3: expected 1 of 0, 1 and -"),
    (".inputs a\n.names a y\n1 -\n", "line 3: expected 1 of 0, 1 and -"),
    (".inputs a\n.names a y\n1\n", "line 3: expected 1 of 0, 1 and -"),
    (".names y\n1 1\n", "line 2: expected 0 or 1, found '1 1'"),
    (".inputs a\n.names a y\n1 1\n0 0\n", "line 4: expected a cover for one value"),
    (".names\n", "line 1: expected the name of a wire behind .names"),
    (".model a\n.end\n.names a\n", "line 3: expected nothing behind .end, found '.names'"),
    (".model a\n.inputs b \\", "expected the line that goes on, found the end of the file"),
    (b".model a\n.inputs \xff\n", "line 2: expected UTF-8 text, found the byte 0xff"),
    (b".end\n", "expected a circuit that begins with .model"),
]


@pytest.mark.parametrize(("data", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_mistakes_are_refused_with_their_place(read, tmp_path, data, message):
    with pytest.raises(ValueError, match=message) as refused:
        read(data)
    assert str(refused.value).startswith(str(tmp_path / "circuit"))


def test_many_outputs_and_names_are_read_in_order(read):
    circuit = random_circuit(Random(2), 50, 50, 60)
    names = b"".join(b"o%d out[%d]\n" % (i, i) for i in reversed(range(60)))
    netlist = read(as_aig(circuit, names))
    assert netlist.outputs == tuple(f"out[{i}]" for i in range(60))
    kept = [netlist.program.names[i] for i in netlist.program.outputs]
    plain = [i for i, literal in enumerate(circuit.outputs) if literal > 1 and literal % 2 == 0]
    assert [kept[i] for i in plain] == [f"n{circuit.outputs[i] // 2}" for i in plain]


def test_the_writers_of_these_tests_write_varints():
    assert varint(0x3FFF) == b"\xff\x7f"
    assert np.frombuffer(varint(300), np.uint8).tolist() == [0xAC, 2]
