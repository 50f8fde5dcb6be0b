"""Repeats a step; on a GPU from a recorded CUDA graph, since launching single operations takes
longer than running them.
"""

from collections.abc import Callable
from functools import cache

import torch

WARM_UP = 2  # steps before a recording: libraries set themselves up when first used


def repeat(step: Callable[[], object], times: int, device: torch.device) -> None:
    """Repeat a step, which must need nothing from the host and use the same memory each time."""
    if device.type == "cuda":
        _recorder(device).repeat(step, times)
        return
    for _ in range(times):
        step()


class _Recorder:
    """State that the recordings on one GPU share: a stream, and the memory of the last recording.
    If nothing can be recorded, each step is launched directly.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.stream = device, torch.cuda.Stream(device)
        self.last: torch.cuda.CUDAGraph | None = None
        self.able = True

    def repeat(self, step: Callable[[], object], times: int) -> None:
        self.stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(self.stream):
            for _ in range(min(times, WARM_UP)):
                step()
            recorded = self._recorded(step) if self.able and times > WARM_UP + 1 else None
            for _ in range(times - WARM_UP):
                recorded.replay() if recorded else step()
        torch.cuda.current_stream(self.device).wait_stream(self.stream)

    def _recorded(self, step: Callable[[], object]) -> torch.cuda.CUDAGraph | None:
        graph = torch.cuda.CUDAGraph()
        pool = (self.last.pool(),) if self.last else ()
        try:
            graph.capture_begin(*pool, capture_error_mode="thread_local")
            try:
                step()
            finally:
                graph.capture_end()
        except RuntimeError:
            self.able = False
            return None
        self.last = graph
        return graph


_recorder = cache(_Recorder)  # one for each GPU
