"""The tasks of the Chomsky-hierarchy benchmark: its rows, long texts, and weights that are learned.

    EXACTFORMER_DATA=FOLDER python benchmarks/chomsky.py > results/chomsky.md

For each task that there is a domain for: all rows of `FOLDER/chomsky/TASK.tsv` by the transformer,
with weights that are written down and with learned ones, and by each of its ways to iterate; and
ten random texts of 100,000 symbols beside a plain program that shares no code with the package
(`tests/chomsky_programs.py`). The paper's ten seeds are trained by the method that `train` takes
where none is named. A row that is refused counts as wrong, and a seed that the certificate rejects
as not learned; either, or any answer that differs, and the exit status is 1. `--length N` is for
shorter texts, `--texts N` for fewer, `--seeds N` for fewer seeds, `--only TASK` for one task alone.
Where the transformer takes an iteration for every two symbols, long texts have 4,000 symbols,
unless there is a `--length`.
"""

import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import get_args

import torch
from reports import heading, log, parser

import exactformer as ef
from exactformer.domains.chomsky import FOLDER, TASKS
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.labelled import Row, agrees, read_tsv_row
from exactformer.model.iterations import Iterations
from exactformer.paper.files import table
from exactformer.training.kinds import TRAININGS, recipe_by_method
from exactformer.training.recipe import PAPER_SEEDS
from exactformer.training.run import Result, train_seeds
from tests.chomsky_programs import PROGRAMS

LENGTH, TEXTS = 100_000, 10  # symbols of a long text, and how many there are
SHORTER = {"compute_sqrt": 4_000}  # where work grows with the square of the length


def ways_to_iterate(domain: Domain) -> dict[str, Iterations]:
    """The first way to iterate that takes each layer, by the layer's name."""
    ways: dict[str, Iterations] = {}
    for way in get_args(Iterations):
        ways.setdefault(domain.layer(way), way)
    return ways


def rows_of(domain: Domain, path: Path) -> Iterator[Row[ef.Expression] | None]:
    """The rows of a file; None for one that is refused."""
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            yield read_tsv_row(domain, line, number)
        except ExpressionError as error:
            log(str(error))
            yield None


def right(model: ef.Model, rows: list[Row[ef.Expression]], way: Iterations) -> int:
    """How many rows have the answer that their label says."""
    outcomes = model.outcomes([row.content for row in rows], way)
    found = zip(outcomes, rows, strict=True)
    return sum(agrees(model.domain, outcome.value, row.label) for outcome, row in found)


def learned(domain: Domain, seeds: tuple[int, ...], folder: Path) -> list[Result]:
    recipe = recipe_by_method(None, domain, {})
    return train_seeds(domain, seeds, recipe=recipe, out=folder, device="cpu", observers=[])


def symbols(answer: str | None) -> list[str]:
    """The symbols of an answer; where no spaces are between them, they are single characters."""
    return [] if answer is None else answer.split() if " " in answer else [*answer]


