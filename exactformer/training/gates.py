"""Estimators of the gate's gradient while everything else is trained end to end.

The paper quantizes a logit to -1, 0 or 1 and passes its gradient straight through; it leaves other
ways open. Each is one of two kinds here. Some give a gate with a gradient, which then flows through
the mask: `straight-through` is the paper's; `gumbel` and `reinmax` draw a value with probabilities
that follow from the logit's distances to -1, 0 and 1. The others ask for nothing but the errors of
gates on depth-2 problems: `score` turns those of drawn gates into a gradient; `search` moves the
logits towards the best gate within two coordinates.
"""

import itertools
from collections.abc import Callable
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor

from exactformer.model.quantize import ternary
from exactformer.training.soft_layer import Constants

VALUES = (-1.0, 0.0, 1.0)
MOVE = 0.6  # how far a search moves the logits towards a better gate
AT_ONCE = 64  # gates that a search tries together

Errors = Callable[[Float[Tensor, "M K D"]], Float[Tensor, "M K"]]


def gate_with_gradient(
    logits: Float[Tensor, "M D"], noise: Float[Tensor, "M D 3"] | None, constants: Constants
) -> Float[Tensor, "M 1 D"]:
    """The gate of this step, with its gradient; `noise` is uniform in (0, 1), and given if a gate
    is drawn.
    """
    name = constants.recipe.estimator
    if noise is None:
        hard = ternary(logits)
        return (hard if name == "straight-through" else hard.detach()).unsqueeze(1)
    values = torch.tensor(VALUES, device=logits.device, dtype=logits.dtype)
    spread = constants("gate_noise", 2)
    scores = -((logits.unsqueeze(-1) - values) ** 2) / (2 * spread**2)
    gumbel = -torch.log(-torch.log(noise))
    drawn = torch.nn.functional.one_hot((scores + gumbel).argmax(-1), 3).to(logits.dtype)
    if name == "gumbel":
        soft = torch.softmax((scores + gumbel) / constants("gumbel_temperature", 2), -1)
    else:  # Liu et al. 2023, in their own words: 2 pi_1 - pi_0 / 2
        start = torch.softmax(scores, -1)
        middle = ((start + drawn) / 2).log().detach()
        soft = 2 * torch.softmax(middle - scores.detach() + scores, -1) - start / 2
    return ((soft + (drawn - soft).detach()) @ values).unsqueeze(1)


def score_gradient(
    logits: Float[Tensor, "M D"],
    noise: Float[Tensor, "M K D"],
    errors: Errors,
    constants: Constants,
) -> Float[Tensor, "M D"]:
    """The gradient of the expected error of ternary(logits + noise), from normal draws in
    antithetic pairs: of a and -a, the first half of `noise` has one.
    """
    spread = constants("gate_noise", 2)
    both = torch.cat([noise, -noise], 1)
    found = errors(ternary(logits.unsqueeze(1) + spread * both))
    K = both.shape[1]
    others = (found.sum(1, keepdim=True) - found) / (K - 1)
    relative = found - constants("score_baseline", 1) * others
    return (relative.unsqueeze(-1) * both / spread).mean(1)


def searched(logits: Float[Tensor, "M D"], errors: Errors) -> Float[Tensor, "M D"]:
    """The logits after a discrete search, which is not a gradient: moved towards the best gate that
    differs from the present one in at most two coordinates, if it is strictly better.
    """
    present = ternary(logits)
    gates = present.long().unsqueeze(1) + 1 + rotations(logits.shape[-1]).to(logits.device)
    gates = (gates % 3 - 1).to(logits.dtype)
    found = torch.cat([errors(part) for part in gates.split(AT_ONCE, 1)], 1)
    least = errors(present.unsqueeze(1))
    best = found.min(1)
    goal = gates[torch.arange(len(gates), device=gates.device), best.indices]
    better = best.values.unsqueeze(1) < least
    return logits + MOVE * torch.where(better, goal - logits, torch.zeros_like(logits))


@cache
def rotations(D: int) -> Tensor:
    """Offsets, modulo 3, that reach every ternary gate that differs in at most two coordinates."""
    rows = []
    for where in itertools.combinations(range(D), 2):
        for turns in itertools.product(range(3), repeat=2):
            row = torch.zeros(D, dtype=torch.long)
            row[list(where)] = torch.tensor(turns)
            rows.append(row)
    return torch.stack(rows).unique(dim=0)
