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

GRID = 2**10  # weights end as multiples of 1/GRID, so that the proof's whole numbers stay short


@torch.no_grad()
def polish(recipe: Recipe, seeds: Sequence[Weights], rows: Rows) -> list[Weights]:
    """Train each feedforward to move its outputs away from the threshold, then round its weights.

    Gate and routing stay as they are, so what each position receives is fixed: it is enough to
    train on the distinct cases. A GPU does all seeds at once, those with fewer cases padded; a core
    one after the other, which is quicker there, and has the same bits whoever is beside it.
    """
    cases = [_distinct_cases(weights, rows) for weights in seeds]
    at_once = 1 if rows.token.device.type == "cpu" else max(1, len(seeds))
    polished = []
    for start in range(0, len(seeds), at_once):
        some = slice(start, start + at_once)
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
    a step is a few operations, whose overhead is what it costs.
    """
    D = seeds[0].W_Q.shape[-2]
    joined = pad_sequence(list(cases), batch_first=True)  # a padded row has no sign
    H, sign = joined[..., :-D], joined[..., -D:]
    beyond = torch.where(sign[..., :1] == 0, -torch.inf, 0.0) if len(seeds) > 1 else None
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
    mean, moment = torch.zeros_like(row), torch.zeros_like(row)
    b1, b2 = recipe.betas
    for step in range(recipe.polish_steps):
        hidden = torch.bmm(H, W_1).add_(b_1)
        active = hidden.square() if square else hidden.relu_()
        loss = torch.bmm(active, W_2).add_(b_2).mul_(sign).neg_()  # the distances, negative
        if beyond is not None:
            loss += beyond
        total = torch.logsumexp(loss.flatten(1), 1)[:, None, None]
        slope = loss.sub_(total).exp_().neg_().mul_(sign)
        back = torch.bmm(slope, W_2.mT)
        of_W_2 = torch.bmm(active.mT, slope)
        if square:
            back.mul_(hidden.mul_(2))
        else:
            back.mul_(hidden > 0)
        parts = (torch.bmm(H.mT, back), back.sum(1), of_W_2, slope.sum(1))
        gradient = torch.cat([part.flatten(1) for part in parts], 1)
        rate = recipe.polish_rate * (1 - step / recipe.polish_steps)
        mean.lerp_(gradient, 1 - b1)
        moment.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        scale = moment.sqrt().div_((1 - b2 ** (step + 1)) ** 0.5).add_(EPSILON)
        row.addcdiv_(mean, scale, value=-rate / (1 - b1 ** (step + 1)))
    row.mul_(GRID).round_().div_(GRID)
    return [
        replace(weights, f=MLP(*parts, activation=perceptrons[0].activation))
        for weights, *parts in zip(seeds, W_1, b_1.squeeze(1), W_2, b_2.squeeze(1), strict=True)
    ]
