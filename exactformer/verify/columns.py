"""The columns that come up where the next bit of a square root is found (`square_roots.py`).

A column is what stands at one place: a bit that was taken, or one of the remainder, beside bits of
4 * root and of 2 * root. An automaton says which columns may stand one above another, from the
lowest place up. It knows:

    root       of any bits, one at least; its bit i is in 2 * root at place i + 1 and in 4 * root at
               place i + 2. Before the first iteration there is none.
    remainder  at most 2 * root, without zeros in front; its bit i is at place i + 2
    bits       two are taken, at places 1 and 0, but one alone before the first iteration if the
               number has an odd number of bits

Only states from which the top can be reached are kept, so that each way through the automaton is of
some number, up to the number of empty columns below the `^`.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple


class Column(NamedTuple):
    """The bits that stand at one place; None where there is none.

    difference   the bit of 4 * remainder + the bits taken - (4 * root + 1) there.
    """

    bit: int | None = None
    remainder: int | None = None
    root_4: int | None = None
    root_2: int | None = None
    difference: int = 0
    lowest: bool = False


class State(NamedTuple):
    """All that is known above a place.

    where       LOWEST: nothing yet; SECOND: place 1 comes; or above it, with a root (LATER) or
                before the first iteration (NO_ROOT).
    borrow      whether the difference so far is below zero.
    next_root   the bit of 4 * root at the next place, which 2 * root had; None if there is none.
    last_root   that of this place.
    last        the last bit of the remainder; None if it has ended; 1 before it begins.
    larger      whether remainder is larger than 2 * root, of the bits so far.
    """

    where: int
    borrow: int = 1
    next_root: int | None = None
    last_root: int | None = None
    last: int | None = 1
    larger: bool = False


LOWEST, SECOND, LATER, NO_ROOT = range(4)

Ways = dict[State, list[tuple[Column, State]]]


class Columns:
    """The automaton, with its steps in both directions."""

    start = State(LOWEST)

    @cached_property
    def above(self) -> Ways:
        """The column that may come next above each state, with the state that it leads to."""
        every: Ways = {self.start: []}
        waiting = [self.start]
        for state in waiting:  # it grows
            every[state] = [*_next(state)]
            for _, after in every[state]:
                if after not in every:
                    every[after] = []
                    waiting.append(after)
        before: dict[State, set[State]] = {state: set() for state in every}
        for state, ways in every.items():
            for _, after in ways:
                before[after].add(state)
        useful = {state for state in every if _may_end(state)}
        waiting = [*useful]
        for state in waiting:  # it grows
            waiting += before[state] - useful
            useful |= before[state]
        return {
            state: [way for way in every[state] if way[1] in useful]
            for state in every
            if state in useful
        }

    @cached_property
    def below(self) -> Ways:
        """The column below each state, with the state below that."""
        found: Ways = {state: [] for state in self.above}
        for state, ways in self.above.items():
            for column, after in ways:
                found[after].append((column, state))
        return found

    @cached_property
    def ends(self) -> list[State]:
        """The states below the `^`."""
        return [state for state in self.above if _may_end(state)]

    def ways_up(self, state: State) -> list[Column]:
        """The columns of a shortest way from a state to the top."""
        return _shortest(self.above, state, self.ends)

    def ways_down(self, state: State) -> list[Column]:
        """The columns below a state, the lowest first, of a shortest way from there to the end."""
        return _shortest(self.below, state, [self.start])[::-1]


def _next(state: State) -> Iterator[tuple[Column, State]]:
    if state.where == LOWEST:
        for bit in (0, 1):  # less the 1 of 4 * root + 1
            yield Column(bit, difference=1 - bit, lowest=True), State(SECOND, 1 - bit)
    elif state.where == SECOND:
        yield Column(), State(NO_ROOT, state.borrow)
        for bit in (0, 1):
            difference, borrow = (bit - state.borrow) % 2, int(bit < state.borrow)
            yield Column(bit, difference=difference), State(NO_ROOT, borrow)
            for root in (0, 1):
                yield Column(bit, root_2=root, difference=difference), State(LATER, borrow, root)
    elif state.where == NO_ROOT:
        yield Column(), state
    else:
        for r in (None,) if state.last is None else (0, 1) if state.last == 0 else (None, 0, 1):
            for root in (None,) if state.next_root is None else (None, 0, 1):
                number = (r or 0) - (state.next_root or 0) - state.borrow
                twice = state.last_root or 0
                larger = state.larger if (r or 0) == twice else (r or 0) > twice
                column = Column(None, r, state.next_root, root, number % 2)
                yield column, State(LATER, int(number < 0), root, state.next_root, r, larger)


def _may_end(state: State) -> bool:
    ended = state.next_root is None and state.last_root is None and state.last != 0
    return state.where == NO_ROOT or (state.where == LATER and ended and not state.larger)


def _shortest(ways: Ways, start: State, ends: Iterable[State]) -> list[Column]:
    before: dict[State, tuple[State, Column] | None] = {start: None}
    ends = {*ends}
    waiting = [start]
    for state in waiting:  # it grows
        if state in ends:
            found = []
            while (last := before[state]) is not None:
                state, column = last
                found.append(column)
            return found[::-1]
        for column, after in ways[state]:
            if after not in before:
                before[after] = state, column
                waiting.append(after)
    raise AssertionError("every state that is kept has a way to both sides")


def number_of(columns: Sequence[Column]) -> str:
    """The bits of a number in one of whose iterations these columns come up, the lowest first."""
    taken = "".join(str(column.bit) for column in reversed(columns[:2]) if column.bit is not None)
    root, remainder = (
        sum(bit << i for i, column in enumerate(columns) if (bit := getattr(column, name)))
        for name in ("root_4", "remainder")
    )
    before = sum(column.root_2 is not None for column in columns)
    value = (root >> 2) ** 2 + (remainder >> 2)
    bits = f"{value:0{2 * before}b}{taken}" if before else taken
    return bits + "00" * ((len(columns) - len(bits)) // 2)
