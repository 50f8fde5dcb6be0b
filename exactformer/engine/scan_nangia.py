"""The compiled pass over rows in Nangia and Bowman's notation: each as the codes of its tokens.

It takes what is well formed and plain ASCII, and nothing else: a row that it does not take is the
parser's, which may still read it (white space beyond ASCII) or say what is wrong with it. In the
binarised form an operand is followed by `)`, and so is the `]` of a span: they are read together,
so that what is left to tell apart is no more than in the form without parentheses.
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

U = np.uint64
LABEL_FIRST, LABEL_LAST, NO_LABEL = range(3)
TAB, NEWLINE, LEFT_ROUND, RIGHT_ROUND, RIGHT_SQUARE = b"\t\n()]"
MOST_OPERANDS = LARGEST_ARITY  # of a span; a wider one is left to the parser
LEFT_TO_PARSER = -1  # instead of the number of codes of a row
SPACED = int.from_bytes(b" ) ", "little")  # as published files are written
FIELD = 28  # bits of a number in an entry of the stack: no buffer is that long


class Notation(NamedTuple):
    """The lookup tables of the pass over rows in Nangia's notation."""

    blank: NDArray[np.bool_]  # by byte: white space within a field
    word: NDArray[np.bool_]  # by byte: may go on with a word
    digit: NDArray[np.uint8]  # by byte: its code, or 0
    number: NDArray[np.uint8]  # by the two bytes after `[`: number of the operator from 1, or 0
    spelt: NDArray[np.uint64]  # by operator: its bytes, up to eight,
    mask: NDArray[np.uint64]  # and which of eight bytes these are; number 0 is never the same
    length: NDArray[np.uint64]  # of its bytes
    code: NDArray[np.uint8]  # by operator


def notation_of(separators: bytes) -> Notation:
    """The lookup tables for rows and fields that end with these bytes, which are no white space
    then.
    """
    classes = np.array(BYTE_CLASSES)
    blank = classes == BLANK
    blank[list(separators)] = False
    digit = np.zeros(256, dtype=np.uint8)
    for symbol, code in DIGIT_CODES.items():
        digit[ord(symbol)] = code
    words = [word.encode() for word in OPERATOR_CODES]
    number = np.zeros(1 << 16, dtype=np.uint8)
    for i, word in enumerate(words, start=1):
        assert not number[word[1] | word[2] << 8], "two bytes tell the operators apart"
        number[word[1] | word[2] << 8] = i
    return Notation(
        blank=blank,
        word=(classes == WORD) | (np.arange(256) >= 128),
        digit=digit,
        number=number,
        spelt=np.array([1, *(int.from_bytes(w, "little") for w in words)], np.uint64),
        mask=np.array([0, *((1 << 8 * len(w)) - 1 for w in words)], np.uint64),
        length=np.array([0, *map(len, words)], np.uint64),
        code=np.array([0, *OPERATOR_CODES.values()], np.uint8),
    )


class Transcript(NamedTuple):
    """The result of one pass over rows in Nangia's notation."""

    codes: NDArray[np.uint8]  # of all rows, one after the other
    counts: NDArray[np.int32]  # of codes by row, or LEFT_TO_PARSER
    labels: NDArray[np.uint8]  # by row, as codes; no room for them where rows have none
    begins: NDArray[np.int32]  # by row, in the text
    uses: NDArray[np.int64]  # by operator and number of operands, the first row with it, or -1


@compiled
def _skip(text, i, end, notation):
    """The index after white space."""
    while i < end and notation.blank[text[i]]:
        i += U(1)
    return i


@compiled
def _parenthesis(text, i, end, notation):
    """The index after white space, `)` and white space; 0 where there is no `)`."""
    one, after = U(1), i + U(3)
    if after < end:
        four = U(text[i]) | U(text[i + one]) << U(8) | U(text[i + U(2)]) << U(16)
        four |= U(text[after]) << U(24)
        if four & U(0xFFFFFF) == U(SPACED) and four >> U(24) > U(32):
            return after
    i = _skip(text, i, end, notation)
    if i < end and text[i] == RIGHT_ROUND:
        return _skip(text, i + one, end, notation)
    return U(0)


