"""The engine with a GPU: long texts and many short ones are evaluated there, everything else and
all errors on the CPU.
"""

import importlib.util
from contextlib import suppress

import numpy as np
import torch
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError
from exactformer.engine.automaton import REFUSED, SpanAutomaton
from exactformer.engine.cpu import Bytes, CpuEngine, encode
from exactformer.engine.gpu import GpuEngine
from exactformer.engine.gpu_rows import GpuRows
from exactformer.engine.row_tables import LEFT
from exactformer.engine.rows import Read
from exactformer.engine.tensor import TensorEngine

WORTH_A_LAUNCH = 1 << 22  # bytes; below, the kernels' launches cost more than they save


class DeviceEngine(CpuEngine):
    """Evaluates text with the results of `CpuEngine`. `parallel` evaluates one long text on the
    device: by kernels on a GPU if CuPy can compile them, else by tensor operations.
    """

    takes_whole_lines = True

    def __init__(
        self, automaton: SpanAutomaton, algebra: Algebra, device: torch.device | str
    ) -> None:
        super().__init__(automaton, algebra)
        self.device = torch.device(device)
        kernels = self.device.type == "cuda" and importlib.util.find_spec("cupy")
        on_gpu = GpuEngine(automaton, algebra, device=device) if kernels else None
        self.parallel: GpuEngine | TensorEngine = (
            on_gpu if on_gpu and on_gpu.fits else TensorEngine(automaton, algebra, device=device)
        )
        self.many = GpuRows(automaton, algebra, device=device) if kernels else None

    def value(self, text: str | bytes, first_line: int = 1) -> str:
        data = text if isinstance(text, bytes) else encode(text)
        if data is not None and len(data) >= WORTH_A_LAUNCH:
            number = self.parallel.value_of_bytes(np.frombuffer(data, dtype=np.uint8))
            if number is not None:  # else the CPU decides, and locates an error
                return self.algebra.values[number]
        return super().value(text, first_line)

    def read_rows(self, text: Bytes, separator: int, *, labelled: bool = False) -> Read:
        """Evaluate many rows on the GPU; long ones each by itself, and those that the GPU leaves on
        the CPU. Rows with labels stay on the CPU.
        """
        codes = None if labelled or len(text) < WORTH_A_LAUNCH else self._codes(text, separator)
        if codes is None:
            return super().read_rows(text, separator, labelled=labelled)
        begins = np.append(0, np.flatnonzero(text[:-1] == separator) + 1)
        sizes = np.diff(begins, append=len(text))
        values = codes.astype(np.int16)
        values[codes >= LEFT] = REFUSED
        left = codes == LEFT
        short = np.flatnonzero(left & (sizes < WORTH_A_LAUNCH))
        if len(short):
            rows = [text[begins[i] : begins[i] + sizes[i]] for i in short.tolist()]
            values[short] = super().read_rows(np.concatenate(rows), separator).values
        for i in np.flatnonzero(left & (sizes >= WORTH_A_LAUNCH)).tolist():
            row = text[begins[i] : begins[i] + sizes[i]].tobytes().removesuffix(bytes([separator]))
            with suppress(ExpressionError):  # which is told where errors are
                values[i] = self.algebra.values.index(self.value(row))
        return Read(values, np.empty(0, dtype=np.int16), begins)

    def _codes(self, text: Bytes, separator: int) -> NDArray[np.uint8] | None:
        """The code of each row, computed on the GPU. Without a GPU: None if all rows are short,
        else LEFT for each row.
        """
        if self.many:
            found = self.many.values(torch.tensor(text, device=self.device), separator)
            return found.cpu().numpy()
        ends = np.append(np.flatnonzero(text[:-1] == separator), len(text))
        is_long = np.diff(ends, prepend=0).max() >= WORTH_A_LAUNCH
        return np.full(len(ends), LEFT, dtype=np.uint8) if is_long else None
