"""How the time of circuits grows with gates and levels, and the engine beside other simulators.

    EXACTFORMER_DATA=FOLDER python benchmarks/netlists_speed.py > results/netlists_speed.md

FOLDER (or `--data FOLDER`) has the EPFL circuits as `epfl/*.aig`. The engine's rivals are a plain
simulator in C, which `cc` compiles here; `&sim` of Berkeley ABC, if it is installed or `--abc`
names it; and KyuPy, whose loop numba compiles, if it is installed (`pip install kyupy`). `--device
cuda` adds the engine on a GPU. `--rounds N` chooses how often each rival runs.
"""

import ctypes
import importlib.util
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from random import Random
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from netlists import WAYS, Case, add_data, cases, machine, timed
from reports import heading, log, parser

from exactformer.domains.catalog import boolean
from exactformer.domains.formats.netlists import read_netlist
from exactformer.engine.circuits import CircuitEngine, circuit_engine
from exactformer.evaluation.circuits import Circuit
from exactformer.evaluation.values import Evaluator
from exactformer.paper.files import table
from tests.aiger_simulator import Circuit as Gates
from tests.netlists import as_aig, varint

TURNS = 3  # of each netlist, in what grows
LEVELS, GATES = 30, 12_000  # that stay the same while the other grows
WIDTHS = (100, 200, 400, 800, 1600)  # gates of a level
STEPS = (10, 30, 100, 300)  # levels
ENDS = 64  # inputs, and outputs
FAST, FEW = 1 << 16, 64  # assignments by the engine and by the transformer
WORDS = 1 << 12  # beside rivals: 262,144 assignments
BLOCKS = (16, 32, 64, 128)  # words at a time that the simulator in C tries
PATTERNS = (1 << 12, 1 << 15, 1 << 18)  # assignments at a time that KyuPy tries
SMALLEST = 500  # gates of a circuit that is measured beside rivals

MOST_WORK = 10**10  # gates times assignments that each program is given in its turn
ABC_WORDS = 128  # of a frame


def main() -> int:
    arguments = parser(__doc__)
    add_data(arguments)
    arguments.add_argument("--device", default="cpu")
    arguments.add_argument("--abc", default="berkeley-abc")
    arguments.add_argument("--rounds", type=int, default=9)
    chosen = arguments.parse_args()
    print(heading("The speed of circuits from files"))
    print(machine(chosen.device))
    print("\n## Gates and levels\n")
    print(
        f"Random netlists; the seconds of one core (with a GPU, of the clock) for a gate and "
        f"an assignment, of {FAST:,} assignments by the engine and of {FEW} by the transformer "
        f"with constructed weights, by the depth and by the logarithm. The median of "
        f"{TURNS} rounds, in each of which every netlist has its turn. Rows are what the "
        f"engine keeps of all wires at a time; where they outgrow a cache, a gate takes longer.\n"
    )
    names = ["gates", "levels", "rows", "engine, ps", "depth, µs", "log, µs"]
    print("\n".join(table(names, growth(chosen))))
    print("\n## The engine beside simulators\n")
    print(
        comparison([case for case in cases(chosen.data) if case.netlist.gates > SMALLEST], chosen)
    )
    return 0


# ---------------------------------------------------------------- growth


