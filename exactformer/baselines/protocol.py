"""The paper's training protocol for the baselines, all seeds at once.

Within an epoch first depth 1, then depths 1 and 2 together; warm-up, cosine, gradients clipped;
after each epoch the accuracy on the training problems, and the best epoch's parameters are kept.

Whatever is random follows from the seed and the epoch's number, so that a run that was killed goes
on from its last file as if nothing had happened. One exception: dropout, which CRvNN has, draws
from one stream for the group of seeds that train together.
"""

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from exactformer.baselines.crvnn import CRvNN
from exactformer.baselines.data import (
    Problems,
    balanced_order,
    draw_depth_two,
    every,
    padded,
    widened,
)
from exactformer.baselines.looped import Looped
from exactformer.baselines.positions import ENCODINGS, Parameters
from exactformer.baselines.state import Network, State
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG
from exactformer.domains.expression import Expression

FITTED = 0.95  # the training accuracy, at both depths, from which on a seed counts


@dataclass(frozen=True)
class Recipe:
    task: str
    network: str  # "learned", "rope", "fire" (looped transformers) or "crvnn"
    epochs: int
    batch: int = 500
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    clip: float = 1.0
    warm_up: float = 0.1  # of all steps, from 0.3 of the rate to the whole
    warm_up_from: float = 0.3
    cosine_to: float = 0.05
    sampled: int = 0  # depth-2 problems drawn afresh each epoch; 0 takes all there are
    measured: int = 10_000  # at most so many problems of a depth measure the training accuracy
    share: float = 1.0  # of an epoch's batches that are used

    @property
    def name(self) -> str:
        return f"{self.task}-{self.network}"

    def quick(self) -> "Recipe":
        """A taste: a few epochs, a tenth of each. Boolean's are short, and a hundred are enough."""
        epochs = {"boolean": 100, "arithmetic": 1, "listops": 1}[self.task]
        return replace(self, epochs=epochs, share=0.1, measured=500)


EPOCHS = {"arithmetic": 50, "boolean": 1000, "listops": 300}  # the paper's
CRVNN_EPOCHS = 60  # not in the paper


def recipe_for(task: str, network: str) -> Recipe:
    sampled = 8800 if task == "listops" else 0
    if network == "crvnn":
        decay = 1e-2
        return Recipe(task, network, CRVNN_EPOCHS, 128, weight_decay=decay, sampled=sampled)
    return Recipe(task, network, EPOCHS[task], sampled=sampled)


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        *(recipe_for(task, encoding) for task in CATALOG for encoding in ENCODINGS),
        recipe_for("listops", "crvnn"),
    )
}


def network_for(recipe: Recipe) -> Network:
    algebra = CATALOG[recipe.task]()
    D, values = len(algebra.vocabulary), len(algebra.values)
    if recipe.network == "crvnn":
        return CRvNN(D, values)
    return Looped(D, values, ENCODINGS[recipe.network]())


class Trainer:
    """Steps on one kind of batch; on a GPU the step is recorded once and replayed."""

    def __init__(
        self, network: Network, recipe: Recipe, state: State, total: int, data: "OnDevice"
    ) -> None:
        self.network, self.recipe, self.state, self.total = network, recipe, state, total
        self.data = data
        self.batches = used_batches(recipe, data)
        self.graph: torch.cuda.CUDAGraph | None = None

    def run(self, count: int) -> None:
        self.data.cursor.zero_()
        self.data.loss.zero_()
        if self.data.cursor.is_cuda and self.graph is None:
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
                self.data.cursor.zero_()  # there may be one batch only
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self._step()
        for tensor, old in zip(touched, before, strict=True):
            tensor.copy_(old)

    def _step(self) -> None:
        state, recipe = self.state, self.recipe
        tokens, depths, values, weights = self.data.batch()
        leaves = {k: v.detach().requires_grad_() for k, v in state.parameters.items()}
        logits, penalty = self.network.forward(
            leaves, tokens, depths, self.data.steps, training=True
        )
        loss = F.cross_entropy(logits.flatten(0, 1), values.flatten(), reduction="none")
        loss = (loss.view_as(weights) + penalty) * weights
        loss = loss.sum(1) / weights.sum(1)  # of each seed: (S,)
        gradients = torch.autograd.grad(loss.sum(), list(leaves.values()))
        with torch.no_grad():
            self.data.loss += loss.detach()
            norm = sum(g.flatten(1).square().sum(1) for g in map(_rows, gradients))
            scale = (recipe.clip / (torch.as_tensor(norm).sqrt() + 1e-6)).clamp(max=1)
            state.step += 1
            self._adam(dict(zip(leaves, gradients, strict=True)), scale)

    def _adam(self, gradients: Parameters, scale: Tensor, b1=0.9, b2=0.999, eps=1e-8) -> None:
        state, recipe = self.state, self.recipe
        rate = learning_rate(recipe, state.step, self.total)
        unbias_1, unbias_2 = 1 - b1**state.step, 1 - b2**state.step
        for name, gradient in gradients.items():
            gradient = gradient * scale.view(-1, *[1] * (gradient.dim() - 1))
            mean, square = state.mean[name], state.square[name]
            mean.lerp_(gradient, 1 - b1)
            square.lerp_(gradient.square(), 1 - b2)
            move = mean / unbias_1 / ((square / unbias_2).sqrt() + eps)
            parameter = state.parameters[name]
            parameter.sub_(rate * (move + recipe.weight_decay * parameter))


