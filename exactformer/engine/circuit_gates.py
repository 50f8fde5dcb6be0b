"""A program of a two-valued algebra as gates of two inputs, in an order in which they can run.

Each right side is cut into gates, each with a truth table over two wires at most, so that
`((~a)&b)` is one gate. Truth tables come from those of the operators, which are the certified
weights': nothing here knows what AND is. An operator of more operands becomes tables of its first
two, chosen between by the others. Statements that are alike but for their names are cut once.

A truth table is a number: bit x + 2y is the value for a = x and b = y.
"""

from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.domain import Domain, Ids
from exactformer.domains.expression import Expression, span_expression
from exactformer.domains.program import WIRE, Program
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.build import every_key

MOST_OPERANDS = 6  # of an operator: its truth table is then one word

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
                span = span_expression(algebra, token, [FIRST_VALUE + i for i in key])
                value = automaton.run(span.ids.tolist())
                assert value is not None, "a span of an operator's own arity is well formed"
                bits |= value << i
            tables[number, arity] = bits
    return tables


class Template(NamedTuple):
    """The gates of a statement. Wires are numbered: first its names, each time one is used, then
    the results of its gates in order, of which the last one is what the statement defines.
    """

    uses: int
    gates: list[tuple[int, int, int]]  # table, a, b


def gates_of(program: Program, tables: NDArray[np.uint64]) -> Gates:
    """The gates of a program, whose operators have these truth tables."""
    order = _statement_order(program)
    alike = dict[bytes, int]()
    size, text = program.ids.itemsize, program.ids.tobytes()
    bounds = pairwise((program.starts * size).tolist())
    kind = np.array([alike.setdefault(text[i:j], len(alike)) for i, j in bounds], dtype=np.int64)
    templates = [_template(program.domain, np.frombuffer(side, np.int16), tables) for side in alike]
    counts = np.array([len(template.gates) for template in templates], dtype=np.int64)[kind[order]]
    first = np.empty(len(program), dtype=np.int64)
    first[order] = np.cumsum(counts) - counts
    total = int(counts.sum())
    table, ends = np.empty(total, np.uint8), np.empty((total, 3), np.int32)
    for number, template in enumerate(templates):
        where = np.flatnonzero(kind == number)
        used = program.wires[program.first_uses[where, None] + np.arange(template.uses)]
        own = len(program.names) + first[where, None] + np.arange(len(template.gates))
        own[:, -1] = program.inputs + where
        wires = np.column_stack([used, own])
        for i, (bits, a, b) in enumerate(template.gates):
            table[first[where] + i] = bits
            ends[first[where] + i] = wires[:, [a, b, template.uses + i]]
    return Gates(table, *ends.T.copy(), wires=len(program.names) + total)


def _statement_order(program: Program) -> NDArray[np.int64]:
    """The statements in an order in which each comes after those that it uses."""
    if (program.wires < program.inputs + program.users).all():  # as netlists are mostly written
        return np.arange(len(program))
    return np.argsort(program.levels[program.inputs :], kind="stable")


class _Operand(NamedTuple):
    """A function of some wires: bit i of its table is for wires that are the binary digits of i,
    the first one the lowest.
    """

    wires: tuple[int, ...]
    table: int

    def bit(self, values: dict[int, int]) -> int:
        return self.table >> sum(values[wire] << i for i, wire in enumerate(self.wires)) & 1


COPY, XOR, AND = 2, 6, 8  # tables, to give a wire's value on and to choose between two wires


