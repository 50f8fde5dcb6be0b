"""Many short texts, and long ones, by two checkouts of this project, side by side.

    python benchmarks/rows.py OLDER [NEWER] --out results/rows.md

OLDER and NEWER are folders that hold `exactformer/`; NEWER is this checkout unless given. A process
goes through all the work in one of them, then another through the same in the other, and so on by
turns. The least time of each counts, since other programs on the machine can only add to it. Both
must give the same answers, to the letter.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import numpy as np
from reports import log, parser

from exactformer.api import construct
from exactformer.bench.shapes import SHAPES, make_ids, text_of
from exactformer.cli import main as command_line
from exactformer.domains.catalog import CATALOG
from exactformer.domains.expression import Expression
from exactformer.domains.formats.long_range import HEADER
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.paper.files import table

TASKS = ("boolean", "arithmetic", "listops")
ROWS = 300_000  # lines of a file, drawn from
DIFFERENT = 10_000  # ones of
LENGTH = 13  # tokens
TIMES = 30  # as many lines, for `eval` beside `score`
BAD = 100  # one line of these is damaged
LONG = 2**22  # tokens of one text
ROUNDS = 2  # of processes
MOST_RUNS = 40  # in one process
ENOUGH = 1.0  # seconds in one process, after which the work is not done again


def write_files(folder: Path) -> None:
    """Lines of each task, with labels and without, some of them damaged; and long texts."""
    rng = np.random.default_rng(0)
    for task in TASKS:
        algebra = CATALOG[task]()
        ids = [make_ids(algebra, "random", LENGTH, rng) for _ in range(DIFFERENT)]
        texts = [text_of(algebra, some).decode() for some in ids]
        values = [evaluate(Expression(algebra, some)) for some in ids]
        chosen = rng.integers(DIFFERENT, size=ROWS).tolist()
        rows = [texts[i] for i in chosen]
        (folder / f"{task}.txt").write_text("\n".join(rows) + "\n")
        labelled = "".join(f"{texts[i]}\t{values[i]}\n" for i in chosen)
        (folder / f"{task}.tsv").write_text(labelled)
        (folder / f"{task}.more.txt").write_text(("\n".join(rows) + "\n") * TIMES)
        (folder / f"{task}.more.tsv").write_text(labelled * TIMES)
        if task == "listops":
            write_published(folder, [Expression(algebra, ids[i]) for i in chosen])
        rows[::BAD] = [row[:-1] for row in rows[::BAD]]
        (folder / f"{task}.bad").write_text("\n".join(rows) + "\n")
        for shape in SHAPES:
            long = text_of(algebra, make_ids(algebra, shape, LONG, rng))
            (folder / f"{task}.{shape}").write_bytes(long)


def write_published(folder: Path, expressions: list[Expression]) -> None:
    """Write the lines in the published formats: labelled in two ways, damaged, and without
    labels.
    """
    texts, values = map(format_nangia, expressions), map(evaluate, expressions)
    pairs = list(zip(texts, values, strict=True))
    nangia = [f"{value}\t{text}\n" for text, value in pairs]
    (folder / "nangia.tsv").write_text("".join(nangia))
    (folder / "nangia.more.tsv").write_text("".join(nangia) * TIMES)
    lra = "".join(f"{text}\t{value}\n" for text, value in pairs)
    (folder / "lra.tsv").write_text(f"{HEADER}\n{lra}")
    lines = "".join(f"{text}\n" for text, _ in pairs)
    (folder / "nangia.txt").write_text(lines)
    (folder / "nangia.more.txt").write_text(lines * TIMES)
    nangia[::BAD] = [row[:-2] + "\n" for row in nangia[::BAD]]
    (folder / "nangia.bad").write_text("".join(nangia))


def command(*arguments: str | Path) -> tuple[str, str]:
    """Run a command in this process; returns its standard output and its standard error."""
    sys.argv, printed, errors = ["exactformer", *map(str, arguments)], io.StringIO(), io.StringIO()
    said = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors)
    with said[0], said[1], contextlib.suppress(SystemExit):
        command_line()
    return printed.getvalue(), errors.getvalue()


def work_of(folder: Path, task: str) -> dict[str, Callable[[], object]]:
    """Pieces of work, by names that both checkouts have."""
    algebra = CATALOG[task]()
    model = construct(algebra)
    engine = model.fast_engine("fast")
    deep = draw(algebra, 5, 10_000, np.random.default_rng(0))
    texts = (folder / f"{task}.txt").read_text().splitlines()

    def value(shape: str) -> Callable[[], str | None]:
        """On one core: a second one is there or not, by chance."""
        text = np.frombuffer((folder / f"{task}.{shape}").read_bytes(), dtype=np.uint8)

        def read() -> str | None:
            reader = engine.reader()
            reader.read(text, 0, len(text))
            return engine.result(reader)

        return read

    return {
        f"`engine.values` of {len(deep):,} expressions of depth 5": lambda: engine.values(deep),
        f"`Model.evaluate` of {ROWS:,} rows": lambda: model.evaluate(texts),
        f"`eval --file`, {ROWS:,} rows": lambda: command(
            "eval", task, "--file", folder / f"{task}.txt"
        ),
        f"`eval --file`, one row of {BAD} bad": lambda: command(
            "eval", task, "--file", folder / f"{task}.bad"
        ),
        f"`score`, {ROWS:,} rows": lambda: command(
            "score", task, folder / f"{task}.tsv", "--format", "tsv"
        ),
        **(published(folder) if task == "listops" else {}),
        **{f"one text of {LONG:,} tokens on one core, {shape}": value(shape) for shape in SHAPES},
    }


def published(folder: Path) -> dict[str, Callable[[], object]]:
    """Work on the notation of published files, which were written with the paper's median here."""

    def score(name: str) -> Callable[[], object]:
        return lambda: command("score", "listops", folder / name, "--median", "lower")

    lines = ("eval", "listops", "--syntax", "nangia", "--file", folder / "nangia.txt")
    return {
        f"`score` of Nangia and Bowman's format, {ROWS:,} rows": score("nangia.tsv"),
        f"the same, one row of {BAD} bad": score("nangia.bad"),
        f"`score` of the Long Range Arena's format, {ROWS:,} rows": score("lra.tsv"),
        f"`eval --syntax nangia --file`, {ROWS:,} rows": lambda: command(*lines),
    }


