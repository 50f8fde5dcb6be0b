"""The compiled pass over rows in Nangia and Bowman's notation: each as the codes of its tokens.

It takes what is well formed and plain ASCII, and nothing else: a row that it does not take is the
parser's, which may still read it (white space beyond ASCII) or say what is wrong with it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.domains.bounds import LARGEST_ARITY
from exactformer.domains.formats.nangia import DIGIT_CODES, FEWEST, OPERATOR_CODES
from exactformer.domains.lexicon import BLANK, BYTE_CLASSES, WORD
from exactformer.engine.compiled import compiled
from exactformer.engine.shortcuts import eight_bytes
from exactformer.engine.tables import WordTables, words_of

U = np.uint64
LABEL_FIRST, LABEL_LAST, NO_LABEL = range(3)  # the field that is the label
TAB, NEWLINE, LEFT_ROUND, RIGHT_ROUND, RIGHT_SQUARE = b"\t\n()]"
SPACED = int.from_bytes(b" ) ", "little")  # as published files are written
MOST_OPERANDS = LARGEST_ARITY  # of a span; a wider one is left to the parser
LEFT_TO_PARSER = -1  # instead of the number of codes of a row
FIELD = 28  # bits of a number in an entry of the stack: no buffer is that long
SPACE, OTHER = 254, 255  # kinds of bytes, beside the codes of digits


class NangiaTables(NamedTuple):
    """The lookup tables of the pass over rows in Nangia's notation."""

    kind: NDArray[np.uint8]  # by byte: the code of a digit, SPACE, or OTHER
    is_word: NDArray[np.bool_]  # by byte: may go on with a word
    operators: WordTables  # known by the two bytes behind their bracket


def nangia_tables(separators: bytes) -> NangiaTables:
    """The lookup tables for rows and fields that end with these bytes, which are no white space
    then.
    """
    classes = np.array(BYTE_CLASSES)
    kind = np.where(classes == BLANK, SPACE, OTHER).astype(np.uint8)
    kind[list(separators)] = OTHER
    for symbol, code in DIGIT_CODES.items():
        kind[ord(symbol)] = code
    operators = words_of({word.encode(): code for word, code in OPERATOR_CODES.items()}, first=1)
    return NangiaTables(kind, (classes == WORD) | (np.arange(256) >= 128), operators)


class Transcript(NamedTuple):
    """The result of one pass over rows in Nangia's notation."""

    codes: NDArray[np.uint8]  # of all rows, one after the other
    counts: NDArray[np.int32]  # of codes by row, or LEFT_TO_PARSER
    labels: NDArray[np.uint8]  # by row, as codes; no room for them where rows have none
    begins: NDArray[np.int32]  # by row, in the text
    uses: NDArray[np.int64]  # by operator and number of operands, the first row with it, or -1


@compiled
def _skip(text, i, end, kind):
    """The index after white space."""
    while i < end and kind[text[i]] == SPACE:
        i += U(1)
    return i


@compiled
def _parenthesis(text, i, end, kind):
    """The index after white space, `)` and white space; 0 where there is no `)`."""
    one, after = U(1), i + U(3)
    if after < end:
        four = U(text[i]) | U(text[i + one]) << U(8) | U(text[i + U(2)]) << U(16)
        four |= U(text[after]) << U(24)
        if four & U(0xFFFFFF) == U(SPACED) and four >> U(24) > U(32):
            return after
    i = _skip(text, i, end, kind)
    if i < end and text[i] == RIGHT_ROUND:
        return _skip(text, i + one, end, kind)
    return U(0)


@compiled
def _goes_on(text, i, end, notation):
    """Whether a word goes on here; most often there is a space, which is quicker to see."""
    return i < end and text[i] != 32 and notation.is_word[text[i]]


@compiled
def _expression(text, i, end, notation, stack, codes, written, uses, row):
    """Write the codes of the expression that begins here; returns how many are written then, and
    the index after it, which is 0 where there is none.
    """
    # A span is its operator's number, its operands so far and its open parentheses; in the form
    # without parentheses these are two, as are those around the whole.
    kind, operators = notation.kind, notation.operators
    failed, one, two, field = U(0), U(1), U(2), U((1 << FIELD) - 1)
    i = _skip(text, i, end, kind)
    binarised = i < end and text[i] == LEFT_ROUND
    operand = U(1 << FIELD) - U(binarised)  # one more, and one parenthesis less
    last = one if binarised else two  # parentheses that are open when a span closes
    depth, span = U(0), two
    while i < end:
        byte = text[i]
        code = kind[byte]
        if code < SPACE:
            i += one
            if span & field < two or _goes_on(text, i, end, notation):
                return written, failed
            codes[written] = code
            written += one
            span += operand
        elif byte == RIGHT_SQUARE:
            operands = span >> U(FIELD) & field
            if operands < U(FEWEST) or operands > U(MOST_OPERANDS) or span & field != last:
                return written, failed
            use = (span >> U(2 * FIELD)) * U(MOST_OPERANDS + 1) + operands
            if uses[use] < 0:
                uses[use] = row
            codes[written] = CLOSE
            written += one
            depth -= one
            span = stack[depth] + operand
            i += one
            if binarised:
                i = _parenthesis(text, i, end, kind)
                if i == failed:
                    return written, failed
        else:
            opened = U(0)
            while i < end and text[i] == LEFT_ROUND:
                opened += one
                i = _skip(text, i + one, end, kind)
            if i + U(8) > end:  # no span is shorter
                return written, failed
            eight = eight_bytes(text, i)
            number = U(operators.word[(eight >> U(8)) & U(0xFFFF)])
            i += U(operators.word_length[number])
            if (eight & operators.word_mask[number]) != operators.word_bytes[number]:
                return written, failed
            if span & field < two or (opened > U(0)) != binarised:
                return written, failed
            if _goes_on(text, i, end, notation):
                return written, failed
            i = _skip(text, i, end, kind)
            codes[written] = OPEN
            codes[written + one] = operators.word_token[number]
            written += two
            stack[depth] = span
            depth += one
            span = number - one << U(2 * FIELD) | (opened if binarised else two)
            continue
        if depth == U(0):
            return written, _skip(text, i, end, kind)
        i = _parenthesis(text, i, end, kind) if binarised else _skip(text, i, end, kind)
        if i == failed:
            return written, failed
    return written, failed


@compiled
def transcribe(text, begin, end, label, notation, stack, found):
    """The rows of text[begin:end] into `found`; returns how many codes they have in all.

    label   which field it is: the one before the expression, the one behind it, or none
    stack   room for as many open spans as there may be
    """
    codes, counts, labels, begins, uses = found
    kind = notation.kind
    i, end, row, written, one = U(begin), U(end), U(0), U(0), U(1)
    fields = 1 if label == NO_LABEL else 2
    while i < end and row < U(len(begins)):  # as in `scan_rows`
        begins[row] = i
        first, after, right = written, i, True
        for field in range(fields):
            if field == label:
                after = _skip(text, after, end, kind)
                right = after < end and kind[text[after]] < SPACE
                labels[row] = kind[text[after]] if right else 0
                after = _skip(text, after + one, end, kind)
            else:
                written, after = _expression(
                    text, after, end, notation, stack, codes, written, uses, row
                )
                right = after != U(0)
            if field + 1 < fields:
                right = right and after < end and text[after] == TAB
                after += one
            if not right:
                break
        if right and (after == end or text[after] == NEWLINE):
            counts[row] = written - first
            i = after
        else:
            counts[row], written = LEFT_TO_PARSER, first
            while i < end and text[i] != NEWLINE:
                i += one
        row += one
        i += one
    return written
