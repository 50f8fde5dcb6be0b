"""Tokens a second of our parser and oracle beside Python's `eval` and a plain stack machine.

    python benchmarks/parsing.py > results/parsing.md

Each program runs in a process of its own (so its peak memory is its own, on top of the text) and
gets the text three times; the best time counts. The stack machine checks nothing. `eval` reads
`~x` as `1-x`; it runs out of stack on deep nesting, and gets a smaller perfect tree, with the size
stated, because its syntax tree takes about 250 bytes a token. Nothing here imports torch, whose
memory would count.
"""

import math
import random
import resource
import time
from collections.abc import Callable
from multiprocessing.connection import Connection

import numpy as np
from reports import heading, in_own_process, parser

from exactformer.domains.catalog import boolean
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, mean_tokens
from exactformer.domains.syntax import parse

COMB_DEPTH = 1_000_000
EVAL_TOKENS = 2**20
RUNS = 3


def perfect_tree(tokens: int) -> str:
    """A tree of `&` and `|` with all its values at one depth, of about this many tokens."""
    depth = max(1, round(math.log2((tokens + 3) / 4)))
    rng = random.Random(0)
    parts = ["(" * depth, rng.choice("01")]
    for leaf in range(1, 2**depth):
        ended = (leaf & -leaf).bit_length() - 1  # subtrees that end before this leaf
        parts += [")" * ended, rng.choice("&|"), "(" * ended, rng.choice("01")]
    return "".join([*parts, ")" * depth])


def comb(depth: int) -> str:
    return "(~" * depth + "1" + ")" * depth


def random_tree(tokens: int) -> str:
    depth = 1
    while mean_tokens(boolean(), depth)[-1] < tokens:
        depth += 1
    return str(draw(boolean(), depth, 1, np.random.default_rng(0))[0])


def stack_machine(text: str) -> str:
    """The simplest evaluator: a stack of values, a stack of operators, no checks."""
    values: list[int] = []
    operators: list[str] = []
    for char in text:
        if char == "1":
            values.append(1)
        elif char == "0":
            values.append(0)
        elif char == ")":
            operator = operators.pop()
            if operator == "&":
                values.append(values.pop() & values.pop())
            elif operator == "|":
                values.append(values.pop() | values.pop())
            else:
                values.append(1 - values.pop())
        elif char != "(":
            operators.append(char)
    return str(values[0])


def python_eval(text: str) -> str:
    return str(eval(text.replace("~", "1-")))


def parse_and_evaluate(text: str) -> str:
    return evaluate(parse(boolean(), text))


def timed(program: Callable[[str], str], text: str) -> tuple[float, str]:
    start = time.perf_counter()
    value = program(text)
    return time.perf_counter() - start, value


def timed_parse(text: str) -> tuple[float, str]:
    start = time.perf_counter()
    expression = parse(boolean(), text)
    return time.perf_counter() - start, evaluate(expression)


def timed_oracle(text: str) -> tuple[float, str]:
    expression = parse(boolean(), text)
    start = time.perf_counter()
    value = evaluate(expression)
    return time.perf_counter() - start, value


STACK_MACHINE = "plain stack machine, unchecked"
PROGRAMS: dict[str, Callable[[str], tuple[float, str]]] = {
    STACK_MACHINE: lambda text: timed(stack_machine, text),
    "our parse": timed_parse,
    "our oracle, parsed before": timed_oracle,
    "our parse and oracle": lambda text: timed(parse_and_evaluate, text),
    "Python's eval": lambda text: timed(python_eval, text),
}


def work(program: str, text: str, answers: Connection) -> None:
    try:
        runs = [PROGRAMS[program](text) for _ in range(RUNS)]
    except Exception as error:
        answers.send(type(error).__name__)
        return
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    answers.send((min(seconds for seconds, _ in runs), runs[0][1], peak))


def measure(program: str, text: str) -> tuple[float, str, float] | str:
    """Best seconds, value and peak MB; or the name of the exception."""
    return in_own_process("fork", work, program, text) or "killed"


def report(name: str, text: str, eval_text: str) -> None:
    values: dict[str, set[str]] = {}
    baseline = None
    for program in PROGRAMS:
        given = eval_text if program == "Python's eval" else text
        answer = measure(program, given)
        if isinstance(answer, str):
            print(f"| {name} | {len(given):,} | {program} | fails: {answer} | | |", flush=True)
            continue
        seconds, value, peak = answer
        values.setdefault(given[:10_000] + str(len(given)), set()).add(value)
        speed = len(given) / seconds
        baseline = baseline or speed
        print(
            f"| {name} | {len(given):,} | {program} | {speed / 1e6:.2f} | "
            f"{speed / baseline:.2f} | {peak:,.0f} |",
            flush=True,
        )
    assert all(len(answers) == 1 for answers in values.values()), f"{name}: values differ"


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--tokens", type=int, default=16_000_000, help="of the perfect tree")
    tokens = options.parse_args().tokens
    print(heading("Parsing and evaluating"))
    print("The stack machine trusts its input; ours checks every token and can locate an error.\n")
    print("| input | tokens | program | million tokens a second | vs stack machine | peak MB |")
    print("|---|---:|---|---:|---:|---:|")
    report("perfect tree", perfect_tree(tokens), perfect_tree(min(tokens, EVAL_TOKENS)))
    report("comb", comb(COMB_DEPTH), comb(COMB_DEPTH))
    text = random_tree(min(tokens, EVAL_TOKENS))
    report("random tree", text, text)


if __name__ == "__main__":
    main()
