"""Reads Python's syntax, with precedence and redundant parentheses, into fully parenthesized form.

    not ( True ) and False or True      becomes   (((~1)&0)|1)
    2 + 3 * 14 - 1 modulo 10            becomes   ((2+(3*4))+(9*1))

Booleans: `or`, `and`, `not`, `True` or `1`, `False` or `0`. Whole numbers: `+`, `-` and `*`, a sign
before an operand, literals of any size, all modulo the number of values. Where the algebra has no
`-` of its own, a - b is a + (m-1) * b, and -b is (m-1) * b: the same number modulo m.

Python's `eval` is not used, and nothing recurses: a nesting a million deep is an ordinary input.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import product
from typing import NoReturn

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.climbing import Node, flat
from exactformer.domains.domain import Domain
from exactformer.domains.errors import ExpressionError, decode, quote
from exactformer.domains.expression import Expression

NUMBER = re.compile(r"[1-9](_?[0-9])*|0(_?0)*")  # as Python has it: no leading zeros
DIGITS_AT_ONCE = 4_000  # Python converts no more than 4,300 into a number


@dataclass(frozen=True)
class Dialect:
    """How Python's words become spans of an algebra. Higher numbers bind more tightly."""

    operand: str  # what an operand may be, in words
    literal: Callable[[str], int | None]
    binary: dict[str, tuple[int, Callable[[Node, Node], Node]]]
    unary: dict[str, tuple[int, Callable[[Node], Node]]]


def parse_python(domain: Domain, text: str | bytes, *, first_line: int = 1) -> Expression:
    """Read one expression. Raises `ExpressionError` at the first token that cannot stand there."""
    algebra, text = algebra_of(domain), decode(text, first_line)
    dialect = dialect_of(algebra)
    operands: list[Node] = []
    # Precedence, number of operands and effect of each waiting operator; precedence 0 for `(`.
    waiting: list[tuple[int, int, Callable[..., Node]]] = []
    unclosed = 0  # number of open parentheses
    complete = False  # whether an operand has just ended

    def reduce(precedence: int) -> None:
        """Apply the operators that bind at least this tightly."""
        while waiting and waiting[-1][0] >= precedence:
            _, count, apply = waiting.pop()
            operands[-count:] = [apply(*operands[-count:])]

    def fail(offset: int, found: str) -> NoReturn:
        if complete:
            expected = f"an operator ({' '.join(dialect.binary)})"
            expected += " or ')'" if unclosed else " or the end of the text"
        else:
            expected = f"{dialect.operand}, {', '.join(map(repr, dialect.unary))} or '('"
        raise ExpressionError(f"expected {expected}, found {found}", text, offset, first_line)

    for match in re.finditer(r"\w+|\S", text):
        word = match[0]
        if complete and word in dialect.binary:
            precedence, apply = dialect.binary[word]
            reduce(precedence)
            waiting.append((precedence, 2, apply))
            complete = False
        elif complete and word == ")" and unclosed:
            reduce(1)
            waiting.pop()
            unclosed -= 1
        elif not complete and word == "(":
            waiting.append((0, 0, _span))
            unclosed += 1
        elif not complete and word in dialect.unary:
            precedence, apply = dialect.unary[word]
            waiting.append((precedence, 1, apply))
        elif not complete and (literal := dialect.literal(word)) is not None:
            operands.append(literal)
            complete = True
        else:
            fail(match.start(), quote(word))
    if not complete or unclosed:
        note = f" ({unclosed} unclosed)" if unclosed else ""
        fail(len(text.rstrip()), f"the end of the text{note}" if text.strip() else "no text")
    reduce(1)
    return Expression(algebra, flat(operands.pop()))


@lru_cache(maxsize=16)
def dialect_of(algebra: Algebra) -> Dialect:
    """The dialect for an algebra, whose operators must be Python's modulo the number of values."""
    n, computes = len(algebra.values), partial(_computes, algebra)
    if algebra.notation.separates_operands and set(algebra.values) == set(map(str, range(n))):
        logic = computes("&", min, 2) and computes("|", max, 2)
        if n == 2 and logic and computes("~", lambda a: 1 - a, 1):
            return _logic(algebra)
        if computes("+", lambda a, b: (a + b) % n, 2) and computes("*", lambda a, b: a * b % n, 2):
            own_negation = computes("-", lambda a: -a % n, 1)
            own_difference = computes("-", lambda a, b: (a - b) % n, 2)
            return _arithmetic(algebra, own_negation, own_difference)
    raise ValueError(
        f"Python's text is for infix and plain algebras with & | ~ on 0 and 1, or with + and * "
        f"modulo the number of values, not for {algebra.name!r}"
    )


def _computes(algebra: Algebra, symbol: str, rule: Callable[..., int], arity: int) -> bool:
    """Whether the algebra has this operator, and it computes `rule`."""
    numbers = [int(value) for value in algebra.values]
    return any(
        all(
            numbers[operator(places)] == rule(*(numbers[i] for i in places))
            for places in product(range(len(numbers)), repeat=arity)
        )
        for operator in algebra.operators
        if operator.symbol == symbol and operator.takes(arity)
    )


def _span(*parts: Node) -> Node:
    return (OPEN, *parts, CLOSE)


def _logic(algebra: Algebra) -> Dialect:
    ids = algebra.token_ids
    literals = {"True": ids["1"], "1": ids["1"], "False": ids["0"], "0": ids["0"]}
    return Dialect(
        operand="True, False, 1, 0",
        literal=literals.get,
        binary={
            "or": (1, lambda a, b: _span(a, ids["|"], b)),
            "and": (2, lambda a, b: _span(a, ids["&"], b)),
        },
        unary={"not": (3, lambda a: _span(ids["~"], a))},
    )


def _arithmetic(algebra: Algebra, own_negation: bool, own_difference: bool) -> Dialect:
    ids, modulus = algebra.token_ids, len(algebra.values)
    zero, minus_one = ids["0"], ids[str(modulus - 1)]

    def literal(word: str) -> int | None:
        if not NUMBER.fullmatch(word):
            return None
        digits, value = word.replace("_", ""), 0
        for start in range(0, len(digits), DIGITS_AT_ONCE):
            part = digits[start : start + DIGITS_AT_ONCE]
            value = (value * pow(10, len(part), modulus) + int(part)) % modulus
        return ids[str(value)]

    def negative(a: Node) -> Node:
        if own_negation:
            return _span(ids["-"], a)
        return _span(zero, ids["-"], a) if own_difference else _span(minus_one, ids["*"], a)

    def difference(a: Node, b: Node) -> Node:
        if own_difference:
            return _span(a, ids["-"], b)
        return _span(a, ids["+"], _span(minus_one, ids["*"], b))

    return Dialect(
        operand="a whole number",
        literal=literal,
        binary={
            "+": (1, lambda a, b: _span(a, ids["+"], b)),
            "-": (1, difference),
            "*": (2, lambda a, b: _span(a, ids["*"], b)),
        },
        unary={"-": (3, negative), "+": (3, lambda a: a)},
    )
