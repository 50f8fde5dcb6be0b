"""Discrete values from continuous logits, with the paper's straight-through gradients.

Each is written as soft + (hard - soft).detach(): the value is the hard one, the gradient the soft
one's. (A custom autograd function under vmap and compile has returned silent zero gradients.)
"""

import torch
from torch import Tensor

GATE_THRESHOLD = 0.5


def ternary(logits: Tensor) -> Tensor:
    """-1, 0 or 1 by the thresholds -0.5 and 0.5, with the gradient of the identity."""
    hard = (logits > GATE_THRESHOLD).to(logits.dtype) - (logits < -GATE_THRESHOLD).to(logits.dtype)
    return logits + (hard - logits).detach()


def binary(logits: Tensor) -> Tensor:
    """1 if the sigmoid exceeds one half, else 0, with the gradient of the sigmoid."""
    soft = torch.sigmoid(logits)
    return soft + ((logits > 0).to(logits.dtype) - soft).detach()
