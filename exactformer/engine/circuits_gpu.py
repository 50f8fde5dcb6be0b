"""Circuits on a GPU, with the gates and rows of `circuits.py`: see `circuits.cu`."""

import importlib.util

import numpy as np
import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.program import Program
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.circuits import (
    INVERT,
    INVERT_A,
    INVERT_B,
    IS_XOR,
    CircuitEngine,
    Words,
)
from exactformer.engine.gpu import CupyLauncher, Launcher
from exactformer.engine.layout import ceil_div, source

THREADS = 256  # of a block
MOST_WORDS = 1 << 18  # that run together: about as many threads as a large GPU has room for
MOST_BYTES = 1 << 33  # of rows
OPTIONS = tuple(
    f"-D{name}={bit}"
    for name, bit in {
        "INVERT_A": INVERT_A,
        "INVERT_B": INVERT_B,
        "INVERT": INVERT,
        "IS_XOR": IS_XOR,
    }.items()
)


class GpuCircuitEngine(CircuitEngine):
    """A program of a two-valued algebra, run on a GPU by the tables of certified weights. `launch`
    is replaced in tests only.
    """

    def __init__(
        self,
        program: Program,
        automaton: SpanAutomaton,
        algebra: Algebra,
        device: torch.device | str = "cuda",
        launch: Launcher | None = None,
    ) -> None:
        super().__init__(program, automaton, algebra)
        self.device = torch.device(device)
        if launch is None and not importlib.util.find_spec("cupy"):
            raise ValueError("circuits on a GPU need CuPy: pip install 'exactformer[gpu]'")
        self.launch = launch or CupyLauncher(OPTIONS, source("circuits.cu"), self.device)
        plan = self.schedule
        gates = np.column_stack([plan.rows, plan.way.astype(np.int32)])
        self.on_device = torch.from_numpy(gates).to(self.device)
        self.outputs = torch.from_numpy(plan.outputs.astype(np.int64)).to(self.device)
        self.at_once = max(1, min(MOST_WORDS, MOST_BYTES // (8 * max(1, plan.count))))

    def run(self, inputs: Words) -> Words:
        found = np.empty((len(self.outputs), inputs.shape[1]), dtype=np.uint64)
        for begin in range(0, inputs.shape[1], self.at_once):
            some = inputs[:, begin : begin + self.at_once].view(np.int64)
            words = self.run_on_device(torch.from_numpy(some.copy()).to(self.device))
            found[:, begin : begin + self.at_once] = words.cpu().numpy().view(np.uint64)
        return found

    def run_on_device(self, inputs: torch.Tensor) -> torch.Tensor:
        """(outputs, words) from (inputs, words) of at most `at_once` words, both on the device."""
        plan, words = self.schedule, inputs.shape[1]
        rows = torch.empty((max(1, plan.count), words), dtype=torch.int64, device=self.device)
        rows[: plan.inputs] = inputs
        arguments = [self.on_device.data_ptr(), len(plan.way), rows.data_ptr(), words]
        self.launch("run_gates", ceil_div(words, THREADS), THREADS, 0, arguments)
        return rows[self.outputs]
