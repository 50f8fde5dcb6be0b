"""The transformer in batches: this checkout's `predict` beside an older one's, in turns in one run.

    python benchmarks/packed.py OLDER [--device cuda] [--rounds 3] [--out FILE]

OLDER is a folder that holds `exactformer/` as it was before sequences were packed; without it, the
layer of `model/circuit.py` on padded batches stands in, which is what `predict` was. A process goes
through all the work on one side, then another through the same on the other side, and so on. The
least time of each counts, since other programs on the machine can only add to it. Both must give
the same values. The report goes to results/packed.md, of a GPU to results/packed_gpu.md.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from reports import heading, log, parser

from exactformer.paper.files import table

HERE = Path(__file__).parents[1]
Work = tuple[str, str]  # a model, and what it is to do
TASKS = ("boolean", "arithmetic", "listops")
MANY, TREE = "10,000 of depth 5", "balanced, {:,} tokens"
SIZES = (2**14, 2**16, 2**18, 2**20)
LARGE = 2**22  # for this version only
FITTED_FROM = 2**16  # below, the time to start each operation outweighs the tokens
OTHERS = [
    ("arithmetic", "50 of depth 5, one by one"),
    ("arithmetic", "1,000 of depths 0 to 9"),
    ("arithmetic", "comb, 4,001 tokens"),
    ("arithmetic dense", "2,000 of depth 5"),
    ("arithmetic learned", "2,000 of depth 5"),
    ("minus", "2,000 of depth 5"),
    ("listops-any", "500 of depth 3, any number of operands"),
    ("listops-any", "one span of 100,000 operands"),
]

TIMED = """
import sys, time, json, hashlib
import numpy as np, torch
import exactformer as ef
from exactformer.bench.shapes import make_ids
from exactformer.domains.catalog import find_algebra
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import draw
device, side, work = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
torch.set_grad_enabled(False)

def model_of(name):  # by names that every version has
    task, *kind = name.split()
    if task == "minus":
        digits = tuple(range(7))
        table = {(a, b): (a - b) % 7 for a in digits for b in digits}
        minus = ef.Operator("-", (2,), table, ordered=True)
        return ef.construct(ef.Algebra("minus", tuple(map(str, digits)), (minus,), "infix"))
    if task == "listops-any":
        return ef.construct(ef.listops(None))
    if kind == ["learned"]:
        return ef.load(f"{task}/7520")
    return ef.construct(find_algebra(task), dense=kind == ["dense"])

