"""The learned numbers of a batch of seeds.

Shapes have the seeds first and are padded as `depth_one` describes; `export` removes the padding.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.model.architecture import paper_architecture
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.model.quantize import binary, ternary
from exactformer.training.depth_one import padded
from exactformer.training.recipe import EndToEnd, Recipe

# Streams of random numbers. Each draw has a generator of its own, made from the seed, the attempt,
# the stream and the step: so no generator has to be saved, and none depends on other seeds.
INITIAL, BATCHES, STRINGS, NOISE, RANKS, CHECKS, LEVELS = range(7)


def generator(seed: int, attempt: int, stream: int, step: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, attempt, stream, step])


LEARNED = ("bits", "W_1", "b_1", "W_2", "b_2")  # by gradient; "bits" are the logits of W_Q and W_K


def _shapes(D: int, d_h: int, m: int, slots: int) -> dict[str, tuple[int, ...]]:
    shapes = {"bits": (2, D, d_h), "W_1": (slots, D, m), "b_1": (1, m), "W_2": (m, D)}
    return shapes | {"b_2": (1, D)}


def _cut(shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(slice(size) for size in shape)


def initial(
    algebra: Algebra, recipe: Recipe | EndToEnd, seed: int, attempt: int
) -> dict[str, Tensor]:
    """The random start of one seed: the gates' logits and what is LEARNED, padded with zeros."""
    rng = generator(seed, attempt, INITIAL)
    size = paper_architecture(algebra, recipe.width)
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
    hidden = hidden.square() if activation == "square" else hidden.relu_()
    return torch.baddbmm(tensors["b_2"], hidden, tensors["W_2"])


def stacked(seeds: Sequence[Weights]) -> MLP:
    """The perceptrons of several seeds as one, with the seeds first."""
    parts = [weights.f for weights in seeds if isinstance(weights.f, MLP)]
    named = [torch.stack([getattr(f, name) for f in parts]) for name in LEARNED[1:]]
    return MLP(*named, activation=parts[0].activation)


def export(
    algebra: Algebra, tensors: dict[str, Tensor], row: int, width: int | None = None
) -> Weights:
    """One seed's weights, discrete and without padding."""
    size = paper_architecture(algebra, width)
    shapes = _shapes(size.D, size.d_h, size.hidden, size.slots)
    real = {name: tensors[name][row][_cut(shapes[name])].detach().contiguous() for name in LEARNED}
    # A seed that has diverged gets a verdict like any other.
    real = {name: torch.nan_to_num(t, 0.0, 0.0, 0.0) for name, t in real.items()}
    W_Q, W_K = binary(real["bits"])
    perceptron = [real["W_1"].flatten(0, 1), real["b_1"][0], real["W_2"], real["b_2"][0]]
    f = MLP(*perceptron, activation=size.activation)
    G_R = ternary(tensors["rank"][row]) if "rank" in tensors else None
    return Weights(ternary(tensors["gate"][row]), W_Q, W_K, f, G_R=G_R)
