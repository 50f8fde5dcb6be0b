"""How long the command takes for a short expression or file, beside another checkout of it.

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
from tempfile import TemporaryDirectory
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
    ("eval", "boolean", "--file", "five.txt"),
    ("score", "boolean", "five.tsv"),
    ("score", "boolean", "five.tsv", "--weights", "7520"),
    ("--help",),
)
FIVE = {"(1&0)": "0", "1": "1", "(1|0)": "1", "(~0)": "1", "((1|0)&(~0))": "1"}


def run(checkout: Path, command: tuple[str, ...], folder: str) -> tuple[float, float]:
    """Seconds by the clock and of the processor, of a command in a folder."""
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    before, begun = _processor(), perf_counter()
    arguments = [sys.executable, "-m", "exactformer", *command]
    subprocess.run(arguments, env=environment, cwd=folder, capture_output=True)
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
    with TemporaryDirectory() as folder:
        lines = Path(folder, "five.txt"), Path(folder, "five.tsv")
        lines[0].write_text("".join(f"{text}\n" for text in FIVE))
        lines[1].write_text("".join(f"{text}\t{value}\n" for text, value in FIVE.items()))
        compare(other, options.repeats, folder)


def compare(other: Path, repeats: int, folder: str) -> None:
    """Print the row of each command."""
    for command in COMMANDS:
        for checkout in (other, HERE):  # what is compiled or kept at a first run is there then
            run(checkout, command, folder)
        runs = [tuple(run(c, command, folder) for c in (other, HERE)) for _ in range(repeats)]
        cells = [f"`{' '.join(command)}`"]
        for kind in range(2):
            old, new = (min(pair[side][kind] for pair in runs) for side in range(2))
            cells += [f"{old:.2f}", f"{new:.2f}", f"{new / old:.2f}"]
        print(row(cells), flush=True)


if __name__ == "__main__":
    main()
