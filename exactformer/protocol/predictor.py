"""A trained network as a predictor."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.protocol.data import padded
from exactformer.protocol.state import Inputs, Network, Parameters

MEMORY = 40_000_000  # problems of all seeds at once times the square of their tokens, at most


@dataclass(frozen=True)
class Predictor:
    """One seed of a trained network; it is given the true depth of each expression."""

    network: Network
    algebra: Algebra
    parameters: Parameters  # with a seeds' axis of one
    memory: int = MEMORY

    def predict(self, expressions: Sequence[Expression]) -> list[str | None]:
        found = answers(self.network, self.parameters, expressions, self.memory)
        return [self.algebra.values[value] for value in found[0]]


@torch.no_grad()
def answers(
    network: Network,
    parameters: Parameters,
    expressions: Sequence[Expression],
    memory: int = MEMORY,
) -> NDArray[np.int64]:
    """Every seed's answer to every expression, (S, expressions), as value indices."""
    S, device = len(one := next(iter(parameters.values()))), one.device
    found = np.zeros((S, len(expressions)), dtype=np.int64)
    order = sorted(range(len(expressions)), key=lambda i: len(expressions[i]))
    while order:
        at_once = max(1, memory // (S * (len(expressions[order[-1]]) + 2) ** 2))
        batch, order = order[-at_once:], order[:-at_once]
        tokens = torch.from_numpy(padded([expressions[i] for i in batch])).to(device)
        depths = torch.tensor([expressions[i].depth for i in batch], device=device)
        inputs = Inputs(tokens.expand(S, -1, -1), depths.expand(S, -1), int(depths.max()))
        found[:, batch] = network.forward(parameters, inputs)[0].argmax(-1).cpu().numpy()
    return found
