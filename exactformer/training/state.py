"""The state of a run: its seeds, their parameters, and the outcome of each seed.

Tensors have the seeds first and are padded as `depth_one` describes; `export` removes the padding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

import numpy as np
import torch
from torch import Tensor

from exactformer.certify import Certificate
from exactformer.domains.algebra import Algebra
from exactformer.model.architecture import Activation, paper_architecture
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.model.gated import Gated
from exactformer.model.quantize import binary, ternary
from exactformer.protocol.optimizer import Adam
from exactformer.training.depth_one import padded
from exactformer.training.machine_recipes import Beliefs
from exactformer.training.recipe import EndToEnd, Staged

# Streams of random numbers. Each draw has a generator of its own, made from the seed, the attempt,
# the stream and the step: so no generator has to be saved, and none depends on other seeds.
INITIAL, BATCHES, STRINGS, NOISE, RANKS, CHECKS, LEVELS = range(7)

LEARNED = ("bits", "W_1", "b_1", "W_2", "b_2")  # by gradient; "bits" are the logits of W_Q and W_K
Memory = dict[str, Tensor]  # state of an estimator between its calls


@dataclass
class Seed:
    """The progress of one seed, apart from its tensors."""

    seed: int
    attempt: int = 1
    step: int = 0  # of this attempt
    spent: int = 0  # steps over all attempts
    loss: float = float("nan")
    depth_one: int = 0  # bags that come out right; of a machine, texts that it learns from
    depth_two: int | None = None  # right of the last depth-2 problems; None before there are any
    gate_looks: int = 0  # evaluations with depth 1 right and the gate still wrong
    clean_looks: int = 0  # of a machine, evaluations in a row with all fresh texts right
    memory: Memory = field(default_factory=dict)  # the estimator's
    rank_memory: Memory = field(default_factory=dict)  # state of the rank gate's estimator

    def generator(self, stream: int, ahead: int = 0) -> np.random.Generator:
        """A generator for the draws of the present step, or of one that is so many steps ahead."""
        return generator(self.seed, self.attempt, stream, self.step + ahead)


@dataclass
class State:
    """A batch of seeds in training: everything a checkpoint has to hold."""

    seeds: list[Seed]
    tensors: dict[str, Tensor]  # learned numbers and Adam's moments; row i belongs to seeds[i]
    started: float = field(default_factory=perf_counter)

    def keep(self, rows: list[int]) -> None:
        self.seeds = [self.seeds[i] for i in rows]
        self.tensors = {name: tensor.detach()[rows] for name, tensor in self.tensors.items()}

    def restart(self, row: int, algebra: Algebra, recipe: Staged | EndToEnd) -> None:
        """The next attempt of a seed, from fresh random numbers."""
        seed = self.seeds[row]
        self.start_again(row, first_numbers(algebra, recipe, seed.seed, seed.attempt + 1))

    def start_again(self, row: int, numbers: dict[str, Tensor]) -> None:
        """The next attempt of a seed, from these numbers."""
        seed = self.seeds[row]
        self.seeds[row] = Seed(seed.seed, seed.attempt + 1, spent=seed.spent)
        for name, tensor in numbers.items():
            self.tensors[name][row] = tensor


@dataclass(frozen=True)
class Trained:
    """A seed that has ended: its weights and their certificate."""

    seed: Seed
    weights: Gated
    certificate: Certificate
    margin_before: float  # smallest |output| when the last case came right; NaN if none was hard
    seconds: float  # since the run started
    logits: dict[str, Tensor]  # behind the discrete weights: G_PE, W_Q, W_K
    counts: Mapping[str, int] = field(default_factory=dict)  # what else the record has: COUNTED

    @property
    def exact(self) -> bool:
        return self.certificate.verdict == "exact"


def generator(seed: int, attempt: int, stream: int, step: int = 0) -> np.random.Generator:
    return np.random.default_rng([seed, attempt, stream, step])


def begin(algebra: Algebra, recipe: Staged | EndToEnd, seeds: Sequence[int]) -> State:
    rows = [first_numbers(algebra, recipe, seed, attempt=1) for seed in seeds]
    tensors = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    return State([Seed(seed) for seed in seeds], tensors)


def adam_of(recipe: Staged | EndToEnd | Beliefs, weight_decay: float = 0.0) -> Adam:
    """The optimizer of the parameters, with the schedule of a recipe."""
    schedule = (recipe.steps, recipe.warmup, recipe.warmup_from, recipe.floor)
    return Adam(*schedule, recipe.betas, recipe.clip, weight_decay)


def first_numbers(
    algebra: Algebra, recipe: Staged | EndToEnd, seed: int, attempt: int
) -> dict[str, Tensor]:
    """A seed's initial state: its parameters, and Adam's moments at zero."""
    start = initial(algebra, recipe, seed, attempt)
    by_gradient = (*LEARNED, "gate") if isinstance(recipe, EndToEnd) else LEARNED
    moments = [(name, kind) for name in by_gradient for kind in "mv"]
    zeros = {f"{name}.{kind}": torch.zeros_like(start[name]) for name, kind in moments}
    return start | zeros


def _shapes(D: int, d_h: int, m: int, slots: int) -> dict[str, tuple[int, ...]]:
    shapes = {"bits": (2, D, d_h), "W_1": (slots, D, m), "b_1": (1, m), "W_2": (m, D)}
    return shapes | {"b_2": (1, D)}


def initial(
    algebra: Algebra, recipe: Staged | EndToEnd, seed: int, attempt: int
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
        start[name][tuple(map(slice, shape))] = torch.from_numpy(drawn)
    if size.slots > 1:
        start["rank"] = torch.from_numpy(recipe.spread * rng.standard_normal(size.D))
    return {name: tensor.float() for name, tensor in start.items()}


def outputs(tensors: dict[str, Tensor], token: Tensor, bag: Tensor, activation: str) -> Tensor:
    """The feedforward's outputs for rows of tokens, (seeds, rows, D), in their bags, with slots
    before D.
    """
    W_Q, W_K = binary(tensors["bits"]).unbind(1)
    H = (bag * torch.bmm(token, torch.bmm(W_Q, W_K.mT)).unsqueeze(-2)).flatten(2)
    hidden = torch.baddbmm(tensors["b_1"], H, tensors["W_1"].flatten(1, 2))
    hidden = hidden.square() if activation == "square" else hidden.relu_()
    return torch.baddbmm(tensors["b_2"], hidden, tensors["W_2"])


def stacked(parts: Sequence[MLP]) -> MLP:
    """The perceptrons of several seeds as one, with the seeds on the first axis."""
    named = [torch.stack([getattr(f, name) for f in parts]) for name in LEARNED[1:]]
    return MLP(*named, activation=parts[0].activation)


def export(
    algebra: Algebra,
    tensors: dict[str, Tensor],
    row: int,
    width: int | None = None,
    activation: Activation | None = None,
) -> Weights:
    """One seed's weights, discrete and without padding."""
    size = paper_architecture(algebra, width, activation)
    real: dict[str, Tensor] = {}
    for name, shape in _shapes(size.D, size.d_h, size.hidden, size.slots).items():
        cut = tensors[name][row][tuple(map(slice, shape))].detach().contiguous()
        # A seed that has diverged gets a verdict like any other.
        real[name] = torch.nan_to_num(cut, 0.0, 0.0, 0.0)
    W_Q, W_K = binary(real["bits"])
    perceptron = [real["W_1"].flatten(0, 1), real["b_1"][0], real["W_2"], real["b_2"][0]]
    f = MLP(*perceptron, activation=size.activation)
    G_R = ternary(tensors["rank"][row]) if "rank" in tensors else None
    return Weights(ternary(tensors["gate"][row]), W_Q, W_K, f, G_R=G_R)


def logits_of(tensors: dict[str, Tensor], row: int, D: int) -> dict[str, Tensor]:
    """The logits of one seed's gates and routing, by the names of those, without padding."""
    W_Q, W_K = tensors["bits"][row, :, :D]
    logits = {"G_PE": tensors["gate"][row], "W_Q": W_Q, "W_K": W_K}
    if "rank" in tensors:
        logits["G_R"] = tensors["rank"][row]
    return {name: tensor.detach().cpu() for name, tensor in logits.items()}


def end_of(
    state: State, row: int, weights: Weights, certificate: Certificate, margin_before: float
) -> Trained:
    """The end of a seed, with these weights on the CPU and the certificate's verdict about them."""
    logits = logits_of(state.tensors, row, weights.D)
    seconds = perf_counter() - state.started
    return Trained(state.seeds[row], weights, certificate, margin_before, seconds, logits)