def long_texts(
    model: ef.Model, task: str, way: Iterations, length: int, count: int
) -> tuple[list[str], int]:
    """The cells of a row about random texts, and how many answers are wrong."""
    program, texts, correct, taken = PROGRAMS[task], [], 0, []
    seconds = {"model": 0.0, "program": 0.0}
    for seed in range(count):
        numbers = program.draw(length, Random(seed))
        text = ef.parse(model.domain, " ".join(map(str, numbers)))
        began = time.process_time()
        expected = [*map(str, program.answer(numbers))]
        answered = time.process_time()
        (outcome,) = model.outcomes([text], way)
        seconds["model"] += time.process_time() - answered
        seconds["program"] += answered - began
        correct += symbols(outcome.value) == expected
        texts.append(len(numbers))
        taken.append(outcome.iterations)
    least, most = min(texts), max(texts)
    size = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    iterations = f"{min(taken)} to {max(taken)}" if min(taken) < max(taken) else str(taken[0])
    cells = [size, f"{correct} of {count}", iterations]
    return [*cells, *(f"{spent / count:.3f}" for spent in seconds.values())], count - correct


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--length", type=int)
    arguments.add_argument("--texts", type=int, default=TEXTS)
    arguments.add_argument("--seeds", type=int, default=len(PAPER_SEEDS))
    arguments.add_argument("--only", choices=TASKS, metavar="TASK")
    chosen = arguments.parse_args()
    folder = os.environ.get("EXACTFORMER_DATA")
    if not folder:
        raise SystemExit("EXACTFORMER_DATA does not name the folder of the published files")
    torch.set_num_threads(1)
    scores, longs, trained, faults = [], [], [], 0
    for task, made in TASKS.items():
        if chosen.only not in (None, task):
            continue
        domain = made.domain()
        model = ef.construct(domain)
        certificate = model.certify()
        faults += not certificate.exact
        models = {f"constructed, {certificate.findings.rows:,} cases": model}
        if domain.kind in TRAININGS and chosen.seeds:
            with tempfile.TemporaryDirectory() as runs:
                began = time.process_time()
                results = learned(domain, PAPER_SEEDS[: chosen.seeds], Path(runs) / "run")
                seconds = time.process_time() - began
            exact = [result for result in results if result.exact]
            faults += len(results) - len(exact)
            first = sum(result.record["attempt"] == 1 for result in exact)
            kind = type(recipe_by_method(None, domain, {})).__name__.lower()
            asked = max(result.record.get("texts_asked", 0) for result in results)
            counts = [f"{len(exact)} of {len(results)}", str(first)]
            counts += [f"{asked:,}" if asked else "", f"{seconds:.1f}"]
            trained.append([task, kind, *counts])
            log(" | ".join(trained[-1]))
            if exact:
                models[f"learned, seed {exact[0].seed}"] = exact[0].model

        given = [*rows_of(domain, Path(folder) / "chomsky" / f"{task}.tsv")]
        rows = [row for row in given if row is not None]
        for layer, way in ways_to_iterate(domain).items():
            for name, some in models.items():
                began = time.process_time()
                correct = right(some, rows, way)
                seconds = time.process_time() - began
                faults += correct < len(given)
                counts = [f"{correct} of {len(given)}", str(len(given) - len(rows))]
                verdict = some.certify().verdict
                scores.append([task, layer, name, verdict, *counts, f"{seconds:.2f}"])
                log(" | ".join(scores[-1]))

            length = chosen.length or SHORTER.get(task, LENGTH)
            cells, wrong = long_texts(model, task, way, length, chosen.texts)
            faults += wrong
            longs.append([task, layer, *cells])
            log(" | ".join(longs[-1]))
    print(heading("The Chomsky-hierarchy benchmark"))
    print(
        f"The benchmark's tasks as the domains `{FOLDER}TASK`. Seconds are those of one thread of "
        f"a CPU; Python {platform.python_version()}, torch {torch.__version__}.\n"
    )
    print("Rows of the benchmark, by the transformer:\n")
    names = ["task", "layer", "weights", "certificate", "rows right", "refused", "seconds"]
    print("\n".join(table(names, scores, words=4)))
    print(
        f"\n{chosen.texts} random texts (`random.Random(0)` and so on), by weights that are "
        f"written down, beside a plain program; seconds are means, of the transformer and of that "
        f"program:\n"
    )
    names = ["task", "layer", "symbols", "as the program", "iterations", "seconds", "program's"]
    print("\n".join(table(names, longs, words=2)))
    if trained:
        seeds = ", ".join(map(str, PAPER_SEEDS[: chosen.seeds]))
        print(f"\nLearned from the seeds {seeds}, all at once:\n")
        names = ["task", "method", "certified", "at the first attempt", "most texts asked for"]
        print("\n".join(table([*names, "seconds for all"], trained, words=2)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