def batches(model, what):
    algebra, rng, count = model.algebra, np.random.default_rng(0), what.split()[0].replace(",", "")
    if what.startswith(("balanced", "comb")):
        shape, size = what.split(", ", 1)
        tokens = int(size.split()[0].replace(",", ""))
        return [[Expression(algebra, make_ids(algebra, shape, tokens, rng))]]
    if what.startswith("one span"):
        digits = rng.choice(list("0123456789"), 100_000)
        return [[ef.parse(algebra, "( SM " + " ".join(digits) + " )")]]
    if "depths" in what:
        return [[e for depth in range(10) for e in draw(algebra, depth, int(count) // 10, rng)]]
    depth = int(what.split("depth ")[1].split(",")[0])
    drawn = draw(algebra, depth, int(count), rng)
    return [[e] for e in drawn] if "one by one" in what else [drawn]

def padded(model, batch):  # what `predict` was
    from exactformer.model.circuit import run
    from exactformer.model.encode import initial_state, read_values
    from exactformer.model.predict import _similar
    found = {}
    for part in _similar(batch):
        X, inside = initial_state([batch[i] for i in part], model.weights)
        values = read_values(run(X, model.weights, inside)[0], model.weights, model.algebra)
        found |= zip(part, values.tolist())
    return [model.algebra.values[found[i]] for i in range(len(batch))]

def timed(run):
    start, cpu = time.perf_counter(), time.process_time()
    found = run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, time.process_time() - cpu, found

if side == "compiled":
    from exactformer.model import packed
    packed.count = torch.compile(packed.count, dynamic=True)
    packed.clusters = torch.compile(packed.clusters, dynamic=True)
    packed.stretches = torch.compile(packed.stretches, dynamic=True)
for name, what in work:
    model = model_of(name).to(device)
    parts = batches(model, what)
    tokens = sum(len(e) for part in parts for e in part)
    predict = (lambda part: padded(model, part)) if side == "padded" else model.predict
    run = lambda: [predict(part) for part in parts]
    seconds, first, found = timed(run)
    clock, cpu, _ = zip(*(timed(run) for _ in range(max(1, min(20, int(3 / seconds))))))
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    print(json.dumps([min(clock), min(cpu), first, tokens, digest]), flush=True)
"""


class Timed(NamedTuple):
    """Best seconds of one work on one side."""

    clock: float
    cpu: float  # of all threads together
    first: float  # of the first call, in CPU time
    tokens: int
    values: str  # a hash of them


def times_of(folder: Path, side: str, device: str, work: Sequence[Work]) -> list[Timed]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TIMED, device, side, json.dumps(work)],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [Timed(*json.loads(line)) for line in done.stdout.splitlines()]


def in_turns(
    sides: Sequence[tuple[Path, str]], device: str, work: Sequence[Work], rounds: int
) -> list[dict[Work, Timed]]:
    """The best of each side; the values must be the same."""
    best: list[dict[Work, Timed]] = [{} for _ in sides]
    for number in range(rounds):
        for found, (folder, side) in zip(best, sides, strict=True):
            log(f"round {number + 1} of {rounds}: {side}")
            for one, now in zip(work, times_of(folder, side, device, work), strict=True):
                before = found.get(one, now)
                assert now.values == best[0][one].values if one in best[0] else True, one
                clock, cpu, first = map(min, now[:3], before[:3])
                found[one] = Timed(clock, cpu, first, now.tokens, now.values)
    return best


def compared(older: dict[Work, Timed], newer: dict[Work, Timed], chosen: Sequence[Work]) -> str:
    rows = []
    for one in chosen:
        before, after = older[one], newer[one]
        speeds = (after.tokens / seconds / 1e6 for seconds in (before.clock, after.clock))
        rows.append([
            *one, f"{after.tokens:,}", f"{before.clock:.3g}", f"{after.clock:.3g}",
            *(f"{speed:.2f}" for speed in speeds),
            *(f"{older / newer:.1f}" for older, newer in zip(before[:3], after[:3], strict=True)),
        ])  # fmt: skip
    head = ["model", "what", "tokens", "older, s", "newer, s"]
    head += ["older, M tokens/s", "newer, M tokens/s", "older / newer", "by CPU time", "first call"]
    return "\n".join(table(head, rows, words=2))


def growth(sides: Sequence[dict[Work, Timed]]) -> str:
    """The power of the tokens by which time grows, where constants do not matter any more."""
    rows = []
    for task in TASKS:
        cells = [task]
        for found in sides:
            trees = [
                t for (name, what), t in found.items() if (name, what[:8]) == (task, "balanced")
            ]
            large = [t for t in trees if t.tokens >= 0.9 * FITTED_FROM]
            for seconds in ([t.clock for t in large], [t.cpu for t in large]):
                x, y = np.log([t.tokens for t in large]), np.log(seconds)
                cells.append(f"{np.polyfit(x, y, 1)[0]:.2f}")
        rows.append(cells)
    head = ["task", "older", "older, CPU time", "newer", "newer, CPU time"]
    return "\n".join(table(head, rows, words=1))


def compiled(device: str, newer: dict[Work, Timed]) -> str:
    """The speedup by `torch.compile` on the parts of the layer that it can compile as a whole."""
    chosen = [(task, what) for task in TASKS for what in (MANY, TREE.format(1_000_000))]
    log("torch.compile")
    rows = []
    for one, found in zip(chosen, times_of(HERE, "compiled", device, chosen), strict=True):
        assert found.values == newer[one].values
        plain = newer[one].cpu
        cells = [f"{plain:.3g}", f"{found.cpu:.3g}", f"{plain / found.cpu:.2f}"]
        rows.append([*one, *cells, f"{found.first:.1f}"])
    head = ["task", "what", "plain, s", "compiled, s", "plain / compiled", "first call, s"]
    return "\n".join(table(head, rows, words=2))


def main() -> None:
    options = parser(__doc__)
    options.add_argument("older", type=Path, nargs="?")
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--out", type=Path)
    options.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    arguments = options.parse_args()
    device, rounds = arguments.device, arguments.rounds
    trees = [(task, TREE.format(size)) for task in TASKS for size in SIZES]
    large = [(task, TREE.format(LARGE)) for task in TASKS]
    main_work = [(task, what) for task in TASKS for what in (MANY, TREE.format(1_000_000))]
    older = (HERE, "padded") if arguments.older is None else (arguments.older.resolve(), "older")
    before, after = in_turns(
        [older, (HERE, "packed")], device, [*main_work, *trees, *OTHERS], rounds
    )
    (more,) = in_turns([(HERE, "packed")], device, large, rounds)
    seconds = ", ".join(f"{found.clock:.3g}" for found in more.values())
    parts = [
        heading("The transformer in batches").replace(str(arguments.older), "OLDER"),
        INTRODUCTION.format(
            older="`predict` of an older version" if arguments.older else STAND_IN,
            cores=os.cpu_count(),
            device=device,
            rounds=rounds,
            load=os.getloadavg()[2],
        ),
        "## Many short expressions, and a tree of a million tokens\n",
        compared(before, after, main_work),
        "\n## Time against tokens: balanced trees, whole runs\n",
        compared(before, after, trees),
        GROWTH.format(first=FITTED_FROM, large=LARGE, seconds=seconds),
        growth([before, after | more]),
        "\n## Other work\n",
        compared(before, after, OTHERS),
    ]
    if not arguments.no_compile:
        parts += ["\n## What torch.compile adds\n", COMPILED, compiled(device, after)]
    out = arguments.out or HERE / "results" / f"packed{'_gpu' if device == 'cuda' else ''}.md"
    out.write_text("\n".join(parts) + "\n")
    print(out.read_text())


STAND_IN = "`predict` as it was, by the layer of `model/circuit.py`"
INTRODUCTION = """\
{older}, which pads a batch and keeps every position to the end, and that of this version,
which drops positions that have become zero and sequences that have halted (`model/packed.py`).
The same expressions, in turns, in one run; the least time of {rounds} rounds of up to 20 calls
after a first one, in which nothing is remembered yet of either version's kinds. {cores} cores,
{device}, load {load:.1f} at the end: where others use the cores too, only short calls find a quiet
moment, and CPU time is what compares. Both gave the same values.
"""

GROWTH = """
Time grows as tokens to the power of (least squares from {first:,} tokens on; for this version up to
{large:,}, which took {seconds} s):
"""

COMPILED = """\
The counts, the mask and the clusters, compiled for any length; how many clusters and tokens are
left is known only as it runs, so no more can be taken as a whole. The first call compiles. Seconds
are CPU time.
"""


if __name__ == "__main__":
    main()
