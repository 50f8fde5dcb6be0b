"""Sums of products in IEEE binary64 that nothing outside the program can change.

A library's matrix product is subject to settings of torch, environment variables and units of the
processor (TF32, bfloat16 matrix units, emulated formats), each of which may give float32, and some
even float64, fewer digits. A multiplication and an addition of float64 are not: so these are all
that is used here. Rows that are alike share one computation, which more than pays for that.
"""

from collections.abc import Callable

import torch
from jaxtyping import Float, Num
from torch import Tensor

ROWS_AT_ONCE = 1 << 18  # in which those that are alike are looked for
PRODUCTS_AT_ONCE = 1 << 20  # in memory


def product(rows: Num[Tensor, "R d"], W: Num[Tensor, "d e"]) -> Float[Tensor, "R e"]:
    """rows @ W in float64, whatever torch, the environment and the processor are set to."""
    rows, W = rows.double(), W.double()
    few = max(1, PRODUCTS_AT_ONCE // max(1, W.numel()))
    return torch.cat([(part.unsqueeze(-1) * W).sum(-2) for part in rows.split(few)])


def by_distinct_rows(
    f: Callable[[Tensor], Tensor], H: Float[Tensor, "... d"]
) -> Float[Tensor, "... e"]:
    """Apply f, which acts on each row by itself, to the rows of H; most of a long sequence's rows
    are zero, and the others are mostly alike.
    """
    rows = H.flatten(0, -2)
    busy = rows.any(-1).nonzero().squeeze(-1)
    out = f(rows.new_zeros(1, rows.shape[-1])).repeat(len(rows), 1)
    for part in busy.split(ROWS_AT_ONCE):
        distinct, which = _distinct(rows[part])
        out.index_copy_(0, part, f(distinct)[which])
    return out.view(*H.shape[:-1], -1)


def _distinct(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows of which every given one is a copy, and of which. Some may be there more than once."""
    if len(rows) < 2:
        return rows, torch.zeros(len(rows), dtype=torch.int64, device=rows.device)
    numbers, which = _numbers(rows).unique(return_inverse=True)
    places = torch.arange(len(rows), device=rows.device)
    distinct = rows[torch.zeros_like(numbers, dtype=torch.int64).index_copy_(0, which, places)]
    if (distinct[which] == rows).all():
        return distinct, which
    return rows, places  # two that differ have one number


def _numbers(rows: Tensor) -> Tensor:
    """A number for each row: the same for copies, nearly always others for others."""
    d = rows.shape[-1]
    weights = (
        torch.arange(1, d + 1, dtype=torch.float64, device=rows.device) * 0.6180339887
    ).frac()
    return (rows.double() * weights.sqrt()).sum(-1)
