"""How long the command takes for a short expression, beside another checkout of it.

    python benchmarks/startup.py OTHER

Prints the table of `results/startup.md`. OTHER is the folder of the other checkout, such as an
older one that `git worktree add` made. Both run in turns, by the same Python; of several runs the
quickest counts. CPU seconds are listed, too, since on a busy machine those of the clock vary.
"""

import os
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

from reports import parser

from exactformer.paper.files import row, table

HERE = Path(__file__).resolve().parent.parent
COMMANDS = (
    ("eval", "boolean", "(1&0)"),
    ("eval", "arithmetic", "((2+3)*4)", "--weights", "7520"),
    ("eval", "listops", "( MAX 1 ( MIN 2 3 ) )"),
    ("eval", "listops-6", "( MAX 1 2 3 4 5 6 )"),
    ("eval", "listops-6", "( MAX 1 "),
    ("--help",),
)


def run(checkout: Path, command: tuple[str, ...]) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    before, begun = _processor(), perf_counter()
    arguments = [sys.executable, "-m", "exactformer", *command]
    subprocess.run(arguments, env=environment, cwd=checkout, capture_output=True)
    return perf_counter() - begun, _processor() - before


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    known = parser(__doc__)
    known.add_argument("other", type=Path)
    known.add_argument("--repeats", type=int, default=7)
    options = known.parse_args()
    other = options.other.resolve()
    if not (other / "exactformer").is_dir():
        known.error(f"{options.other}: expected a folder with the package in it")
    header = ["command", "other, s", "here, s", "ratio", "other, CPU s", "here, CPU s", "ratio"]
    print("\n".join(table(header, [])))
    for command in COMMANDS:
        for checkout in (other, HERE):  # what is compiled or kept at a first run is there then
            run(checkout, command)
        runs = [(run(other, command), run(HERE, command)) for _ in range(options.repeats)]
        cells = [f"`{' '.join(command)}`"]
        for kind in range(2):
            old, new = (min(pair[side][kind] for pair in runs) for side in range(2))
            cells += [f"{old:.2f}", f"{new:.2f}", f"{new / old:.2f}"]
        print(row(cells), flush=True)


if __name__ == "__main__":
    main()
