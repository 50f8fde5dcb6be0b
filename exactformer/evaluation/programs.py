"""Values of programs, with the same choice of engines as for expressions (`values.py`)."""

import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactformer.domains.belonging import algebra_of
from exactformer.domains.bounds import LONGEST_TEXT
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import read_bytes, show
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.formats.lines import BadLines
from exactformer.domains.program import Program
from exactformer.domains.program_syntax import parse_program
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.engine.choice import EngineUsed
from exactformer.evaluation.values import Evaluator
from exactformer.model.iterations import Iterations, require_feasible, values_tried

Source = Program | str | bytes


@dataclass(frozen=True, eq=False)
class ProgramRun:
    """The value of each name of a program, and what gave it.

    iterations   how many the transformer took; None where tables gave the values.
    """

    program: Program
    engine: EngineUsed
    values: Mapping[str, str]
    iterations: int | None = None

    @property
    def outputs(self) -> dict[str, str]:
        """The results: the values of the program's outputs."""
        names = self.program.names
        return {names[i]: self.values[names[i]] for i in self.program.outputs}

    def __repr__(self) -> str:
        shown = " ".join(f"{name}={value}" for name, value in self.outputs.items())
        taken = "" if self.iterations is None else f", {self.iterations} iterations"
        return f"ProgramRun({shown if len(shown) < 80 else shown[:76] + ' ...'}{taken})"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as `eval --program --json` prints it."""
        levels = int(self.program.levels.max(initial=0))
        data = {"engine": self.engine, "outputs": self.outputs, "values": dict(self.values)}
        data |= {"statements": len(self.program), "levels": levels}
        return data if self.iterations is None else data | {"iterations": self.iterations}


def program_of(domain: Domain, source: Source, outputs: Sequence[str] | None = None) -> Program:
    """The program that a text is; one that was parsed must be of the domain."""
    if not isinstance(source, Program):
        return parse_program(domain, source, outputs)
    if source.domain != domain:
        found = source.domain.name
        raise ValueError(f"expected a program of {domain.name!r}, found one of {found!r}")
    return source if outputs is None else source.with_outputs(outputs)


def read_program(domain: Domain, path: Path, outputs: Sequence[str] | None = None) -> Program:
    """Read a program from a file; `-` is standard input. A mistake is told with the file's name."""
    if str(path) != "-":
        text = read_bytes(path).removeprefix(BOM_UTF8)
        try:
            return parse_program(domain, text, outputs)
        except ExpressionError as error:
            raise BadLines(str(path), [str(error)], 1, error.place) from None
    text = sys.stdin.buffer.read(LONGEST_TEXT + 1)
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"standard input: expected {LONGEST_TEXT} bytes at most, found more")
    return parse_program(domain, text.removeprefix(BOM_UTF8), outputs)


def run_program(
    evaluator: Evaluator,
    program: Program,
    inputs: Mapping[str, str] | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> ProgramRun:
    """The values of a program by the engine that the evaluator chooses. `inputs` has the values of
    names without a statement, such as the inputs of a netlist.
    """
    require_capability("programs", evaluator.domain, evaluator.iterations or "depth")
    algebra, numbers = algebra_of(evaluator.domain), _numbers(program, inputs or {})
    if fast := evaluator.fast:
        from exactformer.engine.statements import values_by_levels

        engine, found, taken = "fast", values_by_levels(fast, program, numbers).tolist(), None
    else:
        from exactformer.model.wires import run

        by, loaded = evaluator.iterations or "depth", evaluator.loaded
        loaded.require_exact(by)
        require_feasible_program(program, evaluator.most_work, by)
        ran = run(program, loaded.weights, numbers[np.newaxis], iterations=by, tell=tell)
        engine, found, taken = "model", ran.values[0].tolist(), ran.iterations
    values = dict(zip(program.names, (algebra.values[i] for i in found), strict=True))
    return ProgramRun(program, engine, values, taken)


def _numbers(program: Program, inputs: Mapping[str, str]) -> "np.ndarray[Any, np.dtype[np.int64]]":
    """The value indices of a program's inputs."""
    expected = program.names[: program.inputs]
    for name in [*expected, *inputs]:
        if name not in inputs or name not in expected:
            fault = "no value for" if name not in inputs else "a value for no input,"
            raise ValueError(f"inputs: expected a value for each input, found {fault} {name!r}")
    values = algebra_of(program.domain).values
    for name, value in inputs.items():
        if value not in values:
            raise ValueError(f"inputs: expected a value of the algebra, found {name}={show(value)}")
    return np.array([values.index(inputs[name]) for name in expected], dtype=np.int64)


def require_feasible_program(program: Program, most: int | None, by: Iterations) -> None:
    """Refuse statements that would take the transformer hours, unless there is no bound."""
    if most is None or not len(program):
        return
    longest = int(program.lengths.max())
    tried = 1 + values_tried(_with_values(program, int(program.lengths.argmax())), by)
    if 2 * longest**2 * tried <= most:  # more than any statement can take
        return
    for i in np.flatnonzero(2 * program.lengths**2 * tried > most).tolist():
        place = f"{program.names[program.inputs + i]}: "
        require_feasible(_with_values(program, i), most, place, by)


def _with_values(program: Program, statement: int) -> Expression:
    """A right side with some value for each of its names."""
    return program.expression(statement, [FIRST_VALUE] * len(program.uses(statement)))
