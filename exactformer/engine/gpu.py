"""The automaton of certified weights on a whole text at once, on a GPU.

`kernels.cu` holds the idea: every round makes the text shorter by a constant factor, whatever its
shape, and leaves a text of the same language. This file lays out the memory, launches the rounds
without waiting for any of them, and reads the value at the end. How long the text of each round
is becomes known on the GPU only; what the host knows is how long it can be at most:

    a chunk leaves fewer than two segments, a segment one span, a span two parentheses and at most
    `longest` tokens between them.

Where spans may be of any length, chunks shorten the runs of tokens that they leave: then `longest`
bounds these, and each thread may leave one more. Where a text is longer than all that, it is no
expression, and the kernels say so.

Two front ends. Where each token is one byte, and the grammar forbids two words in a row, the first
round reads a token from each byte. Otherwise it reads words. What neither can read (other brackets
mixed, other white space than ASCII) is left to the caller: the answer None means "malformed, or not
decided here".
"""

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.layout import (
    EDGE,
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
BEHIND = 32  # bytes that are read behind the last entry of the rests, at most

ERROR, RESULT, BRACKETS, ROUNDS = 0, 2, 3, 7  # indices in the control block
CONTROLS = 256  # control blocks that are made at once
TOGETHER = ("pair", "finish")  # kernels whose blocks wait for each other
BOTH_BRACKETS = 3


# Runs a kernel: its name, blocks, threads, bytes of shared memory, arguments.
Launcher = Callable[[str, int, int, int, Sequence[int]], None]


@dataclass(frozen=True)
class FrontEnd:
    """A kernel that reads the text, with its table."""

    kernel: str
    table: Tensor
    sizes: tuple[int, ...] = ()  # of the table
    shared_bytes: int = BYTE_TOKENS  # that it takes
    by_words: bool = False


class GpuEngine:
    """Evaluates texts that are on the GPU. `launch` and `layout` are replaced in tests only."""

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

    def value(self, text: Tensor, *, overwrite: bool = False) -> int | None:
        """Index of the value of a text, given as its bytes on the GPU; None if it has none.
        `overwrite` saves memory, about a byte for each: a text from `upload` is lost by it.
        """
        for front_end in self._front_ends:
            last = front_end is self._front_ends[-1]
            found = self._evaluate(text, front_end, overwrite=overwrite and last)
            if found is not None:
                return found
        return None

    def value_of_bytes(self, text: NDArray[np.uint8]) -> int | None:
        """Value index of a text given as bytes on the host; None if it has none."""
        return self.value(self.upload(text), overwrite=True)

    def upload(self, text: NDArray[np.uint8]) -> Tensor:
        """Bytes on the GPU, with room behind them, so that they may be overwritten."""
        room = torch.empty(len(text) + BEHIND, dtype=torch.uint8, device=self.device)
        return room[: len(text)].copy_(torch.tensor(text))

    def value_of_ids(self, ids: Tensor) -> int | None:
        """Value index of token ids, given as unsigned bytes on the GPU; None if there is none."""
        return self._evaluate(ids, self._ids_as_they_are)

    # ------------------------------------------------------------ front ends

    @cached_property
    def _front_ends(self) -> list[FrontEnd]:
        """The ways to read a text, in order."""
        layout, words, found = self.layout, self.words, list[FrontEnd]()
        if words.bytes_suffice:
            tokens = words.byte_tokens(layout.space, layout.bad)
            found.append(FrontEnd("reduce_tiles", self._bytes(tokens)))
            if not words.has_longer:
                return found
        lexer = words.lexer(layout.bad, SHARED_LEXER) if words.readable else None
        if lexer:
            tables, nodes, columns, short = lexer
            kernel, shared = "reduce_many_words", 0
            if short:
                kernel, shared = "reduce_words", tables.nbytes - SELDOM
            sizes = nodes, columns, tables.nbytes
            found.append(FrontEnd(kernel, self._bytes(tables), sizes, shared, by_words=True))
        return found

    @cached_property
    def _ids_as_they_are(self) -> FrontEnd:
        tokens = np.arange(256)
        tokens = np.where(tokens < self.layout.tokens, tokens, self.layout.bad)
        return FrontEnd("reduce_tiles", self._bytes(tokens))

    @property
    def _reader_bytes(self) -> int:
        """Bytes of shared memory for the tables that most texts are read with."""
        return self._front_ends[0].shared_bytes if self._front_ends else BYTE_TOKENS

    def _bytes(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(array.astype(np.uint8)).to(self.device)

    # ------------------------------------------------------------ rounds

    def _evaluate(
        self, text: Tensor, front_end: FrontEnd, *, overwrite: bool = False
    ) -> int | None:
        if not 0 < len(text) < MOST_BYTES:
            return None
        found = self._run(aligned(text), front_end, overwrite)
        self.rounds = found[ROUNDS]
        return None if found[ERROR] or found[BRACKETS] == BOTH_BRACKETS else found[RESULT]

    def _run(self, text: Tensor, front_end: FrontEnd, overwrite: bool) -> list[int]:
        """Run all rounds; returns the control block."""
        layout, table = self.layout, self.tables.data_ptr()
        tiles = ceil_div(len(text), layout.tile)
        bound = whole(MOST_UNITS * tiles, layout.threads)
        control = self._control()
        of_tiles = self._ints(layout.tile_ints(tiles))
        rests = text if overwrite and self._has_room(text) else self._rests(tiles)
        given = [text.data_ptr(), len(text), control.data_ptr(), of_tiles.data_ptr(), table]
        given += [front_end.table.data_ptr(), *front_end.sizes, rests.data_ptr()]
        if front_end.by_words:
            edges = torch.empty(tiles * EDGE, dtype=torch.uint8, device=self.device)
            some = [text.data_ptr(), len(text), edges.data_ptr()]
            self.launch("copy_edges", ceil_div(tiles * EDGE, layout.team), layout.team, 0, some)
            given += [edges.data_ptr()]
        shared = layout.tile_bytes + front_end.shared_bytes
        self._run_on_tiles(front_end.kernel, tiles, given, shared)
        # All that follows is prepared while the GPU reads the text. Memory is given back as soon as
        # the last kernel that needs it is launched: the next ones run after it.
        items = layout.most_items(tiles, bound)
        chunks = whole(ceil_div(items, layout.chunk), layout.threads)
        maps = 2 * bound + 4 * (chunks + layout.threads)  # each round has half as many chunks
        pool = torch.empty(maps * layout.map_bytes, dtype=torch.uint8, device=self.device)
        items_now = self._ints(items)
        of_units = self._ints(layout.unit_ints(bound))
        known = [
            control.data_ptr(),
            of_tiles.data_ptr(),
            of_units.data_ptr(),
            bound,
            rests.data_ptr(),
        ]
        self._run_together("pair", [*known, items_now.data_ptr(), items], layout.pairing)
        given = [*known, table, pool.data_ptr()]
        self._run_on_tiles("compose", tiles, given, layout.compose_bytes)
        del of_tiles, of_units, rests
        items_next = self._ints(items // 2)  # of the rounds by turns
        memory = self._ints(layout.round_ints(chunks))
        rest_items = self._ints(chunks * layout.chunk)
        given = [items_now.data_ptr(), items_next.data_ptr(), control.data_ptr()]
        given += [memory.data_ptr(), chunks, table, pool.data_ptr(), rest_items.data_ptr()]
        self._run_together("finish", given, 1, layout.stack_bytes + layout.shared_bytes)
        return control.tolist()

    def _rests(self, tiles: int) -> Tensor:
        """A buffer for the entries that all tiles may leave."""
        entries = tiles * self.layout.tile * self.layout.cell.itemsize
        return torch.empty(entries + BEHIND, dtype=torch.uint8, device=self.device)

    def _has_room(self, text: Tensor) -> bool:
        """Whether the remaining entries fit into the text's own memory: an entry takes the place of
        a byte.
        """
        behind = text.untyped_storage().nbytes() - text.storage_offset() - len(text)
        return self.layout.cell.itemsize == 1 and behind >= BEHIND

    def _control(self) -> Tensor:
        """A block of zeros. Many are made at once, since making one takes as long as a launch."""
        if (control := next(self._controls, None)) is None:
            many = torch.zeros((CONTROLS, 64), dtype=torch.int32, device=self.device)
            if self.device.type == "cuda":
                torch.cuda.current_stream(self.device).synchronize()  # the next may be another
            control, *others = many.unbind()
            self._controls = iter(others)
        return control

    def _run_on_tiles(self, kernel: str, tiles: int, arguments: Sequence[int], shared: int) -> None:
        """Launch a kernel on as many blocks as the GPU runs at once; they share the tiles."""
        blocks = self.processors * self.layout.teams_at_once(shared)
        self.launch(kernel, min(tiles, blocks), self.layout.team, shared, arguments)

    def _run_together(
        self, kernel: str, arguments: Sequence[int], blocks: int, shared: int = 0
    ) -> None:
        """Launch a kernel whose blocks wait for each other, with so many on each processor."""
        self.launch(kernel, self.processors * blocks, self.layout.threads, shared, arguments)

    def _ints(self, count: int) -> Tensor:
        return torch.empty(max(count, 1), dtype=torch.int32, device=self.device)


def _processors(device: torch.device) -> int:
    """Number of multiprocessors of a GPU; 1 if the kernels are emulated."""
    if device.type != "cuda":
        return 1
    return torch.cuda.get_device_properties(device).multi_processor_count


def _most_shared(device: torch.device) -> int:
    """The most bytes of shared memory that a block can have."""
    index = torch.cuda.current_device() if device.index is None else device.index
    cupy: Any = importlib.import_module("cupy")
    return cupy.cuda.Device(index).attributes["MaxSharedMemoryPerBlockOptin"]


def aligned(text: Tensor) -> Tensor:
    """The text at an aligned address, since the kernels read 16 bytes at once."""
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
