"""Reads circuits in AIGER 1.9, binary (`aig`) and ASCII (`aag`), without latches.

A literal is twice a variable, plus 1 if it is inverted; 0 and 1 are the constants. In the binary
format variables are numbered in order, inputs first, so that a gate is two differences of
literals, each in groups of seven bits, the lowest first.

Nothing in a file is believed before it was counted against the bytes that are there. A mistake is
a ValueError that names the line, or the byte in a binary file.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import MOST_INPUTS, MOST_WIRES
from exactformer.domains.data import listed
from exactformer.domains.formats.netlist import (
    Literals,
    Netlist,
    Place,
    and_program,
)

REFUSED = ("bad states", "constraints", "justice properties", "fairness constraints")
MOST_DIGITS = 10
MOST_BYTES = 5  # of a difference: more than the largest variable needs
SYMBOLS = {"i": "inputs", "l": "latches", "o": "outputs", "b": "bad states", "c": "constraints"}
SYMBOLS |= {"j": "justice properties", "f": "fairness constraints"}


class Header(NamedTuple):
    variables: int
    inputs: int
    outputs: int
    gates: int
    end: int  # index of the first byte behind it


def is_aiger(data: bytes) -> bool:
    return data[:4] in (b"aig ", b"aag ")


def read_aiger(data: bytes, name: str) -> Netlist:
    """The circuit of an AIGER file with these bytes; `name` is the file's in error messages."""
    binary = data[:3] == b"aig"
    place = Place(name, data, by_line=not binary)
    header = _header(place, binary)
    return (_binary if binary else _ascii)(place, header)


def _header(place: Place, binary: bool) -> Header:
    end = place.data.find(b"\n", 0, 200) + 1
    words = place.data[: end - 1].split(b" ") if end else []
    if not 6 <= len(words) <= 10 or not all(_is_number(word) for word in words[1:]):
        form = "a header 'aig M I L O A' or 'aag M I L O A' of whole numbers"
        place.refuse(0, form, place.shown(0))
    numbers = [int(word) for word in words[1:]]
    variables, inputs, latches, outputs, gates = numbers[:5]
    place.require(0, "variables", variables, MOST_WIRES)
    place.require(0, "inputs", inputs, MOST_INPUTS)
    if latches:
        place.refuse(0, "a circuit without latches", f"{latches} of them")
    others = [f"{n} {what}" for what, n in zip(REFUSED, numbers[5:], strict=False) if n]
    if others:
        place.refuse(0, "a circuit with outputs alone", listed(others, "and"))
    known = inputs + gates
    if variables != known if binary else variables < known:
        least = "" if binary else " or more"
        place.refuse(0, f"{known} variables{least}, the inputs and gates together", f"{variables}")
    needed = 2 * outputs + (2 * gates if binary else 2 * inputs + 6 * gates)
    left = len(place.data) - end
    if left < needed:  # before anything is made of them
        what = f"{outputs} outputs and {gates} gates, which take {needed} bytes or more"
        place.refuse(len(place.data), what, f"{left} bytes behind the header")
    return Header(variables, inputs, outputs, gates, end)


def _is_number(word: bytes) -> bool:
    return word.isdigit() and len(word) <= 2 * MOST_DIGITS


def _binary(place: Place, header: Header) -> Netlist:
    inputs, gates = header.inputs, header.gates
    outputs, _, end = _rows(place, header.end, header.outputs, 1, 2 * header.variables + 1)
    left, right, end = _differences(place, end, 2 * (inputs + 1), gates)
    names = [f"n{i}" for i in range(1, header.variables + 1)]
    program = and_program(names, inputs, left, right, outputs.ravel())
    return Netlist(program, gates, *_symbols(place, end, header), "aig")


def _differences(
    place: Place, begin: int, first: int, gates: int
) -> tuple[Literals, Literals, int]:
    """The two literals of each gate, and where the gates end."""
    region = np.frombuffer(place.data, np.uint8)[begin : begin + 2 * MOST_BYTES * gates]
    ends = np.flatnonzero(region < 128)[: 2 * gates]
    starts = np.concatenate([[0], ends + 1])
    lengths = np.diff(starts)
    if (lengths > MOST_BYTES).any():
        at = begin + int(starts[np.argmax(lengths > MOST_BYTES)])
        place.refuse(at, f"a difference of {MOST_BYTES} bytes at most", "a longer one")
    if len(ends) < 2 * gates:
        what = f"the differences of {gates} gates"
        behind = begin + int(starts[-1])
        if len(place.data) - behind > MOST_BYTES:
            place.refuse(behind, f"a difference of {MOST_BYTES} bytes at most", "a longer one")
        place.refuse(len(place.data), what, f"the end of the file in gate {len(ends) // 2 + 1}")
    found = np.zeros(2 * gates, dtype=np.int64)
    for i in range(MOST_BYTES):
        has = lengths > i
        found[has] |= (region[starts[:-1][has] + i] & 127).astype(np.int64) << 7 * i
    defined = first + 2 * np.arange(gates, dtype=np.int64)
    left = defined - found[::2]
    right = left - found[1::2]
    wrong = np.column_stack([(found[::2] < 1) | (left < 0), right < 0]).ravel()
    if wrong.any():
        i = int(np.argmax(wrong))
        gate, second = divmod(i, 2)
        most = int(left[gate] if second else defined[gate])
        place.refuse(
            begin + int(starts[i]), f"a difference from {1 - second} to {most}", f"{found[i]}"
        )
    return left, right, begin + int(starts[-1])


