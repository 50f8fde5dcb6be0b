"""The automaton of certified weights on a whole text at once, on a GPU.

`kernels.cu` holds the idea: every round makes the text shorter by a constant factor, whatever its
shape, and leaves a text of the same language. This file lays out the memory, launches the rounds
without waiting for any of them, and reads the value at the end. How long the text of each round
is becomes known on the GPU only; what the host knows is how long it can be at most:

    a chunk leaves fewer than two segments, a segment one span, a span two parentheses and at most
    `longest` tokens between them.

Where a text is longer than that it is no expression, and the kernels say so.

Two front ends. Where each token is one byte, and the grammar forbids two words in a row, the first
round reads the bytes of the text. Otherwise words are looked up first, and the round reads token
ids. What neither can read (other brackets mixed, other white space than ASCII) is left to the
caller: the answer None means "malformed, or not decided here".
"""

import importlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.layout import Layout, ceil_div, source
from exactformer.engine.tensor import Words

PIECE = 64  # bytes that a thread reads words from
SMALL_LEXICON = 8  # bits of the hash of one that shared memory holds
MOST_BYTES = 2_000_000_000  # of a text: depths and indices are 32-bit

ERROR, RESULT, BRACKETS, LENGTH = 0, 2, 3, 4  # indices in the control block
BOTH_BRACKETS = 3


# Runs a kernel: its name, blocks, threads, bytes of shared memory, arguments.
Launcher = Callable[[str, int, int, int, Sequence[int]], None]


class GpuEngine:
    """Values of texts that are on the GPU. `launch` and `layout` are replaced by tests only."""

    def __init__(
        self,
        automaton: SpanAutomaton,
        algebra: Algebra,
        *,
        device: torch.device | str = "cuda",
        launch: Launcher | None = None,
        layout: Layout | None = None,
    ) -> None:
        self.device = torch.device(device)
        self.layout = layout or Layout(automaton)
        self.launch = launch or CupyLauncher(self.layout.options)
        self.words = Words(algebra)
        self.rounds = 0  # of the last text; the last one covers all that is left
        self.tables = self._bytes(self.layout.tables)

    def value(self, text: Tensor) -> int | None:
        """Index of the value of a text, given as its bytes on the GPU; None if it has none."""
        if self.words.bytes_suffice:
            found = self._evaluate(text, len(text), self._byte_tokens)
            if found is not None or not self.words.has_longer:
                return found
        if not self.words.readable or not 0 < len(text) < MOST_BYTES:
            return None
        text = _aligned(text)
        control = self._control()
        tokens = self._read_words(text, control)
        return None if tokens is None else self._evaluate(tokens, len(tokens), self._same_tokens)

    def value_of_ids(self, ids: Tensor) -> int | None:
        """The same of token ids, as unsigned bytes on the GPU."""
        return self._evaluate(ids, len(ids), self._same_tokens)

    # ------------------------------------------------------------ front ends

    @cached_property
    def _byte_tokens(self) -> Tensor:
        layout = self.layout
        return self._bytes(self.words.byte_tokens(layout.space, layout.bad))

    @cached_property
    def _same_tokens(self) -> Tensor:
        tokens = np.arange(256)
        return self._bytes(np.where(tokens < self.layout.tokens, tokens, self.layout.bad))

    @cached_property
    def _classes(self) -> Tensor:
        return self._bytes(self.words.classes)

    @cached_property
    def _lexicon(self) -> tuple[Tensor, int, int]:
        spellings, bits, factor = self.words.lexicon()
        return torch.from_numpy(spellings.view(np.int32)).to(self.device), bits, factor

    def _bytes(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.uint8)).to(self.device)

    def _read_words(self, text: Tensor, control: Tensor) -> Tensor | None:
        """The token ids of a text; the only step that waits for the GPU before the end."""
        pieces = ceil_div(len(text), PIECE)
        blocks = ceil_div(pieces, self.layout.threads)
        marks = self._ints(4 * pieces)  # two bits a byte: where words start, and where they end
        counts = self._ints(blocks)
        lexicon, bits, factor = self._lexicon
        known = [text.data_ptr(), len(text)]
        found = [marks.data_ptr(), marks.data_ptr() + 8 * pieces, counts.data_ptr()]
        classes = self._classes.data_ptr()
        self._run("count_words", blocks, [*known, classes, *found, control.data_ptr()])
        self._run("word_spine", None, [counts.data_ptr(), blocks, control.data_ptr()])
        counted = control.tolist()
        if counted[BRACKETS] == BOTH_BRACKETS or not counted[LENGTH]:
            return None
        tokens = torch.empty(counted[LENGTH], dtype=torch.uint8, device=self.device)
        given = [*known, *found, lexicon.data_ptr(), bits, factor, tokens.data_ptr()]
        shared = 2 * PIECE * self.layout.threads + (32 << SMALL_LEXICON)
        self._run("read_words", blocks, given, shared)
        return tokens

    # ------------------------------------------------------------ rounds

    def _evaluate(self, text: Tensor, length: int, tokens: Tensor) -> int | None:
        if not 0 < length < MOST_BYTES:
            return None
        text = _aligned(text)
        layout, table = self.layout, self.tables.data_ptr()
        control = self._control()
        control[LENGTH] = length
        plan = self._plan(length)
        self.rounds = len(plan) + 1
        maps = sum(2 * chunks for chunks, _ in plan) + 4 * layout.threads
        pool = torch.empty(maps * layout.map_bytes, dtype=torch.uint8, device=self.device)
        memory = self._ints(layout.round_ints(plan[0][0]))
        most = [max((c for _, c in plan[i::2]), default=0) for i in (0, 1)]
        texts = [self._ints(max(c, layout.threads * layout.chunk)) for c in most]  # by turns
        entries = plan[0][0] * layout.first_chunk
        rests = torch.empty(entries * layout.cell.itemsize, dtype=torch.uint8, device=self.device)
        item_stack = layout.stack_bytes(layout.chunk, 4)
        for r, (chunks, capacity) in enumerate(plan):
            blocks = ceil_div(chunks, layout.threads)
            known = [control.data_ptr(), r, memory.data_ptr(), chunks]
            following = texts[r % 2].data_ptr()
            if r == 0:
                given = [text.data_ptr(), control.data_ptr(), memory.data_ptr(), chunks, table]
                given += [tokens.data_ptr(), rests.data_ptr()]
                stack = layout.stack_bytes(layout.first_chunk, layout.cell.itemsize)
                self._run("reduce_bytes", blocks, given, stack + 256 + layout.shared_bytes)
            else:
                stack = item_stack
                given = [texts[1 - r % 2].data_ptr(), *known, table, pool.data_ptr()]
                self._run(
                    "reduce_items", blocks, [*given, rests.data_ptr()], stack + layout.shared_bytes
                )
            self._run("depth_spine", None, known)
            self._run("link", blocks, known)
            self._run("match", blocks, known)
            self._run("item_spine", None, [*known, capacity])
            given = [*known, rests.data_ptr(), table, pool.data_ptr(), following]
            self._run("contract", blocks, given, stack + layout.shared_bytes)
            if r == 0:
                most_items = max(ceil_div(plan[0][1], layout.chunk), layout.threads) * layout.chunk
                rests = self._ints(most_items)
        given = [texts[0].data_ptr(), texts[1].data_ptr(), control.data_ptr(), memory.data_ptr()]
        given += [table, pool.data_ptr(), rests.data_ptr()]
        self._run("finish", 1, given, item_stack + layout.shared_bytes)
        found = control.tolist()
        return None if found[ERROR] else found[RESULT]

    def _plan(self, length: int) -> list[tuple[int, int]]:
        """For each round but the last: the most chunks, in whole blocks, and items it may leave."""
        layout = self.layout
        plan: list[tuple[int, int]] = []
        while not plan or length > layout.threads * layout.chunk:
            chunks = ceil_div(length, layout.chunk if plan else layout.first_chunk)
            length = min(length, 2 * chunks * (layout.longest + 2))
            plan.append((ceil_div(chunks, layout.threads) * layout.threads, length))
        return plan

    def _run(
        self, kernel: str, blocks: int | None, arguments: Sequence[int], shared: int = 0
    ) -> None:
        """A kernel on this many blocks; on none, a spine."""
        threads = self.layout.threads if blocks else self.layout.spine
        self.launch(kernel, blocks or 1, threads, shared, arguments)

    def _control(self) -> Tensor:
        return torch.zeros(64, dtype=torch.int32, device=self.device)

    def _ints(self, count: int) -> Tensor:
        return torch.empty(max(count, 1), dtype=torch.int32, device=self.device)


