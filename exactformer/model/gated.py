"""The base of the weights of every layer: gates, under their names in a file, and a feedforward."""

from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor

from exactformer.model.remembered import Remembering, parts_of, tensors_of

G = TypeVar("G", bound="Gated")


class Gated(Remembering):
    """A frozen dataclass of gates (tensors), feedforwards, and None for what is absent. The first
    gate has a number for each token, on its last axis.
    """

    @property
    def gates(self) -> dict[str, Tensor]:
        """The gates that there are, by name."""
        return tensors_of(self)

    @property
    def device(self) -> torch.device:
        return next(iter(self.gates.values())).device

    @property
    def D(self) -> int:
        """Size of the vocabulary."""
        return next(iter(self.gates.values())).shape[-1]

    def to(self: G, device: torch.device | str) -> G:
        """A copy of the weights on another device."""
        present = {name: part for name, part in parts_of(self).items() if part is not None}
        moved = {name: part.to(device) for name, part in present.items()}
        return replace(self, **moved)  # type: ignore[type-var]
