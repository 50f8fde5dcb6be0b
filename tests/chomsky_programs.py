"""Tasks of the Chomsky-hierarchy benchmark by plain programs, which know nothing of the package.

A text is a list of numbers, as the benchmark has them. `PROGRAMS` has by task what draws a random
text of a length, or of the next smaller one that there is, and what gives the answer, as a list.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random
from typing import NamedTuple

Numbers = list[int]


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


PROGRAMS: Mapping[str, Program] = {
    "even_pairs": Program(letters(2), even_pairs),
    "parity_check": Program(letters(2), parity_check),
    "cycle_navigation": Program(letters(3), cycle_navigation),
    "modular_arithmetic": Program(draw_sum, modular_arithmetic),
    "modular_arithmetic_brackets": Program(draw_brackets, modular_arithmetic_brackets),
    "solve_equation": Program(draw_equation, solve_equation),
}
