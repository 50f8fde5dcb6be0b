"""Circuits from files, by the transformer and by the engine, beside simulators.

    python benchmarks/netlists.py --data FOLDER [--device cuda] > results/netlists.md

FOLDER has the EPFL circuits as `epfl/*.aig`. Every output for every assignment is held against a
simulator that shares no code with the package (`tests/aiger_simulator.py`). The engine's rivals are
a plain simulator in C, which `cc` compiles here, and `&sim` of Berkeley ABC, if it is installed or
`--abc` names it: it is given the same gates and random patterns of its own, with a latch that
nothing reads, as it takes no circuits without one. `--assignments N` chooses how many there are for
each circuit; `--few N` how many of them the transformer runs.
"""

import ctypes
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
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
from exactformer.paper.files import table
from tests import aiger_simulator
from tests.aiger_simulator import Circuit as Gates
from tests.netlists import as_aig, varint

WEIGHTS = ("constructed", "boolean/7520")
LEVELS = 30
WIDTHS = (100, 200, 400, 800, 1600)  # gates of a level
WORDS = 1 << 12  # of the comparison: 262,144 assignments
BLOCKS = (16, 32, 64, 128)  # words at a time that the plain simulator tries
ROUNDS = 3


class Case(NamedTuple):
    name: str
    circuit: Gates
    netlist: Netlist


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--assignments", type=int, default=1000)
    arguments.add_argument("--few", type=int, help="of the transformer; all if not given")
    arguments.add_argument("--abc", default="berkeley-abc")
    chosen = arguments.parse_args()
    files = sorted((chosen.data / "epfl").glob("*.aig"))
    cases = [
        Case(file.stem, aiger_simulator.read(file.read_bytes()), read_netlist(file))
        for file in files
    ]
    print(heading("Circuits from files"))
    print(machine(chosen.device))
    print("\n## Every output of the EPFL circuits\n")
    rows = [outputs(case, chosen) for case in cases]
    few = chosen.few or chosen.assignments
    print(
        f"Outputs that are equal to the independent simulator's, of all outputs for "
        f"{chosen.assignments:,} random assignments by the engine and {few:,} by the transformer "
        f"({' and '.join(WEIGHTS)}, by the depth and by the logarithm), with the seconds of the "
        f"first weights.\n"
    )
    runs = [f"{by}, {weights}" for by in ("depth", "log") for weights in WEIGHTS]
    names = ["circuit", "inputs", "outputs", "gates", "levels", "iterations: depth", "log"]
    print("\n".join(table([*names, "engine", *runs, "s: engine", "depth", "log"], rows)))
    print(f"\n## Gates at {LEVELS} levels\n")
    print(
        f"Random netlists; microseconds for a gate and an assignment, of {64 * 64:,} assignments "
        f"by the engine, and of {GROWING} by the transformer with constructed weights.\n"
    )
    print("\n".join(table(["gates", "levels", "engine", "depth", "log"], growth(chosen.device))))
    print("\n## The engine beside simulators\n")
    print(comparison([case for case in cases if case.netlist.gates > 500], chosen))
    return 0


def machine(device: str) -> str:
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*:\s*(.*)", file.read())
    name = model[1] if model else "unknown processor"
    on = f", {torch.cuda.get_device_name()}" if device != "cpu" else ""
    return f"{name}, {torch.get_num_threads()} cores{on}; torch {torch.__version__}."