def _rows(tensor: Tensor) -> Tensor:
    return tensor.view(len(tensor), -1)


def learning_rate(recipe: Recipe, step: Tensor, total: int) -> Tensor:
    """Linear warm-up, then a cosine down to a twentieth; `step` counts from 1."""
    warm = max(1.0, recipe.warm_up * total)
    rising = recipe.warm_up_from + (1 - recipe.warm_up_from) * step / warm
    along = ((step - warm) / max(1.0, total - warm)).clamp(0, 1)
    falling = recipe.cosine_to + (1 - recipe.cosine_to) * (1 + torch.cos(math.pi * along)) / 2
    return recipe.learning_rate * torch.where(step < warm, rising, falling)


class OnDevice:
    """The problems of a phase and the order of the epoch, in buffers that keep their place."""

    def __init__(self, sets: Sequence[Problems], batch: int, device: torch.device) -> None:
        self.count = len(sets[0])
        self.size = min(batch, self.count)
        self.batches = -(-self.count // self.size)
        self.steps = int(sets[0].depths.max())
        S = len(sets)
        width = sets[0].tokens.shape[1]
        self.tokens = torch.empty(S, self.count, width, dtype=torch.int8, device=device)
        self.values = torch.empty(S, self.count, dtype=torch.int64, device=device)
        self.depths = torch.empty(S, self.count, dtype=torch.int64, device=device)
        self.order = torch.empty(S, self.batches, self.size, dtype=torch.int64, device=device)
        self.seed_rows = torch.arange(S, device=device)[:, None]
        self.cursor = torch.zeros(1, dtype=torch.int64, device=device)
        self.loss = torch.zeros(S, device=device)  # summed over the batches of an epoch
        self.load(sets)

    def load(self, sets: Sequence[Problems]) -> None:
        width = self.tokens.shape[2]
        tokens = np.stack([widened(problems.tokens, width) for problems in sets])
        self.tokens.copy_(torch.from_numpy(tokens))
        self.values.copy_(torch.from_numpy(np.stack([problems.values for problems in sets])))
        self.depths.copy_(torch.from_numpy(np.stack([problems.depths for problems in sets])))

    def arrange(self, orders: Sequence[np.ndarray]) -> None:
        """The last batch is filled up with -1, which counts for nothing."""
        missing = self.batches * self.size - self.count
        filled = [np.pad(order, (0, missing), constant_values=-1) for order in orders]
        self.order.copy_(torch.from_numpy(np.stack(filled)).view_as(self.order))

    def batch(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The next one: tokens, depths, values, and 1 or 0 for each problem."""
        row = self.order.index_select(1, self.cursor).squeeze(1)
        self.cursor += 1
        place = (self.seed_rows, row.clamp(min=0))
        weights = (row >= 0).float()
        return self.tokens[place], self.depths[place], self.values[place], weights

    @torch.no_grad()
    def accuracy(self, network: Network, p: Parameters, span: slice, chunk: int = 2500) -> Tensor:
        """The share of these problems that each seed has right: (S,)."""
        right = torch.zeros(len(self.tokens), device=self.tokens.device)
        start, stop, _ = span.indices(self.count)
        for begin in range(start, stop, chunk):
            part = slice(begin, min(begin + chunk, stop))
            logits, _ = network.forward(p, self.tokens[:, part], self.depths[:, part], self.steps)
            right += (logits.argmax(-1) == self.values[:, part]).sum(1)
        return right / (stop - start)


def used_batches(recipe: Recipe, data: OnDevice) -> int:
    return max(1, round(recipe.share * data.batches))


def train(
    recipe: Recipe,
    seeds: Sequence[int],
    folder: Path,
    device: torch.device,
    tell: Callable[[str], None] = lambda line: None,
    blocks: int = 20,
) -> State:
    """Train, or go on with, the run in `folder`; its file is renewed `blocks` times on the way."""
    algebra, network = CATALOG[recipe.task](), network_for(recipe)
    path = folder / "state.safetensors"
    header = {"recipe": asdict(recipe), "seeds": list(seeds)}
    state = State.start(network, seeds, device)
    if path.exists():
        state = State.read(path, header, state)
    if state.epoch >= recipe.epochs:
        return state
    one = every(algebra, 1)

    def epoch_sets(epoch: int) -> tuple[list[Problems], list[np.random.Generator]]:
        """Each seed's problems of an epoch, those of depth 1 first, and what shuffles them."""
        rngs = [np.random.default_rng([seed, epoch]) for seed in seeds]
        if not recipe.sampled:
            both = _both(algebra)
            return [both] * len(seeds), rngs
        return [one + draw_depth_two(algebra, recipe.sampled, rng) for rng in rngs], rngs

    first = OnDevice([one] * len(seeds), recipe.batch, device)
    second = OnDevice(epoch_sets(0)[0], recipe.batch, device)
    total = recipe.epochs * sum(used_batches(recipe, data) for data in (first, second))
    phases = [Trainer(network, recipe, state, total, data) for data in (first, second)]
    precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU
    began, spent = time.monotonic(), state.seconds
    block = max(1, recipe.epochs // blocks)
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
                phase.run(phase.batches)
            waiting.append((epoch, _measure(network, recipe, state, first, second, epoch)))
            state.epoch = epoch
            if epoch % block == 0 or epoch == recipe.epochs:
                state.curve += [_plain(number, row) for number, row in waiting]
                waiting.clear()
                state.seconds = spent + time.monotonic() - began
                state.write(path, header)
                last = state.curve[-1]
                tell(
                    f"{recipe.name} epoch {epoch} of {recipe.epochs}, {state.seconds:.0f} s: "
                    f"loss {last['loss']}, right at depth 1 {last['depth 1']}, 2 {last['depth 2']}"
                )
    finally:
        torch.set_float32_matmul_precision(precision)
    return state


@torch.no_grad()
def _measure(
    network: Network, recipe: Recipe, state: State, first: OnDevice, second: OnDevice, epoch: int
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
    return torch.stack([second.loss / used_batches(recipe, second), one, two])


def _plain(epoch: int, row: Tensor) -> dict[str, Any]:
    loss, one, two = ([_rounded(number) for number in part] for part in row.tolist())
    return {"epoch": epoch, "loss": loss, "depth 1": one, "depth 2": two}


def _rounded(number: float) -> float | None:
    """None for the loss of a seed that has diverged: JSON has no such numbers."""
    return round(number, 4) if math.isfinite(number) else None


_BOTH: dict[str, Problems] = {}


def _both(algebra: Algebra) -> Problems:
    """All problems of depth 1, then all of depth 2, these in an order that is random but fixed."""
    if algebra.name not in _BOTH:
        two = every(algebra, 2)
        order = np.random.default_rng(0).permutation(len(two))
        shuffled = Problems(two.tokens[order], two.values[order], two.depths[order])
        _BOTH[algebra.name] = every(algebra, 1) + shuffled
    return _BOTH[algebra.name]


@dataclass(frozen=True)
class Predictor:
    """One seed of a trained network; the true depth of each expression is given to it."""

    network: Network
    algebra: Algebra
    parameters: Parameters  # with a seeds' axis of one
    memory: int = 40_000_000  # problems at once times the square of their tokens, at most

    @classmethod
    def of_seed(cls, recipe: Recipe, state: State, row: int) -> "Predictor":
        best = {name: tensor[row : row + 1] for name, tensor in state.best.items()}
        return cls(network_for(recipe), CATALOG[recipe.task](), best)

    @torch.no_grad()
    def predict(self, expressions: Sequence[Expression]) -> list[str | None]:
        device = next(iter(self.parameters.values())).device
        answers: list[str | None] = [None] * len(expressions)
        order = sorted(range(len(expressions)), key=lambda i: len(expressions[i]))
        while order:
            at_once = max(1, self.memory // (len(expressions[order[-1]]) + 2) ** 2)
            part, order = order[-at_once:], order[:-at_once]
            tokens = torch.from_numpy(padded([expressions[i] for i in part])).to(device)
            depths = torch.tensor([expressions[i].depth for i in part], device=device)
            steps = int(depths.max())
            logits, _ = self.network.forward(self.parameters, tokens[None], depths[None], steps)
            for i, value in zip(part, logits[0].argmax(-1).tolist(), strict=True):
                answers[i] = self.algebra.values[value]
        return answers
