"""Time and memory of the torch model against the number of tokens, beside softmax attention.

    python benchmarks/cost.py > results/cost.md

One iteration, and a whole run at depth 3, on perfect trees of depth 3 side by side: so the depth
stays while the tokens grow. Then expressions proper, perfect trees as deep as they are long. Each
size runs in a process of its own. Peak memory is what the process holds beyond its input; it is
read from /proc, so this needs Linux. Every value is compared with the oracle's.
`--largest 1e5` tries the script out.
"""

import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from statistics import median

import numpy as np
import torch
from reports import heading, in_own_process, log, parser
from shapes import Ids, forest, perfect_tree, reduced_forest
from torch import Tensor

from exactformer.api import construct
from exactformer.bench.measure import CLEAR, memory_in_use
from exactformer.domains.catalog import arithmetic
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.reference import evaluate
from exactformer.model.circuit import iterate, run
from exactformer.model.encode import encode
from exactformer.paper.files import row, table

SIZES = [1_000, 3_000, 10_000, 30_000, 100_000, 1_000_000, 10_000_000]
TREE_DEPTHS = [8, 13, 18, 20]
DEPTH = 3
FITTED_FROM = 10_000  # below, the time to start each operation outweighs the tokens
LARGEST_MATRIX = 8e9  # bytes of an n-by-n matrix of attention weights
LONGEST = 60.0  # seconds after which nothing is repeated; a rival expected to take more is not run
REPEATS, SHORTEST = 5, 2.0  # at least so many and for so many seconds, unless that is too long

ALGEBRA = arithmetic()
D, D_H = len(ALGEBRA.vocabulary), 1 + len(ALGEBRA.operators)


@dataclass(frozen=True)
class Cost:
    tokens: int
    repeats: int
    seconds: float  # on the clock
    cpu_seconds: float  # of all threads together
    peak: float  # bytes
    checked: str = ""

    @property
    def bytes_a_token(self) -> float:
        return self.peak / self.tokens


Program = Callable[[], object]
Check = Callable[[object], str]


def layer(n: int) -> tuple[int, Program, Check]:
    """One iteration of the model: attention, feedforward and all."""
    ids, _, X, inside = _forest_state(n)
    weights = construct(ALGEBRA).weights
    return len(ids), lambda: iterate(X, weights, inside).X, lambda _: ""


def whole_run(n: int) -> tuple[int, Program, Check]:
    ids, trees, X, inside = _forest_state(n)
    weights = construct(ALGEBRA).weights

    def check(result: object) -> str:
        state, iterations = result
        assert iterations.item() == DEPTH
        values = [ALGEBRA.values.index(evaluate(Expression(ALGEBRA, tree))) for tree in trees]
        found = torch.where(state[0].any(-1), state[0].argmax(-1), EMPTY)
        assert np.array_equal(found.numpy(), reduced_forest(ids, trees, values))
        return f"{len(trees):,} of {len(trees):,}"

    return len(ids), lambda: run(X, weights, inside), check


def tree(depth: int) -> tuple[int, Program, Check]:
    expression = perfect_tree(ALGEBRA, depth, np.random.default_rng(depth))
    model = construct(ALGEBRA)

    def check(value: object) -> str:
        assert value == evaluate(expression)
        return f"value {value}, as the oracle"

    return len(expression), lambda: model(expression), check


def plain_softmax(n: int) -> tuple[int, Program, Check]:
    """Softmax self-attention with one head and its n-by-n matrix written out."""
    X, W_Q, W_K, W_V, W_O = _softmax_inputs(n)

    def attend() -> Tensor:
        scores = (X @ W_Q) @ (X @ W_K).mT / math.sqrt(D_H)
        return scores.softmax(-1) @ (X @ W_V) @ W_O

    return n, attend, lambda _: ""


def fused_softmax(n: int) -> tuple[int, Program, Check]:
    """Softmax attention by torch's fused kernel, which never holds the matrix."""
    X, W_Q, W_K, W_V, W_O = _softmax_inputs(n)
    attend = torch.nn.functional.scaled_dot_product_attention
    return n, lambda: attend(X @ W_Q, X @ W_K, X @ W_V) @ W_O, lambda _: ""


def _forest_state(n: int) -> tuple[Ids, Ids, Tensor, Tensor]:
    ids, trees = forest(ALGEBRA, DEPTH, n, np.random.default_rng(n))
    X = encode(torch.from_numpy(ids), D).unsqueeze(0)
    return ids, trees, X, torch.ones(X.shape[:-1], dtype=torch.bool)


