"""The baselines under the paper's protocol, by the door that is open to any network."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch

from exactformer.baselines.recipe import Recipe, network_for
from exactformer.domains.catalog import CATALOG
from exactformer.protocol.loop import train_network
from exactformer.protocol.state import State


def train(
    recipe: Recipe,
    seeds: Sequence[int],
    folder: Path,
    device: torch.device,
    report: Callable[[str], None] = lambda line: None,
    blocks: int = 20,
) -> State:
    """Train, or resume, the run in `folder`; its file is written `blocks` times on the way."""
    network, algebra = network_for(recipe), CATALOG[recipe.task]()

    def named(line: str) -> None:
        report(f"{recipe.name} {line}")

    return train_network(network, algebra, recipe, seeds, folder, device, named, blocks)
