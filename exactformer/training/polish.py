"""The last steps of training: larger margins, and weights rounded to a grid."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.optimizer import EPSILON
from exactformer.training.depth_one import Rows
from exactformer.training.recipe import Recipe
from exactformer.training.repeat import repeat
from exactformer.training.subnormal import subnormals_as_zero

GRID = 2**10  # weights end as multiples of 1/GRID, so that the proof's whole numbers stay short
# Exponentials below are subnormal and take long to compute: they are left out.
LEAST_LOG, LEAST = -87.33, 1.184e-38


@torch.no_grad()
def polish(recipe: Recipe, seeds: Sequence[Weights], rows: Rows) -> list[Weights]:
    """Train each feedforward to move its outputs away from the threshold, then round its weights.

    Gate and routing stay as they are, so what each position receives is fixed: it is enough to
    train on the distinct cases. A GPU does all seeds at once, those with fewer cases padded; a core
    one after the other, which is quicker there, and has the same bits whoever is beside it.
    """
    seeds = [weights.to(rows.token.device) for weights in seeds]
    cases = [_distinct_cases(weights, rows) for weights in seeds]
    at_once = 1 if rows.token.device.type == "cpu" else max(1, len(seeds))
    polished = []
    for start in range(0, len(seeds), at_once):
        some = slice(start, start + at_once)
        with subnormals_as_zero():
            polished += _polish_some(recipe, seeds[some], cases[some])
    return polished


def _distinct_cases(weights: Weights, rows: Rows) -> Tensor:
    """What positions receive, with the signs that their outputs must have: (cases, S D + D)."""
    D = weights.W_Q.shape[-2]
    used = (rows.weight.sum(-1) > 0).flatten()
    token, bag, target = (
        tensor[..., :D].flatten(0, 1)[used]
        for tensor in (rows.token, rows.bags(weights.G_R), rows.target)
    )
    H = (bag * (token @ (weights.W_Q @ weights.W_K.mT)).unsqueeze(-2)).flatten(-2)
    return torch.unique(torch.cat([H, 2 * target - 1], -1), dim=0)


def _polish_some(
    recipe: Recipe, seeds: Sequence[Weights], cases: Sequence[Tensor]
) -> list[Weights]:
    """Adam on the log of the sum of exp(-distance) over all outputs, with its gradient written out:
    a step is a few operations, in memory that is used again.
    """
    D = seeds[0].W_Q.shape[-2]
    joined = pad_sequence(list(cases), batch_first=True)  # a padded row has no sign
    H, against = joined[..., :-D].contiguous(), -joined[..., -D:]
    beyond = torch.where(against[..., :1] == 0, -torch.inf, 0.0) if len(seeds) > 1 else None
    perceptrons = [weights.f for weights in seeds if isinstance(weights.f, MLP)]
    named = ("W_1", "b_1", "W_2", "b_2")
    stacked = {name: torch.stack([getattr(f, name) for f in perceptrons]) for name in named}
    sizes = [stacked[name][0].numel() for name in named]
    # All parameters of a seed in one row.
    row = torch.cat([stacked[name].flatten(1) for name in named], 1)
    W_1, b_1, W_2, b_2 = (
        part.view(stacked[name].shape)
        for name, part in zip(named, row.split(sizes, 1), strict=True)
    )
    b_1, b_2 = b_1.unsqueeze(1), b_2.unsqueeze(1)
    square = perceptrons[0].activation == "square"
    mean, moment, gradient = (torch.zeros_like(row) for _ in range(3))
    hidden, back = (H.new_empty(*H.shape[:2], W_1.shape[-1]) for _ in range(2))
    active = torch.empty_like(hidden) if square else hidden
    loss = torch.empty_like(against)
    b1, b2 = recipe.betas
    factors = torch.tensor(
        [
            [
                recipe.polish_rate * (step / recipe.polish_steps - 1) / (1 - b1 ** (step + 1)),
                (1 - b2 ** (step + 1)) ** 0.5,
            ]
            for step in range(recipe.polish_steps)
        ],
        device=row.device,
    )
    at = torch.zeros(1, dtype=torch.long, device=row.device)

    def step() -> None:
        torch.bmm(H, W_1, out=hidden).add_(b_1)
        if square:
            torch.mul(hidden, hidden, out=active)
        else:
            hidden.relu_()
        torch.bmm(active, W_2, out=loss).add_(b_2).mul_(against)  # the distances, negative
        if beyond is not None:
            loss.add_(beyond)
        torch.maximum(loss, loss.amax((1, 2), keepdim=True) + LEAST_LOG, out=loss)
        total = torch.logsumexp(loss.flatten(1), 1)[:, None, None]
        slope = loss.sub_(total).clamp_(min=LEAST_LOG).exp_()
        torch.threshold_(slope, LEAST, 0).mul_(against)
        torch.bmm(slope, W_2.mT, out=back)
        of_W_2 = torch.bmm(active.mT, slope)
        if square:
            back.mul_(hidden.mul_(2))
        else:
            torch.ops.aten.threshold_backward.grad_input(back, hidden, 0, grad_input=back)
        parts = (torch.bmm(H.mT, back), back.sum(1), of_W_2, slope.sum(1))
        torch.cat([part.flatten(1) for part in parts], 1, out=gradient)
        mean.lerp_(gradient, 1 - b1)
        moment.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        rate, root = factors.index_select(0, at)[0]
        row.addcdiv_(mean * rate, moment.sqrt().div_(root).add_(EPSILON))
        at.add_(1)

    repeat(step, recipe.polish_steps, row.device)
    row.mul_(GRID).round_().div_(GRID)
    return [
        replace(weights, f=MLP(*parts, activation=perceptrons[0].activation))
        for weights, *parts in zip(seeds, W_1, b_1.squeeze(1), W_2, b_2.squeeze(1), strict=True)
    ]
