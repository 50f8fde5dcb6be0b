"""The base of the weights of every layer: gates, under their names in a file, and a feedforward."""

from typing import Any

import torch
from torch import Tensor

from exactformer.model.remembered import Remembering, tensors_of


class Gated(Remembering):
    """A frozen dataclass of gates, which are its tensors, and feedforwards; None for what is
    absent. The first gate has a number for each token, on its last axis.
    """

    f: Any  # the feedforward, or all that is in its place

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

    def to_dense(self, Y: Tensor) -> Tensor:
        """The vectors of one-hot rows: these themselves, unless a subclass has others."""
        return Y

    def to_one_hot(self, X: Tensor) -> Tensor:
        """The inverse of `to_dense`."""
        return X
