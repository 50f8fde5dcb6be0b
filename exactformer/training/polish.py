"""The last steps of training: larger margins, and weights rounded to a grid."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from exactformer.host.threads import subnormals_as_zero
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.protocol.optimizer import EPSILON
from exactformer.training.depth_one import CaseRows
from exactformer.training.repeat import repeat
from exactformer.training.state import stacked
from exactformer.verify.rounding import MOST_LONG_PRODUCTS

GRID = 2**10  # weights end as multiples of 1/GRID, so that the proof's whole numbers stay short
# Exponentials below are subnormal and take long to compute: they are left out.
LEAST_LOG, LEAST = -87.33, 1.184e-38


class Polishing(Protocol):
    """The constants of a recipe that are about this: Adam's and how many steps it takes."""

    @property
    def betas(self) -> tuple[float, float]: ...

    @property
    def polish_steps(self) -> int: ...

    @property
    def polish_rate(self) -> float: ...


class PolishingToMargin(Polishing, Protocol):
    """Constants of a recipe with a margin, and in how many rounds at most it is to be had."""

    @property
    def margin(self) -> float: ...

    @property
    def polish_rounds(self) -> int: ...


@torch.no_grad()
def polish(recipe: Polishing, seeds: Sequence[Weights], rows: CaseRows) -> list[Weights]:
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
        perceptrons = [weights.f for weights in seeds[some] if isinstance(weights.f, MLP)]
        polished += polish_perceptrons(recipe, perceptrons, cases[some])
    return [replace(weights, f=f) for weights, f in zip(seeds, polished, strict=True)]


def _distinct_cases(weights: Weights, rows: CaseRows) -> Tensor:
    """The distinct bags that positions receive, with the signs that their outputs must have:
    (cases, S D + D).
    """
    D = weights.W_Q.shape[-2]
    used = (rows.weight.sum(-1) > 0).flatten()
    token, bag, target = (
        tensor[..., :D].flatten(0, 1)[used]
        for tensor in (rows.token, rows.bags(weights.G_R), rows.target)
    )
    H = (bag * (token @ (weights.W_Q @ weights.W_K.mT)).unsqueeze(-2)).flatten(-2)
    return torch.unique(torch.cat([H, 2 * target - 1], -1), dim=0)


@torch.no_grad()
def polish_perceptrons(
    recipe: Polishing, perceptrons: Sequence[MLP], cases: Sequence[Tensor]
) -> list[MLP]:
    """Train perceptrons on cases, each a row of inputs with the sign of each output, and round."""
    steps = _Steps(recipe, perceptrons, cases)
    with subnormals_as_zero():
        repeat(steps.step, recipe.polish_steps, steps.row.device)
    steps.row.copy_(_on_grid(steps.row))
    parts = zip(*steps.parameters, strict=True)
    return [MLP(*tensors, activation=steps.f.activation) for tensors in parts]


@torch.no_grad()
def margin(f: MLP, cases: Tensor) -> float:
    """Least distance from the threshold on the right side, over the outputs of all cases; negative
    where one is on the wrong side.
    """
    H, signs = cases.split([cases.shape[1] - f.width, f.width], 1)
    return float((f.in_training(H) * signs).min())


def polished_to_margin(recipe: PolishingToMargin, f: MLP, cases: Tensor) -> tuple[MLP, int]:
    """A perceptron that is polished until every output has the margin, or for as many rounds as
    the recipe says; and in how many steps.
    """
    steps = 0
    while steps < recipe.polish_rounds * recipe.polish_steps:
        (f,) = polish_perceptrons(recipe, [f], [cases])
        steps += recipe.polish_steps
        if margin(f, cases) >= recipe.margin:
            break
    return f, steps


def rounded_if_large(weights: Weights, rows: CaseRows) -> Weights:
    """Weights of a seed that was not polished. Their exact numbers are long, and where there are so
    many that the certificate would refuse them, they are rounded like polished ones.
    """
    f = weights.f
    assert isinstance(f, MLP)
    received = int((rows.weight.sum(-1) > 0).sum())
    if received * (f.W_1.numel() + f.W_2.numel()) <= MOST_LONG_PRODUCTS:
        return weights
    parts = [_on_grid(part) for part in (f.W_1, f.b_1, f.W_2, f.b_2)]
    return replace(weights, f=MLP(*parts, activation=f.activation))


