"""Maps on a few values, composed along a sequence in linear time.

A map F on {0, ..., W-1} is a row of W numbers: F[x] is where x goes. Composition is associative, so
neighbours can be composed in pairs, pairs of pairs and so on. Going up, half as many maps are left
on each level, 2m in all; coming down, only values are handed on, not maps. So m maps take O(mW)
operations in 2 log2(m) rounds that each do all their work at once.
"""

import torch
from jaxtyping import Int
from torch import Tensor


def scan_from_right(F: Int[Tensor, "m W"], last: int) -> Int[Tensor, " m"]:
    """u_j = F_j(u_{j+1}) for every j at once; `last` is the value to the right of the last map."""
    m, W = F.shape
    identity = torch.arange(W, device=F.device).unsqueeze(0)
    levels = [F]
    while len(levels[-1]) > 1:
        if len(levels[-1]) % 2:
            levels[-1] = torch.cat([levels[-1], identity])
        left, right = levels[-1][0::2], levels[-1][1::2]
        levels.append(left.gather(1, right))  # x goes to left[right[x]]
    arriving = F.new_full((1, 1), last)  # value that arrives at each map of a level from its right
    for maps in levels[-2::-1]:
        right = maps[1::2]
        arriving = arriving[: len(right)]
        arriving = torch.cat([right.gather(1, arriving), arriving], 1).view(-1, 1)
    return levels[0].gather(1, arriving)[:m].squeeze(1)
