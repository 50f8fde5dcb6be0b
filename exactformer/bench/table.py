"""The table of `exactformer bench`: all programs on all shapes and sizes, measured in one run."""

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from exactformer.bench.batches import DEPTH, LOOPED, TRANSFORMER, Batch, time_batch
from exactformer.bench.measure import (
    LONGEST,
    MEMORY_SHAPES,
    MOST_FOR_EVAL,
    Case,
    Peaks,
    Timing,
    growth,
    memory_of_task,
    sizes_up_to,
    time_task,
)
from exactformer.bench.rivals import ENGINE, FLOORS, ONE_CORE, PROGRAMS
from exactformer.bench.shapes import SHAPES
from exactformer.bench.short import LENGTHS, SHORT_PROGRAMS, time_short
from exactformer.domains.algebra import Algebra
from exactformer.paper.files import table

LARGE = 4_000_000  # tokens, from which on the engine has to be as fast as the floor
COMBS = ("comb", "right comb")
RATIOS = {ENGINE: "engine ÷ floor", ONE_CORE: "one core ÷ floor"}
BUSY = 1.0  # load of the machine above which the report mentions it

INTRODUCTION = f"""\
Text to value, in million tokens a second: the best of several runs, in which all programs take
turns on the same text. The engine checks every token and can locate an error; it is read off
constructed weights that are certified. The floors are stack machines in compiled code, written by
hand for one task, on one core, which check nothing: a plain one, and one that is tuned. A ratio is
the engine's speed by that of the faster floor. The torch model takes one pass for each level of
nesting, so that a comb costs it n². A program that would take more than {LONGEST:.0f} s, judging by
shorter texts, is not run (where two of these are known, the table says how long it would take);
`eval` gives up on deep nesting, and gets no more than {MOST_FOR_EVAL:,} tokens. All programs
returned the same value wherever they ran."""


SHORT_TEXTS = """\
Many short texts, a line each, in million tokens a second. The engine takes all lines in one pass
and gives an array of values; it checks every token, and locates the errors of bad lines. The floor
is the tuned stack machine with a value for each line, on one core, which checks nothing."""


@dataclass(frozen=True)
class Bench:
    """The measurements of one run."""

    cases: Sequence[Case]
    short: Sequence[Case]  # many short texts
    memory: Peaks
    batches: Sequence[Batch]
    load: float  # of the machine by other programs, before or after, whichever was higher

    def of(self, task: str, shape: str) -> list[Case]:
        return [case for case in self.cases if (case.task, case.shape) == (task, shape)]

    @property
    def tasks(self) -> list[str]:
        return list(dict.fromkeys(case.task for case in self.cases))


def bench(algebras: Sequence[Algebra], most_tokens: int) -> Bench:
    """Measure everything, with progress on stderr where that is a terminal."""
    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn()
    cases: list[Case] = []
    short: list[Case] = []
    memory: Peaks = {}
    batches: list[Batch] = []
    load = os.getloadavg()[0]
    steps = len(algebras) * (len(SHAPES) * len(sizes_up_to(most_tokens)) + len(LENGTHS) + 2)
    done = count()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        shown = progress.add_task("", total=steps)

        def report(what: str) -> None:
            """Show that the step `what` begins now, and that all before it are done."""
            progress.update(shown, description=what, completed=next(done))

        for algebra in algebras:
            of_task = list(time_task(algebra, most_tokens, report))
            cases += of_task
            short += time_short(algebra, most_tokens, report)
            memory |= memory_of_task(algebra, of_task, report)
            report(f"{algebra.name}, the transformer in batches")
            batches.append(time_batch(algebra, most_tokens))
        progress.advance(shown)
    return Bench(cases, short, memory, batches, max(load, os.getloadavg()[0] - 1))


def markdown(found: Bench, command: str) -> str:
    paragraphs = ["# Speed of the engine", f"`{command}`", INTRODUCTION]
    cores = f"{os.cpu_count()} cores"
    if found.load > BUSY:
        paragraphs.append(
            f"{cores}. The machine was shared with other programs meanwhile (load "
            f"{found.load:.1f}): ratios are steadier than speeds, and a second core was often busy."
        )
    else:
        paragraphs.append(f"{cores}, load {found.load:.1f}.")
    paragraphs += [_speeds(found), _growth(found), _memory(found), _headline(found)]
    paragraphs += [short_texts(found.short), _batches(found)]
    return "\n\n".join(paragraphs) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(table(head, rows, words=2))


def _number(number: float | None) -> str:
    if number is None:
        return "–"
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _speed(case: Case, program: str) -> str:
    timing = case.timings.get(program, Timing(None, "–"))
    return timing.note if timing.seconds is None else _number(case.tokens / timing.seconds / 1e6)


def _speeds(found: Bench) -> str:
    head = ["task", "shape", "tokens", "engine, ms", *PROGRAMS, *RATIOS.values()]
    rows = [
        [
            *(case.task, case.shape, f"{case.tokens:,}"),
            _number(1e3 * (case.seconds(ENGINE) or 0)),
            *(_speed(case, program) for program in PROGRAMS),
            *(f"{case.ratio(program):.2f}" for program in RATIOS),
        ]
        for case in found.cases
    ]
    return _table(head, rows)


