"""The learned numbers of a batch of seeds, and one step of the optimiser on them.

Shapes have the seeds first and are padded as `depth_one` says; `export` cuts the padding off.
"""

import math

import numpy as np
import torch
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.model.architecture import paper_architecture
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.model.quantize import binary, ternary
from exactformer.training.depth_one import padded
from exactformer.training.recipe import Recipe

# What a stream of random numbers is for. Each draw has a generator of its own, made from the seed,
# the attempt, the stream and the step: nothing random has to be saved or depends on other seeds.
INITIAL, BATCHES, STRINGS, NOISE, RANKS = range(5)


def generator(seed: int, attempt: int, stream: int, step: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, attempt, stream, step])


LEARNED = ("bits", "W_1", "b_1", "W_2", "b_2")  # by gradient; "bits" are the logits of W_Q and W_K


def _shapes(D: int, d_h: int, m: int, slots: int) -> dict[str, tuple[int, ...]]:
    shapes = {"bits": (2, D, d_h), "W_1": (slots, D, m), "b_1": (1, m), "W_2": (m, D)}
    return shapes | {"b_2": (1, D)}


def _cut(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(size) for size in shape)


def initial(algebra: Algebra, recipe: Recipe, seed: int, attempt: int) -> dict[str, Tensor]:
    """The random start of one seed: the gates' logits and what is LEARNED, padded with zeros."""
    rng = generator(seed, attempt, INITIAL)
    size = paper_architecture(algebra)
    start = {"gate": torch.from_numpy(recipe.spread * rng.standard_normal(size.D))}
    padded_shapes = _shapes(padded(size.D), size.d_h, padded(size.hidden), size.slots)
    for name, shape in _shapes(size.D, size.d_h, size.hidden, size.slots).items():
        drawn = recipe.spread * rng.standard_normal(shape)
        if name == "bits":
            drawn += recipe.open_bits
        start[name] = torch.zeros(padded_shapes[name], dtype=torch.float64)
        start[name][_cut(shape)] = torch.from_numpy(drawn)
    if size.slots > 1:
        start["rank"] = torch.from_numpy(recipe.spread * rng.standard_normal(size.D))
    return {name: tensor.float() for name, tensor in start.items()}


def outputs(tensors: dict[str, Tensor], token: Tensor, bag: Tensor, activation: str) -> Tensor:
    """The feedforward's output for rows of tokens, (seeds, rows, D), in their bags, with slots
    before D.
    """
    W_Q, W_K = binary(tensors["bits"]).unbind(1)
    H = (bag * torch.bmm(token, torch.bmm(W_Q, W_K.mT)).unsqueeze(-2)).flatten(2)
    hidden = torch.baddbmm(tensors["b_1"], H, tensors["W_1"].flatten(1, 2))
    hidden = hidden.square() if activation == "square" else hidden.relu()
    return torch.baddbmm(tensors["b_2"], hidden, tensors["W_2"])


def export(algebra: Algebra, tensors: dict[str, Tensor], row: int) -> Weights:
    """One seed's weights, discrete and without padding."""
    size = paper_architecture(algebra)
    shapes = _shapes(size.D, size.d_h, size.hidden, size.slots)
    real = {name: tensors[name][row][_cut(shapes[name])].detach().contiguous() for name in LEARNED}
    # A seed that has diverged gets a verdict like any other.
    real = {name: torch.nan_to_num(t, 0.0, 0.0, 0.0) for name, t in real.items()}
    W_Q, W_K = binary(real["bits"])
    perceptron = [real["W_1"].flatten(0, 1), real["b_1"][0], real["W_2"], real["b_2"][0]]
    f = MLP(*perceptron, activation=size.activation)
    G_R = ternary(tensors["rank"][row]) if "rank" in tensors else None
    return Weights(ternary(tensors["gate"][row]), W_Q, W_K, f, G_R=G_R)


def schedule(recipe: Recipe, step: int) -> float:
    """The paper's: linear warm-up, then a cosine down to the floor; as a part of the rate."""
    warm = recipe.warmup * recipe.steps
    if step < warm:
        return recipe.warmup_from + (1 - recipe.warmup_from) * step / warm
    progress = min(1.0, (step - warm) / (recipe.steps - warm))
    return recipe.floor + (1 - recipe.floor) * (1 + math.cos(math.pi * progress)) / 2


@torch.no_grad()
def adam_step(
    tensors: dict[str, Tensor],
    gradients: dict[str, Tensor],
    recipe: Recipe,
    factors: list[float],
    steps: list[int],
) -> None:
    """One step of Adam for every seed, its gradient clipped to a norm of its own.

    `tensors` holds the moments too, as NAME.m and NAME.v;
    `factors` are the parts of the rate, `steps` how many steps each seed has made with this one.
    Only products, sums and roots, which round alike in vector and scalar code.
    """
    device = gradients["bits"].device
    squares = sum((g * g).flatten(1).sum(1) for g in gradients.values())
    assert isinstance(squares, Tensor)
    scale = recipe.clip / squares.sqrt().clamp(min=recipe.clip)
    b1, b2 = recipe.betas
    first = torch.tensor([f / (1 - b1**t) for f, t in zip(factors, steps, strict=True)])
    second = torch.tensor([math.sqrt(1 - b2**t) for t in steps])
    for name, gradient in gradients.items():
        shape = (-1, *[1] * (gradient.dim() - 1))
        g = gradient * scale.view(shape)
        m, v = tensors[f"{name}.m"], tensors[f"{name}.v"]
        m.mul_(b1).add_(g * (1 - b1))
        v.mul_(b2).add_(g * g * (1 - b2))
        rate = recipe.attention_rate if name == "bits" else recipe.feedforward_rate
        step = m * (rate * first.to(device)).view(shape)
        tensors[name].sub_(step / (v.sqrt() / second.to(device).view(shape) + 1e-8))
