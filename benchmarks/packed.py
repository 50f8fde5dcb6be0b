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
from pathlib import Path

import numpy as np
from reports import heading, log, parser

from exactformer.paper.files import table

HERE = Path(__file__).parents[1]
TASKS = ("boolean", "arithmetic", "listops")
MANY, TREE = "10,000 of depth 5", "balanced, {:,} tokens"
SIZES = [2**k for k in range(14, 21, 2)] + [1_000_000]  # a million is the tree that is compared
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
    start = time.perf_counter()
    found = run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, found

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
    first, found = timed(run)
    times = [timed(run)[0] for _ in range(1 if first > 20 else 3)]
    digest = hashlib.sha256(json.dumps(found).encode()).hexdigest()
    print(json.dumps([min(times), first, tokens, digest]), flush=True)
"""


def times_of(folder: Path, side: str, device: str, work: list[tuple[str, str]]) -> list[list]:
    """Best seconds, those of the first call, tokens and a hash of all values, of each work."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TIMED, device, side, json.dumps(work)],
        env=os.environ | {"PYTHONPATH": str(folder), "OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def slope(points: list[tuple[int, float]]) -> float:
    x, y = np.log(np.array(points)).T
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    options = parser(__doc__)
    options.add_argument("older", type=Path, nargs="?")
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--out", type=Path)
    options.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    arguments = options.parse_args()
    device = arguments.device
    sizes = [*SIZES, 2**24] if device == "cuda" else SIZES
    trees = [TREE.format(size) for size in sizes]
    work = [(task, what) for task in TASKS for what in (MANY, *trees)] + OTHERS
    older = (HERE, "padded") if arguments.older is None else (arguments.older.resolve(), "older")
    best: dict[str, list[float]] = {}
    tokens: list[int] = []
    for number in range(arguments.rounds):
        values = []
        for folder, side in (older, (HERE, "packed")):
            log(f"round {number + 1} of {arguments.rounds}: {side}")
            found = times_of(folder, side, device, work)
            seconds = [row[0] for row in found]
            best[side] = [min(pair) for pair in zip(seconds, best.get(side, seconds), strict=True)]
            tokens, hashes = [row[2] for row in found], [row[3] for row in found]
            values.append(hashes)
        assert values[0] == values[1], "the two give different values"
    before, after = best[older[1]], best["packed"]

    def rows(chosen: list[int]) -> list[list[str]]:
        return [
            [*work[i], f"{tokens[i]:,}", f"{before[i]:.4g}", f"{after[i]:.4g}",
             f"{tokens[i] / before[i] / 1e6:.2f}", f"{tokens[i] / after[i] / 1e6:.2f}",
             f"{before[i] / after[i]:.1f}"]
            for i in chosen
        ]  # fmt: skip

    head = ["model", "what", "tokens", "older, s", "newer, s"]
    head += ["older, M tokens/s", "newer, M tokens/s", "older / newer"]
    places = range(len(work))
    growth = [
        [task, *(f"{slope(_points(task, side, work, tokens)):.2f}" for side in (before, after))]
        for task in TASKS
    ]
    parts = [
        heading("The transformer in batches"),
        INTRODUCTION.format(cores=os.cpu_count(), device=device, rounds=arguments.rounds),
        "## Many short expressions, and a tree of a million tokens\n",
        *table(head, rows([i for i in places if work[i][1] in (MANY, trees[4])]), words=2),
        "\n## Time against tokens: balanced trees, whole runs\n",
        *table(head, rows([i for i in places if work[i][1] in trees[:4] + trees[5:]]), words=2),
        "",
        *table(["task", "older grows as tokens to the", "newer"], growth, words=1),
        "\n## Other work\n",
        *table(head, rows([work.index(other) for other in OTHERS]), words=2),
    ]  # fmt: skip
    if not arguments.no_compile:
        parts += ["", _compiled(device, after, work)]
    out = arguments.out or HERE / "results" / f"packed{'_gpu' if device == 'cuda' else ''}.md"
    out.write_text("\n".join(parts) + "\n")
    print(out.read_text())


INTRODUCTION = """\
`predict` of an older version, which pads a batch and keeps every position to the end, and of this
one, which drops positions that have become zero and sequences that have halted (`model/packed.py`).
The same expressions, in turns, in one run; the least time of {rounds} rounds of three calls after a
first one. {cores} cores, {device}. Both gave the same values everywhere.
"""


def _points(
    task: str, seconds: list[float], work: list[tuple[str, str]], tokens: list[int]
) -> list[tuple[int, float]]:
    chosen = [i for i, (name, what) in enumerate(work) if name == task and "balanced" in what]
    return [(tokens[i], seconds[i]) for i in chosen]


def _compiled(device: str, after: list[float], work: list[tuple[str, str]]) -> str:
    """What `torch.compile` adds to the parts of the layer that it can take as a whole."""
    chosen = [(task, what) for task in TASKS for what in (MANY, TREE.format(1_000_000))]
    before = [after[work.index(one)] for one in chosen]
    log("torch.compile")
    found = times_of(HERE, "compiled", device, chosen)
    rows = [
        [*one, f"{plain:.4g}", f"{best:.4g}", f"{plain / best:.2f}", f"{first:.1f}"]
        for one, plain, (best, first, *_) in zip(chosen, before, found, strict=True)
    ]
    head = ["task", "what", "plain, s", "compiled, s", "plain / compiled", "first call, s"]
    return "\n".join(["## torch.compile\n", *table(head, rows, words=2)])


if __name__ == "__main__":
    main()