def growth(chosen: Any) -> list[list[str]]:
    sizes = [(LEVELS, width) for width in WIDTHS] + [(steps, GATES // steps) for steps in STEPS]
    rng, fast = np.random.default_rng(0), Evaluator(boolean()).fast
    assert fast is not None
    words = rng.integers(0, 2**64, (ENDS, FAST // 64), dtype=np.uint64)
    bits = rng.integers(0, 2, (FEW, ENDS), dtype=np.uint8)
    models = [Evaluator(boolean(), "constructed", "model", by, device=chosen.device) for by in WAYS]
    rows, runs = list[list[str]](), list[list[Callable[[], Any]]]()
    with TemporaryDirectory() as folder:
        for levels, width in sizes:
            path = Path(folder, "random.aig")
            path.write_bytes(as_aig(layered(Random(width), levels, width)))
            netlist = read_netlist(path)
            rows.append([f"{netlist.gates:,}", f"{netlist.levels}"])
            engine = circuit_engine(netlist.program, fast.automaton, boolean(), chosen.device)
            rows[-1].append(f"{engine.schedule.count:,}")
            runs.append([partial(engine.run, words)])
            runs[-1] += [partial(Circuit(netlist, model).outputs, bits) for model in models]
            for run in runs[-1]:
                run()
    seconds = [
        [[timed(chosen.device, run)[1] for run in row] for row in runs] for _ in range(TURNS)
    ]
    for i, (levels, width) in enumerate(sizes):
        units = [1e12 / FAST, *(1e6 / FEW for _ in models)]
        for j, unit in enumerate(units):
            middle = median(found[i][j] for found in seconds)
            rows[i].append(f"{middle / (levels * width) * unit:.3g}")
        log(" | ".join(rows[i]))
    return rows


def layered(rng: Random, levels: int, width: int) -> Gates:
    """Each gate has one wire of the level before, and one of any before."""
    gates, before, first = [], range(1, ENDS + 1), ENDS + 1
    for _ in range(levels):
        for variable in range(first, first + width):
            one = 2 * rng.choice(before) + rng.randrange(2)
            other = rng.randrange(2, 2 * first)
            gates.append((2 * variable, max(one, other), min(one, other)))
        before, first = range(first, first + width), first + width
    return Gates([*range(1, ENDS + 1)], [2 * variable for variable in before[:ENDS]], gates)


# ---------------------------------------------------------------- rivals


def comparison(measured: list[Case], chosen: Any) -> str:
    fast = Evaluator(boolean()).fast
    assert fast is not None
    abc, gpu = shutil.which(chosen.abc), chosen.device != "cpu"
    rows, names = [], list[str]()
    with TemporaryDirectory() as folder:
        library = compiled(folder)
        for case in measured:
            engine = CircuitEngine(case.netlist.program, fast.automaton, boolean())
            words = np.random.default_rng(0).integers(
                0, 2**64, (len(case.netlist.inputs), WORDS), dtype=np.uint64
            )
            rivals: dict[str, Any] = {"in C": Plain(library, case.circuit)}
            if importlib.util.find_spec("kyupy"):
                rivals["KyuPy"] = KyuPy(case.circuit, words)
            indices = ~words  # of the values, of which the first one is 1
            wanted = ~engine.run(indices)
            for name, rival in rivals.items():
                assert np.array_equal(rival.run(words), wanted), f"{case.name}: {name} differs"
            programs = {"engine": partial(engine.run, indices)}
            programs |= {name: partial(rival.run, words) for name, rival in rivals.items()}
            again = -(-MOST_WORK // (case.netlist.gates * WORDS * 64))
            work = again * case.netlist.gates * WORDS * 64
            wall = list[float]()
            rates = {name: list[float]() for name in programs}
            for _ in range(chosen.rounds):
                for name, run in programs.items():
                    began, at = time.process_time(), time.perf_counter()
                    for _ in range(again):
                        run()
                    rates[name].append(work / (time.process_time() - began))
                    if name == "engine":
                        wall.append(work / (time.perf_counter() - at))
                if abc:
                    rate = abc_rate(abc, case.circuit, Path(folder), work)
                    rates.setdefault("ABC", []).append(rate)
            names = [*rates]
            cells = [case.name, f"{case.netlist.gates:,}", f"{engine.schedule.count:,}"]
            cells += [f"{median(rate) / 1e9:.1f}" for rate in (wall, *rates.values())]
            cells += [ratio(rates["engine"], rates[name]) for name in names[1:]]
            if gpu:
                cells += on_gpu(case, fast.automaton, words)
            rows.append(cells)
            log(" | ".join(cells))
    heads = ["circuit", "gates", "rows", "engine, all cores", *names]
    heads += [f"engine : {name}" for name in names[1:]]
    heads += ["GPU", "GPU with copies"] if gpu else []
    about = (
        f"Billions of gates times assignments: by the clock on all cores, and for a second of one "
        f"processor. In each of {chosen.rounds} rounds every program has its turn; rates are "
        f"medians, and so are ratios, which are taken round by round, with the second smallest and "
        f"the second largest. Programs of this process are given {WORDS * 64:,} random "
        f"assignments, again and again, and their outputs are equal. The one in C has the best of "
        f"blocks of {', '.join(map(str, BLOCKS))} words, and KyuPy of "
        f"{', '.join(f'{n:,}' for n in PATTERNS)} assignments. ABC makes random assignments of its "
        f"own in its own process, whose whole time counts, and is given a latch that nothing "
        f"reads, as it takes no circuits without one."
    )
    return f"{about}\n\n" + "\n".join(table(heads, rows))


def ratio(ours: list[float], theirs: list[float]) -> str:
    """The median of the ratios of the rounds; of nine, the second and the last but one are an
    interval for it at 96%.
    """
    every = sorted(a / b for a, b in zip(ours, theirs, strict=True))
    low, high = (every[1], every[-2]) if len(every) > 2 else (every[0], every[-1])
    return f"{median(every):.2f} ({low:.2f} to {high:.2f})"


def compiled(folder: str) -> ctypes.CDLL:
    library = Path(folder, "simulate.so")
    source = Path(__file__).with_name("simulate.c")
    options = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["cc", *options, str(source), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def fastest(sizes: Sequence[int], run: Callable[[int], Any]) -> int:
    """The size with which a run takes the least time of a processor, once it has run before."""

    def seconds(size: int) -> float:
        run(size)
        began = time.process_time()
        run(size)
        return time.process_time() - began

    return min(sizes, key=seconds)


class Plain:
    """The simulator in C on a circuit, with the block that suits it best."""

    def __init__(self, library: ctypes.CDLL, circuit: Gates) -> None:
        self.library, self.circuit = library, circuit
        self.left, self.right = (
            np.array([gate[side] for gate in circuit.gates], dtype=np.int64) for side in (1, 2)
        )
        self.outputs = np.array(circuit.outputs)
        words = np.zeros((len(circuit.inputs), 8 * max(BLOCKS)), dtype=np.uint64)
        self.block = fastest(BLOCKS, lambda block: self._run(words, block))

    def run(self, words: Any) -> Any:
        return self._run(words, self.block)

    def _run(self, words: Any, block: int) -> Any:
        inputs, gates = len(words), len(self.left)
        found = np.empty((len(self.outputs), words.shape[1]), dtype=np.uint64)
        rows = np.zeros((1 + inputs + gates, block), dtype=np.uint64)
        inverted = (self.outputs & 1).astype(np.uint64)[:, None] * np.uint64(2**64 - 1)
        numbers = [ctypes.c_int64(n) for n in (inputs, gates, block)]
        for begin in range(0, words.shape[1], block):
            rows[1 : 1 + inputs] = words[:, begin : begin + block]
            pointers = [ctypes.c_void_p(part.ctypes.data) for part in (self.left, self.right, rows)]
            self.library.simulate(*pointers[:2], *numbers[:2], pointers[2], numbers[2])
            found[:, begin : begin + block] = rows[self.outputs >> 1] ^ inverted
        return found


class KyuPy:
    """KyuPy's simulator of two-valued logic on a circuit, with as many assignments at a time as
    suit it best. It has a gate of its own for each inverted wire.
    """

    def __init__(self, circuit: Gates, words: Any) -> None:
        with redirect_stdout(sys.stderr):  # it says there that it found no GPU
            from kyupy.circuit import Circuit, Line, Node  # pyright: ignore[reportMissingImports]
            from kyupy.logic_sim import LogicSim  # pyright: ignore[reportMissingImports]

        made, wires = Circuit("circuit"), dict[int, Any]()  # by literal

        def end(kind: str, literal: int) -> Any:
            node = Node(made, f"{kind}{len(made.io_nodes)}", kind)
            made.io_nodes.append(node)
            return node

        def wire(literal: int, node: Any) -> None:
            wires[literal] = Node(made, f"w{literal}")
            Line(made, node, wires[literal])

        def source(literal: int) -> Any:
            if literal not in wires:
                inverter = Node(made, f"n{literal}", "INV1")
                Line(made, wires[literal ^ 1], inverter)
                wire(literal, inverter)
            return wires[literal]

        for variable in circuit.inputs:
            wire(2 * variable, end("input", variable))
        for out, *operands in circuit.gates:
            gate = Node(made, f"g{out}", "AND2")
            for operand in operands:
                Line(made, source(operand), gate)
            wire(out, gate)
        for literal in circuit.outputs:
            Line(made, source(literal), end("output", literal))
        self.inputs, self.outputs = len(circuit.inputs), len(circuit.outputs)
        self.made = {n: LogicSim(made, n, m=2, c_reuse=True, strip_forks=True) for n in PATTERNS}
        self.patterns = fastest(PATTERNS, lambda patterns: self._run(words, patterns))

    def run(self, words: Any) -> Any:
        return self._run(words, self.patterns)

    def _run(self, words: Any, patterns: int) -> Any:
        simulator, size = self.made[patterns], patterns // 8
        given = words.view(np.uint8)
        found = np.empty((self.outputs, given.shape[1]), dtype=np.uint8)
        for begin in range(0, given.shape[1], size):
            simulator.s[0, : self.inputs, 0] = given[:, begin : begin + size]
            simulator.s_to_c()
            simulator.c_prop()
            simulator.c_to_s()
            results = simulator.s[1, self.inputs : self.inputs + self.outputs, 0]
            found[:, begin : begin + size] = results
        return found.view(np.uint64)


def abc_rate(abc: str, circuit: Gates, folder: Path, work: int) -> float:
    """Gates times assignments a second of ABC's process, for `work` or more of them."""
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
    frames = -(-work // (count * ABC_WORDS * 32))  # its words have 32 bits
    command = f"&r {file}; &sim -W {ABC_WORDS} -F {frames} -T 1000"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run([abc, "-c", command], capture_output=True, text=True, cwd=folder).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert f"simulating {frames} frames with {ABC_WORDS} words" in said, said
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return count * ABC_WORDS * 32 * frames / seconds


def on_gpu(case: Case, automaton: Any, words: Any) -> list[str]:
    from exactformer.engine.circuits_gpu import GpuCircuitEngine

    engine = GpuCircuitEngine(case.netlist.program, automaton, boolean())
    many = np.tile(words, max(1, engine.at_once // WORDS))
    there = torch.from_numpy(many[:, : engine.at_once].view(np.int64)).to("cuda")
    rates = []
    for run, count in (
        (lambda: engine.run_on_device(there), there.shape[1]),
        (lambda: engine.run(many), many.shape[1]),
    ):
        run()
        torch.cuda.synchronize()
        seconds = min(timed("cuda", run)[1] for _ in range(3))
        rates.append(f"{case.netlist.gates * count * 64 / seconds / 1e9:,.0f}")
    return rates


if __name__ == "__main__":
    sys.exit(main())
