"""Weights for integers of any base, written down: a row of the feedforward for each case.

A case is a bag beside a state. In sums and products the state is the carry, in differences the
borrow, and in comparisons how the places so far compare; one more state, the last, has nothing left
to write. In the second reading the state is whether a digit other than 0 has come, or `?`.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import product

import torch
from torch import Tensor

from exactformer.domains.data import suggestion
from exactformer.domains.integers import OPERATORS, Integers
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN
from exactformer.model.feedforward import MLP, Table
from exactformer.model.integers import LEFT, RIGHT, IntegerWeights

FEW_NUMBERS = 1 << 17  # of all cases up to which the perceptron in closed form is tried first

EQUAL, LESS, MORE = range(3)  # states of comparisons
NOTHING, NUMBER, BELOW_ZERO = range(3)  # states of the second reading

# Tokens in the slots left and right, the state; the token written, None for none; the next state.
Case = tuple[list[int], list[int], int, int | None, int]


def made(domain: Integers, kind: str | None, dense: bool) -> tuple[str, IntegerWeights]:
    """The weights, with the name of the feedforward; the first that is possible for None."""
    if dense:
        raise ValueError(f"{domain.name!r}: only one-hot vectors are for integers")
    makers = {"closed": closed_form, "table": Table}
    if kind is not None and kind not in makers:
        hint = suggestion(kind, makers)
        raise ValueError(f"expected feedforward closed or table for integers, found {kind!r}{hint}")
    H, Y = rows(domain)
    kind = kind or ("closed" if H.numel() <= FEW_NUMBERS else "table")
    return kind, IntegerWeights(*gates(domain), f=makers[kind](H, Y))


def gates(domain: Integers) -> Tensor:
    """G_PE, G_N, G_O and G_F."""
    G_PE, G_N, G_O, G_F = all_gates = torch.zeros(4, len(domain.vocabulary))
    operators = slice(domain.first_operator, domain.none)
    G_PE[OPEN], G_PE[CLOSE] = 1, -1
    G_N[FIRST_VALUE : domain.first_operator] = G_N[domain.none] = 1
    G_N[operators] = G_N[OPEN] = G_N[CLOSE] = -1
    G_O[operators] = 1
    G_F[domain.operator_id("*")] = 1
    return all_gates


@cache
def rows(domain: Integers) -> tuple[Tensor, Tensor]:
    """Inputs and outputs of the feedforward, of 0 and 1, for every case."""
    cases = [*_first_reading(domain), *second_reading(domain)]
    return rows_of(domain, cases, W=max(domain.base, MORE + 1) + 1)


def rows_of(domain: Integers, cases: Sequence[Case], W: int) -> tuple[Tensor, Tensor]:
    """Inputs and outputs of the feedforward for these cases, with W states."""
    D = len(domain.vocabulary)
    H = torch.zeros(len(cases), 2 * D + W, dtype=torch.int16)
    Y = torch.zeros(len(cases), D + W, dtype=torch.int8)
    for row, (left, right, state, written, following) in enumerate(cases):
        ones = [LEFT * D + token for token in left] + [RIGHT * D + token for token in right]
        H[row, [*ones, 2 * D + state]] = 1
        Y[row, [D + following] if written is None else [written, D + following]] = 1
    return H, Y


def _first_reading(domain: Integers) -> Iterator[Case]:
    B, none, done = domain.base, domain.none, max(domain.base, MORE + 1)
    digits = [*range(FIRST_VALUE, FIRST_VALUE + B)]
    maybe = [[], *([digit] for digit in digits)]
    for symbol in OPERATORS:
        o = domain.operator_id(symbol)
        for a, b in [*product(digits, [none]), *product([none], [*digits, none])]:
            yield [a], [b, o], 0, none, done
        for a, b in [*product(maybe, [[]]), *product([[]], maybe[1:])]:
            yield a, [*b, o], done, None, done
        if symbol == "*":
            for a in digits:  # where the right operand is `?`, it has all places
                yield [a], [none, o], done, None, done
            yield [], [none, o], done, None, done
            for a, kept, d, carry in product(maybe, maybe, digits, range(B)):
                number = carry + sum(digit - FIRST_VALUE for digit in kept)
                number += sum(digit - FIRST_VALUE for digit in a) * (d - FIRST_VALUE)
                written = FIRST_VALUE + number % B if a or kept or number else None
                k = [digit - FIRST_VALUE + domain.first_kept for digit in kept]
                yield [*a, *k], [d, o], carry, written, number // B
            continue
        for state, a, b in product(range(3 if symbol in "<=>" else 2), maybe, maybe):
            left, right = (sum(digit - FIRST_VALUE for digit in digits) for digits in (a, b))
            if symbol == "+":
                number = left + right + state
                written = FIRST_VALUE + number % B if a or b or number else None
                yield a, [*b, o], state, written, number // B
            elif symbol == "-":
                number = left - right - state
                written = FIRST_VALUE + number % B
                if a or b:
                    yield a, [*b, o], state, written, int(number < 0)
                else:
                    yield a, [o], state, none if state else None, done if state else 0
            elif a or b:
                following = state if left == right else LESS if left < right else MORE
                yield a, [*b, o], state, None, following
            else:
                holds = state == {"<": LESS, "=": EQUAL, ">": MORE}[symbol]
                yield a, [o], state, FIRST_VALUE + holds, done


def second_reading(domain: Integers) -> Iterator[Case]:
    """The cases of the second reading, which leaves a numeral without zeros at its top, or `?`."""
    zero, none = FIRST_VALUE, domain.none
    for digit in range(zero, domain.first_operator):
        if digit == zero:
            yield [digit], [], NOTHING, None, NOTHING
        else:
            yield [digit], [], NOTHING, digit, NUMBER
        yield [digit], [], NUMBER, digit, NUMBER
        yield [digit], [], BELOW_ZERO, None, BELOW_ZERO
        yield [], [digit], NOTHING, digit, NOTHING
        yield [], [digit], NUMBER, digit, NOTHING
        yield [], [digit], BELOW_ZERO, none, NOTHING
    for state in (NOTHING, NUMBER, BELOW_ZERO):
        yield [none], [], state, None, BELOW_ZERO
        yield [], [none], state, none, NOTHING


def closed_form(H: Tensor, Y: Tensor) -> MLP:
    """A hidden unit for each row, which is 1 for it and 0 for every other bag of single tokens."""
    return MLP(
        (2 * H.T - 1).float().contiguous(),
        1 - H.sum(1).float(),
        Y.float(),
        torch.full((Y.shape[1],), -0.5),
        activation="relu",
    )
