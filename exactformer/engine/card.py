"""The engine with a card at hand: long texts go there, all else and every error to the CPU."""

import numpy as np
import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.errors import ExpressionError
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.cpu import Bytes, CpuEngine, encode
from exactformer.engine.gpu import engine_on

WORTH_A_CARD = 1 << 22  # bytes; below, the launches cost more than they save


class CardEngine(CpuEngine):
    takes_whole_lines = True

    def __init__(
        self, automaton: SpanAutomaton, algebra: Algebra, device: torch.device | str
    ) -> None:
        super().__init__(automaton, algebra)
        self.device = torch.device(device)
        self.card = engine_on(device, automaton, algebra)

    def value(self, text: str | bytes, first_line: int = 1) -> str:
        data = text if isinstance(text, bytes) else encode(text)
        if data is not None and len(data) >= WORTH_A_CARD:
            array = np.frombuffer(data, dtype=np.uint8)
            number = self.card.value(torch.tensor(array, device=self.device))
            if number is not None:  # else the CPU decides, and tells where an error is
                return self.algebra.values[number]
        return super().value(text, first_line)

    def lines(
        self, text: Bytes, first_line: int = 1, told: int | None = None
    ) -> list[str | ExpressionError | None]:
        """A text with a long line goes line by line."""
        parts = text.tobytes().split(b"\n")
        if max(map(len, parts)) < WORTH_A_CARD:
            return super().lines(text, first_line, told)
        results: list[str | ExpressionError | None] = []
        for number, part in enumerate(parts, start=first_line):
            try:
                results.append(self.value(part, number))
            except ExpressionError as error:
                results.append(error)
        return results
