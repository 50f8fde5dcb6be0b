"""Outputs of circuits: the one place that decides which engine gives them.

Assignments come from a file, a line of `0` and `1` for each, and outputs go the same way. A block
of lines at a time is read, run and yielded, whatever the size of the file.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError, quote
from exactformer.domains.formats.lines import BadLines, Lines
from exactformer.domains.formats.netlist import Netlist
from exactformer.engine.choice import EngineUsed
from exactformer.evaluation.values import Evaluator, Tell

Bits = NDArray[np.uint8]  # (assignments, wires), 0 or 1
NEWLINE = ord("\n")


@dataclass(frozen=True)
class Circuit:
    """A netlist, and the weights and the engine that evaluate it. The evaluator is one of the
    netlist's algebra; it decides between the tables of its weights and the transformer.
    """

    netlist: Netlist
    evaluator: Evaluator

    @property
    def algebra(self) -> Algebra:
        return self.evaluator.algebra

    @property
    def runs(self) -> EngineUsed:
        return self.evaluator.runs

    @cached_property
    def iterations(self) -> int:
        """The iterations that the transformer takes, which no assignment changes."""
        return self._model(np.zeros((1, self.netlist.program.inputs), np.uint8))[1]

    def outputs(self, bits: Bits, tell: Tell = lambda share: None) -> Bits:
        """The outputs for each assignment of the inputs."""
        if self.runs == "model":
            return self._model(bits, tell)[0]
        from exactformer.engine.circuits import pack, unpack

        return self._index(unpack(self._engine.run(pack(self._index(bits))), len(bits)))

    def lines(self, path: Path) -> Iterator[Bits]:
        """The outputs for the lines of a file (`-` is standard input), many at a time. A bad line
        is a ValueError.
        """
        from exactformer.host.progress import bar, is_typed

        width = self.netlist.program.inputs
        with Lines.of(path) as file, bar(shown=not is_typed(path)) as tell:
            for block in file.blocks():
                bits = read_bits(block, width, str(path), file.number)
                before, size = file.number, file.size

                def told(share: float, before: int = before, rows: int = len(bits)) -> None:
                    tell("assignments", before - 1 + share * rows, None)

                if size is None or self.runs == "model":
                    told(0)
                yield self.outputs(bits, told)
                told(1)
                file.number += len(bits)
            if file.number == 1:
                raise ValueError(f"{path}: expected an assignment on each line, found none")

    @cached_property
    def _engine(self):
        from exactformer.engine.circuits import circuit_engine

        fast = self.evaluator.fast
        assert fast is not None, "`runs` says which of the two it is"
        return circuit_engine(
            self.netlist.program, fast.automaton, self.algebra, self.evaluator.device
        )

    def _model(self, bits: Bits, tell: Tell = lambda share: None) -> tuple[Bits, int]:
        from exactformer.model.wires import run

        program, by = self.netlist.program, self.evaluator.iterations or "depth"
        loaded = self.evaluator.loaded
        loaded.require_exact(by)
        inputs = self._index(bits).astype(np.int64)
        kept = np.array(program.outputs, dtype=np.int64)
        found = run(program, loaded.weights, inputs, kept, by, tell)
        return self._index(found.values.cpu().numpy().astype(np.uint8)), found.iterations

    def _index(self, bits: Bits) -> Bits:
        """The index of the value of each bit; and the bit of each index, as there are two."""
        return bits ^ np.uint8(self.algebra.values.index("0"))


def read_bits(block: NDArray[np.uint8], width: int, name: str, first_line: int) -> Bits:
    """The assignments of whole lines, of which the last one need not end."""
    if not len(block) or block[-1] != NEWLINE:
        block = np.append(block, np.uint8(NEWLINE))
    if (block == ord("\r")).any():
        block = np.frombuffer(block.tobytes().replace(b"\r\n", b"\n"), dtype=np.uint8)
    if len(block) % (width + 1) == 0:
        rows = block.reshape(-1, width + 1)
        bits = rows[:, :width] - np.uint8(ord("0"))
        if (rows[:, width] == NEWLINE).all() and (bits < 2).all():
            return bits
    for number, line in enumerate(block.tobytes().split(b"\n")[:-1], start=first_line):
        if len(line) != width or line.strip(b"01"):
            raise _bad_line(line, width, name, number)
    raise AssertionError("a block of right lines has their size")


def _bad_line(line: bytes, width: int, name: str, number: int) -> ValueError:
    text = line.decode("utf-8", "replace")
    wrong = next((i for i, char in enumerate(text) if char not in "01"), None)
    if wrong is None:
        problem = f"expected {width} characters 0 or 1, found {len(text)}"
        wrong = min(width, len(text))
    else:
        problem = f"expected 0 or 1, found {quote(text[wrong])}"
    error = ExpressionError(problem, text, wrong, number)
    return BadLines(name, [str(error)], 1, error.place)


def write_bits(bits: Bits) -> str:
    """A line of 0 and 1 for each assignment."""
    lines = np.full((bits.shape[0], bits.shape[1] + 1), NEWLINE, dtype=np.uint8)
    lines[:, :-1] = bits + np.uint8(ord("0"))
    return lines.tobytes().decode("ascii")