@compiled
def _goes_on(text, i, end, notation):
    """Whether a word goes on here; most often there is a space, which is quicker to see."""
    return i < end and text[i] != 32 and notation.word[text[i]]


@compiled
def _operator(text, i, end, notation):
    """The number of the operator that stands here, or 0."""
    eight = U(0)
    if i + U(8) <= end:
        eight = eight_bytes(text, i)
    else:
        for k in range(end - i):
            eight |= U(text[i + U(k)]) << (U(8) * U(k))
    number = U(notation.number[(eight >> U(8)) & U(0xFFFF)])
    after = i + notation.length[number]
    if (eight & notation.mask[number]) != notation.spelt[number]:
        return U(0)
    return U(0) if _goes_on(text, after, end, notation) else number


@compiled
def _label(text, i, end, notation):
    """The code of a digit between white space, or 0, and the index after them."""
    i = _skip(text, i, end, notation)
    if i < end and notation.digit[text[i]]:
        return notation.digit[text[i]], _skip(text, i + U(1), end, notation)
    return np.uint8(0), i


@compiled
def _expression(text, i, end, notation, stack, codes, written, uses, row):
    """Write the codes of the expression that begins here; returns how many are written then, and
    the index after it, which is 0 where there is none.
    """
    # A span is its operator's number from 0, its operands so far and its open parentheses; in the
    # form without parentheses these are two, as are those around the whole.
    failed, one, two, field = U(0), U(1), U(2), U((1 << FIELD) - 1)
    i = _skip(text, i, end, notation)
    binarised = i < end and text[i] == LEFT_ROUND
    operand = U(1 << FIELD) - U(binarised)  # one more, and one parenthesis less
    last = one if binarised else two  # parentheses that are open when a span closes
    depth, span = U(0), two
    while i < end:
        byte = text[i]
        code = notation.digit[byte]
        if code:
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
                i = _parenthesis(text, i, end, notation)
                if i == failed:
                    return written, failed
        else:
            opened = U(0)
            while i < end and text[i] == LEFT_ROUND:
                opened += one
                i = _skip(text, i + one, end, notation)
            number = _operator(text, i, end, notation)
            if number == U(0) or span & field < two or (opened > U(0)) != binarised:
                return written, failed
            i = _skip(text, i + notation.length[number], end, notation)
            codes[written] = OPEN
            codes[written + one] = notation.code[number]
            written += two
            stack[depth] = span
            depth += one
            span = number - one << U(2 * FIELD) | (opened if binarised else two)
            continue
        if depth == U(0):
            return written, _skip(text, i, end, notation)
        i = _parenthesis(text, i, end, notation) if binarised else _skip(text, i, end, notation)
        if i == failed:
            return written, failed
    return written, failed


@compiled
def transcribe(text, begin, end, label, notation, stack, found):
    """The rows of text[begin:end] into `found`; returns how many codes they have in all.

    label   where it stands: before the expression and a tab, behind them, or nowhere
    stack   room for as many open spans as there may be
    """
    codes, counts, labels, begins, uses = found
    i, end, row, written, one = U(begin), U(end), U(0), U(0), U(1)
    while i < end and row < U(len(begins)):  # as in `scan_rows`
        begins[row] = i
        first, right, said = written, True, np.uint8(0)
        after = i
        if label == LABEL_FIRST:
            said, after = _label(text, after, end, notation)
            right = said > 0 and after < end and text[after] == TAB
            after += one
        if right:
            written, after = _expression(
                text, after, end, notation, stack, codes, written, uses, row
            )
            right = after != U(0)
        if right and label == LABEL_LAST:
            right = after < end and text[after] == TAB
            if right:
                said, after = _label(text, after + one, end, notation)
                right = said > 0
        if right and (after == end or text[after] == NEWLINE):
            counts[row] = written - first
            i = after + one
        else:
            counts[row], written = LEFT_TO_PARSER, first
            while i < end and text[i] != NEWLINE:
                i += one
            i += one
        if label != NO_LABEL:
            labels[row] = said
        row += one
    return written
