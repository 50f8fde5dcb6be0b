"""A trained baseline as something that predicts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from exactformer.baselines.data import padded
from exactformer.baselines.positions import Parameters
from exactformer.baselines.recipe import Recipe, network_for
from exactformer.baselines.state import Inputs, Network, State
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG
from exactformer.domains.syntax import Expression


@dataclass(frozen=True)
class Predictor:
    """One seed of a trained network; it is given the true depth of each expression."""

    network: Network
    algebra: Algebra
    parameters: Parameters  # with a seeds' axis of one
    memory: int = 40_000_000  # problems at once times the square of their tokens, at most

    @classmethod
    def of_seed(cls, recipe: Recipe, state: State, row: int) -> "Predictor":
        best = {name: tensor[row : row + 1] for name, tensor in state.best.items()}
        return cls(network_for(recipe), CATALOG[recipe.task](), best)

    @torch.no_grad()
    def predict(self, expressions: Sequence[Expression]) -> list[str | None]:
        device = next(iter(self.parameters.values())).device
        answers: list[str | None] = [None] * len(expressions)
        order = sorted(range(len(expressions)), key=lambda i: len(expressions[i]))
        while order:
            at_once = max(1, self.memory // (len(expressions[order[-1]]) + 2) ** 2)
            batch, order = order[-at_once:], order[:-at_once]
            tokens = torch.from_numpy(padded([expressions[i] for i in batch])).to(device)
            depths = torch.tensor([expressions[i].depth for i in batch], device=device)
            inputs = Inputs(tokens[None], depths[None], int(depths.max()))
            logits, _ = self.network.forward(self.parameters, inputs)
            for i, value in zip(batch, logits[0].argmax(-1).tolist(), strict=True):
                answers[i] = self.algebra.values[value]
        return answers
