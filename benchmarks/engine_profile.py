"""Profiles each kernel of the engine on a GPU with Nsight Compute, to find its bottleneck.

    python benchmarks/engine_profile.py

Needs a CUDA GPU, CuPy, g++ and `ncu`, which is run on this script itself. Writes
`results/engine_profile.md` and prints it, in about two minutes on a large GPU. `--tokens 1e6
--out FILE` tries the script out.
"""

import csv
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from engine_gpu import Problem, engine_of
from gpu_trees import Trees
from reports import heading, log, parser

from exactformer.domains.catalog import arithmetic, listops
from exactformer.paper.files import table
from exactformer.weights.file import write_atomically

TEXTS = [
    (arithmetic, "balanced"),
    (arithmetic, "left comb"),
    (arithmetic, "uniformly random"),
    (listops, "balanced"),
]
KERNELS = "regex:^(reduce_tiles|reduce_words|pair|compose|finish)$"
SECTIONS = ("SpeedOfLight", "SchedulerStats", "WarpStateStats", "MemoryWorkloadAnalysis_Tables")
SECTIONS += ("InstructionStats", "LaunchStats")
STALLED = "smsp__average_warps_issue_stalled_"
WHEN_ISSUED = "_per_issue_active.ratio"
WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"
SHARED_PIPE = "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
ISSUED = "smsp__issue_active.avg.per_cycle_active"
WARPS = "smsp__warps_active.avg.per_cycle_active"
DRAM = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
INSTRUCTIONS = "smsp__inst_executed.sum"
REGISTERS = "launch__registers_per_thread"
NANOSECONDS = "gpu__time_duration.sum"
METRICS = (WAVEFRONTS, SHARED_PIPE, ISSUED, WARPS, DRAM, INSTRUCTIONS, NANOSECONDS, REGISTERS)


def evaluate(tokens: int) -> None:
    """Each text once: what is profiled. Says how many tokens each has."""
    trees = Trees()
    for make, shape in TEXTS:
        problem, count, text, expected = Problem(make(), shape, tokens, 1).prepare(trees)
        found = engine_of(problem.algebra).value(torch.from_numpy(text).cuda())
        assert found == expected, (problem.algebra.name, shape, found, expected)
        print(f"tokens {count}", flush=True)


def profiled(tokens: int) -> Iterator[tuple[int, dict[str, str]]]:
    """The metrics of each kernel of each text, with the text's tokens."""
    command = ["ncu", "--csv", "--page", "raw", "--print-units", "base", "-k", KERNELS]
    command += ["--clock-control", "none"]
    command += ["--metrics", ",".join(METRICS)]
    for section in SECTIONS:
        command += ["--section", section]
    command += [sys.executable, __file__, "--evaluate", "--tokens", str(tokens)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"ncu failed:\n{done.stdout}")
    lines = done.stdout.splitlines()
    counts = [int(line.split()[1]) for line in lines if line.startswith("tokens ")]
    rows = list(csv.DictReader(line for line in lines if line.startswith('"')))[1:]  # not the units
    each = len(rows) // len(TEXTS)
    assert [len(counts), len(rows)] == [len(TEXTS), each * len(TEXTS)]
    for i, row in enumerate(rows):
        yield counts[i // each], row


def cells(tokens: int, row: dict[str, str]) -> list[str]:
    def number(name: str) -> float:
        return float((row.get(name) or "nan").replace(",", ""))

    stalls = {
        name.removeprefix(STALLED).removesuffix(WHEN_ISSUED).replace("_", " "): number(name)
        for name in row
        if name.startswith(STALLED) and name.endswith(WHEN_ISSUED)
    }
    stalls.pop("selected", None)  # not waiting
    most = sorted(stalls, key=lambda name: -stalls[name])[:3]
    return [
        row["Kernel Name"].split("(")[0],
        f"{number(NANOSECONDS) / 1e6:.3f}",
        f"{number(DRAM):.0f}",
        f"{number(SHARED_PIPE):.0f}",
        f"{100 * number(ISSUED):.0f}",
        f"{number(WARPS):.1f}",
        f"{number(REGISTERS):.0f}",
        f"{number(INSTRUCTIONS) * 32 / tokens:.1f}",
        f"{number(WAVEFRONTS) * 32 / tokens:.1f}",
        ", ".join(f"{name} {stalls[name]:.1f}" for name in most),
    ]


HEADER = ["task", "shape", "kernel", "ms", "DRAM %", "shared %", "issue %", "warps", "registers"]
HEADER += ["instructions", "wavefronts", "waiting for"]
NOTE = """\
Of what is possible: bytes to and from DRAM, wavefronts of the pipe of shared and L1 memory, issue
slots. Warps are those of a scheduler, of 16. Instructions of warps and wavefronts of shared memory
are for 32 tokens of the text. The last column has what a warp mostly waits for, in cycles for each
instruction that it issues, as Nsight Compute names it: short scoreboard is shared memory, long
scoreboard global memory, barrier the other threads of a block, wait a fixed number of cycles.
Texts are kept here, not overwritten; the copy of a few bytes before words are read is left out."""


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--tokens", type=lambda text: int(float(text)), default=1 << 28)
    arguments.add_argument("--out", type=Path, default=Path("results/engine_profile.md"))
    arguments.add_argument("--evaluate", action="store_true", help="what `ncu` is run on")
    chosen = arguments.parse_args()
    if not torch.cuda.is_available() or not (chosen.evaluate or shutil.which("ncu")):
        log("engine_profile.py: expected a CUDA GPU and ncu, found none")
        return 2
    if chosen.evaluate:
        evaluate(chosen.tokens)
        return 0
    found = list(profiled(chosen.tokens))
    each = len(found) // len(TEXTS)
    rows = [
        [TEXTS[i // each][0]().name, TEXTS[i // each][1], *cells(tokens, row)]
        for i, (tokens, row) in enumerate(found)
    ]
    text = [heading("What bounds the kernels"), f"{torch.cuda.get_device_name()}.", ""]
    text += [*table(HEADER, rows, words=3), "", NOTE, ""]
    write_atomically(chosen.out, "\n".join(text))
    print("\n".join(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
