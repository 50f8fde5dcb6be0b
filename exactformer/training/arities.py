"""Learns the gate of Polish notation from texts alone, without a value or any other label.

Whichever tokens are values and how many operands each operator takes, every text obeys one linear
law: its tokens count -1 together (`verify/arities.py` says why). With N the number of times that
each symbol stands in each text, a row for a text, the gate solves

    N g = -1,

and where N has full column rank, no other numbers do. The side is the one from which no sum of a
beginning falls below 0 before the end.

The solution is found by least squares, rounded, and then held against the texts in whole numbers.
That the rank is full is shown modulo a prime: it cannot be larger there than it is. So what is
returned is the only gate under which all these texts are expressions. Other texts are refused, with
what is missing: a gate is never guessed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.bounds import LARGEST_ARITY
from exactformer.domains.data import listed
from exactformer.domains.expression import Expression
from exactformer.model.circuit import Weights

PRIME = 2**31 - 1


class Undetermined(ValueError):
    """Raised for texts that several gates or both sides explain, or none."""


@dataclass(frozen=True)
class ArityGate:
    """A gate and a side, by the symbols of the texts that determine them.

    counts   the number of operands of each symbol, less one: -1 for a value.
    side     1 if operators stand before their operands, -1 if they stand behind them.
    """

    counts: dict[str, int]
    side: int

    @property
    def values(self) -> list[str]:
        """The symbols that take no operand."""
        return [symbol for symbol, count in self.counts.items() if count < 0]


def learn_arities(texts: Sequence[Sequence[str]]) -> ArityGate:
    """The only gate and side by which all of these texts are expressions in Polish or reverse
    Polish notation. Raises `Undetermined` if there is none, or more than one.
    """
    symbols = list(dict.fromkeys(symbol for text in texts for symbol in text))
    if not symbols or not all(map(len, texts)):
        raise Undetermined("expected texts of one symbol or more, found none")
    number = {symbol: i for i, symbol in enumerate(symbols)}
    ids = [np.array([number[symbol] for symbol in text]) for text in texts]
    N = np.stack([np.bincount(text, minlength=len(symbols)) for text in ids])
    solution = np.linalg.lstsq(N.astype(float), np.full(len(N), -1.0), rcond=None)[0]
    g = np.rint(solution).astype(np.int64)
    known = rank(N) == len(symbols)
    wrong = np.flatnonzero(N @ g != -1)
    if not known:
        raise Undetermined(
            f"{len(texts)} texts leave the operands of some of {len(symbols)} symbols open: "
            f"expected texts in which these stand in more different numbers"
        )
    if len(wrong) or (g < -1).any() or (g >= LARGEST_ARITY).any():
        shown = " ".join(map(str, texts[wrong[0] if len(wrong) else 0]))
        raise Undetermined(
            f"no numbers of operands make all texts expressions without brackets: expected counts "
            f"that add up to -1 in each, found none for them and {shown[:80]!r}"
        )
    sides = [side for side in (1, -1) if all(_is_read(g[text[::side]]) for text in ids)]
    if len(sides) != 1:
        found = "both sides" if sides else "neither side"
        raise Undetermined(f"expected texts that are expressions from one side, found {found}")
    return ArityGate(dict(zip(symbols, g.tolist(), strict=True)), sides[0])


def _is_read(counts: NDArray[np.int64]) -> bool:
    """Whether no operand is left over before the end."""
    return bool((np.cumsum(counts)[:-1] >= 0).all())


def rank(N: NDArray[np.int64]) -> int:
    """The rank of a matrix modulo a prime, which is at most its rank."""
    rows, found = N.astype(np.int64) % PRIME, 0
    for column in range(rows.shape[1]):
        candidates = np.flatnonzero(rows[found:, column])
        if not len(candidates):
            continue
        pivot = found + candidates[0]
        rows[[found, pivot]] = rows[[pivot, found]]
        inverse = pow(int(rows[found, column]), PRIME - 2, PRIME)
        rows[found] = rows[found] * inverse % PRIME
        others = rows[found + 1 :]
        others -= others[:, [column]] * rows[found] % PRIME
        others %= PRIME
        found += 1
    return found


def with_learned_arities(
    algebra: Algebra, weights: Weights, texts: Sequence[Expression]
) -> Weights:
    """Weights of an algebra with parentheses, or of this one, with the gate that texts of it show;
    their values are not looked at. The certificate says whether it is the declared one.
    """
    learned = learn_arities([[algebra.vocabulary[i] for i in text.ids.tolist()] for text in texts])
    missing = [s for s in algebra.vocabulary[FIRST_VALUE:] if s not in learned.counts]
    if missing:
        raise Undetermined(f"expected texts with every symbol, found none with {listed(missing)}")
    counts = [learned.counts.get(symbol, 0) for symbol in algebra.vocabulary]
    G_A, side = (torch.tensor(part, device=weights.device) for part in (counts, [learned.side]))
    return replace(weights, G_A=G_A, side=side)
