"""Training as in the paper's Appendix B.2: every parameter together, by straight-through gradients.
(How the gate gets its gradient can be varied: see `gates.py`.)

In each epoch come steps on depth 1, then steps on depth 1 and 2 together. A run has a fixed length.
Nothing in it knows the right gate: neither the loss nor the end. The certificate judges what comes
out and steers nothing, except that a seed which it does not call exact may start again from its
next draw, if the recipe has more than one attempt.

On the CPU seeds are trained one after the other, so that a seed's bits do not depend on the others.
On a GPU they share the leading axis of every tensor; a study may then give each its own constants.
"""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from exactformer.certify import certify
from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import draw, enumerate_depth, problems_of_depth
from exactformer.host.threads import subnormals_as_zero
from exactformer.model.architecture import paper_architecture
from exactformer.model.quantize import ternary
from exactformer.training.depth_one import depth_one_rows
from exactformer.training.depth_two import with_targets
from exactformer.training.gates import gate_with_gradient, score_gradient, searched
from exactformer.training.recipe import EndToEnd
from exactformer.training.soft_layer import (
    Constants,
    ProblemTensors,
    SoftLayer,
    gate_errors,
    losses,
    problems_right,
)
from exactformer.training.state import (
    BATCHES,
    LEARNED,
    NOISE,
    STRINGS,
    Seed,
    State,
    Trained,
    adam_of,
    end_of,
    export,
    outputs,
)

PARAMETERS: tuple[str, ...] = (*LEARNED, "gate")
REPORT_EVERY = 50  # steps
DRAWING = ("gumbel", "reinmax")  # estimators whose gate of a step is drawn


