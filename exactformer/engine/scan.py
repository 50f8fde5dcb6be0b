"""The compiled pass: text in, state out, one span automaton, one stack.

Indices are unsigned throughout: numba would otherwise check each for being negative, which
costs half the speed.
"""

import numpy as np

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.engine.compiled import compiled
from exactformer.engine.lexer import LONGER, NONE, SPACE
from exactformer.engine.shortcuts import read_packed, read_spaced

U = np.uint64

# Why a pass stopped.
END, UNEXPECTED, MIXED, STACK_FULL, RESIDUE_FULL = range(5)
# Where a state is kept between passes.
ROW, DEPTH, POSITION, REASON, RESIDUE = range(5)


@compiled
def longest(tables, text, i, end):
    """The longest token that begins here, or NONE, and the index after it."""
    node, token, after = U(0), U(NONE), i
    while i < end:
        node = U(tables.trie[node * U(256) + U(text[i])])
        if node == U(0):
            break
        i += U(1)
        if tables.trie_token[node] != NONE:
            token, after = U(tables.trie_token[node]), i
    return token, after


@compiled
def scan(text, begin, stop, end, tables, state, stack, closers, residue):
    """Read the tokens that begin in text[begin:stop] from where `state` says; what follows, up to
    `end`, is read ahead. Stops there, or a little after, or at what it cannot do.

    state     ROW, DEPTH, POSITION, REASON, RESIDUE: changed
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
    ahead = end - U(12) if end > U(12) else U(0)  # both shortcuts read a few bytes ahead
    ahead = min(ahead, stop)
    while i < stop:
        value = U(0)
        if i < ahead:
            if packed:
                row, depth, i, value = read_packed(text, i, ahead, tables, row, depth, stack)
            else:
                row, depth, i, value = read_spaced(
                    text, i, ahead, tables, row, depth, stack, closers
                )
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
                reason = UNEXPECTED
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
                reason = UNEXPECTED
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
            t, after = longest(tables, text, i, end)
            # A word is one token: no word may go on after it, nor have begun before it.
            if is_word[byte] and byte < 128 and t != U(NONE):
                goes_on = after < end and is_word[text[after]]
                if goes_on and text[after] >= 128:  # a letter, or a mark, or white space?
                    goes_on = longest(tables, text, after, end)[0] == U(NONE)
                begun = i > U(0) and text[i - one] < 128 and is_word[text[i - one]]
                if goes_on or begun:
                    t = U(NONE)
            if t == U(SPACE):
                i = after
                continue
            if t == U(NONE):
                reason = UNEXPECTED
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
                reason = UNEXPECTED
                break
        row, depth = following, outside
        i = after
    state[ROW], state[DEPTH], state[POSITION] = row, depth, i
    state[REASON], state[RESIDUE] = U(reason), left


@compiled
def feed(tokens, ids, tables, state, stack, closers):
    """Read tokens, each perhaps with its byte in the upper half, from where `state` says; `ids` are
    the token ids of what those that are no parenthesis are given as.
    """
    step, start, no, one = tables.step, U(tables.start), U(tables.no), U(1)
    row, depth, room, reason = U(state[ROW]), U(state[DEPTH]), U(len(stack)), END
    i = U(0)
    while i < U(len(tokens)):
        t, byte = U(tokens[i]) & U(0xFFFF), U(tokens[i]) >> U(16)
        if t == U(OPEN):
            if U(step[row]) == no:
                reason = UNEXPECTED
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
                    reason = UNEXPECTED
                    break
                if tables.square and byte != U(0) and U(closers[depth - one]) != byte:
                    reason = MIXED
                    break
                depth -= one
                row = U(stack[depth])
            else:
                t = U(ids[t])
            following = U(step[row + t])
            if following == no:
                row = before
                reason = UNEXPECTED
                break
            row = following
        i += one
    state[ROW], state[DEPTH], state[POSITION], state[REASON] = row, depth, i, U(reason)
