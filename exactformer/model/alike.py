"""Which stretches of a sequence are alike, so that one of them is computed for all.

Long texts consist of few kinds of spans: a million tokens of arithmetic have some hundreds.
"""

import torch
from jaxtyping import Int
from torch import Tensor


def first_alike(symbols: Int[Tensor, " e"], ids: Int[Tensor, " e"]) -> Int[Tensor, " m"]:
    """For each stretch, numbered from 1 by `ids`, the number of one that has the same symbols in
    the same order, itself if there is none. Alike by a hash of 64 bits, then compared in full.
    """
    stretch, place = ids - 1, torch.arange(len(ids), device=ids.device)
    lengths = torch.bincount(stretch)
    own = torch.arange(len(lengths), device=ids.device)
    begins = stretch != torch.nn.functional.pad(stretch, (1, 0), value=-1)[:-1]
    first = torch.zeros_like(own).index_copy_(0, stretch[begins], place[begins])
    place = place - first[stretch]  # in its stretch
    odd = torch.tensor(0x9E3779B97F4A7C15 - (1 << 64), device=ids.device)
    hashes = torch.zeros_like(own).index_add_(0, stretch, odd**place * (1 + symbols))
    kinds, kind = hashes.unique(return_inverse=True)
    example = torch.zeros_like(kinds).index_copy_(0, kind, own)[kind]
    there = (first[example][stretch] + place).clamp(max=len(ids) - 1)
    differing = torch.bincount(stretch[symbols != symbols[there]], minlength=len(own))
    alike = (differing == 0) & (lengths == lengths[example])
    return torch.where(alike, example, own) + 1
