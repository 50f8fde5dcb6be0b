"""The oracle: evaluates an expression by definition.

It shares nothing with the model: one pass from left to right with a stack, looking results up in
the algebra's tables. In plain notation, what belongs together is found by precedence climbing, in
Polish notation by the arities of operators. A program is evaluated statement by statement, each
after those that it uses.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from math import isqrt
from typing import Any

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra, Operator
from exactformer.domains.climbing import Applied, climb
from exactformer.domains.data import expect
from exactformer.domains.expression import Expression
from exactformer.domains.integers import NONE, Integers
from exactformer.domains.little_endian import LittleEndian
from exactformer.domains.machines import Machine
from exactformer.domains.numerals import to_integer, to_numeral
from exactformer.domains.polish import fold
from exactformer.domains.program import Program
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.square_roots import SquareRoot


def evaluate(expression: Expression) -> str:
    """The symbol of the expression's value; of a text of another domain, its answer."""
    expect(expression, Expression, "an Expression, which parse makes of text")
    return REFERENCES[expression.domain.kind](expression)


def _of_algebra(expression: Expression) -> str:
    return expression.algebra.values[ACCOUNTS[expression.algebra.notation.groups_by](expression)]


def _by_precedence(expression: Expression) -> int:
    algebra, first_operator = expression.algebra, expression.algebra.first_operator

    def apply(applied: Applied, operands: list[int]) -> int:
        return algebra.operators[applied.token - first_operator](operands)

    return climb(algebra, expression.ids.tolist(), lambda token: token - FIRST_VALUE, apply)


def _by_arity(expression: Expression) -> int:
    algebra, ids = expression.algebra, expression.ids.tolist()

    def apply(place: int, operands: list[int]) -> int:
        return algebra.operators[ids[place] - algebra.first_operator](operands)

    return fold(algebra, ids, lambda place: ids[place] - FIRST_VALUE, apply)


def _by_parentheses(expression: Expression) -> int:
    algebra, first_operator = expression.algebra, expression.algebra.first_operator
    enclosing: list[tuple[Operator | None, list[int]]] = []  # spans that are still open
    operator: Operator | None = None
    operands: list[int] = []  # as indices into the algebra's values
    for token in expression.ids.tolist():
        if token == OPEN:
            enclosing.append((operator, operands))
            operator, operands = None, []
        elif token == CLOSE:
            assert operator is not None, "an Expression has an operator in each span"
            value = operator(operands)
            operator, operands = enclosing.pop()
            operands.append(value)
        elif token < first_operator:
            operands.append(token - FIRST_VALUE)
        else:
            operator = algebra.operators[token - first_operator]
    return operands[0]


# The index of the value, by what groups operators.
ACCOUNTS = {"parentheses": _by_parentheses, "precedence": _by_precedence, "arity": _by_arity}


def _of_machine(expression: Expression) -> str:
    """The answer of a machine: one symbol after the other."""
    machine, ids = expression.domain, expression.ids.tolist()
    assert isinstance(machine, Machine)
    order = 1 if machine.read == "left" else -1
    state, given = machine.start, []
    for token in ids[::order]:
        row = machine.outputs[state]
        given += [row[token]] if isinstance(row, tuple) else []
        state = machine.transitions[state][token]
    if machine.answers_at_end:
        given = [machine.outputs[state]]
    return ("" if machine.packs else " ").join(map(str, given[::order]))


def _of_span_machine(expression: Expression) -> str:
    """The value of a text of spans that a machine reads: one symbol after the other, with a
    stack.
    """
    domain = expression.domain
    assert isinstance(domain, SpanMachine)
    enclosing: list[int] = []  # the states in which open spans wait for inner ones
    state, value = domain.start, -1
    transitions, outputs = domain.next_states.tolist(), domain.output_ids[:, CLOSE].tolist()
    for token in expression.ids.tolist():
        if token == OPEN:
            enclosing.append(state)
            state = domain.start
            continue
        if token == CLOSE:
            token, state = outputs[state], enclosing.pop()
        value, state = token, transitions[state][token] if enclosing else domain.start
    return domain.vocabulary[value]


ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "+": int.__add__,
    "-": int.__sub__,
    "*": int.__mul__,
    "<": int.__lt__,
    "=": int.__eq__,
    ">": int.__gt__,
}


def _of_integers(expression: Expression) -> str:
    """The numeral of what Python's integers give; NONE if any part of it is below zero."""
    domain = expression.domain
    assert isinstance(domain, Integers)
    values: list[int | None] = []
    operators: list[str] = []  # of the spans that are still open
    for word in re.findall(r"\w+|[^\w(]", str(expression)):
        if word[0] in domain.digits:
            values.append(to_integer(word, domain.base))
        elif word == ")":
            b, a, operator = values.pop(), values.pop(), operators.pop()
            value = None if a is None or b is None else int(ARITHMETIC[operator](a, b))
            values.append(None if value is None or value < 0 else value)
        else:
            operators.append(word)
    (value,) = values
    return NONE if value is None else to_numeral(value, domain.base)


