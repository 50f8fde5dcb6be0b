"""Seconds and memory of the programs on expressions of growing length, and how they grow."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from exactformer.api import construct
from exactformer.bench.rivals import ENGINE, EVAL, FLOORS, PROGRAMS, Program, TooDeep, programs
from exactformer.bench.shapes import SHAPES, make_ids, text_of
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG

SIZES = (1_000, 10_000, 100_000, 1_000_000, 2**22, 2**24)  # tokens
ROUNDS = 40  # of a program at most, and until it has run for
ENOUGH = 0.7  # seconds
LONGEST = 4.0  # seconds; a program that is expected to take longer is not run
FIRST_GUESS = 1.5  # how time grows, as long as only one size is known
MOST_FOR_EVAL = 2**20  # tokens, of which each takes some 250 bytes
SIZES_FOR_GROWTH = 3  # the largest ones
MEMORY_TOKENS = 2**20
MEMORY_SHAPES = ("balanced", "comb")
WARM_UP_TOKENS = 100
SEED = 0
CLEAR = Path("/proc/self/clear_refs")

Report = Callable[[str], None]  # is called with the name of what is measured, before it begins
Peaks = dict[tuple[str, str, str], float]  # by task, shape and program


@dataclass(frozen=True)
class Timing:
    """Best seconds of one program on one text, or why there are none."""

    seconds: float | None
    note: str = ""


@dataclass(frozen=True)
class Case:
    """One text that every program reads in turn, repeatedly."""

    task: str
    shape: str
    tokens: int
    n_bytes: int
    value: str
    timings: Mapping[str, Timing]

    def seconds(self, program: str) -> float | None:
        return self.timings[program].seconds if program in self.timings else None

    @property
    def floor(self) -> float:
        """Seconds of the faster of the compiled stack machines."""
        return min(seconds for name in FLOORS if (seconds := self.seconds(name)) is not None)

    def ratio(self, program: str) -> float | None:
        """Speed relative to the floor's."""
        seconds = self.seconds(program)
        return None if seconds is None else self.floor / seconds


def sizes_up_to(tokens: int) -> list[int]:
    return [size for size in SIZES if size < tokens] + [tokens]


def time_task(algebra: Algebra, most_tokens: int, report: Report) -> Iterator[Case]:
    """All shapes and sizes of a task."""
    ready = programs(construct(algebra))
    rng = np.random.default_rng(SEED)
    warm_up = text_of(algebra, make_ids(algebra, "balanced", WARM_UP_TOKENS, rng))
    for program in ready.values():
        program(warm_up)
    for shape in SHAPES:
        cases: list[Case] = []
        for size in sizes_up_to(most_tokens):
            report(f"{algebra.name}, {shape}, {size:,} tokens")
            ids = make_ids(algebra, shape, size, rng)
            text = text_of(algebra, ids)
            skipped = {name: _skipped(name, cases, len(ids)) for name in ready}
            running = {name: ready[name] for name in ready if skipped[name] is None}
            value, timings = time_in_turns(running, text)
            timings |= {name: why for name, why in skipped.items() if why is not None}
            cases.append(Case(algebra.name, shape, len(ids), len(text), value, timings))
            yield cases[-1]


def time_in_turns(ready: Mapping[str, Program], text: bytes) -> tuple[str, dict[str, Timing]]:
    """The value, and the best time of each program. Programs take turns, so that other load on the
    machine affects all of them.
    """
    timings: dict[str, Timing] = {}
    values: dict[str, str] = {}
    spent = dict.fromkeys(ready, 0.0)
    for _ in range(ROUNDS):
        for name in [name for name in ready if spent[name] < ENOUGH]:
            start = time.perf_counter()
            try:
                values[name] = ready[name](text)
            except TooDeep:
                timings[name], spent[name] = Timing(None, "too deep"), ENOUGH
                continue
            seconds = time.perf_counter() - start
            before = timings[name].seconds if name in timings else None
            timings[name] = Timing(seconds if before is None else min(before, seconds))
            spent[name] += seconds
    if len(set(values.values())) != 1:
        raise RuntimeError(f"the programs disagree on {text[:60]!r}…: {values}")
    return values[ENGINE], timings


