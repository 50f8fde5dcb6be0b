"""The layer of machines beside a compiled loop over the same machine.

    python benchmarks/machines.py [--device cuda] [--rounds N] > results/machines.md

One random text for each machine and length, of 1,000 to 1,000,000 symbols. The layer runs with the
weights that are written down; the loop, compiled by numba, goes through the machine's own table,
one symbol after the other, on one core. Both end with the same answer, or the exit status is 1. A
round measures both, one right after the other; given are the median time of the layer and the
median of the rounds' ratios with the smallest and the largest one.
"""

import platform
import sys
import time
from collections.abc import Callable, Iterator

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from reports import heading, log, parser

import exactformer as ef
from exactformer.domains.machine_catalog import MACHINES, SPAN_MACHINES
from exactformer.domains.machine_sampling import draw_texts
from exactformer.domains.machines import Machine
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.symbols import CLOSE, OPEN
from exactformer.domains.syntax import parse
from exactformer.model.circuit import finish
from exactformer.model.encode import initial_state, read_answers
from exactformer.model.layers import layer_of
from exactformer.paper.files import table

LENGTHS = (1_000, 10_000, 100_000, 1_000_000)
LONG_STATES = 10  # of more, a million symbols are left out

Ids = NDArray[np.int16]
Table = NDArray[np.int64]


@numba.njit(cache=False)
def last_output(ids: Ids, following: Table, given: Table, end: int, state: int) -> int:
    """The loop of a machine that answers at the end."""
    for token in ids:
        state = following[state, token]
    return given[state, end]


@numba.njit(cache=False)
def each_output(ids: Ids, following: Table, given: Table, out: Ids, state: int) -> int:
    """The loop of a machine that answers each symbol; the sum of the outputs keeps it honest."""
    total = 0
    for i, token in enumerate(ids):
        out[i] = given[state, token]
        state = following[state, token]
        total += out[i]
    return total


@numba.njit(cache=False)
def span_output(ids: Ids, following: Table, given: Table, stack: Table, start: int) -> int:
    """The loop of a machine over spans, with a stack."""
    state, depth, value = start, 0, -1
    for token in ids:
        if token == OPEN:
            stack[depth] = state
            depth += 1
            state = start
            continue
        value = token
        if token == CLOSE:
            value = given[state, CLOSE]
            depth -= 1
            state = stack[depth]
        if depth:
            state = following[state, value]
    return value


def looped(text: ef.Expression) -> Callable[[], str]:
    """The answer of a text by the compiled loop."""
    domain, ids = text.domain, text.ids
    following, given = np.array(domain.next_states), np.array(domain.output_ids)
    if isinstance(domain, SpanMachine):
        stack = np.zeros(len(ids), dtype=np.int64)
        return lambda: domain.vocabulary[span_output(ids, following, given, stack, domain.start)]
    assert isinstance(domain, Machine)
    if domain.end is not None:
        end = domain.end
        return lambda: domain.vocabulary[last_output(ids, following, given, end, domain.start)]
    out = np.zeros_like(ids)

    def run() -> str:
        each_output(ids, following, given, out, domain.start)
        return ""  # spelt outside of what is timed: `out` has the tokens

    return run


def by_layer(text: ef.Expression, device: str) -> Callable[[], list[str | None]]:
    """The answer of a text by the layer; the state is made, and the answer read, within."""
    model = ef.construct(text.domain).to(device)
    layer = layer_of(text.domain, "log")

    def run() -> list[str | None]:
        X, inside = initial_state([text], model.weights)
        X, _ = finish(X, layer.steps(X, inside, model.weights, text.domain))
        return read_answers(X, model.weights, text.domain)

    return run


def texts() -> Iterator[tuple[str, ef.Expression]]:
    rng = np.random.default_rng(0)
    for name, make in MACHINES.items():
        for length in LENGTHS:
            machine = make()
            if length < max(LENGTHS) or len(machine.states) <= LONG_STATES:
                yield name, draw_texts(machine, length, 1, rng)[0]
    folds = SPAN_MACHINES["folds"]()
    for length in LENGTHS[:-1]:
        spans = length // 5
        left, right = rng.integers(10, size=(2, spans)).astype(str)
        names = rng.choice(["DIFF", "SM", "LAST"], size=spans)
        begun = " ".join(f"({o} {a}" for o, a in zip(names, left, strict=True))
        chain = f"{begun} (MAX 3) {' '.join(f'{b})' for b in right)}"
        yield "folds, a chain", parse(folds, chain)


def timed(run: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    found = run()
    return time.perf_counter() - began, found


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--device", default="cpu")
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    torch.set_num_threads(1)
    rows, wrong = [], 0
    for name, text in texts():
        loop, layer = looped(text), by_layer(text, given.device)
        expected = ef.oracle(text)
        found = loop()
        wrong += layer() != [expected] or found not in ("", expected)
        layers, ratios = [], []
        for _ in range(given.rounds):
            seconds, answer = timed(layer)
            loop_seconds, _ = timed(loop)
            wrong += answer != [expected]
            layers.append(seconds)
            ratios.append(seconds / loop_seconds)
        tokens = len(text)
        best = float(np.median(layers))
        spread = f"{np.median(ratios):,.0f} ({min(ratios):,.0f} to {max(ratios):,.0f})"
        states = len(text.domain.states)
        rows.append([name, str(states), f"{tokens:,}", f"{best * 1e3:,.1f}"])
        rows[-1] += [f"{tokens / best / 1e6:.2f}", spread]
        log(" | ".join(rows[-1]))
    print(heading("Machines beside a compiled loop"))
    print(
        f"Constructed weights on {given.device}, one thread; times of the layer are medians of "
        f"{given.rounds} rounds, ratios are those of its time to the loop's, with the smallest and "
        f"the largest. Every answer is the oracle's: {wrong} wrong. Python "
        f"{platform.python_version()}, torch {torch.__version__}, numba {numba.__version__}.\n"
    )
    names = ["machine", "states", "tokens", "layer, ms", "million tokens a second", "layer : loop"]
    print("\n".join(table(names, rows, words=1)))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
