"""Processes that train side by side, each on one core."""

import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context

LOOK_SECONDS = 0.5


@contextmanager
def start_workers(count: int) -> Iterator[ProcessPoolExecutor]:
    """Start worker processes. They end with the context, at once on an exception: finished seeds
    are on the disk.
    """
    others = active_children()
    pool = ProcessPoolExecutor(count, get_context("spawn"), _start, (os.getpid(),))
    try:
        yield pool
    except BaseException:
        for process in active_children():
            if process not in others:
                process.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(parent: int) -> None:
    """One thread, since other processes have the other cores."""
    end_with(parent)
    import torch  # takes a second, in which the parent may have gone

    torch.set_num_threads(1)


def end_with(parent: int) -> None:
    """Let this process not outlive its parent, whose folder another run may be using by then."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
