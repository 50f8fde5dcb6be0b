"""The problems of a training phase on the device, and the batches of an epoch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from exactformer.protocol.data import Problems, widened
from exactformer.protocol.recipe import Recipe
from exactformer.protocol.state import Inputs, Network, Parameters


class Batches:
    """A set of problems for each seed, and their order in the epoch. The buffers stay the same, as
    a recorded CUDA graph needs them to.
    """

    def __init__(self, sets: Sequence[Problems], recipe: Recipe, device: torch.device) -> None:
        self.count = len(sets[0])
        self.size = min(recipe.batch, self.count)
        self.batches = -(-self.count // self.size)
        self.used = max(1, round(recipe.share * self.batches))  # of an epoch's batches
        self.steps = int(sets[0].depths.max())
        S = len(sets)
        width = sets[0].tokens.shape[1]
        self.tokens = torch.empty(S, self.count, width, dtype=torch.int16, device=device)
        self.values = torch.empty(S, self.count, dtype=torch.int64, device=device)
        self.depths = torch.empty(S, self.count, dtype=torch.int64, device=device)
        self.order = torch.empty(S, self.batches, self.size, dtype=torch.int64, device=device)
        self.seed_rows = torch.arange(S, device=device)[:, None]
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.loss = torch.zeros(S, device=device)  # summed over the batches of an epoch
        self.load(sets)

    def load(self, sets: Sequence[Problems]) -> None:
        width = self.tokens.shape[2]
        tokens = np.stack([widened(problems.tokens, width) for problems in sets])
        self.tokens.copy_(torch.from_numpy(tokens))
        self.values.copy_(torch.from_numpy(np.stack([problems.values for problems in sets])))
        self.depths.copy_(torch.from_numpy(np.stack([problems.depths for problems in sets])))

    def arrange(self, orders: Sequence[np.ndarray]) -> None:
        """The last batch is filled up with -1, which counts for nothing."""
        missing = self.batches * self.size - self.count
        filled = [np.pad(order, (0, missing), constant_values=-1) for order in orders]
        self.order.copy_(torch.from_numpy(np.stack(filled)).view_as(self.order))

    def next(self) -> tuple[Inputs, Tensor, Tensor]:
        """The next batch: its problems, their values, and 1 or 0 as the weight of each."""
        row = self.order.index_select(1, self.cursor).squeeze(1)
        self.cursor += 1
        index = (self.seed_rows, row.clamp(min=0))
        weights = (row >= 0).float()
        inputs = Inputs(self.tokens[index], self.depths[index], self.steps)
        return inputs, self.values[index], weights

    @torch.no_grad()
    def accuracy(self, network: Network, p: Parameters, span: slice, chunk: int = 2500) -> Tensor:
        """The fraction of these problems that each seed gets right: (S,)."""
        right = torch.zeros(len(self.tokens), device=self.tokens.device)
        start, stop, _ = span.indices(self.count)
        for begin in range(start, stop, chunk):
            rows = slice(begin, min(begin + chunk, stop))
            inputs = Inputs(self.tokens[:, rows], self.depths[:, rows], self.steps)
            logits, _ = network.forward(p, inputs)
            right += (logits.argmax(-1) == self.values[:, rows]).sum(1)
        return right / (stop - start)
