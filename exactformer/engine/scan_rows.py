"""The compiled pass over many short texts, each a row of one buffer: `scan` for each of them.

The tables of a pass over rows know nothing of the bytes that end a field or a row: they are no
white space there, so that `scan` stops at them as at any byte that is no token.
"""

import numpy as np

from exactformer.engine.compiled import compiled
from exactformer.engine.lexer import NONE, SPACE
from exactformer.engine.scan import (
    DEPTH,
    END,
    POSITION,
    REASON,
    RESIDUE,
    ROW,
    STACK_FULL,
    feed,
    longest,
    scan,
)

U = np.uint64
TAB = 9  # between the fields of a labelled row


@compiled
def count_rows(text, begin, end, separator):
    """Number of rows of text[begin:end]; the last one need not end with a separator."""
    count, begin, end = U(0), U(begin), U(end)
    for i in range(begin, end):
        count += U(text[i] == separator)
    return count + U(begin < end and text[end - U(1)] != separator)


@compiled
def next_row(text, i, separator):
    """Index at which the first row from text[i] on begins, or the end of the text."""
    i, end = U(i), U(len(text))
    while U(0) < i < end and text[i - U(1)] != separator:
        i += U(1)
    return min(i, end)


@compiled
def _bare_value(text, i, end, tables):
    """Value index of a field that holds one value and white space, -1 if it has none, and the
    index at which reading stopped.
    """
    value = -1
    while i < end:
        token, after = longest(tables, text, i, end)
        if token == U(NONE) or (token != U(SPACE) and value >= 0):
            break
        if token != U(SPACE):
            following = U(tables.step[token])  # from the state before any token
            if following == U(tables.no):
                break
            value = tables.final[following // U(tables.width)]
            if value < 0:
                break
        i = after
    return value, i


@compiled
def scan_rows(text, begin, end, separator, tables, first, found, space):
    """Find where each row of text[begin:end] begins, and its value index, from row `first` on: -1
    if it is no expression. Rows with labels have a tab in them, and a bare value on one side
    of it, which is the label; on the right, if it may be either. Stops early where the stack is
    full, and where there is no room for more rows: a second reader may still run when nobody waits
    for it, and the text has changed; returns how many rows are done.

    found   values, labels or no room for them, begins: changed
    space   what `scan` works with: state, stack, closers and no residue
    """
    values, labels, begins = found.values, found.labels, found.begins
    state, stack, closers, nothing = space
    i, end, row, one = U(begin), U(end), U(first), U(1)
    labelled = len(labels) > 0
    while i < end and row < U(len(begins)):
        begins[row] = i
        label, after, label_first = -1, i, False
        if labelled:
            label, after = _bare_value(text, i, end, tables)
            label_first = label >= 0 and after < end and text[after] == TAB
            i = after + one if label_first else i
        start = i
        state[ROW], state[DEPTH], state[RESIDUE] = 0, 0, 0
        scan(text, i, end, end, tables, state, stack, closers, nothing)
        if state[REASON] == U(STACK_FULL):
            state[POSITION] = begins[row]
            return row
        i = state[POSITION]
        value = np.int64(tables.final[state[ROW] // U(tables.width)])
        if state[DEPTH] != U(0):
            value = -1
        if label_first:
            other, after = _bare_value(text, start, end, tables)
            if other >= 0 and after == i:
                value, label = label, other
        elif labelled:
            label = -1
            if i < end and text[i] == TAB:
                label, i = _bare_value(text, i + one, end, tables)
        if (labelled and label < 0) or (i < end and text[i] != separator):
            value = -1
            while i < end and text[i] != separator:
                i += one
        values[row] = value
        if labelled:
            labels[row] = label
        row += one
        i += one
    return row


@compiled
def feed_rows(tokens, ids, ends, tables, first, stop, values, state, stack, closers):
    """Evaluate rows[first:stop] whose tokens are known and stored one row after another; returns
    the row at which it stopped.
    """
    row = U(first)
    while row < U(stop):
        begin = U(ends[row - U(1)]) if row else U(0)
        state[ROW], state[DEPTH] = 0, 0
        feed(tokens[begin : U(ends[row])], ids, tables, state, stack, closers)
        if state[REASON] == U(STACK_FULL):
            return row
        whole = state[REASON] == U(END) and state[DEPTH] == U(0)
        values[row] = tables.final[state[ROW] // U(tables.width)] if whole else -1
        row += U(1)
    return row
