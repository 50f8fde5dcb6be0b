"""The layer of `circuit.py` without padding and zeros, so that each iteration takes less work.

Sequences stand one after another without padding. Positions that have become zero are dropped, and
so are sequences that have halted. A balanced tree of n tokens then costs n + n/2 + n/4 + ..., so
O(n) for all of its levels together.

Glossary, beyond that of `circuit.py`
    s, t        sequences that still run; positions that are left, of all of them together
    symbols     (t,)  the row that a position holds, by its number (`alphabet.py`)
    position    (t,)  where it is in the batch laid out flat: where numbers are missing, zeros were
    owner       (t,)  its sequence, from 0 to s-1
    before      (t,)  sum of the gates before it, in all sequences: what is before its own, `first`,
                is a constant there. So A_1 is before + gate and A_2 is before - total, less `first`
    total       (s,)  the sum of all gates

Why zeros can be dropped. A zero vector adds nothing to any count or rank, and neither sends nor
receives anything. In the mask it becomes f(0) after the threshold: zero again, or else nothing is
dropped (`Kinds.zeros_stay`). What is left to it is to be in the mask or not. A zero is never the
only one of the largest depth: with `before` counted from the sequence's start, its depth is the
larger one of `before` and `before - total`. If total >= 0 that is `before`, which is A_1 of the
position before it, or 0 <= total, A_1 of the last one. If total < 0 it is `before - total`, which
is A_2 of the position after it, or at the end 0 < -total, A_2 of the first one. But outside of the
mask it keeps its neighbours in separate clusters, as in `( MAX ( MIN 1 2 ) _ ( MIN 3 4 ) _ )`. So a
cluster also ends where positions are missing, unless their depth is the largest, too.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor

from exactformer.domains.expression import EMPTY
from exactformer.model.alike import Stretches, indices, stretches, sums_before
from exactformer.model.kinds import Kinds

MOST_INT32 = torch.iinfo(torch.int32).max


class Packed(NamedTuple):
    """The remaining positions of all sequences, and the number of them in each sequence."""

    symbols: Int[Tensor, " t"]
    position: Int[Tensor, " t"]
    lengths: Int[Tensor, " s"]
    sequence: Int[Tensor, " s"]  # index in the batch

    @property
    def owner(self) -> Int[Tensor, " t"]:
        return torch.repeat_interleave(self.lengths, output_size=len(self.symbols))

    @property
    def starts(self) -> Int[Tensor, " s"]:
        return self.lengths.cumsum(0) - self.lengths

    def sums(self, numbers: Shaped[Tensor, " t"]) -> Int[Tensor, " s"]:
        """The sum of `numbers` over each sequence."""
        before, starts = sums_before(numbers, self.position.dtype), self.starts
        return (before[starts + self.lengths] - before[starts]).long()

    def without_zeros(self) -> "Packed":
        kept = self.symbols != 0
        return self._at(kept, self.sums(kept), self.sequence)

    def of(self, chosen: Bool[Tensor, " s"]) -> "Packed":
        """The state of the chosen sequences."""
        return self._at(chosen[self.owner], self.lengths[chosen], self.sequence[chosen])

    def _at(self, kept: Bool[Tensor, " t"], lengths: Tensor, sequence: Tensor) -> "Packed":
        which = indices(kept)
        symbols, position = (part.index_select(0, which) for part in self[:2])
        return Packed(symbols, position, lengths, sequence)


def pack(ids: Int[Tensor, " t"], lengths: Int[Tensor, " s"], kinds: Kinds) -> Packed:
    """The state of sequences of token ids that are stored one after another."""
    small = torch.int32 if len(ids) <= MOST_INT32 else torch.int64  # no count is larger than that
    position = torch.arange(len(ids), dtype=small, device=ids.device)
    sequence = torch.arange(len(lengths), device=ids.device)
    state = Packed(1 + ids.int(), position, lengths, sequence)
    return state.without_zeros() if kinds.zeros_stay and (ids == EMPTY).any() else state


class Counts(NamedTuple):
    """The depth counts, and the largest depth of each sequence."""

    owner: Int[Tensor, " t"]
    gate: Int[Tensor, " t"]
    before: Int[Tensor, " t"]
    first: Int[Tensor, " s"]  # sum of the gates before each sequence
    total: Int[Tensor, " s"]
    depth: Int[Tensor, " t"]
    deepest: Int[Tensor, " s"]


def count(state: Packed, kinds: Kinds) -> Counts:
    owner, starts = state.owner, state.starts
    gate = kinds.alphabet.gate.index_select(0, state.symbols)  # Eq. 2
    sums = sums_before(gate, state.position.dtype)
    before, after = sums[:-1], sums[1:]
    first = sums[starts]
    total = sums[starts + state.lengths] - first
    depth = after.maximum(before - total.index_select(0, owner))  # Eqs. 3 and 4
    deepest = torch.full_like(total, torch.iinfo(total.dtype).min)
    if len(total) > 1:
        deepest.scatter_reduce_(0, owner, depth, "amax")
    elif len(depth):  # equal, but faster on a GPU, where additions to one address queue up
        deepest = depth.amax(0, keepdim=True)
    return Counts(owner, gate, before, first, total, depth, deepest)


def halted(state: Packed, counts: Counts) -> Bool[Tensor, " s"]:
    """Whether no parenthesis is left, so that every gate is zero. That is computed only if some
    largest depth is 0 or less, as it then has to be.
    """
    asked = counts.deepest <= counts.first
    return state.sums(counts.gate != 0) == 0 if asked.any() else asked


def clusters(state: Packed, counts: Counts) -> tuple[Int[Tensor, " e"], Stretches]:
    """The positions in the mask, and the clusters that they form."""
    P = counts.depth == counts.deepest.index_select(0, counts.owner)  # Eq. 5
    of_zeros = counts.deepest + counts.total.clamp(max=0)  # `before` of zeros that are in the mask
    apart = counts.before != of_zeros.index_select(0, counts.owner)
    apart[1:] &= state.position[1:] - state.position[:-1] != 1
    apart[state.starts] = True
    starts = P.clone()
    starts[1:] &= apart[1:] | ~P[:-1]  # Eq. 6
    which = indices(P)
    symbols, starts = (part.index_select(0, which) for part in (state.symbols, starts))
    return which, stretches(symbols, starts)  # Eq. 7


def iterate(state: Packed, counts: Counts, kinds: Kinds) -> Packed:
    which, reduced = clusters(state, counts)
    symbols = state.symbols.index_copy(0, which, kinds.outputs(reduced))  # Eqs. 10 to 13
    state = state._replace(symbols=symbols)
    return state.without_zeros() if kinds.zeros_stay else state


def run(
    state: Packed, kinds: Kinds, observe: Callable[[Packed], None] = lambda state: None
) -> tuple[Packed, Int[Tensor, " s"]]:
    """The final state of all sequences, and the number of iterations of each, equal to those of
    `circuit.run`. `observe` gets the state after each iteration, of the sequences that took part.
    """
    limit = state.sums(kinds.alphabet.opens.index_select(0, state.symbols))
    taken, iteration = torch.zeros_like(limit), 0
    ended: list[Packed] = []
    while len(state.sequence):
        counts = count(state, kinds)
        over = halted(state, counts) | (limit[state.sequence] <= iteration)
        if over.any():
            taken[state.sequence[over]] = iteration
            ended.append(state.of(over))
            state = state.of(~over)
        else:
            state, iteration = iterate(state, counts, kinds), iteration + 1
            observe(state)
    return Packed(*map(torch.cat, zip(*ended, strict=True))), taken