def _on_grid(numbers: Tensor) -> Tensor:
    return numbers.mul(GRID).round_().div_(GRID)


class _Steps:
    """Adam on the log of the sum of exp(-distance) over all outputs, with its gradient written out:
    a step is a few operations, in memory that is used again.
    """

    def __init__(
        self, recipe: Polishing, perceptrons: Sequence[MLP], cases: Sequence[Tensor]
    ) -> None:
        D = perceptrons[0].width
        joined = pad_sequence(list(cases), batch_first=True)  # a padded row has no sign
        self.H, self.against = joined[..., :-D].contiguous(), -joined[..., -D:]
        self.beyond = None
        if len(cases) > 1:
            self.beyond = torch.where(self.against[..., :1] == 0, -torch.inf, 0.0)
        self.f = f = stacked(perceptrons)
        named = (f.W_1, f.b_1, f.W_2, f.b_2)
        # All parameters of a seed in one row.
        self.row = torch.cat([tensor.flatten(1) for tensor in named], 1)
        self.mean, self.moment, self.gradient = (torch.zeros_like(self.row) for _ in range(3))
        sizes = [tensor[0].numel() for tensor in named]
        self.parameters = [
            part.view(tensor.shape)
            for tensor, part in zip(named, self.row.split(sizes, 1), strict=True)
        ]
        wide = (*self.H.shape[:2], f.b_1.shape[-1])
        self.hidden, self.back = (self.H.new_empty(wide) for _ in range(2))
        self.square = f.activation == "square"
        self.active = torch.empty_like(self.hidden) if self.square else self.hidden
        self.loss = torch.empty_like(self.against)
        self.betas = b1, b2 = recipe.betas
        steps = range(recipe.polish_steps)
        falling = [recipe.polish_rate * (step / len(steps) - 1) for step in steps]
        factors = [(falling[n] / (1 - b1 ** (n + 1)), (1 - b2 ** (n + 1)) ** 0.5) for n in steps]
        self.factors = torch.tensor(factors, device=self.row.device)
        self.at = torch.zeros(1, dtype=torch.long, device=self.row.device)

    def step(self) -> None:
        H, hidden, active, back, against = self.H, self.hidden, self.active, self.back, self.against
        W_1, b_1, W_2, b_2 = self.parameters
        torch.bmm(H, W_1, out=hidden).add_(b_1.unsqueeze(1))
        if self.square:
            torch.mul(hidden, hidden, out=active)
        else:
            hidden.relu_()
        loss = torch.bmm(active, W_2, out=self.loss).add_(b_2.unsqueeze(1)).mul_(against)
        if self.beyond is not None:
            loss.add_(self.beyond)
        torch.maximum(loss, loss.amax((1, 2), keepdim=True) + LEAST_LOG, out=loss)
        total = torch.logsumexp(loss.flatten(1), 1)[:, None, None]
        slope = loss.sub_(total).clamp_(min=LEAST_LOG).exp_()
        torch.threshold_(slope, LEAST, 0).mul_(against)
        torch.bmm(slope, W_2.mT, out=back)
        of_W_2 = torch.bmm(active.mT, slope)
        if self.square:
            back.mul_(hidden.mul_(2))
        else:
            torch.ops.aten.threshold_backward.grad_input(back, hidden, 0, grad_input=back)
        parts = (torch.bmm(H.mT, back), back.sum(1), of_W_2, slope.sum(1))
        gradient = torch.cat([part.flatten(1) for part in parts], 1, out=self.gradient)
        b1, b2 = self.betas
        self.mean.lerp_(gradient, 1 - b1)
        self.moment.mul_(b2).addcmul_(gradient, gradient, value=1 - b2)
        rate, root = self.factors.index_select(0, self.at)[0]
        self.row.addcdiv_(self.mean * rate, self.moment.sqrt().div_(root).add_(EPSILON))
        self.at.add_(1)
