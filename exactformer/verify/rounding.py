"""Outputs of a perceptron in whole numbers, and the most that float64 can move them.

The weights are float32 numbers, none of them subnormal, and what they are multiplied with are whole
numbers up to 2^8 in size. So every exact value, every partial sum and every rounded one is zero or
a multiple of 2^-149 in the hidden layer, of 2^-298 after squaring and of 2^-447 in the output, and
stays below 2^500: far inside the range of float64's normal numbers, 2^-1022 to 2^1024. Nothing
underflows or overflows, and each operation errs by at most ROUNDOFF times its result.
"""

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

MOST_PRODUCTS = 2**40  # of whole numbers, in machine words
MOST_LONG_PRODUCTS = 2**28  # of whole numbers that are longer: about a minute
NUMBERS_AT_ONCE = 2**22  # of the hidden layer


@dataclass(frozen=True)
class Outputs:
    """`positive` has a row for each row of inputs: which outputs are above the threshold."""

    positive: NDArray
    smallest: Fraction  # least distance of any output from the threshold
    error: Fraction  # most that float64 can move an output


def perceptron(
    H: NDArray, W_1: NDArray, b_1: NDArray, W_2: NDArray, b_2: NDArray, activation: str
) -> Outputs:
    """act(H W_1 + b_1) W_2 + b_2 for every row of whole numbers in H.

    Every float is a whole number divided by a power of two, so scaled outputs are whole numbers.
    """
    (W_1, b_1), scale_1 = scaled(W_1, b_1)
    (W_2, b_2), scale_2 = scaled(W_2, b_2)
    power = 2 if activation == "square" else 1
    scale_h = scale_1**power
    # Python's integers never overflow; machine integers are quicker where they cannot either.
    widest = (int(abs(H).sum(1).max()) * largest(W_1) + largest(b_1)) ** power
    widest = widest * len(W_2) * largest(W_2) + max(1, largest(b_2)) * scale_h
    short = max(widest, *map(largest, (W_1, b_1, W_2, b_2))) < 2**62
    kind = np.int64 if short else object
    W_1, b_1, W_2, b_2 = (array.astype(kind) for array in (W_1, b_1, W_2, b_2 * scale_h))
    products = len(H) * (W_1.size + W_2.size)
    if products > (MOST_PRODUCTS if short else MOST_LONG_PRODUCTS):
        raise ValueError(
            f"the check of {len(H)} rows would take {products} products of numbers of up to "
            f"{widest.bit_length()} bits, more than it is for"
        )

    positive = np.zeros((len(H), W_2.shape[1]), dtype=bool)
    smallest, top, terms_1, terms_2 = [], 0, 0, 0
    at_once = max(1, NUMBERS_AT_ONCE // len(W_2))
    for start in range(0, len(H), at_once):
        rows = H[start : start + at_once].astype(kind)
        hidden = rows @ W_1 + b_1
        top = max(top, largest(hidden))
        terms_1 = max(terms_1, largest(abs(rows) @ abs(W_1) + abs(b_1)))
        hidden = hidden**2 if activation == "square" else np.maximum(hidden, 0)
        outputs = hidden @ W_2 + b_2
        terms_2 = max(terms_2, largest(hidden @ abs(W_2) + abs(b_2)))
        positive[start : start + at_once] = outputs > 0
        smallest.append(int(abs(outputs).min()))

    error = sum_error(terms_1, scale_1, H.shape[1] + 1)
    if activation == "square" and (error or top**2 > EXACT_INTEGER):
        reach = Fraction(top, scale_1) + error
        error = 2 * reach * error + ROUNDOFF * reach**2
    spread = error * Fraction(largest(abs(W_2).sum(0)), scale_2)  # by the second layer
    rounding = sum_error(terms_2, scale_h * scale_2, len(W_2) + 1, inexact=spread)
    return Outputs(positive, Fraction(min(smallest), scale_h * scale_2), spread + rounding)


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
    """Each token's dense vector gives more than 1/2 with itself, less with all others.

    A state holds the vector as its format stores it, bfloat16 being the coarsest; its product with
    the float32 vectors is one of float64.
    """
    D = len(E)
    if D**3 > MOST_LONG_PRODUCTS:
        raise ValueError(f"dense vectors of {D} tokens are more than this check is for")
    (whole,), scale = scaled(E)
    products: NDArray = whole @ whole.T
    sizes: NDArray = abs(whole) @ abs(whole.T)
    lengths: NDArray = abs(whole).sum(1)  # of the vectors that are the columns of `products`
    stored = sizes * NARROW_LOSS + lengths * (NARROW_UNDERFLOW * scale)
    loss = stored + (sizes + stored) * (2 * D * ROUNDOFF)  # n u (1 + 2 n u) <= 2 n u
    own = np.eye(D, dtype=bool)
    distance = np.where(own, 2 * products - scale**2, scale**2 - 2 * products)
    return bool((distance > 2 * loss).all() and (abs(E) < LARGE_ENTRY).all())


def scaled(*arrays: NDArray) -> tuple[list[NDArray], int]:
    """Float arrays as whole numbers over one common power of two."""
    exact = [np.array([Fraction(float(x)) for x in array.flat], dtype=object) for array in arrays]
    scale = max(x.denominator for part in exact for x in part)
    whole = [np.array([int(x * scale) for x in part], dtype=object) for part in exact]
    return [part.reshape(array.shape) for part, array in zip(whole, arrays, strict=True)], scale


def largest(array: NDArray) -> int:
    return int(abs(array).max())
