"""Integers by the transformer beside Python's integers: all small pairs, nested texts, long ones.

    python benchmarks/integers.py [--device cuda] > results/integers.md

In base 10 and 2: all pairs of small numbers for each operator; random nested texts of numerals of
up to 50 digits; 9...9 + 1 and random sums of a million digits; products of 2,000 by 500 digits. The
weights are written down, and certified first. Every value is compared with that of Python's
integers, and the iterations with what the text says: one for a span, and for a product as many as
its right operand has digits. Exit status 1 if anything differs. `--below N` is for less: pairs of
numbers below N, and long texts of 100 times as many digits.
"""

import platform
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np
import torch
from reports import heading, log, parser

import exactformer as ef
from exactformer.domains.integer_sampling import draw_integers
from exactformer.domains.integers import OPERATORS, Integers, integers
from exactformer.domains.reference import evaluate
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN
from exactformer.model.iterations import most_iterations
from exactformer.paper.files import table

AT_ONCE = 20_000  # texts
BELOW = {  # pairs, by base and operator
    10: {"+": 1_000, "-": 1_000, "*": 200, "<": 300, "=": 300, ">": 300},
    2: dict.fromkeys(OPERATORS, 200),
}
NESTED, DEPTHS, LONGEST = 500, range(2, 7), 50  # texts, their depths, digits of a numeral
LONG, SUMS, FACTORS = 1_000_000, 3, (2_000, 500)  # digits, random sums, digits


def span(domain: Integers, a: list[int], symbol: str, b: list[int]) -> ef.Expression:
    ids = [OPEN, *a, domain.token_ids[symbol], *b, CLOSE]
    return ef.Expression(domain, np.array(ids, dtype=np.int16))


def pairs(domain: Integers, symbol: str, below: int) -> Iterator[ef.Expression]:
    """A span for all pairs of numbers."""
    written: list[list[int]] = []
    for number in range(below):
        head = written[number // domain.base] if number >= domain.base else []
        written.append([*head, FIRST_VALUE + number % domain.base])
    return (span(domain, a, symbol, b) for a in written for b in written)


def nested(domain: Integers, rng: np.random.Generator) -> Iterator[ef.Expression]:
    for depth in DEPTHS:
        yield from draw_integers(domain, depth, NESTED // len(DEPTHS), rng, LONGEST)


def numeral(domain: Integers, digits: int, rng: np.random.Generator) -> list[int]:
    tokens = FIRST_VALUE + rng.integers(domain.base, size=digits)
    tokens[0] = FIRST_VALUE + rng.integers(1, domain.base)
    return tokens.tolist()


def texts(domain: Integers, below: int | None) -> Iterator[tuple[str, Iterable[ef.Expression]]]:
    """The texts that are tried, by their name."""
    rng = np.random.default_rng(0)
    for symbol, most in BELOW[domain.base].items():
        numbers = min(most, below or most)
        yield f"all `(a{symbol}b)`, a, b < {numbers:,}", pairs(domain, symbol, numbers)
    yield f"nested, depths {DEPTHS[0]} to {DEPTHS[-1]}", nested(domain, rng)
    long = 100 * below if below else LONG
    largest = [FIRST_VALUE + domain.base - 1] * long
    name = f"{domain.digits[-1]}...{domain.digits[-1]} + 1"
    yield name, [span(domain, largest, "+", [FIRST_VALUE + 1])]
    for symbol in "+-":
        operands = ((numeral(domain, long, rng), numeral(domain, long, rng)) for _ in range(SUMS))
        yield f"random `(a{symbol}b)`", (span(domain, a, symbol, b) for a, b in operands)
    a, b = (numeral(domain, digits, rng) for digits in FACTORS)
    yield f"random `(a*b)`, {FACTORS[0]:,} by {FACTORS[1]} digits", [span(domain, a, "*", b)]


def measure(model: ef.Model, name: str, tried: Iterable[ef.Expression]) -> tuple[list[str], int]:
    """A row of the table, and how much is wrong in it."""
    tried, count, digits, wrong, off, taken = iter(tried), 0, 0, 0, 0, 0
    seconds = 0.0
    while some := [*islice(tried, AT_ONCE)]:
        began = time.perf_counter()
        outcomes = model.outcomes(some)
        seconds += time.perf_counter() - began
        for text, outcome in zip(some, outcomes, strict=True):
            wrong += outcome.value != evaluate(text)
            bound, found = most_iterations(text, "depth"), outcome.iterations
            off += found > bound or (text.ids[1:].min() > OPEN and found != bound)
            taken = max(taken, found)
        count += len(some)
        digits = max(digits, *(len(text) for text in some))
    cells = [str(model.domain.name), name, f"{count:,}", f"{digits:,}"]
    cells += [str(wrong), str(off), str(taken), f"{seconds:.1f}"]
    log(" | ".join(cells))
    return cells, wrong + off


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--below", type=int)
    arguments.add_argument("--device", default="cpu")
    chosen = arguments.parse_args()
    rows, faults, verdicts = [], 0, []
    for base in BELOW:
        model = ef.construct(integers(base)).to(chosen.device)
        certificate = model.certify()
        kind, checked = model.origin["feedforward"], certificate.findings.rows
        verdicts.append(f"`{model.domain.name}`: {certificate.verdict} ({kind}, {checked:,} rows)")
        faults += not certificate.exact
        for name, tried in texts(integers(base), chosen.below):
            cells, wrong = measure(model, name, tried)
            rows.append(cells)
            faults += wrong
    versions = f"Python {platform.python_version()}, torch {torch.__version__}"
    threads = f"the CPU ({torch.get_num_threads()} threads)"
    place = threads if chosen.device == "cpu" else torch.cuda.get_device_name(chosen.device)
    print(heading("Integers beside Python's"))
    print(
        f"By constructed weights, on {place}. Certified: "
        f"{'; '.join(verdicts)}. *Wrong* counts values that are not those of Python's integers "
        f"(`?` where a difference is below zero); *other iterations* counts texts that took more "
        f"than their spans and right operands ask for, and single spans that did not take exactly "
        f"as many. Seconds are those of the transformer alone. Random numbers have the seed 0. "
        f"{versions}, numpy {np.__version__}.\n"
    )
    columns = ["domain", "texts", "how many", "longest, in tokens", "wrong", "other iterations"]
    print("\n".join(table([*columns, "most iterations", "seconds"], rows, words=2)))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
