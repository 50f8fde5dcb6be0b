"""Circuits at the speed of a simulator: certified weights' tables, 64 assignments a machine word.

The wires of a program are rows of words, a bit for each assignment, and a gate is one loop over
its three rows. A row is used again when nobody needs its wire any more, so that there are as many
as wires that are needed at once: mostly few enough for the processor's cache, however many gates
there are. Blocks of words run on all cores.

A bit is the index of a value in the algebra's vocabulary, of two.
"""

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.program import Program
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.circuit_gates import Gates, gates_of, operator_tables
from exactformer.engine.compiled import compiled

Words = NDArray[np.uint64]  # (rows, words)

WORD = 64  # assignments of a word
CACHE = 1 << 19  # bytes of rows that one core works on
FEWEST, MOST = 8, 128  # words of a block
NOBODY = np.iinfo(np.int64).max  # instead of the last gate that has an output

# How a gate with a table is run: XOR, or AND of its inputs, each of which is inverted or not, and
# the result inverted or not. Bits of a way: a, b, result, XOR. These are all tables of two bits but
# those of one or none, for which the inputs of the gate are the same wire.
INVERT_A, INVERT_B, INVERT, IS_XOR = 1, 2, 4, 8


def _ways() -> NDArray[np.uint8]:
    """The way of each of the sixteen tables."""
    ways = np.full(16, 255, dtype=np.uint8)
    for way in (*range(8), IS_XOR, IS_XOR | INVERT):
        table = 0
        for i in range(4):
            a, b = (i ^ way) & 1, (i >> 1 ^ way >> 1) & 1
            table |= ((a ^ b if way & IS_XOR else a & b) ^ (way >> 2 & 1)) << i
        ways[table] = way
    # One wire twice: a & a, ~a & ~a; and nothing: a & ~a.
    for table, way in {10: 0, 5: 3, 0: INVERT_B, 15: INVERT_B | INVERT}.items():
        ways[table] = way
    return ways


WAYS = _ways()


@dataclass(frozen=True)
class Schedule:
    """Gates on rows that are used again and again. The first rows are those of the inputs."""

    way: NDArray[np.uint8]
    rows: NDArray[np.int32]  # (gates, 3): a, b and result
    count: int  # of rows
    inputs: int
    outputs: NDArray[np.int32]  # the row of each output at the end


def schedule(gates: Gates, program: Program) -> Schedule:
    """Rows for the wires, each free again after its last use."""
    last = np.full(gates.wires, -1, dtype=np.int64)
    _last_uses(gates.a, gates.b, gates.out, last)
    outputs = np.array(program.outputs, dtype=np.int64)
    last[outputs] = NOBODY
    # Zeros, so that even gates in a wrong order would read rows that there are.
    row, rows = np.zeros(gates.wires, np.int32), np.empty((len(gates.out), 3), np.int32)
    row[: program.inputs] = np.arange(program.inputs)
    free = np.empty(gates.wires, np.int32)
    count = _assign(gates.a, gates.b, gates.out, last, row, rows, free, program.inputs)
    return Schedule(WAYS[gates.table], rows, count, program.inputs, row[outputs])


@compiled
def _last_uses(a, b, out, last):
    """Write the last gate that has each wire."""
    for i in range(len(out)):
        last[out[i]] = i
        last[a[i]] = i
        last[b[i]] = i


@compiled
def _assign(a, b, out, last, row, rows, free, count):
    """Write the rows of each gate; their number. A result never has the row of an input of its
    gate, so that the loop over the words may take many at once.
    """
    unused = 0
    for i in range(len(out)):
        if unused:
            unused -= 1
            row[out[i]] = free[unused]
        else:
            row[out[i]] = count
            count += 1
        # A gate that depends on nothing has its result for its inputs.
        rows[i, 0], rows[i, 1], rows[i, 2] = row[a[i]], row[b[i]], row[out[i]]
        for wire in (a[i], b[i], out[i]):
            if last[wire] == i:
                free[unused] = row[wire]
                unused += 1
                last[wire] = -1  # once
    return count


@compiled
def _run(way, rows, values):
    """Run all gates on rows of words."""
    words = values.shape[1]
    ones = np.uint64(0xFFFFFFFFFFFFFFFF)
    zero = np.uint64(0)
    for i in range(len(way)):
        a, b, out = values[rows[i, 0]], values[rows[i, 1]], values[rows[i, 2]]
        kind = way[i]
        invert = ones if kind & INVERT else zero
        if kind & IS_XOR:
            for w in range(words):
                out[w] = a[w] ^ b[w] ^ invert
        else:
            left = ones if kind & INVERT_A else zero
            right = ones if kind & INVERT_B else zero
            for w in range(words):
                out[w] = ((a[w] ^ left) & (b[w] ^ right)) ^ invert


class CircuitEngine:
    """A program of a two-valued algebra, run by the tables of certified weights."""

    def __init__(self, program: Program, automaton: SpanAutomaton, algebra: Algebra) -> None:
        self.program = program
        self.gates = gates_of(program, operator_tables(automaton, algebra))
        self.schedule = schedule(self.gates, program)

    def run(self, inputs: Words) -> Words:
        """(outputs, words) from (inputs, words)."""
        plan, total = self.schedule, inputs.shape[1]
        width = min(MOST, max(FEWEST, CACHE // (8 * max(1, plan.count)) // 8 * 8))
        found = np.empty((len(plan.outputs), total), dtype=np.uint64)

        def block(begin: int) -> None:
            end = min(total, begin + width)
            values = np.empty((plan.count, end - begin), dtype=np.uint64)
            values[: plan.inputs] = inputs[:, begin:end]
            _run(plan.way, plan.rows, values)
            found[:, begin:end] = values[plan.outputs]

        deque(_cores().map(block, range(0, total, width)), maxlen=0)  # raises what a block raises
        return found


def circuit_engine(
    program: Program, automaton: SpanAutomaton, algebra: Algebra, device: str
) -> CircuitEngine:
    """The engine for a device, by its name."""
    if device == "cpu":
        return CircuitEngine(program, automaton, algebra)
    from exactformer.engine.circuits_gpu import GpuCircuitEngine  # torch takes a while to import

    return GpuCircuitEngine(program, automaton, algebra, device)


def pack(bits: NDArray[np.uint8]) -> Words:
    """(wires, words) from (assignments, wires) of 0 and 1."""
    packed = np.packbits(np.ascontiguousarray(bits.T), axis=1, bitorder="little")
    whole = np.zeros((bits.shape[1], -(-bits.shape[0] // WORD) * 8), dtype=np.uint8)
    whole[:, : packed.shape[1]] = packed
    return whole.view("<u8")


def unpack(words: Words, count: int) -> NDArray[np.uint8]:
    """(assignments, wires) of 0 and 1, for so many assignments, from (wires, words)."""
    whole = np.ascontiguousarray(words).view(np.uint8)
    return np.unpackbits(whole, axis=1, count=count, bitorder="little").T


@cache
def _cores() -> ThreadPoolExecutor:
    """Threads for all cores: compiled loops release the interpreter's lock."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="exactformer-circuits")
