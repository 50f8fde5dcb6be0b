"""Writes out the parentheses that the arities of Polish notation stand for, in a compiled pass."""

from exactformer.domains.algebra import CLOSE, OPEN
from exactformer.engine.compiled import compiled


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
