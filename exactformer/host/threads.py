"""Settings of torch's threads for a while: how many there are, and how they compute."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread. For operators that take microseconds, several threads would mostly wait for
    each other. They would also split vector loops depending on the size of the batch, and so round
    differently.
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
    """Flush subnormal float32 numbers to zero in this thread, if the processor can; the setting is
    restored afterwards. Operations on them take up to ten times as long, and once outputs are far
    from the threshold most gradients are subnormal. They are too small to change any weight.
    """
    smallest = torch.tensor(torch.finfo(torch.float32).tiny)
    before = float(smallest / 2) == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
