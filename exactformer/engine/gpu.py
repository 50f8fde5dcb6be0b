"""The automaton of certified weights on a whole text at once, on a GPU.

`kernels.cu` holds the idea: every round makes the text shorter by a constant factor, whatever its
shape, and leaves a text of the same language. This file lays out the memory, launches the rounds
without waiting for any of them, and reads the value at the end. How long the text of each round
is becomes known on the GPU only; what the host knows is how long it can be at most:

    a chunk leaves fewer than two segments, a segment one span, a span two parentheses and at most
    `longest` tokens between them.

Where a text is longer than that it is no expression, and the kernels say so.

Two front ends. Where each token is one byte, and the grammar forbids two words in a row, the first
round reads a token from each byte. Otherwise it reads words. What neither can read (other brackets
mixed, other white space than ASCII) is left to the caller: the answer None means "malformed, or not
decided here".
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.layout import (
    FIRST_CHUNK,
    MOST_UNITS,
    WORDS_CHUNK,
    Layout,
    ceil_div,
    source,
    whole,
)
from exactformer.engine.tensor import Words

SHARED_LEXER = 8 << 10  # bytes; larger ones stay in the GPU's main memory
BYTE_TOKENS = 256  # bytes of the token of each byte
SELDOM = 256  # bytes of a lexer that stay there in any case: see words.h
DECLARED = 5 << 10  # bytes of shared memory, no less than any kernel declares itself
USUAL_SHARED = 32 << 10  # bytes; 48 KiB with what a kernel declares itself, unless it asks for more
MOST_BYTES = 2_000_000_000  # of a text: depths and indices are 32-bit

ERROR, RESULT, BRACKETS, ROUNDS = 0, 2, 3, 7  # indices in the control block
CONTROLS = 256  # control blocks that are made at once
TOGETHER = ("pair", "finish")  # kernels whose blocks wait for each other
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
        self.words = Words(algebra)
        if layout is None:
            chunk = FIRST_CHUNK if self.words.bytes_suffice else WORDS_CHUNK
            self.layout = Layout(automaton, first_chunk=chunk)
            self.layout.widen_window(self._reader_bytes)
        else:
            self.layout = layout
        self.launch = launch or CupyLauncher(self.layout.options, device=self.device)
        self.processors = _processors(self.device)
        self.rounds = 0  # of the last text
        self.tables = self._bytes(self.layout.tables)
        self._controls: Iterator[Tensor] = iter(())

    @property
    def fits(self) -> bool:
        """Whether a block of this GPU may have as much shared memory as the kernels take."""
        layout = self.layout
        first = layout.tile_bytes + max(BYTE_TOKENS, self._reader_bytes)
        finish = layout.stack_bytes + layout.shared_bytes
        needed = max(first, layout.compose_bytes, finish) + DECLARED
        return needed <= _most_shared(self.device)

    def value(self, text: Tensor) -> int | None:
        """Index of the value of a text, given as its bytes on the GPU; None if it has none."""
        if self.words.bytes_suffice:
            found = self._evaluate(text, "reduce_tiles", [self._byte_tokens.data_ptr()])
            if found is not None or not self.words.has_longer:
                return found
        if not self.words.readable or self._lexer is None:
            return None
        tables, nodes, columns, short = self._lexer
        given = [tables.data_ptr(), nodes, columns, tables.nbytes]
        if short:
            return self._evaluate(text, "reduce_words", given, tables.nbytes - SELDOM)
        return self._evaluate(text, "reduce_many_words", given, 0)

    def value_of_ids(self, ids: Tensor) -> int | None:
        """The same of token ids, as unsigned bytes on the GPU."""
        return self._evaluate(ids, "reduce_tiles", [self._same_tokens.data_ptr()])

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
    def _lexer(self) -> tuple[Tensor, int, int, bool] | None:
        lexer = self.words.lexer(self.layout.bad, SHARED_LEXER)
        return lexer and (self._bytes(lexer[0]), *lexer[1:])

    @property
    def _reader_bytes(self) -> int:
        """Of shared memory, for the tables that the text is read with."""
        if self.words.bytes_suffice or not self.words.readable or self._lexer is None:
            return BYTE_TOKENS
        tables, _, _, short = self._lexer
        return tables.nbytes - SELDOM if short else 0

    def _bytes(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.uint8)).to(self.device)

    # ------------------------------------------------------------ rounds

    def _evaluate(
        self, text: Tensor, kernel: str, lexer: list[int], lexer_bytes: int = BYTE_TOKENS
    ) -> int | None:
        """By the kernel that reads the text, with its tables and what shared memory they take."""
        if not 0 < len(text) < MOST_BYTES:
            return None
        found = self._run(_aligned(text), kernel, lexer, lexer_bytes)
        self.rounds = found[ROUNDS]
        return None if found[ERROR] or found[BRACKETS] == BOTH_BRACKETS else found[RESULT]

    def _run(self, text: Tensor, kernel: str, lexer: list[int], lexer_bytes: int) -> list[int]:
        """The control block after all rounds."""
        layout, table = self.layout, self.tables.data_ptr()
        tiles = ceil_div(len(text), layout.tile)
        bound = whole(MOST_UNITS * tiles, layout.threads)
        control = self._control()
        of_tiles = self._ints(layout.tile_ints(tiles))
        cells = tiles * layout.tile + layout.first_chunk  # entries are read a few at a time
        rests = torch.empty(cells * layout.cell.itemsize, dtype=torch.uint8, device=self.device)
        given = [text.data_ptr(), len(text), control.data_ptr(), of_tiles.data_ptr(), table]
        given += [*lexer, rests.data_ptr()]
        shared = layout.tile_bytes + lexer_bytes
        self._run_on_tiles(kernel, tiles, given, shared)
        # All that follows is prepared while the GPU reads the text.
        items = 2 * bound * (layout.longest + 2)
        chunks = whole(ceil_div(items, layout.chunk), layout.threads)
        maps = 2 * bound + 4 * (chunks + layout.threads)  # each round has half as many chunks
        pool = torch.empty(maps * layout.map_bytes, dtype=torch.uint8, device=self.device)
        texts = [self._ints(size) for size in (items, items // 2)]  # of the rounds by turns
        of_units = self._ints(layout.unit_ints(bound))
        known = [control.data_ptr(), of_tiles.data_ptr(), of_units.data_ptr(), bound]
        known += [rests.data_ptr()]
        self._run_together("pair", [*known, texts[0].data_ptr(), items], layout.pairing)
        given = [*known, table, pool.data_ptr()]
        self._run_on_tiles("compose", tiles, given, layout.compose_bytes)
        memory, rest_items = (
            self._ints(layout.round_ints(chunks)),
            self._ints(chunks * layout.chunk),
        )
        given = [*(text.data_ptr() for text in texts), control.data_ptr(), memory.data_ptr()]
        given += [chunks, table, pool.data_ptr(), rest_items.data_ptr()]
        self._run_together("finish", given, 1, layout.stack_bytes + layout.shared_bytes)
        return control.tolist()

    def _control(self) -> Tensor:
        """Zeros, of which many are made at once: each time, that would take as long as a launch."""
        if (control := next(self._controls, None)) is None:
            many = torch.zeros((CONTROLS, 64), dtype=torch.int32, device=self.device)
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).synchronize()  # the next may be another
            control, *others = many.unbind()
            self._controls = iter(others)
        return control

    def _run_on_tiles(self, kernel: str, tiles: int, arguments: Sequence[int], shared: int) -> None:
        """A kernel on as many blocks as the GPU runs at the same time, which share the tiles."""
        blocks = self.processors * self.layout.teams_at_once(shared)
        self.launch(kernel, min(tiles, blocks), self.layout.team, shared, arguments)

    def _run_together(
        self, kernel: str, arguments: Sequence[int], blocks: int, shared: int = 0
    ) -> None:
        """A kernel whose blocks wait for each other, so many on each processor."""
        self.launch(kernel, self.processors * blocks, self.layout.threads, shared, arguments)

    def _ints(self, count: int) -> Tensor:
        return torch.empty(max(count, 1), dtype=torch.int32, device=self.device)


def _processors(device: torch.device) -> int:
    """Of a GPU; one where the kernels are emulated."""
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


def _most_shared(device: torch.device) -> int:
    """Bytes of a block's shared memory, at most."""
    index = torch.cuda.current_device() if device.index is None else device.index
    cupy: Any = importlib.import_module("cupy")
    return cupy.cuda.Device(index).attributes["MaxSharedMemoryPerBlockOptin"]


