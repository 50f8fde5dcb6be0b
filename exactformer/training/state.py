"""Where a run stands: its seeds, their numbers, and what becomes of a seed in the end."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from time import perf_counter

import torch
from torch import Tensor

from exactformer.certify import Certificate
from exactformer.domains.algebra import Algebra
from exactformer.model.circuit import Weights
from exactformer.training.parameters import LEARNED, initial
from exactformer.training.recipe import EndToEnd, Recipe

Memory = dict[str, Tensor]  # what an estimator wants back at its next call


@dataclass
class Seed:
    """The progress of one seed, apart from its tensors."""

    seed: int
    attempt: int = 1
    step: int = 0  # of this attempt
    spent: int = 0  # steps over all attempts
    loss: float = float("nan")
    depth_one: int = 0  # bags that come out right
    depth_two: int | None = None  # right of the last depth-2 problems; None before there are any
    gate_looks: int = 0  # evaluations with depth 1 right and the gate still wrong
    memory: Memory = field(default_factory=dict)  # the estimator's
    rank_memory: Memory = field(default_factory=dict)  # the same, for the rank gate


@dataclass
class State:
    """A batch of seeds in training: everything a checkpoint has to hold."""

    seeds: list[Seed]
    tensors: dict[str, Tensor]  # learned numbers and Adam's moments; row i belongs to seeds[i]
    started: float = field(default_factory=perf_counter)

    def keep(self, rows: list[int]) -> None:
        self.seeds = [self.seeds[i] for i in rows]
        self.tensors = {name: tensor.detach()[rows] for name, tensor in self.tensors.items()}

    def restart(self, row: int, algebra: Algebra, recipe: Recipe | EndToEnd) -> None:
        """The next attempt of a seed, from fresh random numbers."""
        seed, attempt = self.seeds[row].seed, self.seeds[row].attempt + 1
        self.seeds[row] = Seed(seed, attempt, spent=self.seeds[row].spent)
        for name, tensor in first_numbers(algebra, recipe, seed, attempt).items():
            self.tensors[name][row] = tensor


@dataclass(frozen=True)
class Trained:
    """A seed that has ended: its weights and their certificate."""

    seed: Seed
    weights: Weights
    certificate: Certificate
    margin_before: float  # smallest |output| when the last case came right, before polishing
    seconds: float  # since the run started
    logits: dict[str, Tensor]  # behind the discrete weights: G_PE, W_Q, W_K
    level_steps: int | None = None  # on the gate of levels, in plain notation

    @property
    def exact(self) -> bool:
        return self.certificate.verdict == "exact"


def begin(algebra: Algebra, recipe: Recipe | EndToEnd, seeds: Sequence[int]) -> State:
    rows = [first_numbers(algebra, recipe, seed, attempt=1) for seed in seeds]
    tensors = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    return State([Seed(seed) for seed in seeds], tensors)


def first_numbers(
    algebra: Algebra, recipe: Recipe | EndToEnd, seed: int, attempt: int
) -> dict[str, Tensor]:
    """A seed's first numbers: what is learned, and Adam's moments at zero."""
    start = initial(algebra, recipe, seed, attempt)
    by_gradient = (*LEARNED, "gate") if isinstance(recipe, EndToEnd) else LEARNED
    moments = [(name, kind) for name in by_gradient for kind in "mv"]
    zeros = {f"{name}.{kind}": torch.zeros_like(start[name]) for name, kind in moments}
    return start | zeros


def end_of(
    state: State,
    row: int,
    weights: Weights,
    certificate: Certificate,
    margin_before: float | None = None,
) -> Trained:
    """The end of a seed, with these weights and the certificate's verdict about them."""
    weights = weights.to("cpu")
    if margin_before is None:
        margin_before = float(certificate.findings.smallest_margin)
    logits = {"G_PE": state.tensors["gate"][row]}
    logits["W_Q"], logits["W_K"] = state.tensors["bits"][row, :, : len(weights.W_Q)].unbind(0)
    if "rank" in state.tensors:
        logits["G_R"] = state.tensors["rank"][row]
    logits = {name: tensor.detach().cpu() for name, tensor in logits.items()}
    seconds = perf_counter() - state.started
    return Trained(state.seeds[row], weights, certificate, margin_before, seconds, logits)
