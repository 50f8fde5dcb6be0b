"""The engine with a GPU at hand: long texts go there, all else and every error to the CPU."""

import importlib.util

import numpy as np
import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.cpu import Bytes, CpuEngine, encode
from exactformer.engine.gpu import GpuEngine
from exactformer.engine.rows import Rows
from exactformer.engine.tensor import TensorEngine

WORTH_A_LAUNCH = 1 << 22  # bytes; below, the kernels' launches cost more than they save


class DeviceEngine(CpuEngine):
    """Evaluates text as `CpuEngine` does; `parallel` takes a long text whole, on the device: by
    kernels on a GPU where CuPy can compile them, else by tensor operations.
    """

    takes_whole_lines = True

    def __init__(
        self, automaton: SpanAutomaton, algebra: Algebra, device: torch.device | str
    ) -> None:
        super().__init__(automaton, algebra)
        self.device = torch.device(device)
        kernels = self.device.type == "cuda" and importlib.util.find_spec("cupy")
        engine = GpuEngine if kernels else TensorEngine
        self.parallel: GpuEngine | TensorEngine = engine(automaton, algebra, device=device)

    def value(self, text: str | bytes, first_line: int = 1) -> str:
        data = text if isinstance(text, bytes) else encode(text)
        if data is not None and len(data) >= WORTH_A_LAUNCH:
            array = np.frombuffer(data, dtype=np.uint8)
            number = self.parallel.value(torch.tensor(array, device=self.device))
            if number is not None:  # else the CPU decides, and locates an error
                return self.algebra.values[number]
        return super().value(text, first_line)

    def rows(
        self,
        text: Bytes,
        first_line: int = 1,
        most_errors: int | None = None,
        *,
        labelled: bool = False,
    ) -> Rows:
        """A text with a long line goes line by line; those with labels stay on the CPU."""
        ends = np.append(np.flatnonzero(text == ord("\n")), len(text))
        if labelled or np.diff(ends, prepend=0).max() < WORTH_A_LAUNCH:
            return super().rows(text, first_line, most_errors, labelled=labelled)
        lines = text.tobytes().removesuffix(b"\n").split(b"\n")
        results = [self._value_or_error(line, first_line + i) for i, line in enumerate(lines)]
        return Rows.of(self.algebra.values, results)

    def _value_or_error(self, line: bytes, number: int) -> str | ExpressionError:
        try:
            return self.value(line, number)
        except ExpressionError as error:
            return error