def _skipped(program: str, cases: Sequence[Case], tokens: int) -> Timing | None:
    """Why a program is not run on a text, judged by shorter texts of the same shape."""
    if not cases:
        return None
    if cases[-1].timings[program].note == "too deep":
        return cases[-1].timings[program]
    if program == EVAL and tokens > MOST_FOR_EVAL:
        return Timing(None, "not run")
    points = _points(program, cases)
    slope = max(1.0, _slope(points[-2:])) if len(points) > 1 else FIRST_GUESS
    known, seconds = points[-1]
    expected = seconds * (tokens / known) ** slope
    if expected <= LONGEST:
        return None
    return Timing(None, f"not run: {_duration(expected)}" if len(points) > 1 else "not run")


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:,.0f} {unit}"
    return f"{seconds:.0f} s"


def _points(program: str, cases: Sequence[Case]) -> list[tuple[int, float]]:
    return [(c.tokens, s) for c in cases if (s := c.seconds(program)) is not None]


def growth(program: str, cases: Sequence[Case]) -> float | None:
    """The exponent of time by tokens, by least squares over the largest sizes of one shape."""
    points = _points(program, cases)[-SIZES_FOR_GROWTH:]
    return _slope(points) if len(points) > 1 else None


def _slope(points: Sequence[tuple[int, float]]) -> float:
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def memory_of_task(algebra: Algebra, cases: Sequence[Case], report: Report) -> Peaks:
    """Peak bytes a token beyond the text, at one size, for the programs that were timed there.
    Empty where the operating system does not provide it.
    """
    report(f"{algebra.name}, memory")
    if not os.access(CLEAR, os.W_OK):
        return {}
    found: Peaks = {}
    for shape in MEMORY_SHAPES:
        case = [c for c in cases if c.shape == shape and c.tokens <= MEMORY_TOKENS][-1]
        ids = make_ids(algebra, shape, case.tokens, np.random.default_rng(SEED))
        wanted = [name for name in PROGRAMS if case.seconds(name) is not None]
        measured = subprocess.run(
            [sys.executable, "-m", __name__, algebra.name, *wanted],
            input=text_of(algebra, ids),
            stdout=subprocess.PIPE,
            env=os.environ | {"OMP_NUM_THREADS": "1"},  # threads do not survive the fork below
            check=True,
        ).stdout
        for name, peak in json.loads(measured).items():
            found[algebra.name, shape, name] = peak / len(ids)
    return found


def _print_memory(task: str, *names: str) -> None:
    """Peak bytes of programs on the text that comes in, each in a copy of this process."""
    algebra = CATALOG[task]()
    ready = programs(construct(algebra))
    rng = np.random.default_rng(SEED)
    warm_up = text_of(algebra, make_ids(algebra, "balanced", WARM_UP_TOKENS, rng))
    text = sys.stdin.buffer.read()

    def measure(name: str) -> float:
        ready[name](warm_up)
        CLEAR.write_text("5")  # the peak begins anew
        before = memory_in_use("VmRSS")
        ready[name](text)
        return memory_in_use("VmHWM") - before

    print(json.dumps({name: _in_a_copy(measure, name) for name in names}))


def _in_a_copy(measure: Callable[[str], float], name: str) -> float:
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.write(writer, json.dumps(measure(name)).encode())
        os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        return json.loads(answer.read())


def memory_in_use(field: str) -> float:
    """Bytes of this process, by a field of /proc/self/status. (`ru_maxrss` would not do: a new
    process inherits the peak of the one that started it.)
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * float(next(line for line in lines if line.startswith(field + ":")).split()[1])


if __name__ == "__main__":
    _print_memory(*sys.argv[1:])
