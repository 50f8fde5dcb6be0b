"""How many threads torch's operators use, for a while."""

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
