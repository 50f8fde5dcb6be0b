"""Processes that train side by side, each on one core."""

import os
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch

LOOK_SECONDS = 0.5


def start_workers(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, get_context("spawn"), _start, (os.getpid(),))


def _start(parent: int) -> None:
    """One thread, since other processes have the other cores; and none outlives its parent, whose
    folder another run may be using by then.
    """
    torch.set_num_threads(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
