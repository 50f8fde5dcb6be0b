"""The automaton of certified weights on many short texts at once, on a GPU: see `rows.cu`.

The texts are rows of one buffer, as the lines of a file are. Each gets one byte: the index of its
value; or MALFORMED, and where and why, the parser says; or LEFT where others have to read the row.
These are the few that are longer or deeper than a thread goes along with, and what `row_tables.py`
cannot read: brackets of two kinds in a row, and symbols that bytes do not tell apart.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.gpu import CupyLauncher, Launcher, aligned
from exactformer.engine.layout import ceil_div, source, whole
from exactformer.engine.row_tables import LEFT, RowTables, padded

PIECE = 256  # bytes of the text; a thread reads the rows that begin there
THREADS = 256  # of a block
HEIGHT = 32  # of a thread's stack; deeper rows are left to others
LONGEST = 4096  # bytes that a thread reads of a row after its piece
AHEAD = 8  # bytes whose classes are looked up at once
SPINE = 1024  # threads of the block that adds up
ROW = 5  # bytes; of rows as long as that, on average, a block writes all codes together


class RowLayout:
    """The tables of an algebra, and the sizes that the kernels are compiled with."""

    def __init__(
        self,
        tables: RowTables,
        piece: int = PIECE,
        threads: int = THREADS,
        height: int = HEIGHT,
        ahead: int = AHEAD,
        spine: int = SPINE,
    ) -> None:
        self.tables, self.piece, self.threads, self.height = tables, piece, threads, height
        self.ahead, self.spine = ahead, spine

    @property
    def options(self) -> tuple[str, ...]:
        constants = self.tables.constants | {
            "PIECE": self.piece,
            "THREADS": self.threads,
            "HEIGHT": self.height,
            "AHEAD": self.ahead,
            "LONGEST": LONGEST,
            "READY": self.ready,
            "SPINE": self.spine,
        }
        return tuple(f"-D{name}={value}" for name, value in constants.items())

    @property
    def source(self) -> str:
        return source("rows.cu")

    @property
    def tile(self) -> int:
        """Bytes of the text for a block."""
        return self.piece * self.threads

    @property
    def ready(self) -> int:
        return whole(self.tile // ROW, 16)

    @property
    def shared_bytes(self) -> int:
        stacks = self.height * self.threads * self.tables.table.itemsize
        return stacks + self.ready + self.tables.shared_bytes


class GpuRows:
    """Evaluates rows on the GPU to codes. Only tests replace `launch` and `layout`."""

    def __init__(
        self,
        automaton: SpanAutomaton,
        algebra: Algebra,
        *,
        device: torch.device | str = "cuda",
        launch: Launcher | None = None,
        layout: RowLayout | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.layout = layout or RowLayout(RowTables(automaton, algebra))
        self.launch = launch or CupyLauncher(self.layout.options, self.layout.source, self.device)
        self.table = self._bytes(padded(self.layout.tables.table))
        self.lexer = self._bytes(padded(self.layout.tables.lexer))
        self.classes: dict[int, Tensor] = {}  # by separator

    def values(self, text: Tensor, separator: int = ord("\n")) -> Tensor:
        """A code for each row of a text, given as its bytes on the GPU: whole rows, of which the
        last one need not end with the separator.
        """
        if not len(text):
            return text.new_empty(0)
        layout, text = self.layout, aligned(text)
        blocks = ceil_div(len(text), layout.tile)
        offsets = torch.empty(blocks * layout.threads, dtype=torch.int32, device=self.device)
        firsts = torch.empty(blocks + 1, dtype=torch.int64, device=self.device)
        known = [text.data_ptr(), len(text), separator]
        numbered = [offsets.data_ptr(), firsts.data_ptr()]
        self.launch("count_rows", blocks, layout.threads, 0, [*known, *numbered])
        self.launch("row_spine", 1, layout.spine, 0, [firsts.data_ptr(), blocks])
        rows = int(firsts[-1])
        if not layout.tables.readable:
            return text.new_full((rows,), LEFT)
        codes = text.new_empty(rows)
        tables = [self._classes(separator), self.lexer, self.table]
        given = [*known, *(part.data_ptr() for part in tables), *numbered, codes.data_ptr()]
        self.launch("read_rows", blocks, layout.threads, layout.shared_bytes, given)
        return codes

    def _classes(self, separator: int) -> Tensor:
        if separator not in self.classes:
            self.classes[separator] = self._bytes(self.layout.tables.classes(separator))
        return self.classes[separator]

    def _bytes(self, array: NDArray[np.uint8]) -> Tensor:
        return torch.tensor(array, device=self.device)
