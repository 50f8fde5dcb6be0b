"""The cases of depth 1 that a step learns from: all of them, or some bags of each seed's own.

The cases stay in the same memory, into which `turn` puts the next batch. What it draws on was drawn
before, for a number of steps, and lies on the device.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from exactformer.training.depth_one import Rows
from exactformer.training.parameters import BATCHES, generator
from exactformer.training.state import Seed


def all_cases(rows: Rows, bags: Tensor, seeds: int) -> list[Tensor]:
    """Tokens, bags, targets and weights of every case: (seeds, rows, D) each, with slots before D
    for bags. These are each seed's own, or the same for all: (seeds or 1, B, w, S, D).
    """
    of_rows = (rows.token, rows.target, rows.weight)
    token, target, weight = (t.flatten(0, 1).expand(seeds, -1, -1) for t in of_rows)
    return [token, bags.flatten(1, 2).expand(seeds, -1, -1, -1), target, weight]


class Batches:
    """All cases, in every turn."""

    def __init__(self, cases: Sequence[Tensor]) -> None:
        self.cases = cases

    def turn(self) -> None:
        """Nothing else comes up."""


class DrawnBatches(Batches):
    """A few bags in every turn, drawn for each seed; the zero vector is in each batch."""

    def __init__(
        self, rows: Rows, bags: Tensor, seeds: Sequence[Seed], batch: int, turns: int
    ) -> None:
        B, w, D = rows.token.shape
        n_bags, device = B - 1, rows.token.device
        chosen = np.full((turns, len(seeds), batch + 1), n_bags)
        for row, seed in enumerate(seeds):
            for turn in range(turns):
                rng = generator(seed.seed, seed.attempt, BATCHES, seed.step + turn)
                chosen[turn, row, :-1] = rng.integers(n_bags, size=batch)
        self.chosen = torch.from_numpy(chosen).to(device)
        self.next = torch.zeros(1, dtype=torch.long, device=device)
        own = torch.arange(len(bags), device=device) * B  # where each seed's own bags begin
        self.first_bag = own.unsqueeze(-1)
        weight = rows.weight * (n_bags / batch)
        self.sources = [t.flatten(1) for t in (rows.token, bags.flatten(0, 1), rows.target, weight)]
        shape = (len(seeds), (batch + 1) * w)
        super().__init__([bags.new_empty(*shape, *s) for s in ((D,), bags.shape[-2:], (D,), (D,))])

    def turn(self) -> None:
        chosen = self.chosen.index_select(0, self.next)[0]
        of_bags = (chosen + self.first_bag).flatten()
        of_rows = chosen.flatten()
        for which, source, case in zip(
            (of_rows, of_bags, of_rows, of_rows), self.sources, self.cases, strict=True
        ):
            torch.index_select(source, 0, which, out=case.view(-1, source.shape[-1]))
        self.next += 1
