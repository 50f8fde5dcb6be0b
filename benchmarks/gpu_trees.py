"""Large trees for the engine on a GPU, and their values by a stack machine: `engine_trees.cpp`."""

import ctypes
import subprocess
import tempfile
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import (
    arithmetic,
    arithmetic_plain,
    boolean,
    boolean_plain,
    listops,
)
from exactformer.domains.plain_grammar import LEFT

SHAPES = ("balanced", "random splits", "left comb", "right comb", "zigzag comb", "uniformly random")
Ids = NDArray[np.uint8]


def quasigroup() -> Algebra:
    """Two operators on digits that depend on the order and can be undone in each operand: a wrong
    value anywhere is a wrong value at the end.
    """
    values = tuple("0123456789")
    rules = {"-": (1, 9, 0), "/": (3, 7, 1)}  # (x * a + y * b + c) modulo 10, x and y units

    def operator(symbol: str, x: int, y: int, c: int) -> Operator:
        def rule(a: str, b: str) -> str:
            return str((x * int(a) + y * int(b) + c) % 10)

        return Operator.from_rule(symbol, [2], rule, values, ordered=True)

    operators = tuple(operator(symbol, *rule) for symbol, rule in rules.items())
    return Algebra("quasigroup", values, operators, "infix")


def tasks() -> list[Algebra]:
    """The algebras to measure, in infix, prefix and plain notation."""
    found = arithmetic(), quasigroup(), boolean(), listops(), arithmetic_plain(), boolean_plain()
    return list(found)


class Trees:
    """`engine_trees.cpp`, compiled: makes large trees and evaluates them with a stack machine."""

    def __init__(self) -> None:
        source = Path(__file__).with_name("engine_trees.cpp")
        with tempfile.TemporaryDirectory() as folder:
            library = Path(folder) / "trees.so"
            command = ["g++", "-O2", "-std=c++17", "-shared", "-fPIC", str(source), "-o"]
            subprocess.run([*command, str(library)], check=True)
            self.library = ctypes.CDLL(str(library))
        for function in (self.library.make_tree, self.library.spell, self.library.bare):
            function.restype = ctypes.c_int64

    def make(self, algebra: Algebra, shape: str, tokens: int, seed: int) -> Ids:
        """Ids of a tree of about this many tokens; a small one tells how many leaves that takes."""
        sample = 100_000
        per_leaf = self._write(algebra, shape, sample, seed, np.empty(0, np.uint8)) / sample
        leaves = max(1, round(tokens / per_leaf))
        ids = np.empty(int(tokens * 1.1) + 10_000, dtype=np.uint8)
        length = self._write(algebra, shape, leaves, seed, ids)
        assert length <= len(ids), "a large tree has as many tokens for each leaf as a small one"
        return ids[:length]

    def _write(self, algebra: Algebra, shape: str, leaves: int, seed: int, out: Ids) -> int:
        arities = [(op.arities[0], op.arities[-1]) for op in algebra.operators]
        least, most = (
            (ctypes.c_int * len(arities))(*column) for column in zip(*arities, strict=True)
        )
        return self.library.make_tree(
            SHAPES.index(shape),
            ctypes.c_int64(leaves),
            len(algebra.values),
            len(algebra.operators),
            algebra.notation.operands_before(2),
            least,
            most,
            int(not algebra.name.startswith("arithmetic")),
            ctypes.c_uint64(seed),
            _pointer(out),
            ctypes.c_int64(len(out)),
        )

    def bare(self, algebra: Algebra, ids: Ids, seed: int, kept: float = 0) -> Ids:
        """In plain notation, without the superfluous pairs of parentheses but for a share of them;
        the ids are overwritten.
        """
        if (levels := levels_of(algebra)) is None:
            return ids
        count = len(algebra.operators)
        of_operators = (levels[start : start + count] for start in (0, count, 2 * count))
        length = self.library.bare(
            _pointer(ids),
            ctypes.c_int64(len(ids)),
            len(algebra.values),
            *((ctypes.c_int * count)(*some) for some in of_operators),
            ctypes.c_double(kept),
            ctypes.c_uint64(seed),
        )
        return ids[:length]

    def text(self, algebra: Algebra, ids: Ids) -> Ids:
        spellings = np.zeros((256, 8), dtype=np.uint8)
        for token, symbol in enumerate(algebra.vocabulary):
            data = symbol.encode()
            spellings[token, : len(data) + 1] = [len(data), *data]
        spaced = not algebra.packs
        room = int(spellings[ids[:1_000_000], 0].mean() * 1.05 * len(ids)) + spaced * len(ids)
        out = np.empty(room + 1000, dtype=np.uint8)
        count = ctypes.c_int64(len(ids))
        length = self.library.spell(
            _pointer(ids), count, _pointer(spellings), int(spaced), _pointer(out)
        )
        assert length <= len(out)
        return out[:length]

    def value(self, algebra: Algebra, ids: Ids) -> int:
        """Value of an expression by the algebra's own tables."""
        tables: list[int] = []
        offsets = np.zeros((len(algebra.operators), 16), dtype=np.int64)
        for o, operator in enumerate(algebra.operators):
            for arity in operator.arities:
                offsets[o, arity] = len(tables)
                keys = product(range(len(algebra.values)), repeat=arity)
                tables += [operator(key) for key in keys]
        return self.library.evaluate(
            _pointer(ids),
            ctypes.c_int64(len(ids)),
            len(algebra.values),
            _pointer(np.array(tables, dtype=np.uint8)),
            _pointer(offsets),
        )


def levels_of(algebra: Algebra) -> Any:
    """The levels of operators of plain notation, as prefixes and between operands, and whether the
    latter group from the left; None in other notations.
    """
    if not algebra.precedence:
        return None
    prefix, binary = np.asarray(algebra.declared_levels)[:, algebra.first_operator :].tolist()
    directions = np.asarray(algebra.declared_directions).tolist()
    numbers = [*prefix, *binary, *(int(directions[level] == LEFT) for level in binary)]
    return (ctypes.c_int * len(numbers))(*numbers)


def _pointer(array: NDArray[Any]) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)