def _aligned(text: Tensor) -> Tensor:
    """The kernels read 16 bytes at once."""
    return text.clone() if text.data_ptr() % 16 else text


class CupyLauncher:
    """The kernels on the GPU, compiled at first use; CuPy keeps what it compiled."""

    def __init__(self, options: Sequence[str], code: str | None = None) -> None:
        self.cupy: Any = importlib.import_module("cupy")
        options = ("-std=c++17", *options)
        self.module = self.cupy.RawModule(code=code or source(), options=options, backend="nvrtc")
        self.kernels: dict[str, Any] = {}

    def __call__(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        if kernel not in self.kernels:
            self.kernels[kernel] = self.module.get_function(kernel)
        function = self.kernels[kernel]
        if shared > 48 << 10 and function.max_dynamic_shared_size_bytes < shared:
            function.max_dynamic_shared_size_bytes = shared
        function((blocks,), (threads,), tuple(arguments), shared_mem=shared, stream=self._stream())

    def _stream(self) -> Any:
        """Torch's, as CuPy knows it."""
        streams, pointer = self.cupy.cuda, torch.cuda.current_stream().cuda_stream
        if pointer == 0:
            return streams.Stream.null
        if hasattr(streams.Stream, "from_external"):  # CuPy 14
            return streams.Stream.from_external(_Stream(pointer))
        return streams.ExternalStream(pointer)


class _Stream:
    """A stream in the form that libraries hand to each other."""

    def __init__(self, pointer: int) -> None:
        self.pointer = pointer

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.pointer
