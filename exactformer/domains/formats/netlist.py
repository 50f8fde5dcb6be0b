"""A netlist: a circuit of gates from a file, as a program of the Boolean algebra.

The names of the program are those of the wires in it, `n7` for variable 7; the file's own names of
inputs and outputs stand beside it, since they may be any text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import shortened
from exactformer.domains.catalog import boolean
from exactformer.domains.program import WIRE, Program
from exactformer.domains.symbols import CLOSE, OPEN

Literals = NDArray[np.int64]

FALSE = 0  # the literal of the constant; 2 + 2 * wire is that of a wire, and 1 more inverts


@dataclass(frozen=True, eq=False)
class Netlist:
    """A circuit from a file.

    program   its inputs are the circuit's inputs, its outputs the circuit's, in the file's order.
    gates     how many of the first statements are gates; others only invert an output, or give it
              a constant.
    inputs    the file's names of the inputs.
    outputs   the file's names of the outputs.
    format    name of the file's format.
    """

    program: Program
    gates: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    format: str

    @cached_property
    def levels(self) -> int:
        """The largest number of gates on a path from an input to an output."""
        return int(self.program.levels[: self.program.inputs + self.gates].max(initial=0))


class Place:
    """A file that is being read, with what locates a mistake in it: lines of a text, else bytes."""

    def __init__(self, name: str, data: bytes, *, by_line: bool) -> None:
        self.name, self.data, self.by_line = name, data, by_line

    def of(self, offset: int) -> str:
        if self.by_line:
            before = self.data.count(b"\n", 0, offset)
            return f"line {before + 1}"
        return f"byte {offset}"

    def refuse(self, offset: int, expected: str, found: str) -> NoReturn:
        raise ValueError(f"{self.name}: {self.of(offset)}: expected {expected}, found {found}")

    def require(self, offset: int, what: str, found: int, most: int) -> None:
        """Refuse a count that no memory is meant for, before anything is made of it."""
        if found > most:
            self.refuse(offset, f"{most:,} {what} at most", shortened(found))

    def shown(self, offset: int) -> str:
        """The text at a place, up to the end of the line, for a message."""
        rest = self.data[offset : offset + 40]
        if not rest:
            return "the end of the file"
        return quote_bytes(rest.split(b"\n")[0])


def quote_bytes(data: bytes, longest: int = 20) -> str:
    """Some bytes of a file in quotes, shortened if they are many."""
    shown = data if len(data) <= longest else data[: longest - 3] + b"..."
    return repr(shown)[1:]


# The tokens of a statement by its literals: each is a wire, an inverted wire or a constant, and one
# alone is what an output needs. LEFT and RIGHT stand for the constants. For two inverted
# wires it is `(~(a|b))` and not `((~a)&(~b))`: with one span in every other, it is a chain of maps,
# for which the layer by the logarithm takes one iteration.
PLAIN, INVERTED, CONSTANT, NOTHING = range(4)
LEFT, RIGHT = -10, -11
AND, OR, NOT = (boolean().token_ids[symbol] for symbol in "&|~")
VALUES = np.array([boolean().token_ids[symbol] for symbol in "01"], dtype=np.int16)
INVERSE = (OPEN, NOT, WIRE, CLOSE)
LEFTS: dict[int, tuple[int, ...]] = {PLAIN: (WIRE,), INVERTED: INVERSE, CONSTANT: (LEFT,)}
RIGHTS = LEFTS | {CONSTANT: (RIGHT,)}
TEMPLATES: dict[tuple[int, int], tuple[int, ...]] = {
    (left, right): (OPEN, *before, AND, *after, CLOSE)
    for left, before in LEFTS.items()
    for right, after in RIGHTS.items()
}
TEMPLATES[INVERTED, INVERTED] = (OPEN, NOT, OPEN, WIRE, OR, WIRE, CLOSE, CLOSE)
TEMPLATES |= {(left, NOTHING): LEFTS[left] for left in (INVERTED, CONSTANT)}


def and_program(
    names: Sequence[str], inputs: int, left: Literals, right: Literals, outputs: Literals
) -> Program:
    """The program of a netlist whose gates are AND of two literals, gate i for names[inputs + i].
    An output that is no wire has a statement behind the gates, named `o3`.
    """
    needs = _kinds(outputs) != PLAIN
    behind = np.flatnonzero(needs)
    results = outputs // 2 - 1
    results[behind] = inputs + len(left) + np.arange(len(behind))
    left = np.concatenate([left, outputs[behind]])
    right = np.concatenate([right, np.full(len(behind), -1)])
    lefts, rights = _kinds(left), _kinds(right)
    chosen = {kinds: (lefts == kinds[0]) & (rights == kinds[1]) for kinds in TEMPLATES}
    lengths = np.empty(len(left), dtype=np.int64)
    for kinds, where in chosen.items():
        lengths[where] = len(TEMPLATES[kinds])
    starts = np.cumsum(lengths) - lengths
    ids = np.empty(int(lengths.sum()), dtype=np.int16)
    for kinds, where in chosen.items():
        for column, token in enumerate(TEMPLATES[kinds]):
            constant = {LEFT: left, RIGHT: right}.get(token)
            ids[starts[where] + column] = token if constant is None else VALUES[constant[where]]
    both = np.column_stack([left, right]).ravel()
    return Program(
        boolean(),
        names=(*names, *(f"o{i}" for i in behind.tolist())),
        inputs=inputs,
        ids=ids,
        lengths=lengths,
        wires=both[both > 1] // 2 - 1,
        outputs=tuple(results.tolist()),
    )


def _kinds(literals: Literals) -> NDArray[np.int64]:
    return np.where(literals < 0, NOTHING, np.where(literals < 2, CONSTANT, literals & 1))
