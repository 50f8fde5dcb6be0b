"""Long expressions of chosen shapes, made by array operations.

A leaf is a value or, in some tasks, a small span of values. A tree over leaves has a span for each
gap between neighbours, and however it branches, the span over some leaves is as long as these
together and three more tokens for each gap between them. So the index of every span is known
without writing out what comes before it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.evaluation.values import spelt

Ids = NDArray[np.int16]
Ints = NDArray[np.int64]

SHAPES = ("balanced", "random", "comb", "right comb")
FEWEST_TOKENS = 5  # of a span
LEAVES_TO_A_SMALL_SPAN = 8


@dataclass(frozen=True)
class Mix:
    """The operators and values that the expressions of a task are made of."""

    operators: tuple[str, ...]  # of two operands; one that is named twice is drawn twice as often
    comb_values: str
    small_span: tuple[str, int] | None = None  # operator and number of operands

    @property
    def small_length(self) -> int:
        return self.small_span[1] + 3 if self.small_span else 1

    def small_spans(self, leaves: int) -> int:
        return leaves // LEAVES_TO_A_SMALL_SPAN if self.small_span else 0

    def tokens(self, leaves: int) -> int:
        return 4 * leaves - 3 + self.small_spans(leaves) * (self.small_length - 1)

    def leaves(self, tokens: int) -> int:
        """The largest number of leaves for a number of tokens."""
        if tokens < FEWEST_TOKENS:
            raise ValueError(f"expected {FEWEST_TOKENS} tokens or more, found {tokens}")
        leaves = int((tokens + 3) / (4 + (self.small_length - 1) / LEAVES_TO_A_SMALL_SPAN))
        while self.tokens(leaves + 1) <= tokens:
            leaves += 1
        return leaves


# Were half of the operators products, nearly every large tree would be worth 0. A comb of sums and
# of products with 1, 3, 7 and 9 is worth something else if any one operand changes.
MIXES = {
    "boolean": Mix(("&", "|"), "01", small_span=("~", 1)),
    "arithmetic": Mix(("+", "+", "+", "*"), "1379"),
    "listops": Mix(("MAX", "MIN", "MED", "SM"), "0123456789", small_span=("MED", 3)),
}


def make_ids(algebra: Algebra, shape: str, tokens: int, rng: np.random.Generator) -> Ids:
    """Token ids of an expression with as many tokens as possible, up to a given number."""
    mix = MIXES[algebra.name]
    n_leaves = mix.leaves(tokens)
    small = np.zeros(n_leaves, dtype=bool)
    small[rng.permutation(n_leaves)[: mix.small_spans(n_leaves)]] = True
    before = np.concatenate([[0], np.cumsum(np.where(small, mix.small_length, 1))])
    symbols = np.array([algebra.token_ids[symbol] for symbol in mix.operators], dtype=np.int16)
    operators = rng.choice(symbols, n_leaves)  # that of each gap by the leaf after it

    ids = np.empty(mix.tokens(n_leaves), dtype=np.int16)
    leaf_index = np.empty(n_leaves, dtype=np.int64)
    operator_first = not algebra.notation.operands_before(2)
    to_left = 2 if operator_first else 1  # tokens of a span before its left operand
    for first, middle, last, start in _spans(shape, before, to_left, rng):
        left, right = start + to_left, start + 2 + _length(before, first, middle)
        ids[start] = OPEN
        ids[start + 1 if operator_first else right - 1] = operators[middle]
        ids[start + _length(before, first, last) - 1] = CLOSE
        single = middle - first == 1
        leaf_index[first[single]] = left[single]
        single = last - middle == 1
        leaf_index[middle[single]] = right[single]

    values = np.array(algebra.value_ids, dtype=np.int16)
    if shape in ("comb", "right comb"):
        values = np.array([algebra.token_ids[value] for value in mix.comb_values], dtype=np.int16)
    ids[leaf_index] = rng.choice(values, n_leaves)
    if mix.small_span:
        operator, operands = mix.small_span
        begin = leaf_index[small]
        ids[begin] = OPEN
        ids[begin + 1] = algebra.token_ids[operator]
        for operand in range(operands):
            ids[begin + 2 + operand] = rng.choice(values, len(begin))
        ids[begin + 2 + operands] = CLOSE
    return ids


def _length(before: Ints, first: Ints, last: Ints) -> Ints:
    """Tokens of the span over leaves first to last - 1. `before`: tokens of all leaves before."""
    return before[last] - before[first] + 3 * (last - first - 1)


def _spans(
    shape: str, before: Ints, to_left: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, Ints, Ints, Ints]]:
    """Yield all spans, many at a time: the first leaf of the left operand, that of the right
    operand, the leaf after the span, and the index of the span's first token.
    """
    n_leaves = len(before) - 1
    gaps = np.arange(1, n_leaves)
    if shape == "comb":
        yield np.zeros_like(gaps), gaps, gaps + 1, (n_leaves - 1 - gaps) * to_left
        return
    if shape == "right comb":
        yield gaps - 1, gaps, np.full_like(gaps, n_leaves), before[:-2] + 2 * (gaps - 1)
        return
    first, last, start = np.array([0]), np.array([n_leaves]), np.array([0])
    while len(first):
        if shape == "balanced":
            middle = (first + last + 1) // 2
        elif shape == "random":
            middle = rng.integers(first + 1, last)
        else:
            raise ValueError(f"expected one of {', '.join(SHAPES)}, found {shape!r}")
        yield first, middle, last, start
        right = start + 2 + _length(before, first, middle)
        first, last, start = (
            np.concatenate(pair)
            for pair in ((first, middle), (middle, last), (start + to_left, right))
        )
        more = last - first > 1
        first, last, start = first[more], last[more], start[more]


def text_of(algebra: Algebra, ids: Ids) -> bytes:
    """Canonical text, equal to `str` of an expression, made by array operations."""
    space = "" if algebra.packs else " "
    return spelt(ids, [symbol + space for symbol in algebra.vocabulary]).encode().rstrip()
