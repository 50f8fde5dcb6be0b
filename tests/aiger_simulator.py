"""A second, small reader of AIGER and a simulator, for tests: no code of the package is in them."""

from typing import NamedTuple

import numpy as np


class Circuit(NamedTuple):
    inputs: list[int]  # variables
    outputs: list[int]  # literals
    gates: list[tuple[int, int, int]]  # literals


def read(data: bytes) -> Circuit:
    """Trusts the file."""
    head, _, rest = data.partition(b"\n")
    kind, *numbers = head.split()
    _, i, _, o, a = map(int, numbers[:5])
    if kind == b"aag":
        lines = rest.split(b"\n")
        gates = [tuple(map(int, line.split())) for line in lines[i + o : i + o + a]]
        return Circuit([int(x) // 2 for x in lines[:i]], [*map(int, lines[i : i + o])], gates)  # pyright: ignore[reportArgumentType]
    outputs = []
    for _ in range(o):
        line, _, rest = rest.partition(b"\n")
        outputs.append(int(line))
    at, gates = 0, []
    for number in range(i + 1, i + a + 1):
        literals = [2 * number]
        for _ in range(2):
            delta = shift = 0
            while True:
                byte = rest[at]
                at += 1
                delta += (byte % 128) * 2**shift
                shift += 7
                if byte < 128:
                    break
            literals.append(literals[-1] - delta)
        gates.append(tuple(literals))
    return Circuit([*range(1, i + 1)], outputs, gates)


def simulate(circuit: Circuit, bits: np.ndarray) -> np.ndarray:
    """(assignments, outputs) from (assignments, inputs), both Boolean."""
    wires = {0: np.zeros(len(bits), dtype=bool)}
    wires |= dict(zip(circuit.inputs, np.asarray(bits, dtype=bool).T, strict=True))

    def literal(x: int) -> np.ndarray:
        return ~wires[x // 2] if x % 2 else wires[x // 2]

    waiting = circuit.gates
    while waiting:
        later = []
        for gate in waiting:
            out, a, b = gate
            if a // 2 in wires and b // 2 in wires:
                wires[out // 2] = literal(a) & literal(b)
            else:
                later.append(gate)
        assert len(later) < len(waiting), "a cycle, or a wire without a definition"
        waiting = later
    return np.array([literal(x) for x in circuit.outputs]).reshape(len(circuit.outputs), -1).T