def _of_little_endian(expression: Expression) -> str:
    """The sum or product, by Python's integers, of numerals that are written from their end."""
    domain = expression.domain
    assert isinstance(domain, LittleEndian)
    a, b = (
        to_integer(numeral[::-1], domain.base) for numeral in str(expression).split(domain.between)
    )
    return to_numeral(ARITHMETIC[domain.operator](a, b), domain.base)[::-1] + domain.end


def _of_square_root(expression: Expression) -> str:
    """The floor of the root by Python's integers, with half as many bits."""
    bits = str(expression)
    return f"{isqrt(int(bits, 2)):0{(len(bits) + 1) // 2}b}"


def _of_rearrangement(expression: Expression) -> str:
    """The symbols of a text in the order of its domain."""
    domain = expression.domain
    assert isinstance(domain, Rearrangement)
    symbols = [domain.vocabulary[token] for token in expression.ids.tolist()]
    written = {tuple(sorted(bag.split())): symbol for bag, symbol in domain.writes}
    found = ARRANGED[domain.order](domain, symbols, written)
    return ("" if domain.packs else " ").join(found)


Written = Mapping[tuple[str, ...], str]  # by the symbols that come together


def _one_by_one(arrange: Callable[[Rearrangement, list[str]], list[str]]) -> Any:
    """An arrangement of the symbols that are not skipped, each written as what is due for it."""

    def arranged(domain: Rearrangement, symbols: list[str], written: Written) -> list[str]:
        kept = [symbol for symbol in symbols if (symbol,) in written]
        return [written[symbol,] for symbol in arrange(domain, kept)]

    return arranged


def _class_of(domain: Rearrangement, symbol: str) -> int:
    return next(i for i, symbols in enumerate(domain.classes) if symbol in symbols)


def _left_on_stack(domain: Rearrangement, symbols: list[str], written: Written) -> list[str]:
    stack: list[str] = []
    for symbol in symbols:
        if (symbol,) in written:
            stack.append(written[symbol,])
        elif stack:
            stack.pop()
    return [*reversed(stack), str(domain.end)]


def _in_pairs(domain: Rearrangement, symbols: list[str], written: Written) -> list[str]:
    paired = {symbol for bag in written for symbol in bag}
    kept = [symbol for symbol in symbols if symbol in paired]
    half = len(kept) // 2
    pairs = zip(kept[:half], kept[half:], strict=True)
    return [symbol for pair in pairs if (symbol := written[tuple(sorted(pair))])]


ARRANGED: dict[str, Callable[[Rearrangement, list[str], Written], list[str]]] = {  # by order
    "same": _one_by_one(lambda domain, kept: kept),
    "reversed": _one_by_one(lambda domain, kept: kept[::-1]),
    "twice": _one_by_one(lambda domain, kept: kept + kept),
    "alternate": _one_by_one(lambda domain, kept: kept[1::2] + kept[::2]),
    "sorted": _one_by_one(lambda domain, kept: sorted(kept, key=partial(_class_of, domain))),
    "stack": _left_on_stack,
    "halves": _in_pairs,
}

REFERENCES = {  # by the kind of domain
    Algebra.kind: _of_algebra,
    Machine.kind: _of_machine,
    SpanMachine.kind: _of_span_machine,
    Integers.kind: _of_integers,
    LittleEndian.kind: _of_little_endian,
    Rearrangement.kind: _of_rearrangement,
    SquareRoot.kind: _of_square_root,
}


def evaluate_program(program: Program, inputs: Mapping[str, str] | None = None) -> dict[str, str]:
    """The value of each name of a program, by definition: a statement's value is that of its right
    side with the values of its names in their places. `inputs` has the values of names that have no
    statement.
    """
    expect(program, Program, "a Program, which parse_program makes of text")
    known: dict[int, str] = {}
    for name in range(program.inputs):
        known[name] = (inputs or {})[program.names[name]]
    token_ids = program.domain.token_ids
    for asked in range(len(program.names)):
        wanted = [asked]  # names that wait for the ones behind them
        while wanted:
            statement = wanted[-1] - program.inputs
            if wanted[-1] in known:
                wanted.pop()
                continue
            uses = program.uses(statement).tolist()
            missing = [name for name in uses if name not in known]
            if not missing:
                tokens = [token_ids[known[name]] for name in uses]
                known[wanted.pop()] = evaluate(program.expression(statement, tokens))
            wanted += missing
    return {name: known[i] for i, name in enumerate(program.names)}
