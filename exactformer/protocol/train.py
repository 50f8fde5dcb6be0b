"""Trains a network under the paper's protocol: the main interface of this package."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from exactformer.domains.algebra import AN_ALGEBRA, Algebra
from exactformer.domains.catalog import describe
from exactformer.domains.data import expect
from exactformer.domains.expression import Expression
from exactformer.protocol.loop import train_network
from exactformer.protocol.modules import MakeModule, ModuleNetwork
from exactformer.protocol.predictor import Predictor
from exactformer.protocol.recipe import FITTED, Recipe, default_recipe
from exactformer.protocol.state import Network, NetworkState


@dataclass(frozen=True)
class Trained:
    """One seed of a network, at its best epoch and at the last one.

    accuracy   on the training problems of depth 1 and of depth 2, at the best epoch.
    curve      of each epoch: loss, and accuracy at depth 1 and at depth 2.
    """

    seed: int
    best: Predictor = field(repr=False)
    last: Predictor = field(repr=False)
    best_epoch: int
    accuracy: tuple[float, float]
    curve: list[dict[str, Any]] = field(repr=False)

    @property
    def fitted(self) -> bool:
        """Whether the seed fits its training problems, by the paper's rule."""
        return min(self.accuracy) >= FITTED

    def predict(self, expressions: Sequence[Expression], /) -> list[str | None]:
        """The answers at the best epoch."""
        return self.best.predict(expressions)

    def module(self) -> nn.Module:
        """The module with the parameters of the best epoch, to be used further."""
        network = self.best.network
        if not isinstance(network, ModuleNetwork):
            raise ValueError("this network was not made of a module")
        module = network.make()
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(self.best.parameters[name][0])
        return module.eval()


def train(
    make: MakeModule | Network,
    algebra: Algebra,
    seeds: Sequence[int] = (0, 1, 2),
    *,
    recipe: Recipe | None = None,
    out: Path | str | None = None,
    device: str | torch.device = "cpu",
    report: Callable[[str], None] = lambda line: None,
) -> list[Trained]:
    """Train a network on depth 1 and 2 as the paper trains its baselines, from each seed.

    make     a function that makes a module from ids of tokens (b, n) and a mask (b, n) to logits of
             the algebra's values (b, values); or a `Network` that is written for many seeds.
    recipe   every constant; if not given, the paper's for the algebra.
    out      a folder for the state of the run: one that was killed goes on from there.
    report   is called with a line about the run, some twenty times.
    """
    expect(algebra, Algebra, AN_ALGEBRA)
    expect(seeds, Iterable, "a list of seeds, such as [0, 1, 2] or range(3)")
    seeds = list(seeds)
    if not seeds or any(type(seed) is not int or seed < 0 for seed in seeds):
        raise ValueError(f"seeds: expected whole numbers of 0 or more, found {seeds}")
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"seeds: expected different ones, found {seeds}")
    recipe = default_recipe(algebra) if recipe is None else recipe
    if hasattr(make, "initial") and hasattr(make, "recordable"):
        network: Any = make
    else:
        network = ModuleNetwork(make, algebra)  # type: ignore[reportArgumentType]
    folder, where = None if out is None else Path(out), torch.device(device)
    about = {"algebra": describe(algebra)}
    with torch.random.fork_rng([where] if where.type == "cuda" else []):  # the caller's is kept
        state = train_network(network, algebra, recipe, seeds, folder, where, report, about=about)
    return [_trained(network, algebra, state, i, seed) for i, seed in enumerate(seeds)]


def _trained(
    network: Network, algebra: Algebra, state: NetworkState, row: int, seed: int
) -> Trained:
    best, last = (
        Predictor(network, algebra, {name: tensor[row : row + 1] for name, tensor in group.items()})
        for group in (state.best, state.parameters)
    )
    one, two = state.best_accuracy[row].tolist()
    curve = [{k: v if k == "epoch" else v[row] for k, v in point.items()} for point in state.curve]
    return Trained(seed, best, last, int(state.best_epoch[row]), (one, two), curve)
