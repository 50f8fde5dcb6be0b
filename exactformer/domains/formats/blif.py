"""Reads combinational circuits in BLIF: `.model`, `.inputs`, `.outputs`, `.names` and `.end`.

A gate is a cover: a list of cubes, each with `0`, `1` or `-` for each input, all for the value 1
of the gate or all for 0. It becomes OR of ANDs, each halved again and again, so that its nesting
grows with the logarithm of its size. A gate depends on the inputs that some cube asks for, and on
none for which all have `-`. Statements may stand in any order.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from exactformer.domains.bounds import MOST_INPUTS
from exactformer.domains.catalog import boolean
from exactformer.domains.errors import quote
from exactformer.domains.formats.netlist import AND, NOT, OR, VALUES, Netlist, Place
from exactformer.domains.program import WIRE, Program
from exactformer.domains.symbols import CLOSE, OPEN

KNOWN = (".model", ".inputs", ".outputs", ".names", ".end")
Tokens = list[int]


class Line(NamedTuple):
    """A line with those that continue it: its words, and where it begins."""

    offset: int
    words: list[str]


class Gate(NamedTuple):
    """A gate: the name of its wire, those of its inputs, and the lines of its cover."""

    offset: int
    inputs: list[str]
    cover: list[Line]


def is_blif(data: bytes) -> bool:
    """Whether the first word of a text, behind comments, is a declaration as BLIF has them."""
    for line in data[: 1 << 16].splitlines():
        word = line.partition(b"#")[0].split()
        if word:
            return word[0].startswith(b".")
    return False


def read_blif(data: bytes, name: str) -> Netlist:
    """The circuit of a BLIF file with these bytes; `name` is the file's in error messages."""
    place = Place(name, data, by_line=True)
    inputs: dict[str, int] = {}
    outputs: list[tuple[str, int]] = []
    gates: dict[str, Gate] = {}
    cover: list[Line] | None = None  # of the gate whose cubes may follow
    models = ended = latches = 0
    first_latch = 0
    for line in _lines(place):
        word, *rest = line.words
        if ended:
            place.refuse(line.offset, "nothing behind .end", quote(word))
        if not word.startswith("."):
            if cover is None:
                place.refuse(line.offset, "a declaration such as .names", quote(word))
            cover.append(line)
            continue
        cover = None
        if word == ".model":
            models += 1
            if models > 1:
                place.refuse(line.offset, "one .model", "a second one")
            if len(rest) > 1:  # such as all of a file whose lines end in another way
                place.refuse(line.offset, "one name behind .model", quote(rest[1]))
        elif word == ".inputs":
            for wire in rest:
                if wire in inputs:
                    place.refuse(line.offset, "each input once", f"{quote(wire)} again")
                inputs[wire] = line.offset
            place.require(line.offset, "inputs", len(inputs), MOST_INPUTS)
        elif word == ".outputs":
            outputs += [(wire, line.offset) for wire in rest]
        elif word == ".names":
            if not rest:
                place.refuse(line.offset, "the name of a wire behind .names", "none")
            if rest[-1] in gates or rest[-1] in inputs:
                place.refuse(line.offset, "each wire defined once", f"{quote(rest[-1])} again")
            cover = []
            gates[rest[-1]] = Gate(line.offset, rest[:-1], cover)
        elif word == ".end":
            ended = 1
        elif word == ".latch":
            latches, first_latch = latches + 1, first_latch or line.offset
        else:
            place.refuse(line.offset, f"one of {' '.join(KNOWN)}", quote(word))
    if latches:
        place.refuse(first_latch, "a circuit without latches", f"{latches} of them")
    if not (models or inputs or outputs or gates):
        place.refuse(len(data), "a circuit that begins with .model", "nothing")
    for wire, offset in inputs.items():
        if wire in gates:
            place.refuse(offset, "inputs that no gate defines", quote(wire))
    return _netlist(place, [*inputs], outputs, gates)


