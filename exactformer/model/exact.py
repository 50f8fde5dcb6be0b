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
PRODUCTS_AT_ONCE = 1 << 20  # in memory
FEW_ROWS = 64  # up to here all products are made at once; for more, a column at a time is quicker
MOST_REMEMBERED = 1 << 16


def product(rows: Num[Tensor, "R d"], W: Num[Tensor, "d e"]) -> Float[Tensor, "R e"]:
    """rows @ W in float64, whatever torch, the environment and the processor are set to."""
    rows, W = rows.double(), W.double()
    if len(rows) <= FEW_ROWS:
        few = max(1, PRODUCTS_AT_ONCE // W.numel())
        return torch.cat([(part.unsqueeze(-1) * W).sum(-2) for part in rows.split(few)])
    total = rows.new_zeros(len(rows), W.shape[1])
    for column, w in zip(rows.unbind(-1), W, strict=True):
        total = torch.addcmul(total, column.unsqueeze(-1), w)
    return total


class _Known(NamedTuple):
    """Distinct rows with their results, ascending by number."""

    numbers: Tensor
    rows: Tensor
    results: Tensor


class RowByRow:
    """A function of single rows, applied to many: most of a long sequence's rows are zero, and of
    the others most are alike. What a row gave is remembered, and looked up when it comes again.
    """

    def __init__(self, f: Callable[[Tensor], Tensor]) -> None:
        self.f = f
        self.known: _Known | None = None

    def __call__(self, H: Float[Tensor, "... d"]) -> Float[Tensor, "... e"]:
        rows = H.flatten(0, -2)
        busy = rows.any(-1).nonzero().squeeze(-1)
        out = self._results(rows.new_zeros(1, rows.shape[-1])).repeat(len(rows), 1)
        for part in busy.split(ROWS_AT_ONCE):
            out.index_copy_(0, part, self._results(rows[part]))
        return out.view(*H.shape[:-1], -1)

    def _results(self, rows: Tensor) -> Tensor:
        numbers = _numbers(rows)
        known = self.known
        if known is None or known.rows.dtype != rows.dtype or known.rows.device != rows.device:
            known = _Known(numbers[:1], rows[:1], self.f(rows[:1]))
        place, missing = _look_up(known, numbers, rows)
        if missing.any():
            known = self._learn(known, rows[missing], numbers[missing])
            place, missing = _look_up(known, numbers, rows)
        results = known.results[place]
        if missing.any():  # two rows that differ have one number
            results[missing] = self.f(rows[missing])
        self.known = known
        return results

    def _learn(self, known: _Known, rows: Tensor, numbers: Tensor) -> _Known:
        """What is known, and these rows: one of each number."""
        numbers, which = numbers.unique(return_inverse=True)
        places = torch.arange(len(which), device=rows.device)
        rows = rows[torch.zeros_like(numbers, dtype=torch.int64).index_copy_(0, which, places)]
        results = self.f(rows)
        if len(known.numbers) + len(numbers) <= MOST_REMEMBERED:
            numbers, rows = torch.cat([known.numbers, numbers]), torch.cat([known.rows, rows])
            results = torch.cat([known.results, results])
        order = numbers.argsort()
        return _Known(numbers[order], rows[order], results[order])


def _look_up(known: _Known, numbers: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Where each row is known, and which are not."""
    place = torch.searchsorted(known.numbers, numbers).clamp_(max=len(known.numbers) - 1)
    return place, (known.rows[place] != rows).any(-1)


def _numbers(rows: Tensor) -> Tensor:
    """A number for each row, nearly always another for another row: a sum of whole numbers, which
    is the same in any order.
    """
    factors = [pow(0x9E3779B1, place, 2**31 - 1) for place in range(1, rows.shape[-1] + 1)]
    return (rows * torch.tensor(factors, dtype=torch.float64, device=rows.device)).sum(-1)