def short_texts(cases: Sequence[Case]) -> str:
    head = ["task", "each of", "texts", *SHORT_PROGRAMS, *RATIOS.values()]
    rows = [
        [
            *(case.task, case.shape, f"{len(case.value):,}"),
            *(_speed(case, program) for program in SHORT_PROGRAMS),
            *(f"{case.ratio(program):.2f}" for program in RATIOS),
        ]
        for case in cases
    ]
    return f"{SHORT_TEXTS}\n\n{_table(head, rows)}"


def _growth(found: Bench) -> str:
    head = ["task", "shape", *PROGRAMS]
    rows = [
        [task, shape, *(_exponent(growth(name, found.of(task, shape))) for name in PROGRAMS)]
        for task in found.tasks
        for shape in SHAPES
    ]
    text = "Time grows as tokens to the power of (least squares over the three largest sizes run):"
    return f"{text}\n\n{_table(head, rows)}"


def _exponent(slope: float | None) -> str:
    return "–" if slope is None else f"{slope:.2f}"


def _memory(found: Bench) -> str:
    head = ["task", "shape", *PROGRAMS]
    rows = [
        [task, shape, *(_number(found.memory.get((task, shape, name))) for name in PROGRAMS)]
        for task in found.tasks
        for shape in MEMORY_SHAPES
    ]
    text = "Peak memory beyond the text, in bytes a token, each program in a process of its own:"
    return f"{text}\n\n{_table(head, rows)}"


def headline(found: Bench) -> list[dict[str, Any]]:
    """The main figures of each large case: ratios to the floors, growth, and a comb relative to a
    balanced tree of the same length.
    """
    balanced = {(case.task, case.tokens): case for case in found.cases if case.shape == "balanced"}
    lines: list[dict[str, Any]] = []
    for case in (case for case in found.cases if case.tokens >= LARGE):
        seconds, other = case.seconds(ENGINE), balanced[case.task, case.tokens].seconds(ENGINE)
        assert seconds is not None
        assert other is not None
        lines.append(
            {
                "task": case.task,
                "shape": case.shape,
                "tokens": case.tokens,
                "engine_by_floor": case.ratio(ENGINE),
                "one_core_by_floor": case.ratio(ONE_CORE),
                "engine_by_plain_floor": (case.seconds(FLOORS[0]) or 0) / seconds,
                "growth": growth(ENGINE, found.of(case.task, case.shape)),
                "comb_by_balanced": seconds / other if case.shape in COMBS else None,
            }
        )
    return lines


def _headline(found: Bench) -> str:
    lines = headline(found)
    if not lines:
        return f"No text had {LARGE:,} tokens or more."
    head = ["task", "shape", "tokens", *RATIOS.values(), "engine ÷ plain floor"]
    head += ["growth of time", "comb's time ÷ balanced tree's"]
    rows = []
    for line in lines:
        task, shape, tokens, *numbers = line.values()
        rows.append([task, shape, f"{tokens:,}", *map(_exponent, numbers)])
    return f"From {LARGE:,} tokens on:\n\n{_table(head, rows)}"


def _batches(found: Bench) -> str:
    head = ["task", "problems", "tokens", TRANSFORMER, LOOPED, "ratio"]
    rows = [
        [
            *(batch.task, f"{batch.problems:,}", f"{batch.tokens:,}"),
            *(_number(batch.tokens / batch.seconds[name] / 1e6) for name in (TRANSFORMER, LOOPED)),
            f"{batch.seconds[LOOPED] / batch.seconds[TRANSFORMER]:.2f}",
        ]
        for batch in found.batches
    ]
    text = (
        f"The transformer in batches: problems of depth {DEPTH}, in million tokens a second, "
        "beside a looped\ntransformer of the same width and as many hidden units, with softmax "
        "attention of one head, which is\ntold how deep each problem is (its numbers are random):"
    )
    return f"{text}\n\n{_table(head, rows)}"


def rows_of(found: Bench) -> dict[str, Any]:
    """Everything as plain data."""
    return {
        "load": found.load,
        "rows": [
            {
                "task": case.task,
                "shape": case.shape,
                "tokens": case.tokens,
                "bytes": case.n_bytes,
                "value": case.value,
                "program": program,
                "seconds": timing.seconds,
                "note": timing.note,
                "ratio": case.ratio(program),
                "tokens_a_second": case.tokens / timing.seconds if timing.seconds else None,
                "growth": growth(program, found.of(case.task, case.shape)),
                "peak_bytes_a_token": found.memory.get((case.task, case.shape, program)),
            }
            for case in found.cases
            for program, timing in case.timings.items()
        ],
        "headline": headline(found),
        "batches": [asdict(batch) for batch in found.batches],
        "short": [
            {
                "task": case.task,
                "each": case.shape,
                "texts": len(case.value),
                "tokens": case.tokens,
                "bytes": case.n_bytes,
                "program": program,
                "seconds": timing.seconds,
                "ratio": case.ratio(program),
                "tokens_a_second": case.tokens / timing.seconds if timing.seconds else None,
            }
            for case in found.short
            for program, timing in case.timings.items()
        ],
    }
