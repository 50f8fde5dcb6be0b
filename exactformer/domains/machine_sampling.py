"""Random texts of machines, and random spans that machines read.

The distribution of `draw_spans`. A text of depth 0 is a uniformly drawn value. A span is drawn
symbol by symbol: what may follow is equally likely, a value or an inner span counting as one, and
so is its end; behind a number of symbols that is uniform in 1..WIDE, the shortest way to the end is
taken. Of the values in a span of depth d > 1, one in a uniform place is a span of depth d-1; every
other one is a value with probability 1/2, and otherwise has a depth uniform in 0..d-1. Spans that
have no place for a value are drawn anew where d > 1.
"""

import numpy as np

from exactformer.domains.bounds import MOST_TEXTS_AT_ONCE, require
from exactformer.domains.expression import Expression
from exactformer.domains.growth import Growth
from exactformer.domains.machines import Machine
from exactformer.domains.span_machines import VALUE, SpanMachine
from exactformer.domains.symbols import CLOSE, OPEN

WIDE = 6  # symbols of a span behind which it is brought to an end
SEEN = 200  # spans from which their mean size is taken
TRIES = 1_000  # spans that are drawn until one has a place for a value


def draw_texts(
    machine: Machine, length: int, count: int, rng: np.random.Generator
) -> list[Expression]:
    """Draw texts of this many symbols, each text that the machine allows equally often."""
    if length < 1 or count < 0:
        raise ValueError(f"expected a length of 1 or more and a count, found {length} and {count}")
    require("symbols of all texts", length * count, MOST_TEXTS_AT_ONCE)
    if not machine.is_partial:
        every = rng.integers(len(machine.symbols), size=(count, length), dtype=np.int16)
        return [Expression(machine, row) for row in every]
    require("symbols times states", length * len(machine.states), MOST_TEXTS_AT_ONCE)
    share = machine.completions(length)
    if not share[length, machine.start]:
        raise ValueError(f"{machine.name!r} allows no text of {length} symbols")
    following = machine.next_states
    states = np.full(count, machine.start)
    ids = np.empty((count, length), dtype=np.int16)
    for i in range(length):
        weights = np.where(following >= 0, share[length - i - 1][following], 0)[states]
        upto = weights.cumsum(1)
        drawn = rng.random(count) * upto[:, -1]
        ids[:, i] = (drawn[:, None] >= upto).sum(1)
        states = following[states, ids[:, i]]
    if machine.read == "right":
        ids = ids[:, ::-1]
    return [Expression(machine, row.copy()) for row in ids]


def draw_spans(
    domain: SpanMachine, depth: int, count: int, rng: np.random.Generator
) -> list[Expression]:
    """Draw texts of exactly this depth; the module's docstring has the law."""
    if depth < 0 or count < 0:
        raise ValueError(f"expected a depth and a count of 0 or more, found {depth} and {count}")
    values = sorted(domain.value_ids)
    drawn = []
    for _ in range(count):
        # Tokens, and below zero the spans that are still to be drawn, each as minus its depth.
        text = [-depth] if depth else [int(rng.choice(values))]
        for level in range(depth, 0, -1):
            text = [
                t
                for part in text
                for t in (_span(domain, level, rng) if part == -level else [part])
            ]
            require("tokens of a text", len(text), MOST_TEXTS_AT_ONCE)
        drawn.append(Expression(domain, np.array(text, dtype=np.int16)))
    return drawn


def tokens_of_spans(domain: SpanMachine, depth: int) -> float:
    """About how many tokens a text of this depth has, from spans that are drawn to see."""
    rng = np.random.default_rng(0)
    spans = [_symbols(domain, rng) for _ in range(SEEN)]
    symbols, values = (sum(map(count, spans)) / SEEN for count in (len, lambda s: s.count(VALUE)))
    own = 2 + symbols - values
    return Growth(1, own, max(0, values - 1), 1 / 2).tokens(depth)[depth]


def _span(domain: SpanMachine, depth: int, rng: np.random.Generator) -> list[int]:
    """A span, with minus the depth in place of each inner span."""
    values = sorted(domain.value_ids)
    for _ in range(TRIES):
        read = _symbols(domain, rng)
        places = [i for i, token in enumerate(read) if token == VALUE]
        if places or depth == 1:
            break
    else:
        raise ValueError(f"{domain.name!r}: no span of depth {depth} drawn: none has a value in it")
    deepest = int(rng.choice(places)) if depth > 1 else -1
    for i in places:
        inner = depth - 1 if i == deepest else int(rng.random() < 0.5 and rng.integers(depth))
        read[i] = -inner if inner else int(rng.choice(values))
    return [OPEN, *read, CLOSE]


def _symbols(domain: SpanMachine, rng: np.random.Generator) -> list[int]:
    """The symbols of a span, with VALUE in place of each value."""
    phases, phase, read = domain.phases, domain.phases[0], []
    wide = int(rng.integers(1, WIDE + 1))
    while True:
        following = [*phase.after]
        if phase.ends and read and (len(read) >= wide or rng.integers(len(following) + 1) == 0):
            return read
        if len(read) >= wide:
            following = [min(following, key=lambda token: phases[phase.after[token]].to_close)]
        read.append(int(rng.choice(following)))
        phase = phases[phase.after[read[-1]]]
