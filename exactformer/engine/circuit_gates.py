"""A program of a two-valued algebra as gates of two inputs, in an order in which they can run.

Each right side is cut into gates, each with a truth table over two wires at most, so that
`((~a)&b)` is one gate. Truth tables come from those of the operators, which are the certified
weights': nothing here knows what AND is. An operator of more operands becomes tables of its first
two, chosen between by the others.

A truth table is four bits: bit x + 2y is the value for a = x and b = y.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.expression import span_tokens
from exactformer.domains.program import WIRE, Program
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.build import every_key
from exactformer.engine.compiled import compiled

MOST_OPERANDS = 6  # of an operator: its truth table is then one word
NONE = -1  # instead of a wire that a table does not depend on

Ints = NDArray[np.int32]


class Gates(NamedTuple):
    """Gates in an order in which they can run: wires[out] = table[wires[a], wires[b]]."""

    table: NDArray[np.uint8]
    a: Ints
    b: Ints
    out: Ints
    wires: int  # names of the program first, then those inside of its statements


def operator_tables(automaton: SpanAutomaton, algebra: Algebra) -> NDArray[np.uint64]:
    """(operators, operands + 1): the truth table of each operator on each number of operands. Bit i
    is the value for the operands that are the binary digits of i, the first one the lowest. Read
    off the automaton, which is that of certified weights.
    """
    if len(algebra.values) != 2:
        raise ValueError(
            f"words of bits need an algebra with two values, and {algebra.name!r} has "
            f"{len(algebra.values)}: use --engine model"
        )
    tables = np.zeros((len(algebra.operators), MOST_OPERANDS + 1), dtype=np.uint64)
    for number, operator in enumerate(algebra.operators):
        for arity in operator.arities:
            if arity > MOST_OPERANDS:
                continue
            bits = 0
            for i, key in enumerate(every_key(2, arity, True)[:, ::-1].tolist()):
                token = algebra.first_operator + number
                value = automaton.run(
                    span_tokens(algebra, token, [FIRST_VALUE + operand for operand in key])
                )
                assert value is not None, "a span of an operator's own arity is well formed"
                bits |= value << i
            tables[number, arity] = bits
    return tables


def gates_of(program: Program, tables: NDArray[np.uint64]) -> Gates:
    """The gates of a program, whose operators have these truth tables."""
    program = _parenthesized(program)
    algebra = algebra_of(program.domain)
    order = _statement_order(program)
    opens = int(np.count_nonzero(program.ids == OPEN))
    widest = max(max(operator.arities) for operator in algebra.operators)
    of_a_span = 1 if widest <= 2 else 4 << max(0, min(widest, MOST_OPERANDS) - 2)
    room = 2 * len(program) + opens * of_a_span + 1
    made = Gates(
        np.empty(room, np.uint8), *(np.empty(room, np.int32) for _ in range(3)), wires=0
    )
    deepest = int(program.lengths.max(initial=0)) + 2
    count, wires = _cut(
        program.ids,
        program.starts,
        program.wires,
        program.first_uses,
        order,
        program.inputs,
        algebra.first_operator,
        tables,
        np.empty((deepest, 3), np.int64),
        np.empty((deepest, 2), np.int64),
        made[:4],
        len(program.names),
    )
    if count < 0:
        raise ValueError(
            f"words of bits are for operators of {MOST_OPERANDS} operands at most: "
            f"use --engine model"
        )
    return Gates(*(part[:count] for part in made[:4]), wires=wires)


def _parenthesized(program: Program) -> Program:
    """The program with parentheses around every span."""
    algebra = algebra_of(program.domain)
    if algebra.parenthesized is algebra:
        return program
    sides = []
    for i in range(len(program)):
        tokens = program.expression(i, [FIRST_VALUE] * len(program.uses(i)))
        sides.append(_restored(program.right_side(i), tokens.parenthesized.ids))
    lengths = np.array([len(side) for side in sides], dtype=np.int64)
    ids = np.concatenate([np.empty(0, np.int16), *sides])
    return Program(
        algebra.parenthesized,
        program.names,
        program.inputs,
        ids,
        lengths,
        program.wires,
        program.outputs,
    )


def _restored(text: NDArray[np.int16], tree: NDArray[np.int16]) -> NDArray[np.int16]:
    """The tree with the names of its text: values come in the same order in both."""
    names = text[(text != OPEN) & (text != CLOSE)] == WIRE
    tree = tree.copy()
    places = np.flatnonzero((tree != OPEN) & (tree != CLOSE))
    tree[places[names]] = WIRE
    return tree


def _statement_order(program: Program) -> NDArray[np.int64]:
    """The statements in an order in which each comes after those that it uses."""
    behind = program.wires < program.inputs + program.users
    if behind.all():  # as it stands, which is how netlists are mostly written
        return np.arange(len(program))
    return np.argsort(program.levels[program.inputs :], kind="stable")


# An operand on the stack, and the value of a span, is (a, b, table): a table over two wires, over
# one (then b is NONE), or over none.
COPY = 10  # the table of a wire itself


@compiled
def _bit(operand, first, x, y):
    """The bit of an operand where its wire `first` is x and its other one y."""
    i = 0
    if operand[0] != NONE and (x if operand[0] == first else y):
        i |= 1
    if operand[1] != NONE and (x if operand[1] == first else y):
        i |= 2
    return operand[2] >> i & 1


@compiled
def _together(stack, base, arity):
    """The first two wires of one or two operands, and how many there are."""
    first = second = np.int64(NONE)
    count = 0
    for operand in range(base, base + arity):
        for wire in stack[operand, :2]:
            if wire != NONE and wire != first and wire != second:
                first, second = (wire, second) if first == NONE else (first, wire)
                count += 1
    return first, second, count


@compiled
def _apply(stack, base, arity, bits):
    """Put the result of an operator in the place of its one or two operands, which have two wires
    at most. Wires on which it does not depend are forgotten.
    """
    first, second, _ = _together(stack, base, arity)
    table = 0
    for i in range(4):
        key = _bit(stack[base], first, i & 1, i >> 1)
        if arity == 2:
            key |= _bit(stack[base + 1], first, i & 1, i >> 1) << 1
        table |= int(bits >> np.uint64(key) & np.uint64(1)) << i
    if table & 3 == table >> 2:
        second = np.int64(NONE)
    if table & 5 == table >> 1 & 5:
        first, second = second, np.int64(NONE)
        table = (table & 1) * 5 | (table >> 2 & 1) * 10
    stack[base, 0], stack[base, 1], stack[base, 2] = first, second, table


@compiled
def _emit(made, count, a, b, table, out):
    """Add a gate."""
    a = out if a == NONE else a  # a table that depends on nothing may be asked of any wire
    made[0][count], made[1][count], made[3][count] = table, a, out
    made[2][count] = a if b == NONE else b
    return count + 1


@compiled
def _settle(made, count, wires, stack, i):
    """Give an operand a wire of its own, unless it is one."""
    if stack[i, 0] == NONE or stack[i, 2] != COPY:
        count = _emit(made, count, stack[i, 0], stack[i, 1], stack[i, 2], wires)
        stack[i, 0], stack[i, 1], stack[i, 2] = wires, NONE, COPY
        wires += 1
    return count, wires


@compiled
def _choose(made, count, wires, bits, operands):
    """Add the gates of an operator of three operands or more, each of which is a wire. Tables of
    the first two, `step` wires apart from each other, are chosen between by the others.
    """
    few = 1 << len(operands) - 2
    first, step = wires, 1
    for i in range(few):
        table = int(bits >> np.uint64(4 * i) & np.uint64(15))
        count = _emit(made, count, operands[0, 0], operands[1, 0], table, wires)
        wires += 1
    for k in range(2, len(operands)):
        few >>= 1
        begin = wires
        for i in range(few):  # y if the operand is 1, else x: x ^ (operand & (x ^ y))
            x, y = first + 2 * i * step, first + (2 * i + 1) * step
            count = _emit(made, count, x, y, 6, wires)
            count = _emit(made, count, operands[k, 0], wires, 8, wires + 1)
            count = _emit(made, count, x, wires + 1, 6, wires + 2)
            wires += 3
        first, step = begin + 2, 3
    return count, wires


@compiled
def _span(made, count, wires, stack, base, arity, bits):
    """Put the value of a span in the place of its operands."""
    if arity > 2:
        for i in range(base, base + arity):
            count, wires = _settle(made, count, wires, stack, i)
        count, wires = _choose(made, count, wires, bits, stack[base : base + arity])
        stack[base, 0], stack[base, 1], stack[base, 2] = wires - 1, NONE, COPY
        return count, wires
    for i in range(base, base + arity):
        if stack[i, 1] != NONE and _together(stack, base, arity)[2] > 2:
            count, wires = _settle(made, count, wires, stack, i)
    _apply(stack, base, arity, bits)
    return count, wires


@compiled
def _cut(
    ids, starts, uses, first_uses, order, inputs, first_operator, tables, stack, opened, made, wires
):
    """Write the gates of all statements to `made`; their number, or -1 for a span that is too wide,
    and that of the wires. `stack` has the operands of open spans, and `opened`, for each of these,
    its first operand and its operator.
    """
    count = 0
    for statement in order:
        top = depth = 0
        use = first_uses[statement]
        for token in ids[starts[statement] : starts[statement + 1]]:
            if token == OPEN:
                opened[depth, 0], opened[depth, 1] = top, NONE
                depth += 1
            elif token == WIRE:
                stack[top, 0], stack[top, 1], stack[top, 2] = uses[use], NONE, COPY
                use += 1
                top += 1
            elif token >= first_operator:
                opened[depth - 1, 1] = token - first_operator
            elif token != CLOSE:
                stack[top, 0], stack[top, 1], stack[top, 2] = NONE, NONE, 15 * (token - FIRST_VALUE)
                top += 1
            else:
                depth -= 1
                base, operator = opened[depth, 0], opened[depth, 1]
                arity = top - base
                top = base + 1
                if arity >= tables.shape[1]:
                    return -1, wires
                bits = tables[operator, arity]
                count, wires = _span(made, count, wires, stack, base, arity, bits)
        out = inputs + statement
        count = _emit(made, count, stack[0, 0], stack[0, 1], stack[0, 2], out)
    return count, wires
