"""The automaton of any algebra, written down from its tables: what exact weights have to give.

So engines can be tried on algebras that no weights exist for, and against a pass over the text that
is nothing but the automaton's definition.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.engine.automaton import SpanAutomaton

Read = tuple  # what was read of a span: token ids of operators, indices of operands


def automaton_of(algebra: Algebra) -> SpanAutomaton:
    """A state for everything that a span can begin with; sorted where the order is free."""
    n, width = len(algebra.values), len(algebra.vocabulary)
    numbers: dict[Read, int] = {("(",): 1 + n}
    rows = np.full((1 + n, width), -1, dtype=np.int32)
    rows[0, algebra.value_ids] = 1 + np.arange(n)
    steps, values = [*rows], [-1] * (1 + n)
    todo = [("(",)]
    for read in todo:  # grows while it is gone through
        row = np.full(width, -1, dtype=np.int32)
        for token, following in (_infix if algebra.notation == "infix" else _prefix)(algebra, read):
            if following not in numbers:
                numbers[following] = 1 + n + len(numbers)
                todo.append(following)
            row[token] = numbers[following]
        steps.append(row)
        values.append(_value(algebra, read))
    step, value = np.array(steps), np.array(values, dtype=np.int32)
    return SpanAutomaton(step, value, np.zeros_like(value), n)


def _infix(algebra: Algebra, read: Read) -> Iterator[tuple[int, Read]]:
    """`( a`, `( a op`, `( op`, then `( op a` or `( op a b`."""
    operands = range(len(algebra.values))
    pairs = [op for op in algebra.operators if 2 in op.arities]
    for token, op in enumerate(algebra.operators, algebra.first_operator):
        if read == ("(",) and 1 in op.arities:
            yield token, ("(", "one", token)
        if len(read) == 3 and read[1] == "operand" and 2 in op.arities:
            yield token, ("(", "two", token, read[2])
    if read == ("(",) and pairs:
        yield from ((FIRST_VALUE + a, ("(", "operand", a)) for a in operands)
    elif len(read) > 1 and len(read) == {"one": 3, "two": 4}.get(read[1]):
        yield from ((FIRST_VALUE + a, (")", read[2], *read[3:], a)) for a in operands)


def _prefix(algebra: Algebra, read: Read) -> Iterator[tuple[int, Read]]:
    if read == ("(",):
        for token in algebra.operator_ids:
            yield token, (")", token)
        return
    operator = algebra.operators[read[1] - algebra.first_operator]
    if len(read) - 2 < operator.arities[-1]:
        for a in range(len(algebra.values)):
            yield FIRST_VALUE + a, (")", read[1], *operator.key((*read[2:], a)))


def _value(algebra: Algebra, read: Read) -> int:
    if read[0] != ")":
        return -1
    operator = algebra.operators[read[1] - algebra.first_operator]
    return operator(read[2:]) if len(read) - 2 in operator.arities else -1


def run(automaton: SpanAutomaton, ids: Iterable[int]) -> int | None:
    """The value of token ids by the automaton's definition; None if they are no expression."""
    step, values = automaton.step.tolist(), automaton.value.tolist()
    enclosing: list[int] = []
    state = 0
    for token in ids:
        if token == OPEN:
            if step[state][FIRST_VALUE] < 0:
                return None
            enclosing.append(state)
            state = automaton.start
        elif token == CLOSE:
            value = values[state]
            if value < 0 or not enclosing:
                return None
            state = step[enclosing.pop()][FIRST_VALUE + value]
        else:
            state = step[state][token]
        if state < 0:
            return None
    return state - 1 if not enclosing and 1 <= state <= automaton.n_values else None