def _netlist(
    place: Place, inputs: list[str], outputs: list[tuple[str, int]], gates: dict[str, Gate]
) -> Netlist:
    index = {wire: i for i, wire in enumerate([*inputs, *gates])}
    ids: Tokens = []
    lengths: list[int] = []
    wires: list[int] = []
    for gate in gates.values():
        known: list[int] = []
        for wire in gate.inputs:
            if wire not in index:
                place.refuse(gate.offset, "a wire that is defined", quote(wire))
            known.append(index[wire])
        tokens, used = _expression(place, gate)
        ids += tokens
        lengths.append(len(tokens))
        wires += [known[i] for i in used]
    for wire, offset in outputs:
        if wire not in index:
            place.refuse(offset, "an output that is defined", quote(wire))
    program = Program(
        boolean(),
        names=tuple(f"n{i}" for i in range(len(index))),
        inputs=len(inputs),
        ids=np.array(ids, dtype=np.int16),
        lengths=np.array(lengths, dtype=np.int64),
        wires=np.array(wires, dtype=np.int64),
        outputs=tuple(index[wire] for wire, _ in outputs),
    )
    cycle = program.cycle
    if cycle:
        wire, gate = [*gates.items()][min(cycle) - len(inputs)]
        what = "a gate that does not depend on itself"
        place.refuse(gate.offset, what, f"{quote(wire)}, which does")
    named = tuple(wire for wire, _ in outputs)
    return Netlist(program, len(gates), tuple(inputs), named, "blif")


def _lines(place: Place) -> Iterator[Line]:
    """The lines that are not empty, without comments; a backslash at the end goes on in the next
    one.
    """
    offset, words, begun = 0, list[str](), 0
    for line in place.data.split(b"\n"):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            found = f"the byte 0x{line[error.start]:02x}"
            place.refuse(offset, "UTF-8 text", found)
        text = text.partition("#")[0].rstrip()
        begun = begun if words else offset
        words += text.removesuffix("\\").split()
        if not text.endswith("\\"):
            if words:
                yield Line(begun, words)
            words = []
        offset += len(line) + 1
    if words:
        place.refuse(len(place.data), "the line that goes on", "the end of the file")


def _expression(place: Place, gate: Gate) -> tuple[Tokens, list[int]]:
    """The tokens of a cover, and the inputs that stand at its wires, in order."""
    arity, cubes, results = len(gate.inputs), list[Tokens](), set[str]()
    used: list[int] = []
    for offset, words in gate.cover:
        cube, result = ("", *words) if not arity and len(words) == 1 else (*words, "", "")[:2]
        whole = len(words) == (2 if arity else 1) and len(cube) == arity and not cube.strip("01-")
        if not whole or result not in ("0", "1"):
            form = f"{arity} of 0, 1 and -, a space, and 0 or 1" if arity else "0 or 1"
            place.refuse(offset, form, quote(" ".join(words)))
        results.add(result)
        if len(results) > 1:
            place.refuse(offset, "a cover for one value", "cubes for 0 and for 1")
        known = [i for i in range(arity) if cube[i] != "-"]
        used += known
        literals = [[WIRE] if cube[i] == "1" else [OPEN, NOT, WIRE, CLOSE] for i in known]
        cubes.append(_halved(AND, literals) if literals else [int(VALUES[1])])
    tokens = _halved(OR, cubes) if cubes else [int(VALUES[0])]
    return ([OPEN, NOT, *tokens, CLOSE] if results == {"0"} else tokens), used


def _halved(operator: int, parts: list[Tokens]) -> Tokens:
    """The parts joined by an operator of two operands, as evenly as can be."""
    while len(parts) > 1:
        pairs = [
            [OPEN, *parts[i], operator, *parts[i + 1], CLOSE] for i in range(0, len(parts) - 1, 2)
        ]
        parts = pairs + parts[len(pairs) * 2 :]
    return parts[0]
