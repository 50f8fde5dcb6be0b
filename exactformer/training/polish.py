"""The last steps of training: larger margins, and weights rounded to a grid."""

from dataclasses import replace

import torch

from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.training.depth_one import Rows
from exactformer.training.recipe import Recipe

GRID = 2**10  # weights end as multiples of 1/GRID, so that the proof's whole numbers stay short


@torch.enable_grad()
def polish(recipe: Recipe, weights: Weights, rows: Rows) -> Weights:
    """Train the feedforward to move its outputs away from the threshold, then round its weights.

    Gate and routing stay as they are, so what each position receives is fixed: it is enough to
    train on the distinct cases.
    """
    assert isinstance(weights.f, MLP)
    D = weights.W_Q.shape[-2]
    used = (rows.weight.sum(-1) > 0).flatten()
    token, bag, target = (
        tensor[..., :D].flatten(0, 1)[used]
        for tensor in (rows.token, rows.bags(weights.G_R), rows.target)
    )
    H = (bag * (token @ (weights.W_Q @ weights.W_K.mT)).unsqueeze(-2)).flatten(-2)
    cases = torch.unique(torch.cat([H, target], -1), dim=0)
    H, sign = cases[:, :-D], 2 * cases[:, -D:] - 1
    f = weights.f
    parameters = [p.clone().requires_grad_() for p in (f.W_1, f.b_1, f.W_2, f.b_2)]
    optimizer = torch.optim.Adam(parameters, lr=recipe.polish_rate, betas=recipe.betas)
    for step in range(recipe.polish_steps):
        for group in optimizer.param_groups:
            group["lr"] = recipe.polish_rate * (1 - step / recipe.polish_steps)
        distance = sign * MLP(*parameters, activation=f.activation).in_training(H)
        loss = torch.logsumexp(-distance.flatten(), 0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    on_grid = [(p.detach() * GRID).round() / GRID for p in parameters]
    return replace(weights, f=MLP(*on_grid, activation=f.activation))
