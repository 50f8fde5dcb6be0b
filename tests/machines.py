"""Random machines and texts, and machines that are changed or split."""

from dataclasses import replace

import numpy as np

from exactformer.domains.expression import Expression
from exactformer.domains.machines import NO_STATE, Machine
from exactformer.domains.span_machines import SpanMachine


def random_machine(rng: np.random.Generator, most_states: int = 6) -> Machine:
    """A random machine of either kind, read from either side, some with symbols not allowed."""
    while True:  # until there is a text that has an answer
        n, k = int(rng.integers(1, most_states + 1)), int(rng.integers(1, 4))
        table = rng.integers(n, size=(n, k))
        if rng.random() < 0.4:
            table[rng.random(table.shape) < 0.25] = NO_STATE
        states = _reached(table)
        number = {int(q): i for i, q in enumerate(states)} | {NO_STATE: NO_STATE}
        transitions = tuple(tuple(number[int(q)] for q in table[state]) for state in states)
        if rng.random() < 0.5:
            ends = [None if rng.random() < 0.1 else str(rng.choice([*"ab01"])) for _ in states]
            outputs = tuple(ends)
        else:
            outputs = tuple(
                tuple(None if q == NO_STATE else str(rng.choice([*"ab01"])) for q in row)
                for row in transitions
            )
        names = tuple(f"q{i}" for i in range(len(states)))
        ends = {q for row in transitions for q in row} - {NO_STATE}
        if any(outputs[q] is not None for q in ends):
            read = str(rng.choice(["left", "right"]))
            symbols = tuple("01c"[:k])
            return Machine("random", symbols, names, transitions, outputs, read=read)  # type: ignore[arg-type]


def random_span_machine(rng: np.random.Generator) -> SpanMachine:
    """A random machine that allows every symbol in every state."""
    n, values, others = rng.integers(1, 8), rng.integers(1, 5), rng.integers(0, 4)
    symbols = "abcd"[:values] + "+*!"[:others]
    table = rng.integers(n, size=(n, len(symbols)))
    outputs = [str(rng.choice([*symbols[:values]])) for _ in range(n)]
    machine = Machine.from_rule(
        "random", symbols, 0, lambda q, x: int(table[q, symbols.index(x)]), lambda q: outputs[q]
    )
    return SpanMachine(machine)


def _reached(table: np.ndarray) -> list[int]:
    found = [0]
    for state in found:
        for following in table[state].tolist():
            if following != NO_STATE and following not in found:
                found.append(following)
    return found


def random_texts(machine: Machine, rng: np.random.Generator, count: int) -> list[Expression]:
    """Random texts of up to 40 symbols that the machine allows."""
    texts: list[Expression] = []
    for _ in range(50 * count):
        if len(texts) == count:
            break
        length = int(rng.integers(1, 41))
        state, ids = machine.start, []
        while len(ids) < length:
            allowed = [t for t, q in enumerate(machine.transitions[state]) if q != NO_STATE]
            if not allowed:
                break
            ids.append(allowed[rng.integers(len(allowed))])
            state = machine.transitions[state][ids[-1]]
        ends = ids and not (machine.answers_at_end and machine.outputs[state] is None)
        if ends:
            order = 1 if machine.read == "left" else -1
            texts.append(Expression(machine, np.array(ids[::order], dtype=np.int16)))
    return texts


def mutated(machine: Machine, rng: np.random.Generator) -> Machine:
    """The machine with one transition or output changed, with a chance of one in two."""
    if rng.random() < 0.5:
        return machine
    state = int(rng.integers(len(machine.states)))
    transitions, outputs = [list(row) for row in machine.transitions], list(machine.outputs)
    symbol = int(rng.integers(len(machine.symbols)))
    row = outputs[state]
    if rng.random() < 0.5 and transitions[state][symbol] != NO_STATE:
        transitions[state][symbol] = int(rng.integers(len(machine.states)))
    elif isinstance(row, tuple) and row[symbol] is not None:
        outputs[state] = (*row[:symbol], str(rng.choice([*"ab01"])), *row[symbol + 1 :])
    elif isinstance(row, str):
        outputs[state] = str(rng.choice([*"ab01"]))
    return _same_vocabulary(machine, transitions, outputs) or machine


def split(machine: Machine, rng: np.random.Generator) -> Machine | None:
    """The machine with a second copy of one of its states, to which some of the ways lead."""
    state, new = int(rng.integers(len(machine.states))), len(machine.states)
    rows = [list(row) for row in machine.transitions]
    rows.append(list(rows[state]))
    for row in rows:
        for symbol, following in enumerate(row):
            if following == state and rng.random() < 0.5:
                row[symbol] = new
    return _same_vocabulary(machine, rows, [*machine.outputs, machine.outputs[state]])


def _same_vocabulary(machine: Machine, rows: list, outputs: list) -> Machine | None:
    """The machine with these rows; None if it cannot be, or has another vocabulary."""
    try:
        changed = replace(
            machine,
            states=tuple(f"q{i}" for i in range(len(rows))),
            transitions=tuple(map(tuple, rows)),
            outputs=tuple(outputs),
        )
    except ValueError:
        return None
    return changed if changed.vocabulary == machine.vocabulary else None