def timed(device: str, run: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the seconds it takes once it has run before."""
    began = time.perf_counter()
    found = run()
    if device != "cpu":
        torch.cuda.synchronize()
    return found, time.perf_counter() - began


# ---------------------------------------------------------------- every output


def outputs(case: Case, chosen: Any) -> list[str]:
    netlist = case.netlist
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (chosen.assignments, len(netlist.inputs)), dtype=np.uint8)
    wanted = aiger_simulator.simulate(case.circuit, bits).astype(np.uint8)
    few = chosen.few or chosen.assignments
    fast = Circuit(netlist, Evaluator(boolean(), device=chosen.device))
    fast.outputs(bits[:1])
    found, seconds = timed(chosen.device, lambda: fast.outputs(bits))
    cells, times, iterations = [right(found, wanted)], [seconds], []
    for by in ("depth", "log"):
        for weights in WEIGHTS:
            evaluator = Evaluator(boolean(), weights, "model", by, device=chosen.device)
            run = Circuit(netlist, evaluator)
            found, seconds = timed(chosen.device, partial(run.outputs, bits[:few]))
            cells.append(right(found, wanted[:few]))
            if weights == WEIGHTS[0]:
                times.append(seconds)
                iterations.append(run.iterations)
    shape = [len(netlist.inputs), len(netlist.outputs), netlist.gates, netlist.levels]
    row = [case.name, *(f"{n:,}" for n in (*shape, *iterations)), *cells]
    row += [f"{times[0]:.4f}", *(f"{t:.1f}" for t in times[1:])]
    log(" | ".join(row))
    return row


def right(found: Any, wanted: Any) -> str:
    """A count of equal outputs, of all."""
    return f"{int((found == wanted).sum()):,} of {wanted.size:,}"


# ---------------------------------------------------------------- growth

GROWING = 8


def growth(device: str) -> list[list[str]]:
    rows = []
    for width in WIDTHS:
        circuit = layered(Random(width), 64, LEVELS, width)
        with TemporaryDirectory() as folder:
            path = Path(folder, "random.aig")
            path.write_bytes(as_aig(circuit))
            netlist = read_netlist(path)
        gates = netlist.gates
        bits = np.random.default_rng(0).integers(0, 2, (64 * 64, 64), dtype=np.uint8)
        cells = [f"{gates:,}", f"{netlist.levels}"]
        for by in (None, "depth", "log"):
            evaluator = Evaluator(boolean(), device=device)
            if by:
                evaluator = Evaluator(boolean(), "constructed", "model", by, device=device)
            run = Circuit(netlist, evaluator)
            some = bits[:GROWING] if by else bits
            run.outputs(some)
            again = partial(run.outputs, some)
            seconds = min(timed(device, again)[1] for _ in range(ROUNDS))
            cells.append(f"{seconds / gates / len(some) * 1e6:.4g}")
        rows.append(cells)
        log(" | ".join(cells))
    return rows


def layered(rng: Random, inputs: int, levels: int, width: int) -> Gates:
    """Each gate has one wire of the level before, and one of any before."""
    gates, before, first = [], range(1, inputs + 1), inputs + 1
    for _ in range(levels):
        for variable in range(first, first + width):
            one = 2 * rng.choice(before) + rng.randrange(2)
            other = rng.randrange(2, 2 * first)
            gates.append((2 * variable, max(one, other), min(one, other)))
        before, first = range(first, first + width), first + width
    return Gates([*range(1, inputs + 1)], [2 * variable for variable in before], gates)


# ---------------------------------------------------------------- rivals


def comparison(cases: list[Case], chosen: Any) -> str:
    from exactformer.engine.circuits import CircuitEngine

    fast = Evaluator(boolean()).fast
    assert fast is not None
    abc = shutil.which(chosen.abc)
    rows, gpu = [], chosen.device != "cpu"
    with TemporaryDirectory() as folder:
        library = compiled(folder)
        for case in cases:
            engine = CircuitEngine(case.netlist.program, fast.automaton, boolean())
            words = np.random.default_rng(0).integers(
                0, 2**64, (len(case.netlist.inputs), WORDS), dtype=np.uint64
            )
            work = case.netlist.gates * WORDS * 64
            plain = Plain(library, case.circuit)
            engine.run(words)  # compiles
            ours, rival, wall, public = [], [], [], []
            for _ in range(ROUNDS):
                began, at = time.process_time(), time.perf_counter()
                found = engine.run(~words)
                ours.append(work / (time.process_time() - began))
                wall.append(work / (time.perf_counter() - at))
                began = time.process_time()
                wanted = plain.run(words)
                rival.append(work / (time.process_time() - began))
                assert np.array_equal(~found, wanted), f"{case.name}: not the plain simulator's"
                if abc:
                    public.append(work / abc_seconds(abc, case.circuit, Path(folder)))
            best = [max(ours), max(rival), max(public) if abc else None]
            cells = [case.name, f"{case.netlist.gates:,}", f"{engine.schedule.count:,}"]
            cells += [f"{max(wall) / 1e9:.1f}"]
            cells += ["–" if rate is None else f"{rate / 1e9:.1f}" for rate in best]
            cells += ["–" if rate is None else f"{best[0] / rate:.2f}" for rate in best[1:]]
            if gpu:
                cells += on_gpu(case, fast.automaton, words)
            rows.append(cells)
            log(" | ".join(cells))
    names = ["circuit", "gates", "rows", "engine, all cores", "engine", "in C", "ABC &sim"]
    names += ["engine : C", "engine : ABC", *(["GPU", "GPU with copies"] if gpu else [])]
    about = (
        f"Billions of gates and assignments a second, {WORDS * 64:,} random assignments, the best "
        f"of {ROUNDS} rounds in turn: by the clock on all cores, and for a second of one "
        f"processor, as ABC counts it. The simulator in C has the best of blocks of "
        f"{', '.join(map(str, BLOCKS))} words; its outputs are equal to the engine's. Rows are "
        f"what the engine keeps of all wires at a time."
    )
    return f"{about}\n\n" + "\n".join(table(names, rows))


def compiled(folder: str) -> ctypes.CDLL:
    library = Path(folder, "simulate.so")
    source = Path(__file__).with_name("simulate.c")
    options = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["cc", *options, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


class Plain:
    """The simulator in C on a circuit, with the block that suits it best."""

    def __init__(self, library: ctypes.CDLL, circuit: Gates) -> None:
        self.library, self.circuit = library, circuit
        self.left, self.right = (
            np.array([gate[side] for gate in circuit.gates], dtype=np.int64) for side in (1, 2)
        )
        self.outputs = np.array(circuit.outputs)
        self.rates = {block: self._rate(block) for block in BLOCKS}
        self.block = min(self.rates, key=lambda block: self.rates[block])

    def _rate(self, block: int) -> float:
        """Processor seconds a word."""
        words = np.zeros((len(self.circuit.inputs), 8 * block), dtype=np.uint64)
        self.block = block
        self.run(words)
        began = time.process_time()
        self.run(words)
        return (time.process_time() - began) / (8 * block)

    def run(self, words: Any) -> Any:
        inputs, gates = len(words), len(self.left)
        found = np.empty((len(self.outputs), words.shape[1]), dtype=np.uint64)
        rows = np.zeros((1 + inputs + gates, self.block), dtype=np.uint64)
        inverted = (self.outputs & 1).astype(np.uint64)[:, None] * np.uint64(2**64 - 1)
        numbers = [ctypes.c_int64(n) for n in (inputs, gates, self.block)]
        for begin in range(0, words.shape[1], self.block):
            rows[1 : 1 + inputs] = words[:, begin : begin + self.block]
            pointers = [ctypes.c_void_p(part.ctypes.data) for part in (self.left, self.right, rows)]
            self.library.simulate(*pointers[:2], *numbers[:2], pointers[2], numbers[2])
            found[:, begin : begin + self.block] = rows[self.outputs >> 1] ^ inverted
        return found


def abc_seconds(abc: str, circuit: Gates, folder: Path) -> float:
    """The processor seconds that ABC reports for as many assignments."""
    inputs, latch = len(circuit.inputs), len(circuit.inputs) + 1

    def moved(literal: int) -> int:
        return literal if literal // 2 <= inputs else literal + 2

    count = len(circuit.gates)
    data = b"aig %d %d 1 %d %d\n" % (latch + count, inputs, len(circuit.outputs), count)
    data += b"".join(b"%d\n" % n for n in (2 * latch, *map(moved, circuit.outputs)))
    for out, a, b in circuit.gates:
        data += varint(moved(out) - moved(a)) + varint(moved(a) - moved(b))
    file = folder / "latch.aig"
    file.write_bytes(data)
    said = subprocess.run(
        [abc, "-c", f"&r {file}; &sim -W 64 -F {WORDS // 64} -T 100"],
        capture_output=True,
        text=True,
        cwd=folder,
    ).stdout
    seconds = re.search(r"Time =\s*([\d.]+) sec", said)
    assert seconds, said
    return max(0.005, float(seconds[1]))  # it tells hundredths


def on_gpu(case: Case, automaton: Any, words: Any) -> list[str]:
    from exactformer.engine.circuits_gpu import GpuCircuitEngine

    engine = GpuCircuitEngine(case.netlist.program, automaton, boolean())
    many = np.tile(words, engine.at_once // WORDS)
    there = torch.from_numpy(many.view(np.int64)).to("cuda")
    work = case.netlist.gates * many.shape[1] * 64
    rates = []
    for run in (lambda: engine.run_on_device(there), lambda: engine.run(many)):
        run()
        torch.cuda.synchronize()
        seconds = min(timed("cuda", run)[1] for _ in range(ROUNDS))
        rates.append(f"{work / seconds / 1e9:,.0f}")
    return rates


if __name__ == "__main__":
    sys.exit(main())
