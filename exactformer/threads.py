"""Threads that torch's operators run on, for a while: how many, and how they compute."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """One. Of operators that take microseconds, several would spend more on waiting for each other.
    And they would split vector loops depending on the size of the batch, and so round differently.
    """
    threads = torch.get_num_threads()
    if threads == 1:  # by this function in another thread of Python, perhaps, which undoes it
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def subnormals_as_zero() -> Iterator[None]:
    """Numbers next to zero, below what a float32 has all its digits for, in this thread, where the
    processor can do that; afterwards all is as it was before.

    It takes up to ten times as long for an operation on them, and once outputs are sure of
    themselves, most slopes are such numbers. Too small to move any weight, they are as good as
    zero.
    """
    smallest = torch.tensor(torch.finfo(torch.float32).tiny)
    before = float(smallest / 2) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
