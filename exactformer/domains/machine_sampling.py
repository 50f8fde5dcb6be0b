"""Random texts of machines."""

import numpy as np

from exactformer.domains.bounds import MOST_TEXTS_AT_ONCE, require
from exactformer.domains.expression import Expression
from exactformer.domains.machines import Machine


def draw_texts(
    machine: Machine, length: int, count: int, rng: np.random.Generator
) -> list[Expression]:
    """Draw texts of this many symbols, each text that the machine allows equally often."""
    require("symbols of all texts", length * count, MOST_TEXTS_AT_ONCE)
    share = machine.completions(length)
    if not length or not share[length, machine.start]:
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
