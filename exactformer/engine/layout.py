"""Sources and options of the GPU's kernels, and the automaton in the layout that they read."""

import re
from pathlib import Path

import numpy as np

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.composed import NONE, hole_maps, holes, products, runs
from exactformer.engine.tensor import LONGEST_WORD, longest_span

HERE = Path(__file__).parent
TEAM = 128  # threads of a block that reduces a tile of the text
FIRST_CHUNK = 176  # bytes of the text that a thread reduces,
WORDS_CHUNK = 192  # or of a text whose tokens are not single bytes
EDGE = 2 * LONGEST_WORD  # bytes of the text around the beginning of a tile: see words.h
CHUNK = 32  # items that it reduces in later rounds,
LONG_CHUNK = 64  # or, where spans are long, this many
JOINED = 16  # spans that a join closes there: few for combs, enough for bushy trees
LAST = 512  # items that joins alone reduce to the end
FAN = 16  # a node of the tree of least depths covers this many; a block is FAN * FAN threads
NOTED = 8  # segments of a chunk that are noted
UNIT_INTS = 11  # of a unit, before those of a round
PAIRING = 2  # blocks of a processor that pair units: each more makes it longer to wait for all
SHARED_TABLE = 24 << 10  # bytes; larger tables stay in the GPU's main memory
AT_ONCE = 1280  # threads of a processor on tiles, which sets how many registers each may have
WINDOW = 4  # words of a thread, at least, through which the entries of a tile are written
MOST_WINDOW = 12  # and at most
MOST_UNITS = 16  # of a tile: see tiles.h
SHARED_IN_ALL = 228 << 10  # bytes of a processor, of recent GPUs
OWN_SHARED = 1216  # bytes that the system takes of each block, and what a kernel declares itself:
OWN_OF_A_THREAD = 8  # this more for each thread
CELLS = {np.uint8: "unsigned char", np.uint16: "unsigned short", np.uint32: "unsigned int"}
PAIRS = {np.uint8: "unsigned short", np.uint16: "unsigned int", np.uint32: "unsigned long long"}


