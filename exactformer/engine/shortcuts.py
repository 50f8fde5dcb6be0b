"""Shortcuts through common text, for the compiled pass of `scan.py`.

Each reads several tokens at a time, in tables made from the automaton, and changes no result: in
packed text `(xyz)` and `(xy)` are whole spans, `xy)` ends one and `(xy(` begins one; in spaced text
a word is known by its first two letters, and then compared. Where a table has no entry they stop,
so that only the ordinary steps of `scan` ever refuse a token.
"""

import numpy as np

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.engine.compiled import compiled
from exactformer.engine.lexer import SPACE
from exactformer.engine.tables import SMALL_VOCABULARY

U = np.uint64


@compiled
def read_packed(text, i, ahead, tables, row, depth, stack):
    """Read text of one byte a token up to anything unusual, which is left to `scan`: so is a word
    that begins right after a value. Words that are values need no space after them here, for the
    grammar of infix text refuses two values in a row.

    Returns the row, the depth and the index in the text; and a value that the span there has yet to
    take, if it is one of which the beginning was not seen, or 0.
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
def eight_bytes(text, i):
    """Eight bytes as one number."""
    number = U(0)
    for k in range(8):
        number |= U(text[i + U(k)]) << U(8 * k)
    return number


@compiled
def read_spaced(text, i, ahead, tables, row, depth, stack, closers):
    """Read words with single spaces after them, with the arguments and results of `read_packed`;
    no spaces are needed at parentheses.
    """
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
            eight = eight_bytes(text, after)  # the operator, in most texts
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
                eight = eight_bytes(text, i)
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
