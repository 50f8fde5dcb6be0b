"""Bowman's propositional logic: pairs of formulas and the relation between them.

A formula over the variables a to f is written `( not X )`, `( X ( and Y ) )` or `( X ( or Y ) )`.
With 0 and 1 for the variables it is a Boolean circuit, so a pair is 128 circuits; the seven
relations of MacCartney's natural logic are read off the values of the two formulas.
"""

import re
from collections.abc import Sequence
from itertools import product

import numpy as np

from exactformer.domains.catalog import boolean
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression

VARIABLES = tuple("abcdef")
ASSIGNMENTS = 2 ** len(VARIABLES)
EVERYWHERE = 2**ASSIGNMENTS - 1  # true under every assignment
RELATIONS = "#<>=^v|"

_VOCABULARY = boolean().vocabulary
_CODES = {symbol: bytes([i]) for i, symbol in enumerate((*_VOCABULARY, *VARIABLES))}
_WRITTEN = {"not": "~", "and": "&", "or": "|"}

# One table of bytes for each assignment: it writes a value for each variable.
_SUBSTITUTIONS = [
    bytes.maketrans(
        b"".join(_CODES[variable] for variable in VARIABLES),
        b"".join(_CODES[value] for value in values),
    )
    for values in product("01", repeat=len(VARIABLES))
]

Formula = bytes  # token ids of a Boolean expression, with further ids for the variables
Circuit = bytes  # token ids of a Boolean expression without variables

# States of an open span, with the state after an operand and the words for what may follow.
_START, _NEGATED, _LEFT, _JOIN, _RIGHT, _RIGHT_READ, _FULL, _TOP, _DONE = range(9)
_AFTER_OPERAND = {_START: _LEFT, _NEGATED: _FULL, _RIGHT: _RIGHT_READ, _TOP: _DONE}
_EXPECTED = {
    _START: "a variable (a to f), '(' or 'not'",
    _NEGATED: "a variable (a to f) or '('",
    _LEFT: "'(' before 'and' or 'or'",
    _JOIN: "'and' or 'or'",
    _RIGHT: "a variable (a to f) or '('",
    _RIGHT_READ: "')'",
    _FULL: "')'",
    _TOP: "a variable (a to f) or '('",
    _DONE: "the end of the formula",
}


def read_formula(text: str) -> Formula:
    """Read one formula. Raises `ExpressionError`."""
    formula = bytearray()
    enclosing: list[int] = []
    state = _TOP
    for match in re.finditer(r"\w+|\S", text):
        word = match[0]
        if word == "(" and state == _LEFT:
            state = _JOIN
        elif word == "(" and state in _AFTER_OPERAND:
            enclosing.append(state)
            state = _START
            formula += _CODES["("]
        elif word == ")" and state == _RIGHT_READ:
            state = _FULL
        elif word == ")" and state == _FULL:
            state = _AFTER_OPERAND[enclosing.pop()]
            formula += _CODES[")"]
        elif (word == "not" and state == _START) or (word in ("and", "or") and state == _JOIN):
            state = _NEGATED if word == "not" else _RIGHT
            formula += _CODES[_WRITTEN[word]]
        elif word in VARIABLES and state in _AFTER_OPERAND:
            state = _AFTER_OPERAND[state]
            formula += _CODES[word]
        else:
            problem = f"expected {_EXPECTED[state]}, found {word[:20]!r}"
            raise ExpressionError(problem, text, match.start())
    if state != _DONE:
        problem = f"expected {_EXPECTED[state]}, found the end of the formula"
        raise ExpressionError(problem, text, len(text.rstrip()))
    return bytes(formula)


def circuits(formula: Formula) -> list[Circuit]:
    """The formula under each assignment of its variables, in a fixed order."""
    return [formula.translate(substitution) for substitution in _SUBSTITUTIONS]


def expression(circuit: Circuit) -> Expression:
    return Expression(boolean(), np.frombuffer(circuit, dtype=np.uint8).astype(np.int16))


def truth(values: Sequence[str | None]) -> int:
    """The assignments under which a formula is "1", as the bits of a number."""
    return sum(1 << i for i, value in enumerate(values) if value == "1")


def relation(left: int, right: int) -> str:
    """MacCartney's relation between two formulas, from the assignments under which each is true."""
    if left == right:
        return "="  # equivalence
    disjoint, exhaustive = left & right == 0, left | right == EVERYWHERE
    if disjoint and exhaustive:
        return "^"  # negation
    if left & right == left:
        return "<"  # forward entailment
    if left & right == right:
        return ">"  # reverse entailment
    if disjoint:
        return "|"  # alternation
    return "v" if exhaustive else "#"  # cover; independence
