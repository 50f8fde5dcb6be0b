"""The model on a GPU: its values in three number formats, its speed, and training there.

    python benchmarks/gpu.py > results/gpu.md

Needs a CUDA GPU; takes under four minutes on a large one. Exit status 1 if any value differs from
the oracle's or from the CPU's, 2 without a GPU. `--device cpu --quick` tries the script out.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from statistics import median

import numpy as np
import torch
from reports import heading, log, parser
from shapes import forest, perfect_tree, reduced_forest
from torch import Tensor

from exactformer.api import Model, construct, load
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.circuit import iterate, run
from exactformer.model.encode import encode, read_values
from exactformer.paper.files import row, table
from exactformer.training.recipe import PAPER_SEEDS
from exactformer.training.run import train_seeds
from exactformer.weights.named import SHIPPED

FORMATS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
FOREST_DEPTH = 3
REPEATS = 5
CPU_LIMIT = 40.0  # seconds that one run on the CPU may take, or it gets fewer tokens


@dataclass(frozen=True)
class Scale:
    depths: tuple[int, ...]
    problems: int  # at each depth
    tree_depth: int
    tokens: int  # of the forest


FULL = Scale((1, 2, 3, 5, 8, 12, 16, 20), 100, 22, 10_000_000)  # 4·2^22 − 3 tokens: 16.8 million
QUICK = Scale((1, 2, 3, 5), 10, 12, 20_000)


def models(algebra: Algebra) -> Iterator[tuple[str, Model]]:
    """Everything constructed, then everything shipped."""
    yield "constructed, closed", construct(algebra)
    yield "constructed, table", construct(algebra, "table")
    yield "constructed, closed, dense", construct(algebra, dense=True)
    for path in sorted((SHIPPED / algebra.name).glob("*.safetensors")):
        model = load(path)
        if path.stem == "fitted":
            yield "constructed, fitted", model
            yield "constructed, fitted, dense", construct(algebra, "fitted", dense=True)
        else:
            yield f"shipped, {path.stem}", model


def compare_values(device: torch.device, scale: Scale) -> bool:
    """Print how many values agree with the oracle's and with the CPU's; True if all do."""
    print("\n## Values\n")
    print(
        f"{scale.problems} random problems at each depth of {', '.join(map(str, scale.depths))}. "
        f"Cells: values equal to the oracle's, of all; then to those of the same weights on the "
        f"CPU in float32, of all.\n"
    )
    print("\n".join(table(["task", "weights", *FORMATS], [], words=2)))
    all_equal = True
    for algebra in (boolean(), arithmetic(), listops()):
        rng = np.random.default_rng(0)
        drawn = [draw(algebra, depth, scale.problems, rng) for depth in scale.depths]
        problems = [problem for group in drawn for problem in group]
        truth = [evaluate(problem) for problem in problems]
        for name, model in models(algebra):
            start = time.perf_counter()
            on_cpu = model.predict(problems)
            middle = time.perf_counter()
            moved = model.to(device)
            cells = []
            for dtype in FORMATS.values():
                values = moved.predict(problems, dtype)
                right, same = count_equal(values, truth), count_equal(values, on_cpu)
                cells.append(f"{right}/{len(problems)}, {same}/{len(problems)}")
                all_equal = all_equal and right == same == len(problems)
            print(row([algebra.name, name, *cells]), flush=True)
            seconds = middle - start, time.perf_counter() - middle
            log(f"{algebra.name} {name}: CPU {seconds[0]:.1f} s, {device} {seconds[1]:.1f} s")
    return all_equal


def count_equal(found: list[str | None], wanted: list[str] | list[str | None]) -> int:
    return sum(a == b for a, b in zip(found, wanted, strict=True))


@dataclass(frozen=True)
class Timing:
    tokens: int
    iterations: int
    seconds: float
    peak: int | None  # bytes of the GPU beyond the input
    right: bool

    @property
    def each(self) -> float:
        """Seconds for a token in an iteration."""
        return self.seconds / self.tokens / self.iterations


@cache
def tree_and_value(depth: int) -> tuple[Expression, str]:
    expression = perfect_tree(arithmetic(), depth, np.random.default_rng(depth))
    return expression, evaluate(expression)


def time_tree(
    depth: int, device: torch.device, dtype: torch.dtype, repeats: int = REPEATS
) -> Timing:
    """A whole run on a perfect tree, and whether its value is the oracle's."""
    algebra = arithmetic()
    expression, truth = tree_and_value(depth)
    model = construct(algebra).to(device)
    X, inside = state(expression.ids, algebra, device, dtype)

    def program() -> tuple[Tensor, Tensor]:
        return run(X, model.weights, inside)

    seconds, peak, (last, iterations) = timed(program, device, repeats)
    value = algebra.values[int(read_values(last, model.weights, algebra))]
    return Timing(len(expression), int(iterations), seconds, peak, value == truth)