def _template(domain: Domain, side: Ids, tables: NDArray[np.uint64]) -> Template:
    """The gates of a statement with this right side."""
    algebra, uses = algebra_of(domain), int(np.count_nonzero(side == WIRE))
    gates: list[tuple[int, int, int]] = []
    names = iter(range(uses))

    def gate(operand: _Operand) -> int:
        """A new wire with this function."""
        new, (a, *others) = uses + len(gates), operand.wires or (uses + len(gates),)
        table = operand.table  # over two wires; one that depends on nothing may be asked of itself
        table = (15 * table, table | table << 2, table)[len(operand.wires)]
        gates.append((table, a, others[0] if others else a))
        return new

    def wire(operand: _Operand) -> _Operand:
        if operand.table == COPY and len(operand.wires) == 1:
            return operand
        return _Operand((gate(operand),), COPY)

    def span(bits: int, operands: list[_Operand]) -> _Operand:
        for i, operand in enumerate(operands):
            if len(operand.wires) > 1 and len(_wires(operands)) > 2:
                operands[i] = wire(operand)
        if len(_wires(operands)) <= 2:
            return _applied(bits, operands)
        *two, others = wire(operands[0]), wire(operands[1]), operands[2:]
        others = [wire(operand).wires[0] for operand in others]
        chosen = [gate(_applied(bits >> 4 * i & 15, two)) for i in range(1 << len(others))]
        for other in others:  # y if it is 1, else x: x ^ (other & (x ^ y))
            chosen = [
                gate(_Operand((x, gate(_Operand((other, gate(_Operand((x, y), XOR))), AND))), XOR))
                for x, y in zip(chosen[::2], chosen[1::2], strict=True)
            ]
        return _Operand((chosen[0],), COPY)

    stack: list[_Operand] = []
    opened: list[list[int]] = []  # of each open span: its first operand, its operator
    for token in _parenthesized(domain, side):
        if token == OPEN:
            opened.append([len(stack), 0])
        elif token == WIRE:
            stack.append(_Operand((next(names),), COPY))
        elif token == CLOSE:
            begin, operator = opened.pop()
            operands = stack[begin:]
            if len(operands) > MOST_OPERANDS:
                raise ValueError(
                    f"words of bits are for spans of {MOST_OPERANDS} operands at most, found one "
                    f"of {len(operands)}: use --engine model"
                )
            stack[begin:] = [span(int(tables[operator, len(operands)]), operands)]
        elif token < algebra.first_operator:
            stack.append(_Operand((), token - FIRST_VALUE))
        else:
            opened[-1][1] = token - algebra.first_operator
    gate(stack[0])
    return Template(uses, gates)


def _wires(operands: list[_Operand]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(wire for operand in operands for wire in operand.wires))


def _applied(bits: int, operands: list[_Operand]) -> _Operand:
    """An operator on operands, as a function of the wires on which it depends."""
    wires = _wires(operands)
    shapes = tuple((tuple(map(wires.index, operand.wires)), operand.table) for operand in operands)
    found = _composed(bits, shapes)
    return _Operand(tuple(wires[i] for i in found.wires), found.table)


@lru_cache(maxsize=1 << 16)
def _composed(bits: int, shapes: tuple[tuple[tuple[int, ...], int], ...]) -> _Operand:
    """The gates of shapes on wires that are numbered as they come: large covers repeat a few."""
    operands = [_Operand(wires, table) for wires, table in shapes]
    wires = _wires(operands)
    while True:
        table = 0
        for i in range(1 << len(wires)):
            values = dict.fromkeys(_wires(operands), 0)  # of those that do not matter
            values |= {wire: i >> j & 1 for j, wire in enumerate(wires)}
            key = sum(operand.bit(values) << j for j, operand in enumerate(operands))
            table |= (bits >> key & 1) << i
        needed = tuple(wire for j, wire in enumerate(wires) if _depends(table, len(wires), j))
        if needed == wires:
            return _Operand(wires, table)
        wires = needed


def _depends(table: int, wires: int, j: int) -> bool:
    return any((table >> i ^ table >> (i ^ 1 << j)) & 1 for i in range(1 << wires))


def _parenthesized(domain: Domain, side: Ids) -> list[int]:
    """The tokens of a right side with parentheses around every span."""
    tree = Expression(domain, np.where(side == WIRE, FIRST_VALUE, side)).parenthesized.ids
    # Parentheses are there, and operators may have moved, but operands stay in their order.
    first = algebra_of(domain).first_operator
    operands = iter(side[(side == WIRE) | (side >= FIRST_VALUE) & (side < first)].tolist())
    return [next(operands) if FIRST_VALUE <= token < first else token for token in tree.tolist()]
