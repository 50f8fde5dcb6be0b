"""The compiled pass: text in, state out, one span automaton, one stack.

A state is the number of its row times the row's width, so that a step is one addition and one
load. Indices are unsigned throughout: numba would otherwise check each for being negative, which
costs half the speed.

Three short cuts, each a table made from the automaton, skip steps in packed text without changing
any result: `(xyz)` is a whole span; `xy)` ends one; and both are left to the ordinary steps where
the table has no entry, so that only those ever refuse a token.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.lexer import LONGER, NONE, SPACE, Lexer

U = np.uint64
SMALL_VOCABULARY = 16  # up to here, three tokens have 4096 combinations
MOST_PAIRS = 255

# Why a pass stopped.
END, REFUSED, MIXED, STACK_FULL, RESIDUE_FULL = range(5)
# Where a state is kept between passes.
ROW, DEPTH, PLACE, REASON, RESIDUE = range(5)


class Tables(NamedTuple):
    """All that a pass looks up. Columns of a row of `step`: `(`: the row of START if a span may
    begin; `)`: the token of the span's value; each other token: the next row. Then, from column
    `ending` on, for each pair of tokens before a `)` the token of the span's value, and from
    column `chaining` on the row that this value leads to from START.
    """

    token: NDArray[np.uint8]
    is_word: NDArray[np.uint8]
    trie: NDArray[np.uint16]
    trie_token: NDArray[np.uint8]
    guarded: bool
    step: NDArray[np.unsignedinteger]
    no: int  # the entry of `step` and `whole` that means there is none
    width: int
    start: int
    unknown: int  # the row of a span of which the beginning was not seen
    ending: int
    chaining: int
    pair: NDArray[np.uint8]  # (65536,): by two bytes, number of the pair from 1, or 0
    opening: NDArray[np.unsignedinteger]  # by two tokens: the row of `(xy`, or `no`
    whole: NDArray[np.uint8]  # by three tokens: the token of the value of `(xyz)`, or 255
    square: bool  # whether `[` may stand for `(`


def tables_of(automaton: SpanAutomaton, lexer: Lexer, square: bool) -> Tables:
    states, n_tokens = automaton.step.shape
    is_word = lexer.is_word.astype(bool)
    plain = [b for b in range(256) if 2 <= lexer.token[b] < SPACE]  # bytes that are a token alone
    pairs: list[tuple[int, int]] = []  # of bytes
    values: list[NDArray[np.int32]] = []
    value_token = np.append(np.where(automaton.value >= 0, 2 + automaton.value, -1), -1)
    step = np.vstack([automaton.step, np.full((1, n_tokens), -1, dtype=np.int32)])  # -1: refused
    for x in plain:
        after_x = step[:states, lexer.token[x]]
        for y in plain:
            column = value_token[step[after_x, lexer.token[y]]]
            if (column >= 0).any() and not (is_word[x] and is_word[y]):
                pairs.append((x, y))
                values.append(column)
    if len(pairs) > MOST_PAIRS:
        pairs, values = [], []
    ending, chaining = n_tokens, n_tokens + 1 + len(pairs)
    width = chaining + 1 + len(pairs)

    kind = np.uint16 if (states + 1) * width < 1 << 16 else np.uint32  # a small table is quicker
    no = int(np.iinfo(kind).max)
    table = np.full((states + 1, width), no, dtype=kind)
    table[:states, :n_tokens] = np.where(step[:states] >= 0, step[:states] * width, no)
    table[:states, OPEN] = np.where(step[:states, 2] >= 0, automaton.start * width, no)
    table[:states, CLOSE] = np.where(automaton.value >= 0, 2 + automaton.value, no)
    table[states, OPEN] = automaton.start * width
    pair = np.zeros(65536, dtype=np.uint8)
    for number, ((x, y), column) in enumerate(zip(pairs, values, strict=True), start=1):
        pair[x | y << 8] = number
        table[:states, ending + number] = np.where(column >= 0, column, no)
        table[:states, chaining + number] = np.where(
            column >= 0, table[automaton.start, np.maximum(column, 0)], no
        )

    side = SMALL_VOCABULARY
    whole = np.full(side**3 if n_tokens <= side else 0, NONE, dtype=np.uint8)
    opening = np.full(side**2 if n_tokens <= side else 0, no, dtype=kind)
    if len(whole):
        for x, y in ((x, y) for x in plain for y in plain if not (is_word[x] and is_word[y])):
            a, b = int(lexer.token[x]), int(lexer.token[y])
            row = step[step[automaton.start, a], b]
            if row >= 0 and step[row, 2] >= 0:
                opening[a * side + b] = row * width
            for z in (z for z in plain if not (is_word[y] and is_word[z])):
                c = int(lexer.token[z])
                value = value_token[step[row, c]]
                if value >= 0:
                    whole[(a * side + b) * side + c] = value
    return Tables(
        token=lexer.token,
        is_word=lexer.is_word,
        trie=lexer.trie,
        trie_token=lexer.trie_token,
        guarded=lexer.guarded,
        step=table.ravel(),
        no=no,
        width=width,
        start=automaton.start * width,
        unknown=states * width,
        ending=ending,
        chaining=chaining,
        pair=pair,
        opening=opening,
        whole=whole,
        square=square,
    )


@njit(nogil=True, cache=True)
def _longest(tables, text, i, end):
    """The longest token that begins here, or NONE, and the place after it."""
    place, token, after = U(0), U(NONE), i
    while i < end:
        place = U(tables.trie[place * U(256) + U(text[i])])
        if place == U(0):
            break
        i += U(1)
        if tables.trie_token[place] != NONE:
            token, after = U(tables.trie_token[place]), i
    return token, after


@njit(nogil=True, cache=True)
def _quick(text, i, ahead, tables, row, depth, stack):
    """Read packed text up to anything unusual, which is left to `scan`."""
    token, step = tables.token, tables.step
    pair, opening, whole = tables.pair, tables.opening, tables.whole
    start, ending, chaining = U(tables.start), U(tables.ending), U(tables.chaining)
    side, no, one, room = U(SMALL_VOCABULARY), U(tables.no), U(1), U(len(stack))
    while i < ahead:
        byte = text[i]
        t = U(token[byte])
        if t == U(OPEN):
            if text[i + U(4)] == 41:
                x, y, z = token[text[i + one]], token[text[i + U(2)]], token[text[i + U(3)]]
                value = U(whole[(U(x & 15) * side + U(y & 15)) * side + U(z & 15)])
                if value == U(NONE) or (x | y | z) > 15:
                    break
                following = U(step[row + value])
                if following == no:
                    break
                row = following
                i += U(5)
            elif text[i + U(3)] == 40 and text[i + U(2)] != 40:
                x, y = token[text[i + one]], token[text[i + U(2)]]
                following = U(opening[U(x & 15) * side + U(y & 15)])
                if following == no or (x | y) > 15 or U(step[row]) == no or depth == room:
                    break
                stack[depth] = row
                depth += one
                row = following
                i += U(3)
            else:
                if U(step[row]) == no or depth == room:
                    break
                stack[depth] = row
                depth += one
                row = start
                i += one
        elif t == U(CLOSE):
            value = U(step[row + one])
            if value == no:
                break
            following = U(step[U(stack[depth - one]) + value])
            if following == no:
                break
            depth -= one
            row = following
            i += one
        elif text[i + U(2)] == 41:
            two = np.uint16(byte) | np.uint16(text[i + one]) << np.uint16(8)
            around = U(stack[depth - one])
            if around == start:  # as in a chain of spans, each beginning with the next
                following = U(step[row + chaining + U(pair[two])])
            else:
                value = U(step[row + ending + U(pair[two])])
                if value == no:
                    break
                following = U(step[around + value])
            if following == no:
                break
            depth -= one
            row = following
            i += U(3)
        else:
            if t >= U(SPACE):
                break
            following = U(step[row + t])
            if following == no:
                break
            row = following
            i += one
    return row, depth, i


@njit(nogil=True, cache=True)
def scan(text, begin, end, tables, state, stack, closers, residue):
    """Read text[begin:end] from where `state` says. Stops at the end or at what it cannot do.

    state     ROW, DEPTH, PLACE, REASON, RESIDUE: changed
    stack     rows of the spans around, `closers` the bytes that must end them
    residue   empty, or room for the tokens of a span of which the beginning was not seen, each
              with its byte in the upper half: reading then began in the row `unknown`
    """
    token, is_word, step = tables.token, tables.is_word, tables.step
    guarded, square = tables.guarded, tables.square
    start, unknown = U(tables.start), U(tables.unknown)
    speculative = len(residue) > 0
    no, one = U(tables.no), U(1)
    row, depth, left, reason = U(state[ROW]), U(state[DEPTH]), U(state[RESIDUE]), END
    room, residue_room = U(len(stack)), U(len(residue))
    i, end = U(begin), U(end)
    # The quick way looks four bytes ahead; it is for tokens of one byte and one kind of bracket.
    quick = len(tables.whole) > 0 and not guarded and not square and end >= U(5)
    ahead = end - U(4) if quick else U(0)
    while i < end:
        if i < ahead:
            row, depth, i = _quick(text, i, ahead, tables, row, depth, stack)
        if i >= end:
            break
        byte = text[i]
        t = U(token[byte])
        after = i + one
        span, outside = row, depth  # the span that takes the token, and how many are around it
        if t == U(OPEN):
            if U(step[row]) == no:
                reason = REFUSED
                break
            if depth == room:
                reason = STACK_FULL
                break
            stack[depth] = row
            if square:
                closers[depth] = 41 if byte == 40 else 93
            depth += one
            row = start
            i = after
            continue
        if t == U(CLOSE):
            t = U(step[row + one])
            if t == no:
                if speculative and row == unknown and depth == U(0):
                    if left == residue_room:
                        reason = RESIDUE_FULL
                        break
                    residue[left] = U(CLOSE) | U(byte) << U(16)
                    left += one
                    i = after
                    continue
                reason = REFUSED
                break
            if square and closers[depth - one] != byte:
                reason = MIXED
                break
            span, outside = U(stack[depth - one]), depth - one
        elif t < U(SPACE):
            if guarded and after < end and is_word[text[after]] and is_word[byte]:
                t = U(LONGER)
        elif t == U(SPACE):
            i = after
            continue
        if t == U(LONGER):
            t, after = _longest(tables, text, i, end)
            # A word is one token: no word may go on after it, nor have begun before it.
            if is_word[byte] and byte < 128 and t != U(NONE):
                goes_on = after < end and is_word[text[after]]
                if goes_on and text[after] >= 128:  # a letter, or a mark, or white space?
                    goes_on = _longest(tables, text, after, end)[0] == U(NONE)
                begun = i > U(begin) and text[i - one] < 128 and is_word[text[i - one]]
                if goes_on or begun:
                    t = U(NONE)
            if t == U(SPACE):
                i = after
                continue
            if t == U(NONE):
                reason = REFUSED
                break
        following = U(step[span + t])
        if following == no:
            if speculative and span == unknown and outside == U(0):
                if left == residue_room:
                    reason = RESIDUE_FULL
                    break
                residue[left] = t
                left += one
                following = unknown
            else:
                reason = REFUSED
                break
        row, depth = following, outside
        i = after
    state[ROW], state[DEPTH], state[PLACE] = row, depth, i
    state[REASON], state[RESIDUE] = U(reason), left


@njit(nogil=True, cache=True)
def feed(tokens, tables, state, stack, closers):
    """Read tokens, each perhaps with its byte in the upper half, from where `state` says."""
    step, start, no, one = tables.step, U(tables.start), U(tables.no), U(1)
    row, depth, room, reason = U(state[ROW]), U(state[DEPTH]), U(len(stack)), END
    i = U(0)
    while i < U(len(tokens)):
        t, byte = U(tokens[i]) & U(0xFFFF), U(tokens[i]) >> U(16)
        if t == U(OPEN):
            if U(step[row]) == no:
                reason = REFUSED
                break
            if depth == room:
                reason = STACK_FULL
                break
            stack[depth] = row
            depth += one
            row = start
        else:
            before = row
            if t == U(CLOSE):
                t = U(step[row + one])
                if t == no:
                    reason = REFUSED
                    break
                if tables.square and byte != U(0) and U(closers[depth - one]) != byte:
                    reason = MIXED
                    break
                depth -= one
                row = U(stack[depth])
            following = U(step[row + t])
            if following == no:
                row = before
                reason = REFUSED
                break
            row = following
        i += one
    state[ROW], state[DEPTH], state[PLACE], state[REASON] = row, depth, i, U(reason)


@njit(nogil=True, cache=True)
def scan_lines(text, begins, ends, tables, values, first, stack, closers):
    """The number of the value of each text[begin:end], from number `first` on, into `values`:
    -1 where it is no expression. Stops early where the stack is full; returns how many are done.
    """
    state, nothing = np.zeros(5, dtype=np.uint64), np.empty(0, dtype=np.uint32)
    for line in range(first, len(begins)):
        state[ROW], state[DEPTH], state[RESIDUE] = 0, 0, 0
        scan(text, begins[line], ends[line], tables, state, stack, closers, nothing)
        if state[REASON] == STACK_FULL:
            return line
        whole = state[REASON] == END and state[DEPTH] == 0
        values[line] = _value(tables, state[ROW]) if whole else -1
    return len(begins)


@njit(nogil=True, cache=True)
def _value(tables, row):
    """After a whole expression of value v, the state is 1 + v; START comes after those."""
    state = np.int64(row) // tables.width
    return state - 1 if row < tables.start else -1
