"""Writes out the parentheses that the arities of Polish notation stand for, in a compiled pass."""

import numpy as np
from numpy.typing import NDArray

from exactformer.domains.algebra import CLOSE, OPEN, Algebra
from exactformer.domains.polish import arities_by_token
from exactformer.engine.compiled import compiled

Tokens = NDArray[np.integer]


def with_brackets(algebra: Algebra, tokens: Tokens, ends: Tokens) -> tuple[Tokens, Tokens]:
    """The tokens of many texts, one after another up to these ends, in prefix notation with all of
    their parentheses; and where they then end.
    """
    arities = np.array(arities_by_token(algebra), dtype=np.int64)
    sizes = np.cumsum(1 + 2 * (arities[tokens] > 0))
    new_ends = np.append(0, sizes)[ends]
    written = np.empty(sizes[-1] if len(sizes) else 0, dtype=np.int16)
    longest = int(np.diff(ends, prepend=0).max(initial=0))
    space = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int16)
    first = algebra.notation.operators_first
    write_brackets(tokens, ends, arities, first, written, new_ends, *space)
    return written, new_ends


@compiled
def write_brackets(tokens, ends, arities, operators_first, written, new_ends, missing, waiting):
    """Write each row of tokens in prefix notation, with all of its parentheses. Rows in reverse
    Polish notation are read and written from their ends.

    missing    room for the number of operands that each open span has yet to get
    waiting    room for the operator of each open span
    """
    step = 1 if operators_first else -1
    begin = 0
    for row in range(len(ends)):
        end = ends[row]
        depth = 0
        i = begin if operators_first else end - 1
        k = (new_ends[row - 1] if row else 0) if operators_first else new_ends[row] - 1
        for _ in range(end - begin):
            token = tokens[i]
            i += step
            if arities[token]:
                missing[depth] = arities[token]
                waiting[depth] = token
                depth += 1
                if operators_first:
                    written[k] = OPEN
                    written[k + 1] = token
                    k += 2
                else:
                    written[k] = CLOSE
                    k -= 1
                continue
            written[k] = token
            k += step
            while depth:  # an operand is complete, and perhaps the span around it
                missing[depth - 1] -= 1
                if missing[depth - 1]:
                    break
                depth -= 1
                if operators_first:
                    written[k] = CLOSE
                    k += 1
                else:
                    written[k] = waiting[depth]
                    written[k - 1] = OPEN
                    k -= 2
        begin = end
