"""Outputs of a perceptron in whole numbers, and a bound on the rounding error of float64.

The weights are float32 numbers, none of them subnormal, and what they are multiplied with are whole
numbers up to 2^8 in size. So every exact value, every partial sum and every rounded one is zero or
a multiple of 2^-149 in the hidden layer, of 2^-298 after squaring and of 2^-447 in the output, and
stays below 2^500: far inside the range of float64's normal numbers, 2^-1022 to 2^1024. Nothing
underflows or overflows, and each operation errs by at most ROUNDOFF times its result.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

ROUNDOFF = Fraction(1, 2**52)  # most that one float64 operation loses, in any rounding mode
EXACT_INTEGER = 2**53  # whole numbers up to here are exact in float64
SUBNORMAL = 2.0**-126  # float32 numbers below may be taken for zero
NARROW_LOSS = Fraction(1, 2**7)  # of an entry that is stored in bfloat16, in any rounding mode,
NARROW_UNDERFLOW = Fraction(1, 2**14)  # and what float16 may lose of it besides
LARGE_ENTRY = 2**15  # float16 holds numbers up to twice this

MOST_PRODUCTS = 2**40  # products of whole numbers that fit into machine words
MOST_LONG_PRODUCTS = 2**28  # products of longer whole numbers: about a minute
NUMBERS_AT_ONCE = 2**22  # numbers of the hidden layer at once


@dataclass(frozen=True)
class Outputs:
    """`positive` has a row for each row of inputs: which outputs are above the threshold."""

    positive: NDArray
    smallest: Fraction  # least distance of any output from the threshold
    error: Fraction  # most that float64 can move an output


def perceptrons(
    H: NDArray, weights: Sequence[tuple[NDArray, NDArray, NDArray, NDArray]], activation: str
) -> list[Outputs]:
    """act(H W_1 + b_1) W_2 + b_2 for every row of whole numbers in H, by several of one shape.
    Machine integers are quicker than Python's, which never overflow: those for which they cannot
    overflow either are computed together.
    """
    wholes = [_whole(H, *tensors, activation) for tensors in weights]
    at_once = max(1, NUMBERS_AT_ONCE // max(1, len(H) * weights[0][0].shape[1])) if weights else 1
    found: dict[int, Outputs] = {}
    for kind in (True, False):
        of_kind = [i for i, whole in enumerate(wholes) if whole.short is kind]
        step = at_once if kind else 1
        for start in range(0, len(of_kind), step):
            some = of_kind[start : start + step]
            outputs = _outputs(H, [wholes[i] for i in some], activation)
            found |= dict(zip(some, outputs, strict=True))
    return [found[i] for i in range(len(weights))]


@dataclass(frozen=True)
class _Whole:
    """Weights as whole numbers. Every float is one divided by a power of two, so scaled outputs are
    whole numbers, too; `short` if no number on the way to them overflows a machine integer.
    """

    tensors: list[NDArray]  # W_1, b_1, W_2, and b_2 in the scale of the outputs
    scale_1: int
    scale_h: int  # scale of the hidden layer, after its activation
    scale_2: int
    short: bool


def _whole(
    H: NDArray, W_1: NDArray, b_1: NDArray, W_2: NDArray, b_2: NDArray, activation: str
) -> _Whole:
    (W_1, b_1), scale_1 = scaled(W_1, b_1)
    (W_2, b_2), scale_2 = scaled(W_2, b_2)
    power = 2 if activation == "square" else 1
    scale_h = scale_1**power
    widest = (int(abs(H).sum(1).max()) * largest(W_1) + largest(b_1)) ** power
    widest = widest * len(W_2) * largest(W_2) + max(1, largest(b_2)) * scale_h
    short = max(widest, *map(largest, (W_1, b_1, W_2, b_2))) < 2**62
    products = len(H) * (W_1.size + W_2.size)
    if products > (MOST_PRODUCTS if short else MOST_LONG_PRODUCTS):
        raise ValueError(
            f"the check of {len(H)} rows would take {products} products of numbers of up to "
            f"{widest.bit_length()} bits, more than it is for"
        )
    kind = np.int64 if short else object
    tensors = [array.astype(kind) for array in (W_1, b_1, W_2, b_2.astype(object) * scale_h)]
    return _Whole(tensors, scale_1, scale_h, scale_2, short)


def _outputs(H: NDArray, wholes: Sequence[_Whole], activation: str) -> list[Outputs]:
    """Compute the outputs, with seeds on a leading axis, some rows at a time."""
    W_1, b_1, W_2, b_2 = (
        np.stack(of_name) for of_name in zip(*(w.tensors for w in wholes), strict=True)
    )
    b_1, b_2 = b_1[:, None], b_2[:, None]
    seeds, hidden_units, D = W_2.shape
    positive = np.zeros((seeds, len(H), D), dtype=bool)
    smallest, top, terms_1, terms_2 = [], [], [], []
    at_once = max(1, NUMBERS_AT_ONCE // (seeds * hidden_units))
    for start in range(0, len(H), at_once):
        rows = H[start : start + at_once].astype(W_1.dtype)
        hidden = rows @ W_1 + b_1
        top.append(abs(hidden).max((1, 2)))
        terms_1.append((abs(rows) @ abs(W_1) + abs(b_1)).max((1, 2)))
        hidden = hidden**2 if activation == "square" else np.maximum(hidden, 0)
        outputs = hidden @ W_2 + b_2
        terms_2.append((hidden @ abs(W_2) + abs(b_2)).max((1, 2)))
        positive[:, start : start + at_once] = outputs > 0
        smallest.append(abs(outputs).min((1, 2)))
    least = np.min(smallest, axis=0)
    most = [np.max(parts, axis=0) for parts in (top, terms_1, terms_2)]
    spread_2 = abs(W_2).sum(1).max(1)  # of an error, by the second layer
    found = []
    for seed, whole in enumerate(wholes):
        reach, first, second = (int(part[seed]) for part in most)
        error = sum_error(first, whole.scale_1, H.shape[1] + 1)
        if activation == "square" and (error or reach**2 > EXACT_INTEGER):
            far = Fraction(reach, whole.scale_1) + error
            error = 2 * far * error + ROUNDOFF * far**2
        spread = error * Fraction(int(spread_2[seed]), whole.scale_2)
        scale = whole.scale_h * whole.scale_2
        rounding = sum_error(second, scale, hidden_units + 1, inexact=spread)
        found.append(Outputs(positive[seed], Fraction(int(least[seed]), scale), spread + rounding))
    return found


def sum_error(terms: int, scale: int, count: int, inexact: Fraction = Fraction(0)) -> Fraction:
    """Most that adding `count` products can err in float64, in any order, fused or not.

    `terms` / `scale` bounds the sum of the products' absolute values. If each is a multiple of
    1 / `scale` and all partial sums fit, nothing rounds. Otherwise n roundings lose at most
    n u / (1 - n u) <= n u (1 + 2 n u) of it. `inexact` is an error that the products carry already.
    """
    if not inexact and terms <= EXACT_INTEGER:
        return Fraction(0)
    assert count * ROUNDOFF <= Fraction(1, 2), "no weights file is that large"
    return count * ROUNDOFF * (1 + 2 * count * ROUNDOFF) * (Fraction(terms, scale) + inexact)


def reads_back(E: NDArray) -> bool:
    """Whether dense vectors read back as their tokens: the product of a vector with itself is more
    than 1/2, that with any other less.

    A state holds the vector as its format stores it, bfloat16 being the coarsest; its product with
    the float32 vectors is computed in float64.
    """
    D = len(E)
    if D**3 > MOST_LONG_PRODUCTS:
        raise ValueError(f"dense vectors of {D} tokens are more than this check is for")
    (whole,), scale = scaled(E)
    whole = whole.astype(object)
    products: NDArray = whole @ whole.T
    sizes: NDArray = abs(whole) @ abs(whole.T)
    lengths: NDArray = abs(whole).sum(1)  # of the vectors that are the columns of `products`
    stored = sizes * NARROW_LOSS + lengths * (NARROW_UNDERFLOW * scale)
    loss = stored + (sizes + stored) * (2 * D * ROUNDOFF)  # n u (1 + 2 n u) <= 2 n u
    own = np.eye(D, dtype=bool)
    distance = np.where(own, 2 * products - scale**2, scale**2 - 2 * products)
    return bool((distance > 2 * loss).all() and (abs(E) < LARGE_ENTRY).all())


def scaled(*arrays: NDArray) -> tuple[list[NDArray], int]:
    """Float arrays as whole numbers over one common power of two, the least that there is."""
    mantissas, exponents = zip(*map(_whole_mantissas, arrays), strict=True)
    digits = max(0, *(-int(part.min(initial=0)) for part in exponents))
    longest = [abs(m).max(initial=0).item().bit_length() for m in mantissas]
    widest = max(int(e.max(initial=0)) + n for e, n in zip(exponents, longest, strict=True))
    kind = np.int64 if digits + widest < 62 else object
    whole = [
        m.astype(kind) << (e + digits).astype(kind)
        for m, e in zip(mantissas, exponents, strict=True)
    ]
    return whole, 1 << digits


def _whole_mantissas(array: NDArray) -> tuple[NDArray, NDArray]:
    """Odd whole numbers, or zero, and the powers of two that they are multiplied with."""
    fraction, exponent = np.frexp(array.astype(np.float64))
    mantissa = (fraction * 2.0**53).astype(np.int64)  # float64 holds no more digits
    lowest = np.where(mantissa == 0, 1, mantissa & -mantissa)
    shift = np.frexp(lowest.astype(np.float64))[1] - 1
    exponent = np.where(mantissa == 0, 0, exponent - 53 + shift)
    return mantissa // lowest, exponent.astype(np.int64)


def largest(array: NDArray) -> int:
    return int(abs(array).max())
