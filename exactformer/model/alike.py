"""Which stretches of a sequence are alike, so that one of them is computed for all.

Long texts consist of few kinds of spans: a million tokens of arithmetic have some hundreds.
Stretches are alike by a hash of 64 bits, and then compared in full.
"""

from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Int, Shaped
from torch import Tensor
from torch.nn.functional import pad

ODD = 0x9E3779B97F4A7C15 - (1 << 64)


class Stretches(NamedTuple):
    """Stretches of symbols, one after another."""

    symbols: Int[Tensor, " e"]
    ids: Int[Tensor, " e"]  # the stretch of each symbol, from 0,
    place: Int[Tensor, " e"]  # and where it stands in there
    first: Int[Tensor, " m"]
    lengths: Int[Tensor, " m"]
    hashes: Int[Tensor, " m"]

    def of(self, chosen: Int[Tensor, " c"]) -> "Stretches":
        """Some of them only, in the order of `chosen`."""
        lengths = self.lengths[chosen]
        ids = torch.repeat_interleave(lengths)
        first = lengths.cumsum(0) - lengths
        place = torch.arange(len(ids), device=ids.device) - first[ids]
        symbols = self.symbols[self.first[chosen][ids] + place]
        return Stretches(symbols, ids, place, first, lengths, self.hashes[chosen])


def indices(chosen: Bool[Tensor, " t"]) -> Int[Tensor, " e"]:
    """Where it is true. On a CPU numpy finds that several times as fast as torch."""
    if chosen.device.type != "cpu":
        return chosen.nonzero().squeeze(-1)
    return torch.from_numpy(np.flatnonzero(chosen.numpy()))


def sums_before(numbers: Shaped[Tensor, " t"], dtype: torch.dtype) -> Int[Tensor, " t_1"]:
    """Of the numbers before each place, and of all."""
    sums = torch.zeros(len(numbers) + 1, dtype=dtype, device=numbers.device)
    torch.cumsum(numbers, 0, dtype=dtype, out=sums[1:])
    return sums


def stretches(symbols: Int[Tensor, " e"], starts: Bool[Tensor, " e"]) -> Stretches:
    """`starts` is where each one begins; the first symbol is such a place."""
    ids, first = starts.cumsum(0) - 1, indices(starts)
    lengths = pad(first[1:], (0, 1), value=len(symbols)) - first
    place = torch.arange(len(symbols), device=symbols.device) - first.index_select(0, ids)
    powers = torch.full_like(place, ODD).cumprod(0)
    terms = powers.index_select(0, place) * (1 + symbols)  # wraps at 64 bits
    sums = sums_before(terms, terms.dtype)
    return Stretches(symbols, ids, place, first, lengths, sums[first + lengths] - sums[first])


def one_of_each_hash(hashes: Int[Tensor, " m"]) -> tuple[Int[Tensor, " c"], Int[Tensor, " m"]]:
    """For each distinct hash a place that has it; and for each place, which of these that is."""
    kinds, kind = hashes.unique(return_inverse=True)
    own = torch.arange(len(hashes), device=hashes.device)
    return torch.zeros_like(kinds).index_copy_(0, kind, own), kind


def first_alike(symbols: Int[Tensor, " e"], ids: Int[Tensor, " e"]) -> Int[Tensor, " m"]:
    """For each stretch, numbered from 1 by `ids`, the number of one that has the same symbols in
    the same order, itself if there is none.
    """
    here = stretches(symbols, ids != pad(ids, (1, 0))[:-1])
    examples, kind = one_of_each_hash(here.hashes)
    example = examples[kind]
    there = (here.first[example][here.ids] + here.place).clamp(max=len(ids) - 1)
    alike = here.lengths == here.lengths[example]
    alike[here.ids[symbols != symbols[there]]] = False
    number = ids[here.first]
    found = torch.where(alike, number[example], number)
    return torch.empty_like(found).index_copy_(0, number - 1, found)
