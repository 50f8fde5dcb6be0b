"""The paper's training protocol, all seeds at once.

Within an epoch first depth 1, then depths 1 and 2 together; warm-up, cosine, gradients clipped;
after each epoch the accuracy on the training problems is measured, and the parameters of the best
epoch are kept.

All randomness follows from the seed and the epoch's number, so that a run that was killed resumes
from its last file as if nothing had happened. One exception: dropout draws from
one stream for the group of seeds that train together.
"""

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.protocol.data import (
    Batches,
    Problems,
    balanced_order,
    depths_one_and_two,
    draw_depth_two,
    every,
)
from exactformer.protocol.optimizer import Adam
from exactformer.protocol.recipe import Recipe
from exactformer.protocol.state import Network, NetworkState

BLOCKS = 20  # of epochs, after each of which the state is written and reported


class Trainer:
    """Steps on the batches of one phase; on a GPU the step is recorded once and replayed, where
    the network says that it can be.
    """

    def __init__(
        self, network: Network, recipe: Recipe, state: NetworkState, total: int, data: Batches
    ) -> None:
        self.network, self.state, self.data = network, state, data
        self.adam = Adam(
            total,
            recipe.warm_up,
            recipe.warm_up_from,
            recipe.cosine_to,
            betas=(0.9, 0.999),
            clip=recipe.clip,
            weight_decay=recipe.weight_decay,
        )
        self.rates = dict.fromkeys(state.parameters, recipe.learning_rate)
        steps = range(1, total + 1)  # all of them, since a recorded step reads from the device only
        self.factors = self.adam.factors(steps, steps).to(state.step.device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def run(self, count: int) -> None:
        self.data.cursor.zero_()
        self.data.loss.zero_()
        if self.data.cursor.is_cuda and self.graph is None and self.network.recordable:
            self._record()
        for _ in range(count):
            self.graph.replay() if self.graph else self._step()

    def _record(self) -> None:
        """Warm up on a side stream, undo what that did, then record one step."""
        state = self.state
        touched = [self.data.cursor, self.data.loss, state.step]
        for group in (state.parameters, state.mean, state.square):
            touched += group.values()
        before = [tensor.clone() for tensor in touched]
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                self.data.cursor.zero_()  # there may be one batch only, and no step after it
                state.step.zero_()
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step()
        for tensor, old in zip(touched, before, strict=True):
            tensor.copy_(old)

    def _step(self) -> None:
        state = self.state
        inputs, values, weights = self.data.next()
        leaves = {k: v.detach().requires_grad_() for k, v in state.parameters.items()}
        logits, penalty = self.network.forward(leaves, inputs, training=True)
        loss = F.cross_entropy(logits.flatten(0, 1), values.flatten(), reduction="none")
        loss = (loss.view_as(weights) + penalty) * weights
        loss = loss.sum(1) / weights.sum(1)  # of each seed: (S,)
        found = torch.autograd.grad(loss.sum(), list(leaves.values()))
        gradients = dict(zip(leaves, found, strict=True))
        self.data.loss += loss.detach()
        factors = self.factors.index_select(0, state.step.long().view(1))
        state.step += 1
        self.adam.update(state.parameters, gradients, state.mean, state.square, self.rates, factors)


def train_network(
    network: Network,
    algebra: Algebra,
    recipe: Recipe,
    seeds: Sequence[int],
    folder: Path | None,
    device: torch.device,
    report: Callable[[str], None],
    about: Mapping[str, Any] = MappingProxyType({}),
) -> NetworkState:
    """Train, or resume, the run in `folder`; its file is written some BLOCKS times on the way.
    `about` is stored with the run, and must be equal to resume it.
    """
    path = None if folder is None else folder / "state.safetensors"
    header = {"recipe": asdict(recipe), "seeds": list(seeds), **about}
    state = NetworkState.start(network, seeds, device)
    if path is not None and path.exists():
        state = NetworkState.read(path, header, state)
    if state.epoch >= recipe.epochs:
        return state
    one = every(algebra, 1)

    def epoch_sets(epoch: int) -> tuple[list[Problems], list[np.random.Generator]]:
        """The problems of an epoch by seed, depth 1 first, and the generators that shuffle them."""
        rngs = [np.random.default_rng([seed, epoch]) for seed in seeds]
        if not recipe.sampled:
            return [depths_one_and_two(algebra)] * len(seeds), rngs
        return [one + draw_depth_two(algebra, recipe.sampled, rng) for rng in rngs], rngs

    first = Batches([one] * len(seeds), recipe, device)
    second = Batches(epoch_sets(0)[0], recipe, device)
    total = recipe.epochs * (first.used + second.used)
    phases = [Trainer(network, recipe, state, total, data) for data in (first, second)]
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU
    began, spent = time.monotonic(), state.seconds
    block = max(1, recipe.epochs // BLOCKS)
    group = int(hashlib.sha256(str(header["seeds"]).encode()).hexdigest()[:8], 16)
    waiting: list[tuple[int, Tensor]] = []
    try:
        for epoch in range(state.epoch + 1, recipe.epochs + 1):
            torch.manual_seed(group + epoch)  # for dropout
            sets, rngs = epoch_sets(epoch)
            if recipe.sampled:
                second.load(sets)
            first.arrange([balanced_order(one, rng) for rng in rngs])
            second.arrange([balanced_order(s, rng) for s, rng in zip(sets, rngs, strict=True)])
            for phase in phases:
                phase.run(phase.data.used)
            waiting.append((epoch, _measure(network, recipe, state, first, second, epoch)))
            state.epoch = epoch
            if epoch % block == 0 or epoch == recipe.epochs:
                state.curve += [_plain(number, row) for number, row in waiting]
                waiting.clear()
                state.seconds = spent + time.monotonic() - began
                if path is not None:
                    state.write(path, header)
                last = state.curve[-1]
                report(
                    f"epoch {epoch} of {recipe.epochs}, {state.seconds:.0f} s: "
                    f"loss {last['loss']}, right at depth 1 {last['depth 1']}, 2 {last['depth 2']}"
                )
    finally:
        torch.set_float32_matmul_precision(precision)
    return state


@torch.no_grad()
def _measure(
    network: Network,
    recipe: Recipe,
    state: NetworkState,
    first: Batches,
    second: Batches,
    epoch: int,
) -> Tensor:
    """Loss and accuracies after an epoch, (3, S); keeps the parameters of the best so far.

    No number is fetched from the device here, so the next epoch is not held up.
    """
    n_one, most = first.count, recipe.measured
    one = first.accuracy(network, state.parameters, slice(most))
    two = second.accuracy(network, state.parameters, slice(n_one, n_one + most))
    accuracy = torch.stack([one, two], dim=1)
    better = accuracy.sum(1) > state.best_accuracy.sum(1)
    state.best_accuracy.copy_(torch.where(better[:, None], accuracy, state.best_accuracy))
    state.best_epoch.copy_(torch.where(better, epoch, state.best_epoch))
    for name, parameter in state.parameters.items():
        rows = better.view(-1, *[1] * (parameter.dim() - 1))
        state.best[name].copy_(torch.where(rows, parameter, state.best[name]))
    return torch.stack([second.loss / second.used, one, two])


def _plain(epoch: int, measured: Tensor) -> dict[str, Any]:
    """A point of the curve; None stands for the loss of a seed that has diverged, as in JSON."""
    loss, one, two = (
        [round(number, 4) if math.isfinite(number) else None for number in row]
        for row in measured.tolist()
    )
    return {"epoch": epoch, "loss": loss, "depth 1": one, "depth 2": two}