class EndToEndTrainer:
    """Trains seeds for an algebra by a recipe. `varied` has numbers of the recipe that differ from
    row to row of the state, for runs in which all rows are trained at once. If `compiled`, the loss
    and its gradient are, in half a minute: for thousands of steps on a GPU.
    """

    def __init__(
        self,
        algebra: Algebra,
        recipe: EndToEnd,
        device: str = "cpu",
        varied: dict[str, Tensor] | None = None,
        compiled: bool = False,
    ) -> None:
        self.algebra, self.recipe, self.device = algebra, recipe, device
        self.constants = Constants(recipe, varied)
        self.architecture = paper_architecture(algebra)
        self.adam = adam_of(recipe, recipe.weight_decay if recipe.optimizer == "adamw" else 0.0)
        rate = self.constants("rate")
        feedforward: float | Tensor = rate * self.constants("feedforward_factor")
        self.rates = dict.fromkeys(PARAMETERS, feedforward)
        self.rates["bits"] = rate * self.constants("attention_factor")
        self.rates["gate"] = rate * self.constants("gate_factor")
        self.depth_one = self._problems(list(enumerate_depth(algebra, 1)))
        depth_two, most = enumerate_depth(algebra, 2), recipe.depth_two_pool
        if problems_of_depth(algebra, 2) > most:
            depth_two = draw(algebra, 2, most, np.random.default_rng(0))
        self.depth_two = self._problems(list(depth_two))
        self.rows = depth_one_rows(algebra).to(device)
        self.bags = self.rows.bags(None).unsqueeze(0)
        self.loss = torch.compile(self._loss, dynamic=False) if compiled else self._loss

    def advance(self, state: State) -> dict[int, Trained]:
        """Train up to the next report; returns the seeds that have ended, by row: after all their
        steps they are certified or have no attempt left. Seeds that failed otherwise start again.
        """
        rows = slice(0, 1) if self.device == "cpu" else slice(0, len(state.seeds))
        with subnormals_as_zero():
            self.steps(state, rows)
        ended: dict[int, Trained] = {}
        for row, seed in enumerate(state.seeds[rows]):
            if seed.step < self.recipe.steps:
                continue
            weights = export(self.algebra, state.tensors, row).to("cpu")
            certificate = certify(self.algebra, weights)
            if certificate.findings.exact or seed.attempt == self.recipe.attempts:
                margin = float(certificate.findings.smallest_margin)
                ended[row] = end_of(state, row, weights, certificate, margin)
            else:
                state.restart(row, self.algebra, self.recipe)
        return ended

    def steps(self, state: State, rows: slice) -> None:
        """Run the steps between two reports. All seeds of `rows` are at the same step."""
        seeds = state.seeds[rows]
        first, last = seeds[0].step, min(seeds[0].step + REPORT_EVERY, self.recipe.steps)
        one = self._indices(seeds, BATCHES, self.depth_one, self.recipe.batch)
        two = self._indices(seeds, STRINGS, self.depth_two, self.recipe.depth_two_batch)
        noise = self._noise(seeds)
        tensors = {name: tensor[rows] for name, tensor in state.tensors.items()}
        loss = torch.zeros(0)
        for step in range(first, last):
            at = step - first
            loss = self._step(
                tensors,
                step,
                _chosen(self.depth_one, one, at),
                _chosen(self.depth_two, two, at),
                None if noise is None else noise[:, at],
            )
        token, bag, _, _ = self.rows.cases(self.bags, len(seeds))
        with torch.no_grad():
            Z = outputs(tensors, token, bag, self.architecture.activation)
        bags = self.rows.right(Z)[:, :-1].sum(1)  # without the zero vector
        layer = self._layer(tensors, ternary(tensors["gate"]).unsqueeze(1))
        solved = problems_right(layer, _chosen(self.depth_two, two, last - first - 1))
        for row, seed in enumerate(seeds):
            seed.step, seed.spent = last, seed.spent + last - first
            seed.loss, seed.depth_one = float(loss[row]), int(bags[row])
            seed.depth_two = int(solved[row])

    def _step(
        self,
        tensors: dict[str, Tensor],
        step: int,
        one: ProblemTensors,
        two: ProblemTensors,
        noise: Tensor | None,
    ) -> Tensor:
        """One step of Adam for every seed; returns their losses."""
        recipe, constants = self.recipe, self.constants
        learned = {name: tensors[name].detach().requires_grad_() for name in PARAMETERS}
        drawn = noise if recipe.estimator in DRAWING else None
        gate = gate_with_gradient(learned["gate"], drawn, constants)
        joint_step = recipe.joint_step(step)
        loss = self.loss(learned, gate, one, two if joint_step >= 0 else None)
        found = torch.autograd.grad(
            loss.sum(), list(learned.values()), allow_unused=True, materialize_grads=True
        )
        gradients = dict(zip(PARAMETERS, found, strict=True))
        if recipe.estimator in ("score", "search") and joint_step >= 0:
            few = ProblemTensors(*(part[:, : recipe.gate_strings] for part in two))
            errors = partial(gate_errors, self._layer(tensors, gate), few)
            if recipe.estimator == "score" and noise is not None:
                gradients["gate"] = score_gradient(tensors["gate"], noise, errors, constants)
            elif recipe.estimator == "search" and joint_step % recipe.search_every == 0:
                move = searched(tensors["gate"], errors) - tensors["gate"]
                tensors["gate"].add_(move * self._started(step))
        if "gate_start" in constants.varied or recipe.gate_start:
            gradients["gate"] = gradients["gate"] * self._started(step)
        if recipe.optimizer == "adam" and recipe.weight_decay:
            gradients = {n: g + recipe.weight_decay * tensors[n] for n, g in gradients.items()}
        factors = self.adam.factors([step], [step + 1]).to(self.device)
        means, squares = ({n: tensors[f"{n}.{kind}"] for n in PARAMETERS} for kind in "mv")
        self.adam.update(tensors, gradients, means, squares, self.rates, factors)
        if "gate_pull" in constants.varied or recipe.gate_pull:
            self._pull(tensors["gate"])
        return loss.detach()

    def _loss(
        self,
        learned: dict[str, Tensor],
        gate: Tensor,
        one: ProblemTensors,
        two: ProblemTensors | None,
    ) -> Tensor:
        """Loss of each seed on problems of depth 1, and on those of depth 2 if there are any."""
        layer, constants = self._layer(learned, gate), self.constants
        by_outputs, by_state = losses(layer, one, 1)
        loss = by_outputs + constants("blended_weight") * by_state
        if two is not None:
            loss = loss + constants("depth_two_weight") * losses(layer, two, 2)[1]
        return loss

    def _layer(self, tensors: dict[str, Tensor], gate: Tensor) -> SoftLayer:
        return SoftLayer(tensors, gate, self.architecture.activation, self.constants)

    def _pull(self, logits: Tensor) -> None:
        """Move the gate's logits towards the values that they have when quantized.

        Straight through, a gradient that is not zero at the right gate takes a logit across a
        threshold, and what then goes wrong takes it back: so it ends on either side by chance, and
        each crossing disturbs the other parameters. (Nagel et al. 2022 damp such oscillations so.)
        The rate of the gradient falls as a cosine and the pull stays, so that it wins in the end.
        """
        share = self.constants("rate", 1) * self.constants("gate_factor", 1)
        logits.add_(share * self.constants("gate_pull", 1) * (ternary(logits) - logits))

    def _started(self, step: int) -> Tensor | bool:
        """Whether the gate learns yet, for each seed if that differs."""
        return self.constants("gate_start", 1) * self.recipe.steps <= step

    def _problems(self, expressions: list[Expression]) -> ProblemTensors:
        """All problems of a depth, with a leading axis of 1."""
        X, inside, target = with_targets(self.algebra, expressions)
        weight = np.ones(len(X), dtype=np.float32)
        if self.recipe.balanced:
            values = target.sum(1).argmax(-1).numpy()
            counts = np.bincount(values)
            weight = (len(X) / (np.count_nonzero(counts) * counts[values])).astype(np.float32)
        parts = (X, inside, target, torch.from_numpy(weight))
        return ProblemTensors(*(part.to(self.device).unsqueeze(0) for part in parts))

    def _indices(
        self, seeds: list[Seed], stream: int, problems: ProblemTensors, batch: int
    ) -> Tensor | None:
        """Indices of the problems of each seed's next steps, (steps, seeds, batch); None for all
        problems.
        """
        count = problems.X.shape[1]
        if count <= batch:
            return None
        size = (REPORT_EVERY, batch)
        drawn = [seed.generator(stream).integers(count, size=size) for seed in seeds]
        return torch.from_numpy(np.stack(drawn, 1)).to(self.device)

    def _noise(self, seeds: list[Seed]) -> Tensor | None:
        """Noise for drawing gates in each seed's next steps, (seeds, steps, ...); None if no gates
        are drawn. It is uniform for each value of each coordinate, or normal for each draw.
        """
        D, name = self.architecture.D, self.recipe.estimator
        if name not in (*DRAWING, "score"):
            return None
        draw = [seed.generator(NOISE) for seed in seeds]
        if name == "score":
            size = (REPORT_EVERY, self.recipe.gate_draws // 2, D)
            drawn = [rng.standard_normal(size, dtype=np.float32) for rng in draw]
        else:
            drawn = [rng.uniform(1e-6, 1 - 1e-6, (REPORT_EVERY, D, 3)) for rng in draw]
        return torch.from_numpy(np.stack(drawn)).float().to(self.device)


def _chosen(problems: ProblemTensors, indices: Tensor | None, step: int) -> ProblemTensors:
    if indices is None:
        return problems
    X, inside, target, weight = (part[0][indices[step]] for part in problems)
    longest = int(inside.flatten(0, 1).any(0).sum()) if X.device.type == "cpu" else X.shape[-2]
    return ProblemTensors(
        X[..., :longest, :], inside[..., :longest], target[..., :longest, :], weight
    )
