"""A recorded run of a program: when each statement ran, and what it was after each iteration."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from exactformer.domains.belonging import algebra_of
from exactformer.domains.bounds import require
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.program import WIRE, Program
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.model.gated import Gated
from exactformer.model.iterations import Iterations
from exactformer.model.wires import run
from exactformer.trace.runs import trace
from exactformer.trace.shown import EMPTY_POSITION, Explained, Trace

MOST_TRACED = 2_000  # statements of a program whose run is shown
WAITS = EMPTY_POSITION
BECOMES = " > "


@dataclass(frozen=True)
class TracedStatement:
    """A statement's part in a run.

    tokens   what stands in each position before names have their values: tokens, and names.
    start    the iteration after which it has the values of all its names; 0 if it uses none.
    end      the iteration after which it has its own value.
    reads    whether it uses names: then the first of its iterations begins with the wires' reading.
    became   the expression that it is with these values in place.
    run      the trace of that, by the layer of the algebra.
    """

    name: str
    text: str
    tokens: list[str]
    start: int
    end: int
    reads: bool
    became: Expression
    run: Trace[Any]
    value: str

    @property
    def states(self) -> list[str]:
        """Its text with these values in place, then after each of its own iterations."""
        between = "" if self.became.domain.packs else " "
        after = [[t for t in step.state if t != EMPTY_POSITION] for step in self.run.steps]
        return [str(self.became), *map(between.join, after)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, without the trace of the layer."""
        names = ("name", "text", "start", "end", "reads", "states", "value")
        return {name: getattr(self, name) for name in names}

    def cell(self, iteration: int) -> str:
        """The text that a picture shows in an iteration; column 0 is what is there at first."""
        if iteration < self.start or (iteration == self.start and self.reads):
            return WAITS
        if iteration > self.end:
            return ""
        own, states = iteration - self.start, self.states
        if own == 1 and self.reads and states[1:]:  # else a copy, with nothing for the layer
            return states[0] + BECOMES + states[1]
        return states[min(own, len(states) - 1)]


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
            "statements": [statement.to_dict() for statement in self.statements],
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
    program: Program,
    weights: Gated,
    iterations: Iterations = "depth",
    observe: Callable[[Explained], None] = lambda step: None,
) -> ProgramTrace:
    """Run a program without inputs, and trace each statement by its own layer, from the iteration
    on in which it has its names' values. The logarithmic layer requires certified weights.
    `observe` gets each iteration of a statement at once; statements that become the same expression
    are traced once.
    """
    require("statements of a program that is traced", len(program), MOST_TRACED)
    if program.inputs:
        raise ValueError(f"expected a program without inputs, found {program.inputs}")
    algebra, ran = algebra_of(program.domain), run(program, weights, iterations=iterations)
    values, texts = ran.values[0].numpy(force=True), program.statements()
    runs, traced = dict[bytes, Trace[Any]](), list[TracedStatement]()
    for i, (name, text) in enumerate(texts):
        uses = program.uses(i)
        became = program.expression(i, (FIRST_VALUE + values[uses]).tolist())
        if (key := became.ids.tobytes()) not in runs:
            runs[key] = trace(algebra, weights, became, iterations, observe)
        tokens = _with_names(program, i)
        start, end, value = int(ran.start[i]), int(ran.end[i]), algebra.values[values[i]]
        reads = len(uses) > 0
        traced.append(
            TracedStatement(name, text, tokens, start, end, reads, became, runs[key], value)
        )
    pairs = np.column_stack([program.wires, program.users]).tolist()
    return ProgramTrace(program, traced, [(a, b) for a, b in pairs], ran.iterations)


def _with_names(program: Program, statement: int) -> list[str]:
    """The token in each position of a statement before its names have their values."""
    domain, right = program.domain, program.right_side(statement)
    ids, _ = domain.positions(right, np.array([len(right)]))
    names = iter(program.names[wire] for wire in program.uses(statement).tolist())
    shown = {WIRE: lambda: next(names), EMPTY: lambda: EMPTY_POSITION}
    return [shown[t]() if t in shown else domain.vocabulary[t] for t in ids.tolist()]
