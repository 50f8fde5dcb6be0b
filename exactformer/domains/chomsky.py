"""Tasks of the Chomsky-hierarchy benchmark, with symbols as the benchmark numbers them.

The benchmark is that of "Neural Networks and the Chomsky Hierarchy" (Delétang et al. 2022). The
domain of a task is found by the benchmark's name for it, `chomsky/parity_check`. Six of the fifteen
are defined here, whose own names, in files, are such as `chomsky-parity-check`; the others are
built in under names of theirs, such as `reverse-string`. A text is a row of numbers: `0 1 1`.

In expressions these numbers are other spellings of what they stand for, as `AND` is of `&`: also of
the parentheses. So texts of the benchmark and `(1+2)` are one language with one grammar, and an
error is found where it is in the text that was given; what is printed has the usual symbols.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.domain import Domain
from exactformer.domains.little_endian import binary_addition, binary_multiplication
from exactformer.domains.machines import Machine
from exactformer.domains.precedence import Level
from exactformer.domains.rearrangement_catalog import (
    bucket_sort,
    duplicate_string,
    missing_duplicate_string,
    odds_first,
    reverse_string,
    stack_manipulation,
)
from exactformer.domains.square_roots import compute_sqrt

FOLDER = "chomsky/"  # before the name of a task
PREFIX = "chomsky-"  # before the name of the domain of a task that is defined here
MODULUS = 5
NONE = "?"  # the value of an equation that not exactly one x solves


def own_name(task: str) -> str:
    """The name of a task's domain in files: names there have no slash."""
    return PREFIX + task.replace("_", "-")


@cache
def even_pairs() -> Machine:
    """Whether the number of neighbours that differ is odd (`1`) or even (`0`): whether the first
    symbol and the last one differ.
    """

    def step(ends: str, x: str) -> str:
        return (x if ends == "none" else ends[0]) + x

    def end(ends: str) -> str:
        return str(int(ends[0] != ends[-1]))

    return Machine.from_rule(own_name("even_pairs"), "01", "none", step, end)


@cache
def parity_check() -> Machine:
    """Whether the number of ones is odd (`1`) or even (`0`)."""
    return Machine.from_rule(own_name("parity_check"), "01", 0, lambda q, x: q ^ int(x), str)


@cache
def cycle_navigation() -> Machine:
    """The place on a circle of five after steps backwards `0`, none `1` and forwards `2`."""

    def step(place: int, x: str) -> int:
        return (place + int(x) - 1) % MODULUS

    return Machine.from_rule(own_name("cycle_navigation"), "012", 0, step, str)


class Sum(NamedTuple):
    """A sum modulo 5 while it is read: of the terms that have ended, and the product so far of the
    last one, with its sign; and whether a digit was just read.
    """

    ended: int
    product: int
    whole: bool

    def __str__(self) -> str:
        return f"{self.ended}+{self.product}{'' if self.whole else '*'}"


@cache
def modular_arithmetic() -> Machine:
    """The value modulo 5 of digits with `+` (5), `-` (6) and `*` (7) between them, where `*` binds
    more tightly: finitely many states, since no parentheses are there.
    """

    def step(read: Sum, x: str) -> Sum | None:
        ended, product, whole = read
        if whole == (x < "5"):  # digits and operators alternate
            return None
        if x < "5":
            return Sum(ended, product * int(x) % MODULUS, True)
        if x == "7":
            return Sum(ended, product, False)
        return Sum((ended + product) % MODULUS, 1 if x == "5" else MODULUS - 1, False)

    def end(read: Sum) -> str | None:
        return str((read.ended + read.product) % MODULUS) if read.whole else None

    name = own_name("modular_arithmetic")
    return Machine.from_rule(name, "01234567", Sum(0, 1, False), step, end)


@cache
def modular_arithmetic_brackets() -> Algebra:
    """Sums, differences and products modulo 5 with parentheses and a minus before an operand."""
    return Algebra(
        own_name("modular_arithmetic_brackets"),
        "01234",
        (
            Operator.named("+", "sum", [2], MODULUS),
            Operator.named("-", "difference", [1, 2], MODULUS),
            Operator.named("*", "product", [2], MODULUS),
        ),
        "plain",
        {"5": "+", "6": "-", "7": "*", "8": "(", "9": ")"},
        (Level("left", ["+", "-"]), Level("left", ["*"]), Level("prefix", ["-"])),
    )


@cache
def solve_equation() -> Algebra:
    """The x modulo 5 that solves an equation.

    The value of a side is a linear form cx + a modulo 5, written `2x1` for 2x + 1; there are 25,
    and sums, differences and negatives of them are among them, however often x occurs. The value of
    an equation is the number that solves it, or `?` if there is none or more than one: then all
    that is computed from it is `?`, too.
    """
    forms = [(c, a) for c in range(MODULUS) for a in range(MODULUS)]
    names = [f"{c if c > 1 else ''}{'x' if c else ''}{a if a or not c else ''}" for c, a in forms]
    values, form_of = (*names, NONE), dict(zip(names, forms, strict=True))

    def linear(*factors: int) -> Callable[..., str]:
        """The sum of forms, each with a factor."""

        def combine(*operands: str) -> str:
            if NONE in operands:
                return NONE
            found = [form_of[operand] for operand in operands]
            c, a = (
                sum(f * form[i] for f, form in zip(factors, found, strict=False)) for i in (0, 1)
            )
            return names[c % MODULUS * MODULUS + a % MODULUS]

        return combine

    def minus(*operands: str) -> str:
        return linear(-1)(*operands) if len(operands) == 1 else linear(1, -1)(*operands)

    def solution(left: str, right: str) -> str:
        """The x at which the difference of both sides is 0."""
        if NONE in (left, right):
            return NONE
        c, a = form_of[linear(1, -1)(left, right)]
        return NONE if not c else str(-a * pow(c, -1, MODULUS) % MODULUS)

    return Algebra(
        own_name("solve_equation"),
        values,
        (
            Operator.from_rule("+", [2], linear(1, 1), values),
            Operator.from_rule("-", [1, 2], minus, values, ordered=True),
            Operator.from_rule("=", [2], solution, values),
        ),
        "plain",
        {"5": "+", "6": "-", "7": "(", "8": ")", "9": "x", "10": "="},
        (Level("left", ["="]), Level("left", ["+", "-"]), Level("prefix", ["-"])),
    )


