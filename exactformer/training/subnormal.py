"""Numbers next to zero, below what a float32 has all its digits for: subnormal ones.

A processor takes up to ten times as long for an operation on them, and once outputs are sure of
themselves, most slopes are such numbers. Too small to move any weight, they are as good as zero.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """In this thread, where the processor can do that; afterwards all is as it was before."""
    before = _are_zero()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _are_zero() -> bool:
    smallest = torch.tensor(torch.finfo(torch.float32).tiny)
    return float(smallest / 2) == 0
