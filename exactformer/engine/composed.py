"""Closures: every state, map or run that tokens can produce, found by applying each to each until
nothing new appears.

The kernels of the GPU have numbers for them, if there are few:

    holes     of a span that holds one span of unknown value: the state that each value leads to
    products  of maps of values, one after the other: a map
    runs      of tokens in a row, with no parenthesis among them: a map of states
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, FIRST_VALUE

NONE = 15  # stands for no value in a map
MOST_HOLES = 2048  # with more there is none
MOST_NUMBERS = 255  # maps that have numbers; with more, or larger tables of them, none has
MOST_PRODUCTS = 8 << 10  # bytes of such a table
MOST_RUNS = 1 << 15
RUN_BYTES = 16  # tokens of the shortest run that is as good, and how many there are

Rows = NDArray[np.integer]


def closure(
    first: Rows, following: Callable[[Rows], Iterable[Rows]], most: int
) -> tuple[Rows, Rows] | None:
    """Find these rows and all that come up as following ones, in this order, and the numbers of
    those that follow each. None if there are too many.
    """
    rows = list(first)
    numbers = {row.tobytes(): i for i, row in enumerate(rows)}
    onward: list[list[int]] = []
    while len(onward) < len(rows):  # rows are added while they are gone through
        if len(rows) > most:
            return None
        found = []
        for row in following(rows[len(onward)]):
            found.append(numbers.setdefault(row.tobytes(), len(rows)))
            if found[-1] == len(rows):
                rows.append(row.copy())
        onward.append(found)
    return np.array(rows), np.array(onward)


def _inner(table: Rows, tokens: int) -> Rows:
    """The columns of a table of states: of those for no token, and of parentheses, the last one,
    which leads to the state without a way out.
    """
    columns = np.arange(table.shape[1])
    return table[:, np.where((columns >= FIRST_VALUE) & (columns < tokens), columns, -1)]


def holes(table: Rows, tokens: int, values: int) -> tuple[Rows, Rows, Rows] | None:
    """The automaton of spans that hold one span of unknown value: for each of its states, which
    state each value would lead to; by state, where it begins; by its state and token, how it goes
    on. None if there are more than MOST_HOLES.
    """
    on_values = table[:, FIRST_VALUE : FIRST_VALUE + values]
    vectors, enter = np.unique(on_values, axis=0, return_inverse=True)
    inner = _inner(table, tokens)
    found = closure(vectors, lambda row: inner[row].T, MOST_HOLES)
    return found and (found[0], enter.reshape(-1), found[1])


def hole_maps(table: Rows, vectors: Rows, bad: int) -> NDArray[np.uint8]:
    """Maps of values, of spans that end with these vectors of states."""
    ends = table[vectors, CLOSE]
    maps = np.full((len(vectors), 16), NONE, dtype=np.uint8)
    maps[:, : vectors.shape[1]] = np.where(ends == bad, NONE, ends - FIRST_VALUE)
    return maps


def products(maps: Rows, values: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]] | None:
    """All compositions of these maps, each a row, the identity first; and by the number of a
    composition and the next map's, the number of both composed. None if there are too many.
    """
    entries = np.arange(maps.shape[1], dtype=maps.dtype)
    identity = np.where(entries < values, entries, NONE).astype(maps.dtype)
    most = min(MOST_NUMBERS, MOST_PRODUCTS // max(1, len(maps)))
    found = closure(identity[None], lambda row: maps[:, row], most)
    return found and (found[0].astype(np.uint8), found[1].astype(np.uint8))


class Runs(NamedTuple):
    """Runs of tokens, by numbers: those with one number lead each state to the same one."""

    before: NDArray[np.uint16]  # by run and token: the run with this token in front of it
    shortest: NDArray[np.uint8]  # of each run: the tokens of a shortest one, and their number last

    @property
    def longest(self) -> int:
        return int(self.shortest[:, -1].max())


def runs(table: Rows, tokens: int, bad: int) -> Runs | None:
    """All runs, the one of no tokens first; `bad` is the token of a run that no text has. None if
    there are too many, or some are too long.
    """
    ways = _inner(table.astype(np.uint32), tokens).T  # by token and state
    most = min(MOST_RUNS, (1 << 25) // len(table))
    found = closure(np.arange(len(table), dtype=np.uint32)[None], lambda row: row[ways], most)
    if not found:
        return None
    before = found[1].astype(np.uint16)
    shortest = np.zeros((len(before), RUN_BYTES), dtype=np.uint8)
    # They were found in the order of their lengths: where one comes up first, it is no longer.
    made, places = np.unique(before, return_index=True)
    for run, place in zip(made.tolist(), places.tolist(), strict=True):
        if run:
            after, token = divmod(place, before.shape[1])
            token = token if FIRST_VALUE <= token < tokens else bad
            length = shortest[after, -1]
            if length == RUN_BYTES - 1:
                return None
            shortest[run, :-1] = [token, *shortest[after, :-2]]
            shortest[run, -1] = length + 1
    return Runs(before, shortest)
