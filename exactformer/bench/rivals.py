"""The programs that the engine is compared with; each takes text and returns a value.

For each task there are two stack machines in compiled code, the floor, as one would write them by
hand for this task and no other: a plain one with a stack of values and a stack of operators, and
one that is tuned. None of them checks anything: they trust the text to be an expression in
canonical spelling. Indices are unsigned, because numba would else check each for being negative.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exactformer.api import Model
from exactformer.domains.syntax import parse
from exactformer.engine.compiled import compiled

Program = Callable[[bytes], str]

ENGINE = "engine"
ONE_CORE = "engine, one core"
FLOORS = ("plain floor", "tuned floor")
MODEL = "torch model"
STACK_MACHINE = "Python stack machine"
EVAL = "Python's eval"
PROGRAMS = (ENGINE, ONE_CORE, *FLOORS, MODEL, STACK_MACHINE, EVAL)

U = np.uint64
ONE = U(1)
allocating = partial(compiled, allocates=True)


class TooDeep(Exception):
    """Raised by a program that recurses and cannot read a text this deep."""


def programs(model: Model) -> dict[str, Program]:
    """All programs for a model's task, by name."""
    algebra, engine, task = model.algebra, model.fast_engine("fast"), model.algebra.name

    def one_core(text: bytes) -> str:
        reader = engine.reader()
        reader.read(np.frombuffer(text, dtype=np.uint8), 0, len(text))
        return str(engine.result(reader))

    def transformer(text: bytes) -> str:
        return str(model.predict([parse(algebra, text)])[0])

    def on_bytes(machine: Callable[[NDArray[np.uint8]], int]) -> Program:
        return lambda text: str(machine(np.frombuffer(text, dtype=np.uint8)))

    floors = dict(zip(FLOORS, map(on_bytes, COMPILED[task]), strict=True))
    return {
        ENGINE: engine.value,
        ONE_CORE: one_core,
        **floors,
        MODEL: transformer,
        STACK_MACHINE: INTERPRETED[task],
        **({EVAL: EVALS[task]} if task in EVALS else {}),
    }


