"""Finds equal stretches of a sequence, so that one of them is computed for all.

Long texts consist of few kinds of spans: a million tokens of arithmetic have some hundreds.
Stretches are compared by a hash of 64 bits, and then in full.
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
    ids: Int[Tensor, " e"]  # index of the stretch of each symbol
    place: Int[Tensor, " e"]  # index of each symbol within its stretch
    first: Int[Tensor, " m"]
    lengths: Int[Tensor, " m"]
    hashes: Int[Tensor, " m"]

    def of(self, chosen: Int[Tensor, " c"]) -> "Stretches":
        """The stretches with the indices `chosen`, in that order."""
        lengths = self.lengths[chosen]
        ids = torch.repeat_interleave(lengths)
        first = lengths.cumsum(0) - lengths
        place = torch.arange(len(ids), device=ids.device) - first[ids]
        symbols = self.symbols[self.first[chosen][ids] + place]
        return Stretches(symbols, ids, place, first, lengths, self.hashes[chosen])


def indices(chosen: Bool[Tensor, " t"]) -> Int[Tensor, " e"]:
    """Indices at which `chosen` is true. On a CPU, numpy finds them much faster than torch."""
    if chosen.device.type != "cpu":
        return chosen.nonzero().squeeze(-1)
    return torch.from_numpy(np.flatnonzero(chosen.numpy()))


def sums_before(numbers: Shaped[Tensor, " t"], dtype: torch.dtype) -> Int[Tensor, " t_1"]:
    """Exclusive prefix sums: the sum of the numbers before each index, and last the sum of all."""
    sums = torch.zeros(len(numbers) + 1, dtype=dtype, device=numbers.device)
    torch.cumsum(numbers, 0, dtype=dtype, out=sums[1:])
    return sums


def stretches(symbols: Int[Tensor, " e"], starts: Bool[Tensor, " e"]) -> Stretches:
    """Cut symbols into stretches; `starts` is true at the first symbol of each, so also at index
    0.
    """
    ids, first = starts.cumsum(0) - 1, indices(starts)
    lengths = pad(first[1:], (0, 1), value=len(symbols)) - first
    place = torch.arange(len(symbols), device=symbols.device) - first.index_select(0, ids)
    powers = torch.full_like(place, ODD).cumprod(0)
    terms = powers.index_select(0, place) * (1 + symbols)  # wraps at 64 bits
    sums = sums_before(terms, terms.dtype)
    return Stretches(symbols, ids, place, first, lengths, sums[first + lengths] - sums[first])


def one_of_each_hash(hashes: Int[Tensor, " m"]) -> tuple[Int[Tensor, " c"], Int[Tensor, " m"]]:
    """An index of each distinct hash; and for each index, the number of its hash among the distinct
    ones.
    """
    kinds, kind = hashes.unique(return_inverse=True)
    own = torch.arange(len(hashes), device=hashes.device)
    return torch.zeros_like(kinds).index_copy_(0, kind, own), kind


def first_alike(symbols: Int[Tensor, " e"], ids: Int[Tensor, " e"]) -> Int[Tensor, " m"]:
    """For each stretch, numbered from 1 by `ids`, the number of a stretch with the same symbols in
    the same order; its own number if there is no other.
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
