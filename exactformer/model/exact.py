"""Sums of products in IEEE binary64 that nothing outside the program can change.

A library's matrix product is subject to settings of torch, environment variables and units of the
processor (TF32, bfloat16 matrix units, emulated formats), each of which may give float32, and some
even float64, fewer digits. A multiplication and an addition of float64 are not: so these are all
that is used here. What that costs is regained by computing each distinct row once.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Float, Num
from torch import Tensor

ROWS_AT_ONCE = 1 << 16
PRODUCTS_AT_ONCE = 1 << 20  # products that are held in memory at once
FEW_ROWS = 64  # up to here all products at once; for more rows a column at a time is faster
MOST_REMEMBERED = 1 << 16


def product(rows: Num[Tensor, "R d"], W: Num[Tensor, "d e"]) -> Float[Tensor, "R e"]:
    """The matrix product rows @ W in float64, whatever torch, the environment and the processor are
    set to.
    """
    rows, W = rows.double(), W.double()
    if len(rows) <= FEW_ROWS:
        few = max(1, PRODUCTS_AT_ONCE // W.numel())
        return torch.cat([(part.unsqueeze(-1) * W).sum(-2) for part in rows.split(few)])
    total = rows.new_zeros(len(rows), W.shape[1])
    for column, w in zip(rows.unbind(-1), W, strict=True):
        total = torch.addcmul(total, column.unsqueeze(-1), w)
    return total


def in_float32(numbers: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """Numbers in float32 with the same signs: no nonzero one becomes zero, no finite one
    infinite.
    """
    limits = torch.finfo(torch.float32)
    sizes = numbers.abs().clamp(limits.tiny, limits.max)
    return torch.copysign(sizes, numbers).where(numbers != 0, numbers).float()


def wants_gradient(*tensors: Tensor) -> bool:
    """Whether what is computed from these must lead back to them."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


class _Known(NamedTuple):
    """Distinct rows with their results, in ascending order of their numbers. The number of a row is
    the sum of its entries times `factors`; `nothing` is the result for a row of zeros.
    """

    factors: Tensor
    nothing: Tensor
    numbers: Tensor
    rows: Tensor
    results: Tensor

    def fits(self, rows: Tensor) -> bool:
        return self.rows.dtype == rows.dtype and self.rows.device == rows.device

    def look_up(self, numbers: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The index at which each row would be found, and whether it is missing there."""
        place = torch.searchsorted(self.numbers, numbers).clamp_(max=len(self.numbers) - 1)
        return place, (self.rows[place] != rows).any(-1)


class RowByRow:
    """Applies a function of single rows to many rows. Most rows of a long sequence are zero, and
    most others occur repeatedly, so results are remembered and looked up.
    """

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        self.f = f
        self.known: _Known | None = None

    def __call__(self, H: Float[Tensor, "... d"]) -> Float[Tensor, "... e"]:
        rows = H.flatten(0, -2)
        with torch.autocast(H.device.type, enabled=False):
            if H.requires_grad:  # remembered results have no gradient
                return self.f(rows).view(*H.shape[:-1], -1)
            if self.known is None or not self.known.fits(rows):
                self.known = self._begin(rows)
            busy = rows.any(-1).nonzero().squeeze(-1)
            out = self.known.nothing.repeat(len(rows), 1)
            for part in busy.split(ROWS_AT_ONCE):
                out.index_copy_(0, part, self._results(self.known, rows[part]))
        return out.view(*H.shape[:-1], out.shape[-1])

    def _begin(self, rows: Tensor) -> _Known:
        """A cache that only knows the row of zeros."""
        d = rows.shape[-1]
        factors = [pow(0x9E3779B1, place, 2**31 - 1) for place in range(1, d + 1)]
        zero = rows.new_zeros(1, d)
        nothing = self.f(zero)
        return _Known(
            torch.tensor(factors, dtype=torch.float64, device=rows.device),
            nothing,
            torch.zeros(1, dtype=torch.float64, device=rows.device),
            zero,
            nothing,
        )

    def _results(self, known: _Known, rows: Tensor) -> Tensor:
        # Sums of whole numbers: equal in any order, and nearly always different for different rows.
        numbers = (rows * known.factors).sum(-1)
        place, missing = known.look_up(numbers, rows)
        if missing.any():
            known = self.known = self._learn(known, rows[missing], numbers[missing])
            place, missing = known.look_up(numbers, rows)
            if missing.any():  # two different rows have the same number
                results = known.results[place]
                results[missing] = self.f(rows[missing])
                return results
        return known.results[place]

    def _learn(self, known: _Known, rows: Tensor, numbers: Tensor) -> _Known:
        """Merge the results of these rows into the cache, or restart the cache when it is full."""
        numbers, which = numbers.unique(return_inverse=True)
        places = torch.arange(len(which), device=rows.device)
        rows = rows[torch.zeros_like(numbers, dtype=torch.int64).index_copy_(0, which, places)]
        results = self.f(rows)
        if len(known.numbers) + len(numbers) <= MOST_REMEMBERED:
            numbers, rows = torch.cat([known.numbers, numbers]), torch.cat([known.rows, rows])
            results = torch.cat([known.results, results])
        order = numbers.argsort()
        return _Known(known.factors, known.nothing, numbers[order], rows[order], results[order])