class Task(NamedTuple):
    """A task of the benchmark: its domain, and in a line each, how weights are learned, what those
    are that are written down, and what is proved of either by how many cases.
    """

    domain: Callable[[], Domain]
    learned: str
    constructed: str
    proved: str


_BY_FUTURES = "`train`: states are named by the answers to short texts that are asked for"
_IN_STAGES = "`train`: spans from expressions of depth 1 and 2, levels from texts of up to 5 tokens"
_NOTHING = "nothing"

TASKS: Mapping[str, Task] = {  # by the benchmark's name
    "even_pairs": Task(
        even_pairs,
        _BY_FUTURES,
        "a machine of 5 states: both ends of what was read",
        "every text of `0` and `1`, of any length: 14 cases",
    ),
    "parity_check": Task(
        parity_check,
        _BY_FUTURES,
        "a machine of 2 states",
        "every text of `0` and `1`, of any length: 6 cases",
    ),
    "cycle_navigation": Task(
        cycle_navigation,
        _BY_FUTURES,
        "a machine of 5 states: the place on the circle",
        "every text of `0`, `1` and `2`, of any length: 20 cases",
    ),
    "modular_arithmetic": Task(
        modular_arithmetic,
        _BY_FUTURES,
        "a machine of 50 states: the sum so far, the product so far, and what comes next",
        "every expression without parentheses, of any length: 225 cases",
    ),
    "modular_arithmetic_brackets": Task(
        modular_arithmetic_brackets,
        _IN_STAGES,
        "an algebra of 5 values in plain notation, with `-` before operands",
        "every expression, of any depth and length: 381 cases",
    ),
    "solve_equation": Task(
        solve_equation,
        _IN_STAGES,
        "an algebra of 26 values in plain notation: the 25 linear forms in x, and no solution",
        "every equation, of any depth and length, however often x occurs: 10,167 cases",
    ),
    "stack_manipulation": Task(
        stack_manipulation,
        _NOTHING,
        "a rearrangement: what no later height of the stack is below, the last one first",
        "every stack with every text of actions, of any length: 6 cases",
    ),
    "reverse_string": Task(
        reverse_string,
        _NOTHING,
        "a rearrangement: a symbol is written at its rank from the end",
        "every text of `0` and `1`, of any length: 2 cases",
    ),
    "duplicate_string": Task(
        duplicate_string,
        _NOTHING,
        "a rearrangement: a symbol is written at its rank, and at that plus the length",
        "every text of `0` and `1`, of any length: 2 cases",
    ),
    "missing_duplicate_string": Task(
        missing_duplicate_string,
        _NOTHING,
        "a rearrangement: the symbols at one place of both halves are one bag",
        "every text of two halves that agree but where a bit is missing: 5 cases",
    ),
    "odds_first": Task(
        odds_first,
        _NOTHING,
        "a rearrangement: a counting sort by the rank modulo 2",
        "every text of `0` and `1`, of any length: 2 cases",
    ),
    "bucket_sort": Task(
        bucket_sort,
        _NOTHING,
        "a rearrangement: a counting sort by the symbol",
        "every text of `0` to `4`, of any length: 5 cases",
    ),
    "binary_addition": Task(
        binary_addition,
        _NOTHING,
        "a sum of `integers-2` in another spelling, in one iteration",
        "every two numbers, of any length: 26 cases",
    ),
    "binary_multiplication": Task(
        binary_multiplication,
        _NOTHING,
        "a product of `integers-2` in another spelling, in an iteration for each bit of one number",
        "every two numbers, of any length: 33 cases",
    ),
    "compute_sqrt": Task(
        compute_sqrt,
        _NOTHING,
        "the method on paper, in an iteration for each bit of the root",
        "every number, of any length: 112 cases",
    ),
}

OWN = (
    even_pairs,
    parity_check,
    cycle_navigation,
    modular_arithmetic,
    modular_arithmetic_brackets,
    solve_equation,
)

# By the benchmark's name behind the name of a folder, and by the own name of those defined here.
CHOMSKY: Mapping[str, Callable[[], Domain]] = {
    **{FOLDER + key: task.domain for key, task in TASKS.items()},
    **{own_name(domain.__name__): domain for domain in OWN},
}


def task_of(domain: Domain) -> str | None:
    """The benchmark's name of the task that a domain is; None if it is none of them."""
    return next((key for key, task in TASKS.items() if task.domain() == domain), None)