def _aligned(text: Tensor) -> Tensor:
    """The kernels read 16 bytes at once."""
    return text.clone() if text.data_ptr() % 16 else text


class CupyLauncher:
    """The kernels on the GPU, compiled at first use; CuPy keeps what it compiled."""

    def __init__(
        self,
        options: Sequence[str],
        code: str | None = None,
        device: torch.device | str = "cuda",
    ) -> None:
        self.device = torch.device(device)
        self.cupy: Any = importlib.import_module("cupy")
        options = ("-std=c++17", *options)
        self.module = self.cupy.RawModule(code=code or source(), options=options, backend="nvrtc")
        self.kernels: dict[str, Any] = {}
        self.stream: tuple[int, Any] = (-1, None)  # torch's, and the same as CuPy knows it

    def __call__(
        self, kernel: str, blocks: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        with torch.cuda.device(self.device):
            if kernel not in self.kernels:
                self.kernels[kernel] = self.module.get_function(kernel)
            function = self.kernels[kernel]
            if shared > USUAL_SHARED and function.max_dynamic_shared_size_bytes < shared:
                function.max_dynamic_shared_size_bytes = shared
            function.kernel(
                (blocks,),
                (threads,),
                tuple(arguments),
                shared_mem=shared,
                stream=self._stream(),
                enable_cooperative_groups=kernel in TOGETHER,  # all at the same time, or an error
            )

    def _stream(self) -> Any:
        pointer = torch.cuda.current_stream().cuda_stream
        if pointer != self.stream[0]:
            self.stream = pointer, self._known_to_cupy(pointer)
        return self.stream[1]

    def _known_to_cupy(self, pointer: int) -> Any:
        streams = self.cupy.cuda
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
