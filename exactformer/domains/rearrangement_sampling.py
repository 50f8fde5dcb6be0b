"""Random texts of rearrangements.

Symbols are drawn uniformly; a text in which nothing would be written is drawn anew. In the order
halves each pair that is allowed is as likely as any other, and so are its two orders; a text of odd
length ends with a symbol that is skipped.
"""

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.bounds import MOST_TEXTS_AT_ONCE, require
from exactformer.domains.expression import Expression
from exactformer.domains.rearrangements import NOTHING, Rearrangement

TRIES = 1_000  # draws of the texts in which nothing is written so far


def draw_rearranged(
    domain: Rearrangement, length: int, count: int, rng: np.random.Generator
) -> list[Expression]:
    """Draw texts of this many symbols; the module's docstring has the law."""
    if length < 1 or count < 0:
        raise ValueError(f"expected a length of 1 or more and a count, found {length} and {count}")
    require("symbols of all texts", length * count, MOST_TEXTS_AT_ONCE)
    drawn = _pairs if domain.order == "halves" else _symbols
    ids, written = drawn(domain, length, count, rng)
    for _ in range(TRIES):
        left = np.flatnonzero(~written)
        if not len(left):
            return [Expression(domain, row.copy()) for row in ids]
        ids[left], written[left] = drawn(domain, length, len(left), rng)
    raise ValueError(f"{domain.name!r}: no text of {length} symbols drawn in which one is written")


Drawn = tuple[NDArray[np.int16], NDArray[np.bool_]]  # texts, and whether a symbol is written


def _symbols(domain: Rearrangement, length: int, count: int, rng: np.random.Generator) -> Drawn:
    ids = rng.integers(len(domain.symbols), size=(count, length), dtype=np.int16)
    written = domain.has_place[ids].any(axis=1)
    return ids, np.array(written) if domain.end is None else np.ones(count, dtype=bool)


def _pairs(domain: Rearrangement, length: int, count: int, rng: np.random.Generator) -> Drawn:
    skipped = np.flatnonzero(~domain.has_place[: len(domain.symbols)]).astype(np.int16)
    if length % 2 and not len(skipped):
        raise ValueError(f"{domain.name!r} allows no text of {length} symbols: two halves are even")
    bags, half = np.array([*domain.bags], dtype=np.int16), length // 2
    which = rng.integers(len(bags), size=(count, half))
    pairs = rng.permuted(bags[which], axis=-1)
    ids = np.concatenate([pairs[..., 0], pairs[..., 1]], axis=1)
    if length % 2:
        ids = np.hstack([ids, rng.choice(skipped, size=(count, 1))])
    return ids, (np.array([*domain.bags.values()])[which] != NOTHING).any(1)
