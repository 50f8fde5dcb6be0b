"""Many short texts, a line each: the engine beside a stack machine in compiled code, the oracle and
Python's `eval`. A program takes all lines and returns the values one after the other.

As for long texts (`rivals.py`), the compiled machines are written by hand for one task, and trust
the text to be canonical; they are the tuned ones of those there, with a value for each line.
"""

from collections.abc import Iterator

import numpy as np

from exactformer.api import Model, construct
from exactformer.bench.measure import SEED, Case, Report, time_in_turns
from exactformer.bench.rivals import COMPILED, ENGINE, EVAL, EVALS, FLOORS, ONE_CORE, Program
from exactformer.bench.shapes import make_ids, text_of
from exactformer.domains.algebra import Algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.engine.rows import read_part
from exactformer.evaluation.values import spelt

ORACLE = "parser and oracle"
FLOOR = FLOORS[-1]
SHORT_PROGRAMS = (ENGINE, ONE_CORE, FLOOR, ORACLE, EVAL)
LENGTHS = (5, 13, 100)  # tokens of a text
MOST_TOKENS = 2**21  # of all texts
DIFFERENT = 10_000  # texts, from which the others are drawn


def short_programs(model: Model) -> dict[str, Program]:
    """All programs for a model's task, by name."""
    algebra, engine = model.algebra, model.fast_engine("fast")
    _, machine = COMPILED[algebra.name]

    def by_engine(text: bytes) -> str:
        rows = engine.rows(np.frombuffer(text, dtype=np.uint8))
        return spelt(rows.values, algebra.values)

    def one_core(text: bytes) -> str:
        array = np.frombuffer(text, dtype=np.uint8)
        read = read_part(engine.tables_of_lines, array, 0, len(array), ord("\n"))
        return spelt(read.values, algebra.values)

    def by_machine(text: bytes) -> str:
        values = np.empty(text.count(b"\n"), dtype=np.uint8)
        machine(np.frombuffer(text, dtype=np.uint8), values)
        return (values + 48).tobytes().decode()  # digits

    def line_by_line(program: Program) -> Program:
        return lambda text: "".join(map(program, text.splitlines()))

    programs = {
        ENGINE: by_engine,
        ONE_CORE: one_core,
        FLOOR: by_machine,
        ORACLE: line_by_line(lambda line: evaluate(parse(algebra, line))),
    }
    if algebra.name in EVALS:
        programs[EVAL] = line_by_line(EVALS[algebra.name])
    return programs


def time_short(
    algebra: Algebra, most_tokens: int, report: Report = lambda what: None
) -> Iterator[Case]:
    """All lengths of a task."""
    ready = short_programs(construct(algebra))
    rng = np.random.default_rng(SEED)
    for length in LENGTHS:
        report(f"{algebra.name}, texts of {length} tokens")
        count = max(1, min(most_tokens, MOST_TOKENS) // length)
        ids = [make_ids(algebra, "random", length, rng) for _ in range(min(count, DIFFERENT))]
        texts = [text_of(algebra, some) + b"\n" for some in ids]
        chosen = rng.integers(len(ids), size=count).tolist()
        text = b"".join([texts[i] for i in chosen])
        for program in ready.values():
            program(texts[0])  # compiled
        values, timings = time_in_turns(ready, text)
        tokens = sum(len(ids[i]) for i in chosen)
        yield Case(algebra.name, f"{length} tokens", tokens, len(text), values, timings)