class Layout:
    """The automaton as the kernels read it, and the constants they are compiled with."""

    def __init__(
        self,
        automaton: SpanAutomaton,
        team: int = TEAM,
        first_chunk: int = FIRST_CHUNK,
        at_once: int = AT_ONCE,
        window: int = WINDOW,
        chunk: int | None = None,
        joined: int = JOINED,
        last: int = LAST,
        fan: int = FAN,
        pairing: int = PAIRING,
    ) -> None:
        self.group, automaton = automaton.is_group, automaton.spans
        states, self.tokens = automaton.step.shape
        self.values = automaton.n_values
        self.space, self.bad = self.tokens, self.tokens + 1
        self.width = self.tokens + 2 + (self.tokens % 16 == 14)  # see kernels.cu
        self.first_chunk, self.threads, self.fan = first_chunk, fan * fan, fan
        table = automaton.total(self.bad, self.width)
        table[:, self.space] = np.arange(states + 1)
        # Longer spans than a quarter of a chunk would keep the text from shrinking: see `finish`.
        longest = longest_span(automaton, LONG_CHUNK)
        self.runs = runs(table, self.tokens, self.bad) if longest > LONG_CHUNK // 4 - 2 else None
        if self.runs:  # which a chunk leaves three times, and three parentheses, beside two tokens
            longest = self.runs.longest
            chunk = whole(2 * (3 * longest + 5), 32)
        chunk = chunk or (CHUNK if longest <= CHUNK // 4 - 2 else LONG_CHUNK)
        self.chunk, self.longest = chunk, longest if self.runs else min(longest, chunk // 4 - 2)
        self.team, self.at_once, self.window, self.pairing = team, at_once, window, pairing
        self.joined, self.last = joined, min(last, self.threads * (chunk // 4))
        floor = states + 1  # outside of spans, see reduce.h
        self.states = states + 2
        first = self.width  # number of the first state in a cell, which may be a token as well
        highest = first + self.states - 1
        self.cell = np.dtype(next(t for t in CELLS if highest < 1 << 8 * np.dtype(t).itemsize))
        next_state = np.vstack([table, np.full(self.width, floor)])
        next_state[:, OPEN] = automaton.start
        states_only = np.where(np.arange(self.width) == CLOSE, floor, next_state)
        becomes = np.append(table[:, CLOSE], 0)[states_only]
        next_state[:floor, CLOSE] -= first
        cells, maps = [], np.zeros((0, 16), np.uint8)
        with_hole = holes(table, self.tokens, self.values) if self.values < NONE else None
        if with_hole and len(with_hole[0]) <= np.iinfo(self.cell).max:
            vectors, enter, onward = with_hole
            cells = [np.append(enter, 0), onward]  # nothing enters outside of spans
            maps = hole_maps(table, vectors, self.bad)
        self.holes = len(maps)
        pairs = np.stack([next_state + first, becomes], axis=-1)
        tables = whole_lines(pairs.astype(self.cell).tobytes())
        self.table_bytes = len(tables)
        tables += maps.tobytes()
        tables += whole_lines(b"".join(part.astype(self.cell).tobytes() for part in cells))
        self.tables_bytes = len(tables)
        self.table_shared = len(tables) <= SHARED_TABLE
        # Bytes of those that long chains of spans need: see `ChainTables` in tables.h.
        self.chain_bytes = len(tables) - (self.table_bytes if self.holes else 0)
        self.numbers = 0
        numbered = products(maps, self.values) if self.holes and self.table_shared else None
        if numbered:
            numbered_maps, after = numbered
            self.numbers = len(numbered_maps)
            tables += whole_lines(after.tobytes())
            self.chain_bytes = len(tables) - self.table_bytes - maps.size
            tables += numbered_maps.tobytes()
        self.runs_at = len(tables)
        if self.runs:
            tables += self.runs.shortest.tobytes() + whole_lines(self.runs.before.tobytes())
        self.tables = np.frombuffer(tables, np.uint8)
        self.map_bytes = whole(self.values, 16)

    @property
    def options(self) -> tuple[str, ...]:
        constants = {
            "OPEN": OPEN,
            "CLOSE": CLOSE,
            "FIRST_VALUE": FIRST_VALUE,
            "TOKENS": self.tokens,
            "VALUES": self.values,
            "STATES": self.states,
            "HOLES": self.holes,
            "CELL": CELLS[self.cell.type],
            "NUMBERS": self.numbers,
            "PAIR": PAIRS[self.cell.type],
            "TABLE_BYTES": self.tables_bytes,
            "TABLE_SHARED": int(self.table_shared),
            "RUNS": len(self.runs.shortest) if self.runs else 0,
            "RUNS_AT": self.runs_at,
            "WRAPPED": int(self.group),
            "TEAM": self.team,
            "AT_ONCE": self.at_once,
            "FIRST_CHUNK": self.first_chunk,
            "EDGE": EDGE,
            "WINDOW_WORDS": self.window,
            "CHUNK": self.chunk,
            "JOINED": self.joined,
            "LAST": self.last,
            "FAN": self.fan,
        }
        return tuple(f"-D{name}={value}" for name, value in constants.items())

    @property
    def tile(self) -> int:
        """Bytes of the text that a block reduces."""
        return self.team * self.first_chunk

    @property
    def tile_bytes(self) -> int:
        """Bytes of shared memory for window, stacks and table of a tile: see `Bench`."""
        share = 4 // self.cell.itemsize
        step = self.team + (1 if share == 1 else 4 * (self.team % (32 * share) > 0))
        columns = whole((self.first_chunk + 1) * step, 16)
        window = whole((self.team * self.window + 1) * 33, 32 * 4) // 32 * 4
        table = self.table_bytes if self.table_shared else 0
        return window + columns * self.cell.itemsize + table

    def widen_window(self, reader: int) -> None:
        """Widen the window as far as that costs no block, if the tables to read the text take
        `reader` bytes.
        """
        blocks = self.teams_at_once(self.tile_bytes + reader)
        while self.window < MOST_WINDOW:
            self.window += 1
            if self.teams_at_once(self.tile_bytes + reader) < blocks:
                self.window -= 1
                return

    def teams_at_once(self, shared: int) -> int:
        """Blocks that a processor of the GPU has room for, by threads and by shared memory."""
        shared += OWN_SHARED + OWN_OF_A_THREAD * self.team
        return max(1, min(self.at_once // self.team, SHARED_IN_ALL // shared))

    @property
    def stack_bytes(self) -> int:
        """Bytes of a block's stacks in shared memory: see `Column` in reduce.h."""
        row = self.threads + 1
        return (whole(row, 4) + whole((self.chunk + 1) * row, 4)) * 4

    @property
    def compose_bytes(self) -> int:
        """Bytes of shared memory for the entries of a tile, and then for maps; and for tables."""
        entries = whole(self.tile * self.cell.itemsize, 16)
        tables = self.chain_bytes if self.table_shared else 0
        return max(2 * self.team * self.map_bytes, entries) + tables

    @property
    def shared_bytes(self) -> int:
        return self.tables_bytes if self.table_shared else 0

    def most_items(self, tiles: int, units: int) -> int:
        """The most items that the first round leaves: see gpu.py."""
        apart = tiles * self.team * (self.longest + 1) if self.runs else 0
        return 2 * units * (self.longest + 2) + apart + 2 * self.group

    def tile_ints(self, tiles: int) -> int:
        """Number of integers for the state of tiles: see `Tiles` in tiles.h."""
        return tiles * (4 + 2 * (MOST_UNITS + 1) + self.team) + ceil_div(tiles, 4)

    def unit_ints(self, units: int) -> int:
        """Number of integers for the state of units: see `Units` in units.h."""
        return UNIT_INTS * units + self.round_ints(units)

    def round_ints(self, chunks: int) -> int:
        """Number of integers for the state of a round's chunks and blocks: see `Round` in
        chunks.h.
        """
        tree, size = 0, chunks
        for _ in range(10):  # levels, more than 32-bit numbers of chunks can have
            tree += size
            size = whole(ceil_div(size, self.fan), self.fan)
        of_a_chunk = 5 + 2 * ceil_div(self.chunk, 32) + NOTED
        of_a_block = 7 * (ceil_div(chunks, 4 * self.threads) * 4)
        return of_a_chunk * chunks + of_a_block + tree


def whole_lines(data: bytes) -> bytes:
    """Pad data with zeros to a multiple of the 16 bytes that are fetched at once."""
    return data + bytes(-len(data) % 16)


def ceil_div(whole: int, size: int) -> int:
    return -(-whole // size)


def whole(count: int, size: int) -> int:
    """The least multiple of `size` that is no less than `count`."""
    return ceil_div(count, size) * size


def source(name: str = "kernels.cu") -> str:
    """The source of the kernels in one piece: a compiler's cache does not see included files."""

    def included(match: re.Match[str]) -> str:
        return (HERE / match[1]).read_text()

    return re.sub(r'^#include "(\w+\.h)"$', included, (HERE / name).read_text(), flags=re.M)
