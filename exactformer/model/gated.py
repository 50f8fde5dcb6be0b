"""The base of the weights of every layer: gates, under their names in a file, and a feedforward."""

import torch
from torch import Tensor

from exactformer.model.remembered import Remembering, tensors_of


class Gated(Remembering):
    """A frozen dataclass of gates, which are its tensors, and feedforwards; None for what is
    absent. The first gate has a number for each token, on its last axis.
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
