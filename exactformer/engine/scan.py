"""The compiled pass: text in, state out, one span automaton, one stack.

Indices are unsigned throughout: numba would otherwise check each for being negative, which
costs half the speed.

Short cuts, each a table made from the automaton, skip steps without changing any result: in packed
text `(xyz)` and `(xy)` are whole spans, `xy)` ends one and `(xy(` begins one; in spaced text a word
is known by its first two letters, and then compared. Where a table has no entry, the ordinary steps
go on, so that only those ever refuse a token.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.engine.compiled import compiled
from exactformer.engine.lexer import LONGER, NONE, SPACE

U = np.uint64
SMALL_VOCABULARY = 16  # tables by three tokens then have 4096 entries

# Why a pass stopped.
END, REFUSED, MIXED, STACK_FULL, RESIDUE_FULL = range(5)
# Where a state is kept between passes.
ROW, DEPTH, PLACE, REASON, RESIDUE = range(5)


# Numba keeps what it compiled until this file changes: what it was compiled for stands here, too.
class Tables(NamedTuple):
    """All that a pass looks up. Columns of a row of `step`: `(`: the row of START if a span may
    begin; `)`: the token of the span's value; each other token: the next row. Then, from column
    `closing` on, for each value before a `)` the token of the span's value; from `ending` on the
    same for pairs of tokens; from `chaining` on the row that this value leads to from START.
    """

    token: NDArray[np.uint8]
    is_word: NDArray[np.uint8]
    trie: NDArray[np.uint16]
    trie_token: NDArray[np.uint8]
    packed: bool  # whether tokens come one byte each, most of the time
    step: NDArray[np.unsignedinteger]
    no: int  # the entry of `step` that means there is none
    width: int
    start: int
    unknown: int  # the row of a span of which the beginning was not seen
    closing: int
    ending: int
    chaining: int
    pair: NDArray[np.uint8]  # (65536,): by two bytes, number of the pair from 1, or 0
    opening: NDArray[np.unsignedinteger]  # by two tokens: the row of `(xy`, or `no`
    brief: NDArray[np.uint8]  # by two tokens: the token of the value of `(xy)`, or 0
    whole: NDArray[np.uint8]  # by three tokens: the token of the value of `(xyz)`, or 0
    word: NDArray[np.uint8]  # (65536,): by two bytes, number of the word from 1, or 0
    word_bytes: NDArray[np.uint64]  # of each word and a space, up to eight of them,
    word_mask: NDArray[np.uint64]  # and which of eight bytes they are; word 0 is never the same
    word_length: NDArray[np.uint8]
    word_token: NDArray[np.uint8]
    square: bool  # whether `[` may stand for `(`


@compiled
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


@compiled
def _packed(text, i, ahead, tables, row, depth, stack):
    """Read text of one byte a token up to anything unusual, which is left to `scan`: so is a word
    that begins behind a value. Words that are values need no space after them here, for the
    grammar of infix text refuses two values in a row.

    Returns the row, the depth and the place; and a value that the span there has yet to take, if
    it is one of which the beginning was not seen, or 0.
    """
    token, step = tables.token, tables.step
    pair, opening, brief, whole = tables.pair, tables.opening, tables.brief, tables.whole
    start, closing = U(tables.start), U(tables.closing)
    ending, chaining = U(tables.ending), U(tables.chaining)
    side, no, one, room = U(SMALL_VOCABULARY), U(tables.no), U(1), U(len(stack))
    while i < ahead:
        byte = text[i]
        t, after, around = U(token[byte]), i + one, row
        if t == U(OPEN):
            value = U(0)
            if text[i + one] == 40:  # as in a comb, or deep in a tree
                if U(step[row]) == no or depth == room:
                    break
                stack[depth] = row
                depth += one
                row = start
                i += one
                continue
            if text[i + U(3)] == 41:
                x, y = token[text[i + one]], token[text[i + U(2)]]
                value = U(brief[U(x & 15) * side + U(y & 15)])
                after = i + U(4)
            elif text[i + U(4)] == 41:
                x, y, z = token[text[i + one]], token[text[i + U(2)]], token[text[i + U(3)]]
                value = U(whole[(U(x & 15) * side + U(y & 15)) * side + U(z & 15)])
                after = i + U(5)
            elif text[i + U(3)] == 40:
                x, y = token[text[i + one]], token[text[i + U(2)]]
                following = U(opening[U(x & 15) * side + U(y & 15)])
                if following != no and U(step[row]) != no and depth != room:
                    stack[depth] = row
                    depth += one
                    row = following
                    i += U(3)
                    continue
            if U(step[row]) == no:
                break
            if value == U(0):
                if depth == room:
                    break
                stack[depth] = row
                depth += one
                row = start
                i += one
                continue
        elif t == U(CLOSE):
            value = U(step[row + one])
            if value == no:
                break
            depth -= one
            row = U(stack[depth])
        else:
            value = no
            if text[i + U(2)] == 41:
                two = np.uint16(byte) | np.uint16(text[i + one]) << np.uint16(8)
                around = U(stack[depth - one])
                if around == start:  # as in a chain of spans, each beginning with the next
                    following = U(step[row + chaining + U(pair[two])])
                    if following != no:
                        depth -= one
                        row = following
                        i += U(3)
                        continue
                value = U(step[row + ending + U(pair[two])])
                after = i + U(3)
            if value == no:
                if t >= U(SPACE):
                    break
                following = U(step[row + t])
                if following == no:
                    break
                row = following
                i += one
                continue
            depth -= one
            row = around
        while after < ahead and text[after] == 41:  # the value may end the span that takes it
            closed = U(step[row + closing + value])
            if closed == no:
                break
            value = closed
            depth -= one
            row = U(stack[depth])
            after += one
        i = after
        following = U(step[row + value])
        if following == no:
            return row, depth, i, value
        row = following
    return row, depth, i, U(0)


@compiled
def _eight(text, i):
    """Eight bytes as one number."""
    number = U(0)
    for k in range(8):
        number |= U(text[i + U(k)]) << U(8 * k)
    return number


@compiled
def _spaced(text, i, ahead, tables, row, depth, stack, closers):
    """The same for words with single spaces after them; none are needed at parentheses."""
    token, step = tables.token, tables.step
    word, word_bytes, word_mask = tables.word, tables.word_bytes, tables.word_mask
    word_length, word_token = tables.word_length, tables.word_token
    start, square = U(tables.start), tables.square
    no, one, room = U(tables.no), U(1), U(len(stack))
    while i < ahead:
        byte = text[i]
        if byte == 40:
            if U(step[row]) == no or depth == room:
                break
            after = i + one + U(text[i + one] == 32)
            eight = _eight(text, after)  # the operator, in most texts
            number = U(word[eight & U(0xFFFF)])
            following = start
            if (eight & word_mask[number]) == word_bytes[number]:
                following = U(step[start + U(word_token[number])])
                if following == no:
                    break
                after += U(word_length[number])
            stack[depth] = row
            if square:
                closers[depth] = 41
            depth += one
            row = following
            i = after
        elif byte == 41:
            t = U(step[row + one])
            if t == no or (square and closers[depth - one] != 41):
                break
            depth -= one
            row = U(stack[depth])
            i += one + U(text[i + one] == 32)
            following = U(step[row + t])
            if following == no:
                return row, depth, i, t
            row = following
        else:
            t = U(token[byte])
            if U(CLOSE) < t < U(SPACE):
                after = i + U(2)
                if text[i + one] != 32:
                    after = i + one
                    if text[after] != 41:
                        break
            elif t == U(SPACE):
                i += one
                continue
            else:
                eight = _eight(text, i)
                number = U(word[eight & U(0xFFFF)])
                if (eight & word_mask[number]) != word_bytes[number]:
                    break
                t, after = U(word_token[number]), i + U(word_length[number])
            following = U(step[row + t])
            if following == no:
                break
            row = following
            i = after
    return row, depth, i, U(0)


@compiled
def scan(text, begin, stop, end, tables, state, stack, closers, residue):
    """Read the tokens that begin in text[begin:stop] from where `state` says; what follows, up to
    `end`, is looked at. Stops there, or a little after, or at what it cannot do.

    state     ROW, DEPTH, PLACE, REASON, RESIDUE: changed
    stack     rows of the spans around, `closers` the bytes that must end them
    residue   empty, or room for the tokens of a span of which the beginning was not seen, each
              with its byte in the upper half: reading then began in the row `unknown`
    """
    token, is_word, step = tables.token, tables.is_word, tables.step
    packed, square = tables.packed, tables.square
    start, unknown = U(tables.start), U(tables.unknown)
    speculative = len(residue) > 0
    no, one = U(tables.no), U(1)
    row, depth, left, reason = U(state[ROW]), U(state[DEPTH]), U(state[RESIDUE]), END
    value = U(0)
    room, residue_room = U(len(stack)), U(len(residue))
    i, stop, end = U(begin), U(stop), U(end)
    ahead = end - U(12) if end > U(12) else U(0)  # both quick ways look a few bytes ahead
    ahead = min(ahead, stop)
    while i < stop:
        value = U(0)
        if i < ahead:
            if packed:
                row, depth, i, value = _packed(text, i, ahead, tables, row, depth, stack)
            else:
                row, depth, i, value = _spaced(text, i, ahead, tables, row, depth, stack, closers)
        if i >= stop and value == U(0):
            break
        span, outside = row, depth  # the span that takes the token, and how many are around it
        if value != U(0):
            t, byte, after = value, np.uint8(0), i
        else:
            byte = text[i]
            t = U(token[byte])
            after = i + one
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
            if value == U(0) and after < end and is_word[text[after]] and is_word[byte]:
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
                begun = i > U(0) and text[i - one] < 128 and is_word[text[i - one]]
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


@compiled
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


@compiled
def scan_lines(text, begins, ends, tables, values, first, stack, closers):
    """The number of the value of each text[begin:end], from number `first` on, into `values`:
    -1 where it is no expression. Stops early where the stack is full; returns how many are done.
    """
    state, nothing = np.zeros(5, dtype=np.uint64), np.empty(0, dtype=np.uint32)
    for line in range(first, len(begins)):
        state[ROW], state[DEPTH], state[RESIDUE] = 0, 0, 0
        scan(text, begins[line], ends[line], ends[line], tables, state, stack, closers, nothing)
        if state[REASON] == STACK_FULL:
            return line
        whole = state[REASON] == END and state[DEPTH] == 0
        values[line] = _value(tables, state[ROW]) if whole else -1
    return len(begins)


@compiled
def _value(tables, row):
    """After a whole expression of value v, the state is 1 + v; START comes after those."""
    state = np.int64(row) // tables.width
    return state - 1 if row < tables.start else -1