def _softmax_inputs(n: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(n)
    shapes = [(1, 1, n, D), (D, D_H), (D, D_H), (D, D_H), (D_H, D)]
    return [torch.randn(shape, generator=generator) for shape in shapes]


PROGRAMS = {f.__name__: f for f in (layer, whole_run, tree, plain_softmax, fused_softmax)}


def work(program: str, size: int, answers: Connection) -> None:
    with torch.no_grad():
        PROGRAMS[program](8 if program == "tree" else SIZES[0])[1]()  # loads what is loaded late
        tokens, call, check = PROGRAMS[program](size)
        before = memory_in_use("VmRSS")
        CLEAR.write_text("5")  # the peak counts from here
        clock, cpu = [], []
        while sum(clock) < LONGEST and (len(clock) < REPEATS or sum(clock) < SHORTEST):
            start, cpu_start = time.perf_counter(), time.process_time()
            result = call()
            clock.append(time.perf_counter() - start)
            cpu.append(time.process_time() - cpu_start)
            if len(clock) == 1:
                peak = memory_in_use("VmHWM") - before
        answers.send(Cost(tokens, len(clock), median(clock), median(cpu), peak, check(result)))


def measure(program: str, size: int) -> Cost:
    cost = in_own_process("spawn", work, program, size)
    if cost is None:
        raise SystemExit(f"{program} at {size} failed")
    log(f"{program} {cost.tokens:,} tokens: {cost.seconds:.3g} s")
    return cost


def growth(costs: list[Cost]) -> str:
    fitted = [cost for cost in costs if cost.tokens >= FITTED_FROM]
    if len(fitted) < 2:
        return "Too few sizes for the rate of growth."
    time, cpu_time, memory = (
        slope([c.tokens for c in fitted], [max(quantity(c), 1e-9) for c in fitted])
        for quantity in (lambda c: c.seconds, lambda c: c.cpu_seconds, lambda c: c.peak)
    )
    return (
        f"From {fitted[0].tokens:,} to {fitted[-1].tokens:,} tokens, time grows as n^{time:.2f} "
        f"(CPU time as n^{cpu_time:.2f}) and memory as n^{memory:.2f}."
    )


def slope(n: list[int], y: list[float]) -> float:
    """The power of n by which y grows: of a line fitted to the logarithms."""
    return float(np.polyfit(np.log(n), np.log(y), 1)[0])


def print_costs(title: str, costs: list[Cost], last_column: str = "") -> None:
    header = ["tokens", "seconds", "µs a token", "CPU seconds", "peak MB", "bytes a token"]
    header.append("repeats")
    rows = []
    for c in costs:
        cells = [f"{c.tokens:,}", f"{c.seconds:.3g}", f"{c.seconds / c.tokens * 1e6:.3g}"]
        cells += [f"{c.cpu_seconds:.3g}", f"{c.peak / 1e6:,.0f}", f"{c.bytes_a_token:,.0f}"]
        rows.append([*cells, str(c.repeats)])
    if last_column:
        header.append(last_column)
        for cells, c in zip(rows, costs, strict=True):
            cells.append(c.checked)
    print("\n".join(["", f"## {title}", "", *table(header, rows, words=0), "", growth(costs)]))


def softmax_costs(program: str, sizes: list[int]) -> dict[int, Cost | str]:
    """The cost at each size, or why there is none."""
    costs: dict[int, Cost | str] = {}
    last: Cost | None = None
    for n in sizes:
        expected = last.seconds * (n / last.tokens) ** 2 if last else 0.0
        if program == "plain_softmax" and 4 * n * n > LARGEST_MATRIX:
            costs[n] = f"does not fit ({4 * n * n / 1e9:,.0f} GB)"
        elif expected > LONGEST:
            costs[n] = f"not run (about {expected:,.0f} s by n²)"
        else:
            costs[n] = last = measure(program, n)
    return costs


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--largest", type=float, default=1e7, help="number of tokens to go up to")
    largest = int(options.parse_args().largest)
    sizes = [n for n in SIZES if n <= largest]
    depths = [d for d in TREE_DEPTHS if 4 << d <= largest * 1.1]
    # Threads that wait in a loop keep a busy core from the one they wait for: 100 times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    # glibc gives every large block back and faults it in anew, which from about a million tokens on
    # costs as much as the arithmetic; so the children keep what they once had.
    os.environ |= {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 34)}
    print(heading("Cost of the torch model"))
    print(
        f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, {torch.get_num_threads()} "
        f"threads, torch {torch.__version__}, float32, arithmetic modulo 10 (D = {D}, d_h = {D_H}),"
        f" constructed weights in closed form. Memory once had is kept "
        f"(MALLOC_MMAP_MAX_=0). The cores were shared with other programs: seconds "
        f"on the clock are medians and still noisy; CPU seconds, of all threads together, are "
        f"steadier. Peak memory is beyond the input, {4 * D} bytes a token; below 100,000 tokens "
        f"it is mostly the allocator's slack.",
        flush=True,
    )
    layers = [measure("layer", n) for n in sizes]
    print_costs(f"One iteration, {DEPTH} levels of nesting", layers)
    runs = [measure("whole_run", n) for n in sizes]
    print_costs(
        f"Whole run, {DEPTH} levels of nesting: {DEPTH} iterations", runs, "trees as the oracle"
    )
    trees = [measure("tree", d) for d in depths]
    print_costs(
        f"Expressions: perfect trees of depth {', '.join(map(str, depths))}, as many iterations",
        trees, "result",
    )  # fmt: skip

    plain, fused = (softmax_costs(p, sizes) for p in ("plain_softmax", "fused_softmax"))
    print("\n## One iteration of ours beside one layer of softmax attention\n")
    print(
        f"Softmax attention with one head of width {D_H} on states of width {D}: its four matrices "
        f"and nothing else. Ours is the whole iteration with its feedforward.\n"
    )
    header = ["tokens", "ours, s", "plain n×n, s", "× ours", "peak MB"]
    header += ["fused, s", "× ours", "peak MB"]
    print("\n".join(table(header, [], words=0)))
    for n, ours in zip(sizes, layers, strict=True):
        cells = [f"{n:,}", f"{ours.seconds:.3g}"]
        for cost in (plain[n], fused[n]):
            if isinstance(cost, str):
                cells += [cost, "", ""]
            else:
                ratio = cost.seconds / ours.seconds
                cells += [f"{cost.seconds:.3g}", f"{ratio:.2f}", f"{cost.peak / 1e6:,.0f}"]
        print(row(cells))
    print()
    ours_by_n = dict(zip(sizes, layers, strict=True))
    for name, costs in (("Plain:", plain), ("Fused:", fused), ("Ours:", ours_by_n)):
        ran = [cost for cost in costs.values() if isinstance(cost, Cost)]
        print(f"{name} {growth(ran)}\n")


if __name__ == "__main__":
    main()