def _ascii(place: Place, header: Header) -> Netlist:
    largest = 2 * header.variables + 1
    defined, at_input, end = _rows(place, header.end, header.inputs, 1, largest)
    outputs, at_output, end = _rows(place, end, header.outputs, 1, largest)
    gates, at_gate, end = _rows(place, end, header.gates, 3, largest)
    literals = np.concatenate([defined.ravel(), gates[:, 0]])
    offsets = np.concatenate([at_input, at_gate])
    bad = (literals < 2) | (literals & 1 == 1)
    if bad.any():
        i = int(np.argmax(bad))
        place.refuse(offsets[i], "a literal that is even and not 0", f"{literals[i]}")
    order = np.argsort(literals, kind="stable")
    known = literals[order]
    again = np.flatnonzero(known[1:] == known[:-1])
    if len(again):
        later = int(order[again + 1].min())
        place.refuse(
            offsets[later], "each variable defined once", f"{literals[later]} a second time"
        )

    def renumbered(used: Literals, offsets: NDArray[np.int64]) -> Literals:
        """The literals by the order of definitions in the file."""
        i = np.searchsorted(known, used & ~1)
        place_of = np.append(order, 0)[i]
        missing = (used > 1) & (np.append(known, -1)[i] != used & ~1)
        if missing.any():
            first = int(np.argmax(missing))
            place.refuse(offsets[first], "a literal that is defined", f"{used[first]}")
        return np.where(used > 1, 2 + 2 * place_of + (used & 1), used)

    right_sides = gates[:, 1:]
    two = renumbered(right_sides.ravel(), np.repeat(at_gate, 2)).reshape(-1, 2)
    names = [f"n{literal // 2}" for literal in literals.tolist()]
    results = renumbered(outputs.ravel(), at_output)
    program = and_program(names, header.inputs, two[:, 0], two[:, 1], results)
    own = 2 + 2 * (header.inputs + np.arange(header.gates))
    if (two >= own[:, None]).any():  # not in order, which is allowed
        cycle = program.cycle
        if cycle:
            gate = min(cycle)
            what = "a gate that does not depend on itself"
            place.refuse(at_gate[gate - header.inputs], what, f"{literals[gate]}, which does")
    return Netlist(program, header.gates, *_symbols(place, end, header), "aag")


def _rows(
    place: Place, begin: int, rows: int, columns: int, largest: int
) -> tuple[Literals, NDArray[np.int64], int]:
    """The numbers of lines of so many literals each, where each line begins, and where the last one
    ends.
    """
    count = rows * columns
    region = np.frombuffer(place.data, np.uint8)[begin : begin + count * (MOST_DIGITS + 1)]
    between = np.flatnonzero((region < 48) | (region > 57))[:count]
    starts = np.concatenate([[0], between + 1])
    lengths = np.diff(starts) - 1
    wanted = np.full((rows, columns), ord(" "))
    wanted[:, -1:] = ord("\n")
    wrong = region[between] != wanted.ravel()[: len(between)]
    wrong |= (lengths < 1) | (lengths > MOST_DIGITS)
    if wrong.any() or len(between) < count:
        row = int(np.argmax(wrong) if wrong.any() else len(between)) // columns
        at = begin + int(starts[row * columns])
        literals = "a literal" if columns == 1 else f"{columns} literals with a space between"
        place.refuse(at, f"a line of {literals}", place.shown(at))
    found = np.zeros(count, dtype=np.int64)
    for i in range(int(lengths.max(initial=0))):
        has = lengths > i
        found[has] = 10 * found[has] + region[starts[:-1][has] + i] - 48
    at_row = begin + starts[:-1][::columns]
    if (found > largest).any():
        i = int(np.argmax(found > largest))
        place.refuse(int(at_row[i // columns]), f"a literal up to {largest}", f"{found[i]}")
    return found.reshape(rows, columns), at_row, begin + int(starts[-1])


def _symbols(place: Place, begin: int, header: Header) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of inputs and outputs, from the lines behind the gates; `i0` and `o0` for those
    that have none. What follows a line `c` is a comment.
    """
    data = place.data
    counts = {"i": header.inputs, "o": header.outputs}
    names: dict[str, dict[int, str]] = {"i": {}, "o": {}}
    while begin < len(data) and data[begin : begin + 2] not in (b"c\n", b"c"):
        end = data.find(b"\n", begin)
        word, _, text = data[begin : max(end, begin)].partition(b" ")
        kind, number = word[:1].decode("latin-1"), word[1:]
        if end < 0 or kind not in SYMBOLS or not _is_number(number) or not text:
            expected = "a name such as 'i0 reset' in a line of its own, or the line 'c'"
            place.refuse(begin, expected, place.shown(begin))
        count, index = counts.get(kind, 0), int(number)
        if index >= count:
            what = f"the name of one of {count} {SYMBOLS[kind]}"
            place.refuse(begin, what, f"{kind}{index}")
        if index in names[kind]:
            place.refuse(begin, "one name each", f"a second one of {kind}{index}")
        try:
            names[kind][index] = text.decode()
        except UnicodeDecodeError as error:
            byte = text[error.start]
            at = begin + len(word) + 1 + error.start
            place.refuse(at, "a name in UTF-8", f"the byte 0x{byte:02x}")
        begin = end + 1
    inputs, outputs = (
        tuple(names[kind].get(i, f"{kind}{i}") for i in range(count))
        for kind, count in counts.items()
    )
    return inputs, outputs