def eval_and_score(folder: Path, task: str) -> dict[str, Callable[[], object]]:
    """The commands to time, on so many rows that making and certifying weights takes little of the
    time: native rows, and for ListOps those of published files.
    """

    def lines(name: str, *options: str) -> Callable[[], object]:
        return lambda: command("eval", task, "--file", folder / f"{name}.more.txt", *options)

    def labelled(name: str, *options: str) -> Callable[[], object]:
        return lambda: command("score", task, folder / f"{name}.more.tsv", *options)

    work = {"eval, tsv": lines(task), "score, tsv": labelled(task, "--format", "tsv")}
    if task == "listops":
        work["eval, nangia"] = lines("nangia", "--syntax", "nangia")
        work["score, nangia"] = labelled("nangia", "--median", "lower")
    return work


def do_work(work: dict[str, Callable[[], object]]) -> None:
    """Print the best seconds of each piece of work, and a hash of its answer."""
    for name, run in work.items():
        answer = sha256(json.dumps(run()).encode()).hexdigest()
        times: list[float] = []
        while len(times) < MOST_RUNS and sum(times) < ENOUGH:
            start = time.perf_counter()
            run()
            times.append(time.perf_counter() - start)
        print(json.dumps([name, min(times), answer]))


def measured(
    checkout: Path, folder: Path, task: str, *options: str
) -> list[tuple[str, float, str]]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", __file__, "--work", task, *options, folder],
        env=os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        cwd=checkout,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compared(older: Path, newer: Path, folder: Path, task: str, rounds: int) -> list[list[str]]:
    """A row for each piece of work."""
    log(f"{task}: {rounds} rounds")
    both = [
        [measured(checkout, folder, task) for checkout in (older, newer)] for _ in range(rounds)
    ]
    rows = []
    for i, (name, _, answer) in enumerate(both[0][0]):
        assert {side[i][2] for sides in both for side in sides} == {answer}, (task, name)
        old, new = (min(sides[side][i][1] for sides in both) for side in (0, 1))
        rows.append([task, name, f"{1e3 * old:,.1f}", f"{1e3 * new:,.1f}", f"{old / new:.2f}"])
    return rows


def main() -> None:
    options = parser(__doc__)
    options.add_argument("older", type=Path)
    options.add_argument("newer", type=Path, nargs="?", default=Path(__file__).parents[1])
    options.add_argument("--rounds", type=int, default=ROUNDS)
    options.add_argument("--out", type=Path)
    options.add_argument("--work", metavar="TASK", help="do the work on the files of a folder")
    options.add_argument("--more", action="store_true", help="eval and score, on more rows")
    arguments = options.parse_args()
    if arguments.work:
        work = eval_and_score if arguments.more else work_of
        do_work(work(arguments.older, arguments.work))
        return
    from exactformer.bench.short import MOST_TOKENS, time_short  # an older checkout may not have it
    from exactformer.bench.table import short_texts

    older, newer = arguments.older.resolve(), arguments.newer.resolve()
    rows: list[list[str]] = []
    both: list[list[str]] = []
    with tempfile.TemporaryDirectory() as made:
        write_files(Path(made))
        for task in TASKS:
            rows += compared(older, newer, Path(made), task, arguments.rounds)
            runs = [measured(newer, Path(made), task, "--more") for _ in range(arguments.rounds)]
            best = {
                of[0][0]: min(seconds for _, seconds, _ in of) for of in zip(*runs, strict=True)
            }
            for format in ("tsv", "nangia") if task == "listops" else ("tsv",):
                one, other = best[f"eval, {format}"], best[f"score, {format}"]
                ms = [f"{1e3 * seconds:,.0f}" for seconds in (one, other)]
                both.append([task, format, *ms, f"{other / one:.2f}"])
    head = ["task", "work", "older, ms", "newer, ms", "older ÷ newer"]
    lines = table(head, rows, words=2)
    rounds = "" if arguments.rounds == ROUNDS else f" --rounds {arguments.rounds}"
    command = f"`python benchmarks/rows.py OLDER{rounds} --out results/rows.md`"
    load = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end."
    about = (
        f"Rows have {LENGTH} tokens. Commands run within a process that is warm: their start is no "
        f"part of the time, making weights and certifying them is. Answers were the same to the "
        f"letter."
    )
    beside = table(["task", "format", "eval, ms", "score, ms", "score ÷ eval"], both, words=2)
    more = (
        f"`eval --file` of {TIMES * ROWS:,} lines beside `score` of the same lines, labelled, in "
        f"the newer checkout: as we write them, and as Nangia and Bowman do (`--syntax nangia`):"
    )
    parts = ["# Many short texts, before and after", command, about, load]
    log("beside other programs")
    short = [case for task in TASKS for case in time_short(CATALOG[task](), MOST_TOKENS)]
    text = "\n\n".join([*parts, "\n".join(lines), more, "\n".join(beside), short_texts(short)])
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
