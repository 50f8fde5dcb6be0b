"""Weights for square roots, written down: a row of the feedforward for each case.

A case is a bag beside a state. In the first reading state 0 is a borrow and state 1 none. In the
second one 0 is the top; below it there is a state for each answer to two questions: whether the
difference is below zero, and whether a bit other than 0 has come.
"""

from collections.abc import Iterator
from functools import cache
from itertools import product

import torch
from torch import Tensor

from exactformer.domains.data import suggestion
from exactformer.domains.square_roots import (
    BELOW,
    BIT,
    DIFFERENCE,
    END,
    NOT_BELOW,
    REMAINDER,
    ROOT,
    TOP,
    VOCABULARY,
    SquareRoot,
)
from exactformer.model.construct_integers import closed_form
from exactformer.model.feedforward import Table
from exactformer.model.square_root import SquareRootWeights

BORROW, NO_BORROW = 0, 1  # states of the first reading
LEFT = 2  # the first state of the second reading behind the top; it has four
W = LEFT + 4

# Tokens in the bag, the state; the tokens that are written; the next state.
Case = tuple[list[int], int, list[int], int]


def made(domain: SquareRoot, kind: str | None, dense: bool) -> tuple[str, SquareRootWeights]:
    """The weights, with the name of the feedforward; in closed form for None."""
    if dense:
        raise ValueError(f"{domain.name!r}: only one-hot vectors are for square roots")
    makers = {"closed": closed_form, "table": Table}
    if kind is not None and kind not in makers:
        hint = suggestion(kind, makers)
        raise ValueError(
            f"expected feedforward closed or table for square roots, found {kind!r}{hint}"
        )
    kind = kind or "closed"
    return kind, SquareRootWeights(*gates(), f=makers[kind](*rows()))


def gates() -> Tensor:
    """G_T, G_A, G_B and G_M."""
    all_gates = torch.zeros(4, len(VOCABULARY))
    for gate, first in zip(all_gates, (BIT, REMAINDER, ROOT, TOP), strict=True):
        gate[[first, first + 1]] = 1
    return all_gates


@cache
def rows() -> tuple[Tensor, Tensor]:
    """Inputs and outputs of the feedforward, of 0 and 1, for every case."""
    cases, D = [*_first_reading(), *_second_reading()], len(VOCABULARY)
    H = torch.zeros(len(cases), D + W, dtype=torch.int16)
    Y = torch.zeros(len(cases), D + W, dtype=torch.int8)
    for row, (bag, state, written, following) in enumerate(cases):
        H[row, [*bag, D + state]] = 1
        Y[row, [*written, D + following]] = 1
    return H, Y


def _bits(*kinds: int) -> list[list[int]]:
    """No bit, or one of these kinds."""
    return [[], *([kind + bit] for kind in kinds for bit in (0, 1))]


def _value(token: int) -> int:
    """The bit that a token stands for; 0 for a mark."""
    return token % 2 if token < TOP else 0


def _first_reading() -> Iterator[Case]:
    bags = [[END, BIT], [END, BIT + 1]]
    bags += [[*r, *b] for r, b in product(_bits(BIT, REMAINDER), _bits(ROOT))]
    for bag, state in product(bags, (BORROW, NO_BORROW)):
        number = sum(-(token % 2) if token in (ROOT, ROOT + 1) else _value(token) for token in bag)
        number -= state == BORROW
        written = [DIFFERENCE + number % 2] if bag else []
        yield bag, state, written, BORROW if number < 0 else NO_BORROW
    yield [TOP], BORROW, [BELOW], NO_BORROW
    yield [TOP], NO_BORROW, [NOT_BELOW], NO_BORROW


def _second_reading() -> Iterator[Case]:
    yield [TOP, NOT_BELOW], 0, [TOP], LEFT
    yield [TOP, BELOW], 0, [TOP], LEFT + 1
    for below, seen in product((0, 1), repeat=2):
        state = LEFT + below + 2 * seen
        yield [], state, [], state
        for r, d in product(_bits(BIT, REMAINDER), (DIFFERENCE, DIFFERENCE + 1)):
            bit = _value(r[0] if r else BIT) if below else _value(d)
            now = seen or bit
            left, following = [REMAINDER + bit] if now else [], LEFT + below + 2 * now
            for b in _bits(ROOT):
                yield [*r, *b, d], state, [*left, *b], following
            if r and r[0] in (BIT, BIT + 1):
                yield [END, *r, d], state, [END, *left, ROOT + 1 - below], following