def time_layer(
    tokens: int, device: torch.device, dtype: torch.dtype, repeats: int = REPEATS
) -> Timing:
    """One iteration at a fixed depth; then the run to its end, for the values of the trees."""
    algebra = arithmetic()
    ids, trees = forest(algebra, FOREST_DEPTH, tokens, np.random.default_rng(0))
    model = construct(algebra).to(device)
    X, inside = state(ids, algebra, device, dtype)
    seconds, peak, _ = timed(lambda: iterate(X, model.weights, inside).X, device, repeats)
    last = run(X, model.weights, inside)[0][0]
    found = torch.where(last.any(-1), last.argmax(-1), EMPTY)
    some = trees[:10_000]  # of the first of them, from the oracle
    values = [algebra.values.index(evaluate(Expression(algebra, tree.copy()))) for tree in some]
    expected = reduced_forest(ids[: some.shape[0] * (some.shape[1] + 1) - 1], some, values)
    right = np.array_equal(found[: len(expected)].cpu().numpy(), expected)
    return Timing(len(ids), 1, seconds, peak, right)


def state(
    ids: np.ndarray, algebra: Algebra, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    X = encode(torch.from_numpy(ids.copy()).to(device), len(algebra.vocabulary), dtype)
    return X.unsqueeze(0), torch.ones(1, len(ids), dtype=torch.bool, device=device)


def timed(
    program: Callable[[], object], device: torch.device, repeats: int
) -> tuple[float, int | None, object]:
    """Median seconds, peak bytes on the GPU beyond those before, and the result."""
    cuda = device.type == "cuda"
    if cuda:
        program()  # compiles and loads kernels
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    seconds = []
    result = None
    for _ in range(repeats):
        result = None
        start = time.perf_counter()
        result = program()
        if cuda:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() - before if cuda else None
    return median(seconds), peak, result


def compare_speed(device: torch.device, scale: Scale) -> bool:
    """Print time and memory in each format, and the CPU's time; True if all values are right."""
    print("\n## Speed\n")
    print(
        f"Arithmetic, constructed weights in closed form. Median of {REPEATS} runs on {device}, "
        f"one on the CPU. A whole run starts from a state on the device and ends when no "
        f"parenthesis is left. Where the CPU would take over {CPU_LIMIT:.0f} s it gets fewer "
        f"tokens; the ratio is of the times for a token in an iteration.\n"
    )
    print(
        "| what | format | device | tokens | iterations | seconds | million tokens a second | "
        "ns a token and iteration | peak GB | value | CPU ÷ device |"
    )
    print("|---|---|---|---:|---:|---:|---:|---:|---:|---|---:|")
    cpu = torch.device("cpu")
    all_right = True
    trees = [scale.tree_depth - i for i in range(7)]
    forests = [scale.tokens >> i for i in range(7)]
    for what, measure, sizes, steps in (
        ("whole run, perfect tree", time_tree, trees, tree_steps),
        (f"one layer, depth {FOREST_DEPTH}", time_layer, forests, layer_steps),
    ):
        log(f"{what} on the CPU")
        trial = measure(sizes[-1], cpu, torch.float32, 1)
        # Twice as much, since long states fall out of the caches.
        fast = [size for size in sizes if 2 * trial.each * steps(size) < CPU_LIMIT]
        on_cpu = measure((fast or sizes[-1:])[0], cpu, torch.float32, 1)
        rows = [("float32", cpu, on_cpu)]
        for name, dtype in FORMATS.items():
            log(f"{what} on {device} in {name}")
            try:
                rows.append((name, device, measure(sizes[0], device, dtype)))
            except torch.OutOfMemoryError:
                print(f"| {what} | {name} | {device} | does not fit | | | | | | | |")
        for name, where, t in rows:
            peak = "" if t.peak is None else f"{t.peak / 1e9:.2f}"
            print(
                f"| {what} | {name} | {where} | {t.tokens:,} | {t.iterations} | {t.seconds:.4g} | "
                f"{t.tokens / t.seconds / 1e6:,.1f} | {t.each * 1e9:.3g} | {peak} | "
                f"{'as the oracle' if t.right else 'WRONG'} | {on_cpu.each / t.each:.1f} |",
                flush=True,
            )
            all_right = all_right and t.right
    return all_right


def tree_steps(depth: int) -> int:
    """Tokens times iterations."""
    return (4 << depth) * depth


def layer_steps(tokens: int) -> int:
    return tokens * (1 + FOREST_DEPTH)  # the run that checks the values comes on top


@torch.enable_grad()
def train_there(device: torch.device, seeds: tuple[int, ...]) -> bool:
    """Print how many seeds of each task end with a proof when trained there; True if all do."""
    print("\n## Training\n")
    print("From random weights to proofs, as `exactformer train --device cuda` does it.\n")
    print("| task | seeds | certified | seconds |\n|---|---|---:|---:|")
    all_exact = True
    for algebra in (boolean(), arithmetic(), listops()):
        start = time.perf_counter()
        results = train_seeds(algebra, seeds, device=str(device))
        exact = sum(result.exact for result in results)
        seconds = time.perf_counter() - start
        shown = " ".join(map(str, seeds))
        print(f"| {algebra.name} | {shown} | {exact} of {len(seeds)} | {seconds:.1f} |", flush=True)
        all_exact = all_exact and exact == len(seeds)
    return all_exact


@torch.no_grad()
def main() -> None:
    known = parser(__doc__)
    known.add_argument("--device", default="cuda", help="cuda, cuda:1, … or cpu")
    known.add_argument("--quick", action="store_true", help="few and small problems")
    options = known.parse_args()
    device = torch.device(options.device)
    if device.type == "cuda" and not torch.cuda.is_available():
        log(
            "expected a CUDA GPU, found none, or a torch without CUDA (--device cpu --quick: small)"
        )
        raise SystemExit(2)
    scale = QUICK if options.quick else FULL
    start = time.perf_counter()
    if device.type == "cuda":
        torch.cuda.set_device(device.index or 0)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(heading("The model on a GPU"))
    print(
        f"{name}; torch {torch.__version__}, CUDA {torch.version.cuda}; beside it the CPU of the "
        f"same machine with {torch.get_num_threads()} threads.",
        flush=True,
    )
    equal = compare_values(device, scale)
    right = compare_speed(device, scale)
    exact = train_there(device, PAPER_SEEDS[:1] if options.quick else PAPER_SEEDS[:3])
    print(f"\n{'Every' if equal and right else 'NOT EVERY'} value is right.")
    log(f"{time.perf_counter() - start:.0f} s in all")
    raise SystemExit(0 if equal and right and exact else 1)


if __name__ == "__main__":
    main()
