"""The built-in machines."""

from collections.abc import Callable, Mapping
from functools import cache
from itertools import permutations, product

from exactformer.domains.machines import Machine
from exactformer.domains.span_machines import SpanMachine


@cache
def parity() -> Machine:
    """Whether the number of ones is odd (`1`) or even (`0`)."""
    return Machine.from_rule("parity", "01", 0, lambda q, x: q ^ int(x), end=str)


@cache
def even_pairs() -> Machine:
    """Whether the number of neighbours that differ is even (`1`) or odd (`0`): whether the first
    symbol and the last one are the same.
    """

    def step(ends: str, x: str) -> str:
        return (x if ends == "none" else ends[0]) + x

    return Machine.from_rule(
        "even-pairs", "01", "none", step, end=lambda ends: str(int(ends[0] == ends[-1]))
    )


@cache
def cycle_5() -> Machine:
    """The place on a circle of five after steps forwards `+`, backwards `-` and none `=`."""
    steps = {"+": 1, "-": -1, "=": 0}
    return Machine.from_rule("cycle-5", "+-=", 0, lambda q, x: (q + steps[x]) % 5, end=str)


@cache
def compare() -> Machine:
    """Whether the first of two decimal numbers is smaller (`<`), equal (`=`) or larger (`>`). They
    are read side by side, from the first digits on: `30 17` is 31 beside 7, or 07.
    """
    symbols = ["".join(pair) for pair in product("0123456789", repeat=2)]

    def step(order: str, digits: str) -> str:
        a, b = digits
        return order if order != "=" or a == b else "<" if a < b else ">"

    return Machine.from_rule("compare", symbols, "=", step, end=str)


@cache
def flip_flop() -> Machine:
    """A bit, 0 at first, that is written (`0`, `1`), kept (`i`) and read (`r`): the answer to `r`
    is the bit, to all else `.`.
    """
    return Machine.from_rule(
        "flip-flop",
        "01ir",
        "0",
        lambda bit, x: x if x in "01" else bit,
        each=lambda bit, x: bit if x == "r" else ".",
    )


@cache
def s3() -> Machine:
    """The product of permutations of three points. `231` moves the first point to place 2, and so
    on; what is read first acts first.
    """
    points = ["".join(order) for order in permutations("123")]

    def then(product: str, next: str) -> str:
        return "".join(next[int(place) - 1] for place in product)

    return Machine.from_rule("s3", points, "123", then, end=str)


@cache
def s5() -> Machine:
    """The point to which permutations of five points, each of 120, move the first one: a problem of
    the hardest kind that finitely many states can solve. Permutations are written as for `s3`.
    """
    points = ["".join(order) for order in permutations("12345")]
    return Machine.from_rule("s5", points, "1", lambda place, x: x[int(place) - 1], end=str)


@cache
def folds() -> SpanMachine:
    """Operators of any number of digits: the first one, the last one, the largest, the smallest,
    the sum, and the first one less all others, modulo 10. Order matters in some.
    """
    steps: dict[str, Callable[[int, int], int]] = {
        "FIRST": lambda so_far, digit: so_far,
        "LAST": lambda so_far, digit: digit,
        "MAX": max,
        "MIN": min,
        "SM": lambda so_far, digit: (so_far + digit) % 10,
        "DIFF": lambda so_far, digit: (so_far - digit) % 10,
    }

    def step(state: str, symbol: str) -> str | None:
        operator, _, so_far = state.partition(" ")
        if state == "begin" or symbol in steps:
            return symbol if state == "begin" and symbol in steps else None
        value = steps[operator](int(so_far), int(symbol)) if so_far else symbol
        return f"{operator} {value}"

    def end(state: str) -> str | None:
        return state.partition(" ")[2] or None

    return SpanMachine(Machine.from_rule("folds", [*steps, *"0123456789"], "begin", step, end))


SPAN_MACHINES: Mapping[str, Callable[[], SpanMachine]] = {"folds": folds}
MACHINES: Mapping[str, Callable[[], Machine]] = {
    "parity": parity,
    "even-pairs": even_pairs,
    "cycle-5": cycle_5,
    "compare": compare,
    "flip-flop": flip_flop,
    "s3": s3,
    "s5": s5,
}
