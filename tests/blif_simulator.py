"""A second, small reader of BLIF and a simulator, for tests: no code of the package is in them."""

import re
from typing import NamedTuple

import numpy as np


class Model(NamedTuple):
    inputs: list[str]
    outputs: list[str]
    covers: dict[str, tuple[list[str], list[list[str]]]]  # by wire: its inputs, its rows


def read(data: bytes) -> Model:
    """Trusts the file."""
    text = re.sub(r"#[^\n]*", "", data.decode())
    text = re.sub(r"\\[^\S\n]*\n", " ", text)
    model, rows = Model([], [], {}), list[list[str]]()
    for line in text.split("\n"):
        words = line.split()
        if not words:
            continue
        if words[0] == ".inputs":
            model.inputs.extend(words[1:])
        elif words[0] == ".outputs":
            model.outputs.extend(words[1:])
        elif words[0] == ".names":
            rows = []
            model.covers[words[-1]] = (words[1:-1], rows)
        elif words[0] not in (".model", ".end"):
            rows.append(words)
    return model


def simulate(model: Model, bits: np.ndarray) -> np.ndarray:
    """(assignments, outputs) from (assignments, inputs), both Boolean."""
    count = len(bits)
    wires = dict(zip(model.inputs, np.asarray(bits, dtype=bool).T, strict=True))
    waiting = dict(model.covers)
    while waiting:
        ready = [w for w, (ends, rows) in waiting.items() if asked(ends, rows) <= wires.keys()]
        assert ready, "a cycle, or a wire without a definition"
        for wire in ready:
            inputs, rows = waiting.pop(wire)
            some = np.zeros(count, dtype=bool)
            for *cube, _ in rows:
                holds = np.ones(count, dtype=bool)
                for name, wanted in zip(inputs, "".join(cube), strict=True):
                    if wanted != "-":
                        holds &= wires[name] == (wanted == "1")
                some |= holds
            wires[wire] = ~some if rows and rows[0][-1] == "0" else some
    return np.array([wires[name] for name in model.outputs]).reshape(-1, count).T


def asked(inputs: list[str], rows: list[list[str]]) -> set[str]:
    """The inputs that some cube has another character for than `-`."""
    cubes = ["".join(cube) for *cube, _ in rows]
    return {name for i, name in enumerate(inputs) if any(cube[i] != "-" for cube in cubes)}
