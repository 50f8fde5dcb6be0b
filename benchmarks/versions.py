"""The speed of two checkouts of this project, side by side: what a change costs or gains.

    python benchmarks/versions.py OLDER [NEWER] [--device cuda]

Prints a table, of which those in `results/versions.md` are two; `--out FILE` keeps it. OLDER and
NEWER are folders that hold `exactformer/`; NEWER is this checkout unless given. A process goes
through all the work in one of them, then another through the same in the other, and so on by turns.
The least time of each counts, since other programs on the machine can only add to it. A ratio above
1 means that NEWER is quicker.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from reports import parser

from exactformer.paper.files import table

TIMED = """
import sys, time, json
import numpy as np, torch
import exactformer as ef
from exactformer.domains.catalog import find_algebra
from exactformer.domains.sampling import draw
device, work, repeats = sys.argv[1], json.loads(sys.argv[2]), 5

def balanced(algebra, depth):  # by names that every version has
    text, operator = algebra.values[1], algebra.operators[0].symbol
    for _ in range(depth):
        infix = algebra.notation == "infix"
        text = f"({text}{operator}{text})" if infix else f"({operator} {text} {text})"
    return ef.parse(algebra, text)

def timed(run):
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start

for task, kind, what in work:
    algebra, rng = find_algebra(task), np.random.default_rng(0)
    if what == "train ten seeds":
        from exactformer.training.run import train_seeds
        print(timed(lambda: train_seeds(algebra, seeds=list(range(9000, 9010)), device=device)))
        continue
    model = ef.construct(algebra) if kind == "constructed" else ef.load(f"{task}/{kind}")
    model = model.to(device)
    many = draw(algebra, 5, 2000, rng)
    batches = {
        "2,000 of depth 5": [many],
        "50 of depth 5, one by one": [[problem] for problem in many[:50]],
        "balanced, depth 17": [[balanced(algebra, 17)]],
    }[what]
    run = lambda: [model.predict(batch) for batch in batches]
    run()
    print(min(timed(run) for _ in range(repeats)))
"""

TASKS = ("boolean", "arithmetic", "listops")
KINDS = ("constructed", "7520")
SIZES = ("2,000 of depth 5", "50 of depth 5, one by one", "balanced, depth 17")
WORK = [(task, kind, what) for task in TASKS for kind in KINDS for what in SIZES]
WORK += [(task, "", "train ten seeds") for task in TASKS]


def seconds(folder: Path, device: str, work: list[tuple[str, str, str]]) -> list[float]:
    """Seconds of each piece of work, by the code in a folder."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TIMED, device, json.dumps(work)],
        env=os.environ | {"PYTHONPATH": str(folder), "OMP_WAIT_POLICY": "PASSIVE"},
        capture_output=True,
        text=True,
        cwd=folder,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [float(line) for line in done.stdout.split()]


def main() -> None:
    options = parser(__doc__)
    options.add_argument("older", type=Path)
    options.add_argument("newer", type=Path, nargs="?", default=Path(__file__).parents[1])
    options.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--only", default="", help="a word that the work's name must have")
    options.add_argument("--out", type=Path)
    arguments = options.parse_args()
    chosen = [work for work in WORK if arguments.only in " ".join(work)]
    folders = [arguments.older.resolve(), arguments.newer.resolve()]
    times = [
        [seconds(folder, arguments.device, chosen) for folder in folders]
        for _ in range(arguments.rounds)
    ]
    rows = []
    for i, work in enumerate(chosen):
        older, newer = (min(both[side][i] for both in times) for side in (0, 1))
        rows.append([*work, f"{older:.3f}", f"{newer:.3f}", f"{older / newer:.2f}"])
    header = [f"{arguments.device}: task", "weights", "what", "older, s", "newer, s"]
    text = "\n".join(table([*header, "older / newer"], rows, words=3))
    print(text)
    if arguments.out:
        arguments.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
