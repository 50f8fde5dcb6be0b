"""A recorded run of a program: when each statement ran, and what it was after each iteration."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from exactformer.domains.belonging import algebra_of
from exactformer.domains.bounds import require
from exactformer.domains.program import Program
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.model.gated import Gated
from exactformer.model.iterations import Iterations
from exactformer.model.wires import run
from exactformer.trace.runs import trace
from exactformer.trace.shown import EMPTY_POSITION

MOST_TRACED = 2_000  # statements of a program whose run is shown
WAITS = EMPTY_POSITION
BECOMES = " > "


@dataclass(frozen=True)
class TracedStatement:
    """A statement's part in a run.

    start    the iteration after which it has the values of all its names; 0 if it uses none.
    end      the iteration after which it has its own value.
    reads    whether it uses names: then the first of its iterations begins with the wires' reading.
    states   what it was with these values in place, then after each of its own iterations.
    """

    name: str
    text: str
    start: int
    end: int
    reads: bool
    states: list[str]
    value: str

    def cell(self, iteration: int) -> str:
        """The text that a picture shows in an iteration; column 0 is what is there at first."""
        if iteration < self.start or (iteration == self.start and self.reads):
            return WAITS
        if iteration > self.end:
            return ""
        own = iteration - self.start
        if own == 1 and self.reads and self.states[1:]:  # else a copy, with nothing for the layer
            return self.states[0] + BECOMES + self.states[1]
        return self.states[min(own, len(self.states) - 1)]


@dataclass(frozen=True)
class ProgramTrace:
    """The run of a program: its statements in the order of the text, and the wires between them.

    wires   a pair of numbers for each use of a name: the statement that defines it, and the one
            that uses it.
    """

    program: Program
    statements: list[TracedStatement]
    wires: list[tuple[int, int]]
    iterations: int

    @property
    def outputs(self) -> dict[str, str]:
        """The values of the program's outputs, by name."""
        chosen = [self.statements[i] for i in self.program.outputs]
        return {statement.name: statement.value for statement in chosen}

    def to_dict(self) -> dict[str, Any]:
        """Plain data, which a picture of wires as arcs and iterations as columns can be made of."""
        return {
            "domain": self.program.domain.name,
            "statements": [vars(statement) for statement in self.statements],
            "wires": [[*wire] for wire in self.wires],
            "outputs": self.outputs,
            "iterations": self.iterations,
        }

    def __repr__(self) -> str:
        count = len(self.statements)
        return f"ProgramTrace({count} statements, {self.iterations} iterations: {self.outputs})"

    def __str__(self) -> str:
        """A row a statement, a column an iteration; `·` waits for names."""
        columns = range(self.iterations + 1)
        rows = [["", *("start" if i == 0 else f"iteration {i}" for i in columns)]]
        for statement in self.statements:
            cells = [statement.cell(i) for i in columns]
            rows.append([f"{statement.name} = {statement.text}", *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        values = " ".join(f"{name}={value}" for name, value in self.outputs.items())
        plural = "" if self.iterations == 1 else "s"
        return "\n".join([*lines, "", f"{values} after {self.iterations} iteration{plural}"])


@torch.no_grad()
def trace_program(
    program: Program, weights: Gated, iterations: Iterations = "depth"
) -> ProgramTrace:
    """Run a program without inputs, and trace each statement by its own layer, from the iteration
    on in which it has its names' values. The logarithmic layer requires certified weights.
    """
    require("statements of a program that is traced", len(program), MOST_TRACED)
    if program.inputs:
        raise ValueError(f"expected a program without inputs, found {program.inputs}")
    algebra, ran = algebra_of(program.domain), run(program, weights, iterations=iterations)
    values, texts = ran.values[0].numpy(force=True), program.statements()
    between, traced = "" if algebra.packs else " ", list[TracedStatement]()
    for i, (name, text) in enumerate(texts):
        tokens = (FIRST_VALUE + values[program.uses(i)]).tolist()
        steps = trace(algebra, weights, program.expression(i, tokens), iterations)
        states = [str(program.expression(i, tokens))]
        for step in steps.steps:
            states.append(between.join(token for token in step.state if token != EMPTY_POSITION))
        start, end = int(ran.start[i]), int(ran.end[i])
        value = algebra.values[values[i]]
        traced.append(TracedStatement(name, text, start, end, bool(tokens), states, value))
    pairs = np.column_stack([program.wires, program.users]).tolist()
    return ProgramTrace(program, traced, [(a, b) for a, b in pairs], ran.iterations)
