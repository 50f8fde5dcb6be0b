"""Every output of published circuits, by the engine and by the transformer, beside a simulator.

    EXACTFORMER_DATA=FOLDER python benchmarks/netlists.py [--device cuda] > results/netlists.md

FOLDER (or `--data FOLDER`) has the EPFL circuits as `epfl/*.aig`. Every output for every assignment
is held against a simulator that shares no code with the package (`tests/aiger_simulator.py`), and
the exit status is 1 if any differs. `--assignments N` chooses how many there are for each circuit.
How fast the engine is beside other simulators is in `netlists_speed.py`.
"""

import os
import re
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from reports import heading, log, parser

sys.path.insert(0, str(Path(__file__).parent.parent))

from exactformer.domains.catalog import boolean
from exactformer.domains.formats.netlist import Netlist
from exactformer.domains.formats.netlists import read_netlist
from exactformer.evaluation.circuits import Circuit
from exactformer.evaluation.values import Evaluator
from exactformer.model.iterations import Iterations
from exactformer.paper.files import table
from tests import aiger_simulator
from tests.aiger_simulator import Circuit as Gates

WEIGHTS = ("constructed", "boolean/7520")
WAYS: tuple[Iterations, ...] = ("depth", "log")


class Case(NamedTuple):
    name: str
    circuit: Gates  # as the simulator read it
    netlist: Netlist


def main() -> int:
    arguments = parser(__doc__)
    add_data(arguments)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--assignments", type=int, default=1000)
    chosen = arguments.parse_args()
    about = machine(chosen.device)
    found = [outputs(case, chosen) for case in cases(chosen.data)]
    rows, wrong = [row for row, _ in found], sum(differing for _, differing in found)
    print(heading("Every output of the EPFL circuits"))
    print(about)
    print(
        f"\nOutputs that are equal to the independent simulator's, of all outputs for "
        f"{chosen.assignments:,} random assignments: by the engine, and by the transformer with "
        f"{' and '.join(WEIGHTS)} weights, by the depth and by the logarithm. Seconds are "
        f"{'those of the clock' if chosen.device != 'cpu' else 'of one core'}, with "
        f"{WEIGHTS[0]} weights.\n"
    )
    runs = [f"{by}, {weights}" for by in WAYS for weights in WEIGHTS]
    names = ["circuit", "inputs", "outputs", "gates", "levels", "iterations: depth", "log"]
    names += ["engine", *runs, "s: engine", "depth", "log"]
    print("\n".join(table(names, rows)))
    return 1 if wrong or not rows else 0


def add_data(arguments: ArgumentParser) -> None:
    folder = os.environ.get("EXACTFORMER_DATA")
    arguments.add_argument("--data", type=Path, default=folder, required=folder is None)


def cases(data: Path) -> list[Case]:
    return [
        Case(file.stem, aiger_simulator.read(file.read_bytes()), read_netlist(file))
        for file in sorted((data / "epfl").glob("*.aig"))
    ]


def machine(device: str) -> str:
    """Facts about the machine, for the page; from here on torch has one core."""
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    name = model[1] if model else "unknown processor"
    torch.set_num_threads(1)  # two that wait for each other take more of both processors
    on = f", {torch.cuda.get_device_name()}" if device != "cpu" else ""
    return f"{name}, {os.cpu_count()} cores{on}; torch {torch.__version__}, on one of them."


def timed(device: str, run: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a call, and its seconds: of all cores together, or by the clock where it waits
    for a GPU.
    """
    clock = time.process_time if device == "cpu" else time.perf_counter
    began = clock()
    found = run()
    if device != "cpu":
        torch.cuda.synchronize()
    return found, clock() - began


def outputs(case: Case, chosen: Any) -> tuple[list[str], int]:
    """A row of the table, and how many outputs in it differ."""
    netlist, device = case.netlist, chosen.device
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (chosen.assignments, len(netlist.inputs)), dtype=np.uint8)
    wanted = aiger_simulator.simulate(case.circuit, bits).astype(np.uint8)
    runs = [Circuit(netlist, Evaluator(boolean(), engine="fast", device=device))]
    runs += [
        Circuit(netlist, Evaluator(boolean(), weights, "model", by, device=device))
        for by in WAYS
        for weights in WEIGHTS
    ]
    equal, seconds = list[int](), list[float]()
    for run in runs:
        run.outputs(bits[:1])  # compiles
        found, taken = timed(device, partial(run.outputs, bits))
        equal.append(int((found == wanted).sum()))
        seconds.append(taken)
    shape = [len(netlist.inputs), len(netlist.outputs), netlist.gates, netlist.levels]
    iterations = [run.iterations for run in runs[1 :: len(WEIGHTS)]]
    row = [case.name, *(f"{n:,}" for n in (*shape, *iterations))]
    row += [f"{count:,} of {wanted.size:,}" for count in equal]
    row += [f"{seconds[0]:.4f}", *(f"{t:.2f}" for t in seconds[1 :: len(WEIGHTS)])]
    log(" | ".join(row))
    return row, wanted.size * len(runs) - sum(equal)


if __name__ == "__main__":
    sys.exit(main())
