"""The last steps of training: larger margins, and weights rounded to a grid."""

from dataclasses import replace

import torch
from torch import Tensor

from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.optimizer import EPSILON
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
    shapes = [p.shape for p in (f.W_1, f.b_1, f.W_2, f.b_2)]
    # All parameters in one vector: a step is a few operations, whose overhead is what it costs.
    vector = torch.cat([p.flatten() for p in (f.W_1, f.b_1, f.W_2, f.b_2)])
    mean, square = torch.zeros_like(vector), torch.zeros_like(vector)
    b1, b2 = recipe.betas
    for step in range(recipe.polish_steps):
        vector.requires_grad_()
        distance = sign * MLP(*_parts(vector, shapes), activation=f.activation).in_training(H)
        (gradient,) = torch.autograd.grad(torch.logsumexp(-distance.flatten(), 0), vector)
        rate = recipe.polish_rate * (1 - step / recipe.polish_steps)
        mean.lerp_(gradient, 1 - b1)
        square.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        scale = square.sqrt().div_((1 - b2 ** (step + 1)) ** 0.5).add_(EPSILON)
        vector = vector.detach().addcdiv_(mean, scale, value=-rate / (1 - b1 ** (step + 1)))
    on_grid = [(p * GRID).round() / GRID for p in _parts(vector.detach(), shapes)]
    return replace(weights, f=MLP(*on_grid, activation=f.activation))


def _parts(vector: Tensor, shapes: list[torch.Size]) -> list[Tensor]:
    sizes = [shape.numel() for shape in shapes]
    return [part.view(shape) for part, shape in zip(vector.split(sizes), shapes, strict=True)]
