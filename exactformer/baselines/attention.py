"""Softmax attention, of a padded batch or of one long problem.

Queries, keys and values are (S, b, heads, n, d_h): S seeds, b problems, n tokens.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Attend = Callable[[Tensor, Tensor, Tensor], Tensor]  # queries, keys, values: what each query gets

BLOCK = 1 << 26  # numbers of a bias that are made together: 256 MiB
KEPT = 1 << 28  # all of a bias, if it is kept for the next step: 1 GiB


def over_batch(bias: Tensor) -> Attend:
    """All at once, with (S, b, heads or 1, n, n) added to the logits."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        logits = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
        return logits.softmax(-1) @ v

    return attend


def over_one(bias: Callable[[slice], Tensor | None], row: int, length: int) -> Attend:
    """Of one problem, b = 1, by blocks of queries: no matrix of all its pairs of tokens is made.
    It has no gradient.

    `bias` gives what is added to the logits of some queries, (S, heads or 1, queries, n), in which
    each of them has `row` numbers. If all of it is small it is made once.
    """
    size = max(1, BLOCK // row)
    blocks = [slice(first, first + size) for first in range(0, length, size)]
    kept = [bias(block) for block in blocks] if row * length <= KEPT else None

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = q.squeeze(1), k.squeeze(1), v.squeeze(1)
        biases = kept or map(bias, blocks)
        parts = [
            F.scaled_dot_product_attention(q[:, :, block], k, v, attn_mask=added)
            for block, added in zip(blocks, biases, strict=True)
        ]
        return torch.cat(parts, 2).unsqueeze(1)

    return attend
