"""Tasks of the Chomsky-hierarchy benchmark by plain programs, which know nothing of the package.

A text is a list of numbers, as the benchmark has them. `PROGRAMS` has by task a function that draws
a random text of a length, or of the next smaller one that there is, and one that gives the answer.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from math import isqrt
from random import Random
from typing import NamedTuple

Numbers = list[int]

FEW_BITS = 100  # of a factor: an iteration each


class Program(NamedTuple):
    draw: Callable[[int, Random], Numbers]
    answer: Callable[[Numbers], Numbers]


def letters(count: int) -> Callable[[int, Random], Numbers]:
    return lambda length, rng: [rng.randrange(count) for _ in range(length)]


def even_pairs(text: Numbers) -> Numbers:
    return [sum(a != b for a, b in pairwise(text)) % 2]


def parity_check(text: Numbers) -> Numbers:
    return [text.count(1) % 2]


def cycle_navigation(text: Numbers) -> Numbers:
    return [(text.count(2) - text.count(0)) % 5]


def draw_sum(length: int, rng: Random) -> Numbers:
    """Digits with operators between them."""
    length -= length % 2 == 0
    return [rng.randrange(5, 8) if i % 2 else rng.randrange(5) for i in range(length)]


def modular_arithmetic(text: Numbers) -> Numbers:
    """Terms are split off first, each a product, and added up with their signs."""
    total, sign, term = 0, 1, text[0]
    for operator, digit in zip(text[1::2], text[2::2], strict=True):
        if operator == 7:
            term = term * digit % 5
        else:
            total += sign * term
            sign, term = (1 if operator == 5 else -1), digit
    return [(total + sign * term) % 5]


def draw_bracketed(operators: str, length: int, rng: Random) -> str:
    """An expression of this many symbols as the benchmark has them: a digit, `-` and a digit,
    either of these in parentheses, or two expressions with an operator between them in parentheses.
    """
    written: list[str] = []
    waiting: list[int | str] = [length]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            written.append(part)
        elif part <= 4:
            digit = str(rng.randrange(5))
            written += ["", digit, "-" + digit, f"({digit})", f"(-{digit})"][part]
        else:
            left = rng.randrange(1, part - 3)
            waiting += [")", part - 3 - left, rng.choice(operators), left, "("]
    return "".join(written)


def value(text: str) -> int:
    """The value modulo 5 by two stacks, as a desk calculator finds it. `!` is a minus sign."""
    level = {"+": 1, "-": 1, "*": 2, "!": 3}
    numbers: Numbers = []
    operators: list[str] = []

    def apply() -> None:
        operator, right = operators.pop(), numbers.pop()
        left = 0 if operator == "!" else numbers.pop()
        found = {"+": left + right, "-": left - right, "!": -right, "*": left * right}
        numbers.append(found[operator] % 5)

    before = "("
    for symbol in text:
        if symbol.isdigit():
            numbers.append(int(symbol))
        elif symbol == "(":
            operators.append(symbol)
        elif symbol == ")":
            while operators[-1] != "(":
                apply()
            operators.pop()
        elif before in "(+-*":
            operators.append("!")
        else:
            while operators and level.get(operators[-1], 0) >= level[symbol]:
                apply()
            operators.append(symbol)
        before = symbol
    while operators:
        apply()
    (found,) = numbers
    return found


BRACKETS = "01234+-*()"  # the symbols by their numbers
EQUATION = "01234+-()x="


def draw_brackets(length: int, rng: Random) -> Numbers:
    return [BRACKETS.index(symbol) for symbol in draw_bracketed("+-*", length, rng)]


def modular_arithmetic_brackets(text: Numbers) -> Numbers:
    return [value("".join(BRACKETS[number] for number in text))]


def draw_equation(length: int, rng: Random) -> Numbers:
    """An expression in which x stands for one digit, and a digit that it is to be equal to."""
    side = [EQUATION.index(symbol) for symbol in draw_bracketed("+-", max(1, length - 2), rng)]
    side[rng.choice([i for i, number in enumerate(side) if number < 5])] = 9
    return [*side, 10, rng.randrange(5)]


def solve_equation(text: Numbers) -> Numbers:
    """Each x is tried."""
    left, right = "".join(EQUATION[number] for number in text).split("=")
    return [x for x in range(5) if value(left.replace("x", str(x))) == int(right)]


def draw_actions(length: int, rng: Random) -> Numbers:
    """A stack, and as many actions on it or more."""
    stack = rng.randint(1, max(1, length // 2))
    return [rng.randrange(2) if i < stack else rng.randrange(2, 5) for i in range(length)]


def stack_manipulation(text: Numbers) -> Numbers:
    stack = Numbers()
    for number in text:
        if number < 2:
            stack.append(number)
        elif number > 2:
            stack.append(number - 3)
        elif stack:
            stack.pop()
    return [*reversed(stack), 2]


def draw_twice(length: int, rng: Random) -> Numbers:
    """Bits twice, of which one is missing, and what is skipped at the end."""
    half = [rng.randrange(2) for _ in range(max(1, (length - 1) // 2))]
    text = half * 2
    text[rng.randrange(len(text))] = 2
    return [*text, 3]


def missing_duplicate_string(text: Numbers) -> Numbers:
    bits = [number for number in text if number != 3]
    half = len(bits) // 2
    return [
        b if a == 2 else a for a, b in zip(bits[:half], bits[half:], strict=True) if 2 in (a, b)
    ]


def draw_numbers(most_bits: int | None = None) -> Callable[[int, Random], Numbers]:
    """Two numbers, of which the first one has no more than so many bits."""

    def draw(length: int, rng: Random) -> Numbers:
        first = rng.randint(1, min(most_bits or length, length - 2))
        text = [rng.randrange(2) for _ in range(length)]
        text[first] = 2
        text[first - 1] = text[-1] = 1  # the highest bits
        return text

    return draw


def number(bits: Numbers) -> int:
    """The number with these bits, the lowest first."""
    return int("".join(map(str, reversed(bits))), 2)


def by_numbers(compute: Callable[[int, int], int]) -> Callable[[Numbers], Numbers]:
    def answer(text: Numbers) -> Numbers:
        mark = text.index(2)
        found = compute(number(text[:mark]), number(text[mark + 1 :]))
        return [*(int(bit) for bit in reversed(f"{found:b}")), 2]

    return answer


def compute_sqrt(text: Numbers) -> Numbers:
    root = isqrt(number([*reversed(text)]))
    return [int(bit) for bit in f"{root:0{(len(text) + 1) // 2}b}"]


PROGRAMS: Mapping[str, Program] = {
    "even_pairs": Program(letters(2), even_pairs),
    "parity_check": Program(letters(2), parity_check),
    "cycle_navigation": Program(letters(3), cycle_navigation),
    "modular_arithmetic": Program(draw_sum, modular_arithmetic),
    "modular_arithmetic_brackets": Program(draw_brackets, modular_arithmetic_brackets),
    "solve_equation": Program(draw_equation, solve_equation),
    "stack_manipulation": Program(draw_actions, stack_manipulation),
    "reverse_string": Program(letters(2), lambda text: text[::-1]),
    "duplicate_string": Program(letters(2), lambda text: text * 2),
    "missing_duplicate_string": Program(draw_twice, missing_duplicate_string),
    "odds_first": Program(letters(2), lambda text: text[1::2] + text[::2]),
    "bucket_sort": Program(letters(5), sorted),
    "binary_addition": Program(draw_numbers(), by_numbers(lambda a, b: a + b)),
    "binary_multiplication": Program(draw_numbers(FEW_BITS), by_numbers(lambda a, b: a * b)),
    "compute_sqrt": Program(letters(2), compute_sqrt),
}
