"""Random programs, to test on.

The distribution of `draw_program`. Each statement is a copy of a name with probability COPIES, else
a random expression (`sampling.py`) whose depth is uniform from 0 to `depth`, in which each value
becomes a name with probability `wires`. The name is one of those defined before: with probability
RECENT one of the last few, else any. So there are long chains, and names that are used many times.
The statements are put into a random order at the end.
"""

import numpy as np

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.data import expect
from exactformer.domains.program import WIRE, Program
from exactformer.domains.sampling import draw

COPIES = 0.05
RECENT = 0.5
FEW = 4  # of the last names


def draw_program(
    algebra: Algebra,
    statements: int,
    rng: np.random.Generator,
    *,
    depth: int = 2,
    wires: float = 0.8,
) -> Program:
    """A random program without inputs; its results are the names that no statement uses."""
    expect(rng, np.random.Generator, "a generator, such as numpy.random.default_rng(0), as rng")
    if statements < 1:
        raise ValueError(f"expected a number of statements from 1, found {statements}")
    depths = rng.integers(depth + 1, size=statements)
    texts: list[np.ndarray] = [np.empty(0, dtype=np.int16)] * statements
    for d in range(depth + 1):
        (which,) = np.nonzero(depths == d)
        for i, drawn in zip(which, draw(algebra, d, len(which), rng), strict=True):
            texts[i] = drawn.ids
    for i in np.flatnonzero(rng.random(statements) < COPIES):
        texts[i] = np.array([FIRST_VALUE], dtype=np.int16)
    uses: list[np.ndarray] = []
    for i, text in enumerate(texts):
        texts[i] = text = text.copy()
        values = np.flatnonzero((text >= FIRST_VALUE) & (text < algebra.first_operator))
        chosen = values[rng.random(len(values)) < wires] if i else values[:0]
        text[chosen] = WIRE
        oldest = np.where(rng.random(len(chosen)) < RECENT, max(0, i - FEW), 0)
        uses.append(rng.integers(oldest, i, size=len(chosen)) if i else oldest)
    order = rng.permutation(statements)  # the statement that comes in each place
    place = np.argsort(order)
    return Program(
        algebra,
        tuple(f"x{i}" for i in order.tolist()),
        0,
        np.concatenate([texts[i] for i in order]),
        np.array([len(texts[i]) for i in order], dtype=np.int64),
        place[np.concatenate([uses[i] for i in order])],
        (),
    ).with_outputs(None)