@allocating
def _plain_boolean(text):
    values = np.empty(len(text) // 2 + 1, np.uint8)
    operators = np.empty(len(text) // 2 + 1, np.uint8)
    n_values, n_operators = U(0), U(0)
    for i in range(len(text)):
        char = text[i]
        if char == 40:  # (
            pass
        elif char == 41:  # )
            n_operators -= ONE
            operator = operators[n_operators]
            b = values[n_values - ONE]
            if operator == 126:  # ~
                values[n_values - ONE] = b ^ 1
            else:
                n_values -= ONE
                a = values[n_values - ONE]
                values[n_values - ONE] = a & b if operator == 38 else a | b
        elif char == 48 or char == 49:
            values[n_values] = char - 48
            n_values += ONE
        else:
            operators[n_operators] = char
            n_operators += ONE
    return values[0]


@allocating
def _plain_arithmetic(text):
    values = np.empty(len(text) // 2 + 1, np.uint8)
    operators = np.empty(len(text) // 2 + 1, np.uint8)
    n_values, n_operators = U(0), U(0)
    for i in range(len(text)):
        char = text[i]
        if char == 40:  # (
            pass
        elif char == 41:  # )
            n_values -= ONE
            n_operators -= ONE
            a, b = values[n_values - ONE], values[n_values]
            values[n_values - ONE] = (a + b) % 10 if operators[n_operators] == 43 else a * b % 10
        elif char >= 48:
            values[n_values] = char - 48
            n_values += ONE
        else:
            operators[n_operators] = char
            n_operators += ONE
    return values[0]


@allocating
def _tuned_infix(table, row, width, text, values=None):
    """The last value stays in a register. What waits for an operand, `a+` or `a*`, is a row of a
    table of results, so that no operator is decided by a jump. Where a text has many lines,
    `values` gets the value of each; without it, nothing of that is compiled.
    """
    waiting = np.empty(len(text) // 2 + 1, np.uint8)
    n, value, line = U(0), U(0), U(0)
    for i in range(len(text)):
        char = text[i]
        if char == 40:  # (
            pass
        elif char == 41:  # )
            n -= ONE
            value = U(table[U(waiting[n]) + value])
        elif 48 <= char <= 57:
            value = U(char) - U(48)
        elif values is not None and char == 10:
            values[line] = value
            line += ONE
        else:
            waiting[n] = U(row[char]) + width * value
            n += ONE
    return value


def _tables(operators: dict[str, Callable[[int, int], int]], n_values: int):
    """The lookup tables of the tuned machine."""
    every = range(n_values)
    table = [rule(a, b) for rule in operators.values() for a in every for b in every]
    row = np.zeros(256, dtype=np.uint8)
    for number, operator in enumerate(operators):
        row[ord(operator)] = number * n_values**2
    return np.array(table, dtype=np.uint8), row, U(n_values)


BOOLEAN = _tables({"&": lambda a, b: a & b, "|": lambda a, b: a | b, "~": lambda a, b: 1 - b}, 2)
ARITHMETIC = _tables({"+": lambda a, b: (a + b) % 10, "*": lambda a, b: a * b % 10}, 10)


@njit(nogil=True)
def listops_value(operator, values, base, n_values):
    """Value of a ListOps operator, given by one of its letters, on two or three operands from
    `base` on.
    """
    a, b = values[base], values[base + ONE]
    low, high = min(a, b), max(a, b)
    if n_values - base == U(3):
        c = values[base + U(2)]
        if operator == 65:  # mAx
            return max(high, c)
        if operator == 73:  # mIn
            return min(low, c)
        if operator == 69:  # mEd
            return max(low, min(high, c))
        return (a + b + c) % 10
    if operator == 65:
        return high
    if operator == 73 or operator == 69:
        return low
    return (a + b) % 10


@allocating
def _plain_listops(text):
    values = np.empty(len(text) // 2 + 1, np.uint8)
    operators = np.empty(len(text) // 2 + 1, np.uint8)
    bases = np.empty(len(text) // 2 + 1, np.uint32)  # where the operands of each span begin
    n_values, n_spans = U(0), U(0)
    for i in range(len(text)):
        char = text[i]
        if char == 32:
            pass
        elif char == 40:  # (
            bases[n_spans] = n_values
            n_spans += ONE
        elif char == 41:  # )
            n_spans -= ONE
            base = U(bases[n_spans])
            values[base] = listops_value(operators[n_spans], values, base, n_values)
            n_values = base + ONE
        elif char <= 57:
            values[n_values] = char - 48
            n_values += ONE
        elif char == 65 or char == 73 or char == 69 or char == 83:  # mAx, mIn, mEd, Sm
            operators[n_spans - ONE] = char
    return values[0]


@allocating
def _tuned_listops(text, found=None):
    """Jumps over what must follow: `( MAX ` is six bytes and `( SM ` five; all else is two. Where a
    text has many lines, each of them a span, `found` gets their values.
    """
    values = np.empty(len(text) // 2 + 1, np.uint8)
    operators = np.empty(len(text) // 2 + 1, np.uint8)
    bases = np.empty(len(text) // 2 + 1, np.uint32)
    n_values, n_spans, i, end, line = U(0), U(0), U(0), U(len(text)), U(0)
    while i < end:
        char = text[i]
        if char == 40:  # (
            operator = text[i + U(3)]
            operators[n_spans] = operator
            bases[n_spans] = n_values
            n_spans += ONE
            i += U(5) if operator == 77 else U(6)  # sM
        elif char == 41:  # )
            n_spans -= ONE
            base = U(bases[n_spans])
            values[base] = listops_value(operators[n_spans], values, base, n_values)
            n_values = base + ONE
            i += U(2)
            if found is not None and n_spans == U(0):
                found[line] = values[0]
                line += ONE
                n_values = U(0)
        else:
            values[n_values] = char - 48
            n_values += ONE
            i += U(2)
    return values[0]


COMPILED = {
    "boolean": (_plain_boolean, partial(_tuned_infix, *BOOLEAN)),
    "arithmetic": (_plain_arithmetic, partial(_tuned_infix, *ARITHMETIC)),
    "listops": (_plain_listops, _tuned_listops),
}


def _interpreted_boolean(text: bytes) -> str:
    values: list[int] = []
    operators: list[str] = []
    for char in text.decode():
        if char == "(":
            continue
        if char == ")":
            operator = operators.pop()
            if operator == "&":
                values.append(values.pop() & values.pop())
            elif operator == "|":
                values.append(values.pop() | values.pop())
            else:
                values.append(1 - values.pop())
        elif char in "01":
            values.append(int(char))
        else:
            operators.append(char)
    return str(values[0])


def _interpreted_arithmetic(text: bytes) -> str:
    values: list[int] = []
    operators: list[str] = []
    for char in text.decode():
        if char == "(":
            continue
        if char == ")":
            b, a = values.pop(), values.pop()
            values.append((a + b) % 10 if operators.pop() == "+" else a * b % 10)
        elif char in "+*":
            operators.append(char)
        else:
            values.append(int(char))
    return str(values[0])


def _interpreted_listops(text: bytes) -> str:
    rules = {
        "MAX": max,
        "MIN": min,
        "MED": lambda operands: sorted(operands)[(len(operands) - 1) // 2],
        "SM": lambda operands: sum(operands) % 10,
    }
    spans: list[list[int]] = [[]]  # operands of the spans that are open
    operators: list[str] = []
    for word in text.decode().split():
        if word == "(":
            spans.append([])
        elif word == ")":
            operands = spans.pop()
            spans[-1].append(rules[operators.pop()](operands))
        elif word in rules:
            operators.append(word)
        else:
            spans[-1].append(int(word))
    return str(spans[0][0])


INTERPRETED: dict[str, Program] = {
    "boolean": _interpreted_boolean,
    "arithmetic": _interpreted_arithmetic,
    "listops": _interpreted_listops,
}


def _eval(text: str) -> int:
    try:
        return eval(text)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise TooDeep(str(error)) from None


# The text of these tasks is Python, but for `~x`. Sums and products are whole numbers of any size.
EVALS: dict[str, Program] = {
    "boolean": lambda text: str(_eval(text.decode().replace("~", "1-"))),
    "arithmetic": lambda text: str(_eval(text.decode()) % 10),
}
