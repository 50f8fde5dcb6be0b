"""The training loop: all seeds at once on a leading axis, each with random numbers of its own.

Depth 1 trains attention and feedforward; the depth-2 expressions train the gate, once most of
depth 1 is right. (While the gate is wrong, gradients from depth 2 would destroy what depth 1 has
taught.) An attempt ends when every case of depth 1 and a fresh set of depth-2 expressions come out
right, or when it runs out of steps. What it has learned is polished, and the certificate judges it;
a seed that is not exact starts again from fresh random weights. On the CPU the result of a seed has
the same bits whichever others are trained beside it and however often the run was interrupted.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from exactformer.domains.algebra import Algebra
from exactformer.model.architecture import paper_architecture
from exactformer.model.quantize import ternary
from exactformer.optimizer import Adam
from exactformer.training.depth_one import RankProblem, depth_one_rows
from exactformer.training.depth_two import gate_problem
from exactformer.training.estimators import ESTIMATORS, RANK_ESTIMATORS
from exactformer.training.parameters import (
    BATCHES,
    CHECKS,
    LEARNED,
    NOISE,
    RANKS,
    STRINGS,
    export,
    generator,
    outputs,
)
from exactformer.training.polish import polish
from exactformer.training.recipe import Recipe
from exactformer.training.state import Seed, State, Trained, certified, first_numbers, one_thread

NEARLY_RIGHT = 0.15  # balanced error of the right gate that a few wrong bags may cause


class Trainer:
    """Trains a batch of seeds for an algebra by a recipe."""

    def __init__(self, algebra: Algebra, recipe: Recipe, device: str = "cpu") -> None:
        self.algebra, self.recipe, self.device = algebra, recipe, device
        self.architecture = paper_architecture(algebra)
        self.adam = Adam(
            recipe.steps,
            recipe.warmup,
            recipe.warmup_from,
            recipe.floor,
            recipe.betas,
            recipe.clip,
        )
        self.rates: dict[str, float] = dict.fromkeys(LEARNED, recipe.feedforward_rate)
        self.rates["bits"] = recipe.attention_rate
        self.rows = depth_one_rows(algebra).to(device)
        self.n_bags = len(self.rows.token) - 1  # the last is the zero vector's
        self.bags = self.rows.bags(None).contiguous().unsqueeze(0)
        self.ranked_by = torch.empty(0, device=device)  # the rank gates that `bags` was made with

    def train(
        self, state: State, report: Callable[[State], None] = lambda state: None
    ) -> Iterator[Trained]:
        """Train the seeds of `state` in place, yielding each as it ends.

        `report` is called after every evaluation, with a state that training can resume from.
        """
        state.tensors = {name: tensor.to(self.device) for name, tensor in state.tensors.items()}
        for seed in state.seeds:
            for memory in (seed.memory, seed.rank_memory):
                memory |= {name: tensor.to(self.device) for name, tensor in memory.items()}
        while state.seeds:
            with one_thread():
                for _ in range(self.recipe.look_every):
                    self._depth_one_step(state)
                ended = self._evaluate(state)
            yield from ended.values()
            state.keep([row for row in range(len(state.seeds)) if row not in ended])
            report(state)

    def _depth_one_step(self, state: State) -> None:
        """One step of Adam on the loss over depth 1: binary cross entropy before the threshold."""
        token, bag, target, weight = self._batch(state, self.recipe.batch)
        learned = {name: state.tensors[name].requires_grad_() for name in LEARNED}
        Z = outputs(learned, token, bag, self.architecture.activation)
        slope = (torch.sigmoid(Z.detach()) - target) * weight  # of the cross entropy
        gradients = torch.autograd.grad(Z, list(learned.values()), slope)
        steps = [seed.step for seed in state.seeds]
        self.adam.update(
            learned,
            dict(zip(LEARNED, gradients, strict=True)),
            means={name: state.tensors[f"{name}.m"] for name in LEARNED},
            squares={name: state.tensors[f"{name}.v"] for name in LEARNED},
            rates=self.rates,
            factors=self.adam.factors(steps, [step + 1 for step in steps]).to(self.device),
        )
        for seed in state.seeds:
            seed.step, seed.spent = seed.step + 1, seed.spent + 1

    def _batch(self, state: State, batch: int | None) -> list[Tensor]:
        """Tokens, bags, targets and weights of `batch` bags of each seed's own, or of all:
        (seeds, rows, D) each, bags slot by slot. The zero vector is in every batch.
        """
        seeds, bags = state.seeds, self._bags(state)
        of_rows = (self.rows.token, self.rows.target, self.rows.weight)
        if batch is None:
            token, target, weight = (t.flatten(0, 1).expand(len(seeds), -1, -1) for t in of_rows)
            return [token, bags.flatten(1, 2), target, weight]
        index = np.full((len(seeds), batch + 1), self.n_bags)
        for row, seed in enumerate(seeds):
            rng = generator(seed.seed, seed.attempt, BATCHES, seed.step)
            index[row, :-1] = rng.integers(self.n_bags, size=batch)
        chosen = torch.from_numpy(index).to(self.device)
        token, target, weight = (tensor[chosen].flatten(1, 2) for tensor in of_rows)
        bag = bags[torch.arange(len(seeds), device=self.device)[:, None], chosen].flatten(1, 2)
        return [token, bag, target, weight * (self.n_bags / batch)]

    def _bags(self, state: State) -> Tensor:
        """All bags as each seed's rank gate makes them: (seeds, B, w, S, D)."""
        if "rank" not in state.tensors:
            return self.bags.expand(len(state.seeds), -1, -1, -1, -1)
        gates = ternary(state.tensors["rank"])
        if not torch.equal(gates, self.ranked_by):  # they change at evaluations only
            self.bags = torch.stack([self.rows.bags(gate) for gate in gates])
            self.ranked_by = gates
        return self.bags

    @torch.no_grad()
    def _evaluate(self, state: State) -> dict[int, Trained]:
        """Measure every seed, move its gate, and end or restart those whose time has come."""
        token, bag, target, weight = self._batch(state, None)
        Z = outputs(state.tensors, token, bag, self.architecture.activation)
        loss = (binary_cross_entropy_with_logits(Z, target, reduction="none") * weight).sum((1, 2))
        right = ((Z > 0) == (target > 0)) | (weight == 0)
        right = right.unflatten(1, self.rows.token.shape[:2]).flatten(2).all(2)  # (seeds, bags)
        margins = Z.abs().masked_fill(weight == 0, torch.inf).amin((1, 2))
        ended: dict[int, Trained] = {}
        for row, seed in enumerate(state.seeds):
            seed.loss, seed.depth_one = float(loss[row]), int(right[row, :-1].sum())
            if "rank" in state.tensors and not right[row].all():
                self._move_rank(state, row)
            if seed.depth_one >= self.recipe.gate_from * self.n_bags:
                self._move_gate(state, row, tolerance=0.0 if right[row].all() else NEARLY_RIGHT)
            finished = False
            if right[row].all():
                finished = self._depth_two_right(state, row)
                seed.gate_looks += 1
            if finished:
                weights = polish(self.recipe, export(self.algebra, state.tensors, row), self.rows)
                trained = certified(self.algebra, state, row, weights, float(margins[row]))
                if trained.exact or seed.attempt == self.recipe.attempts:
                    ended[row] = trained
                    continue
            if not finished and not self._attempt_over(seed):
                continue
            if seed.attempt < self.recipe.attempts:
                fresh = Seed(seed.seed, seed.attempt + 1, spent=seed.spent)
                state.seeds[row] = fresh
                state.set_row(
                    row, first_numbers(self.algebra, self.recipe, fresh.seed, fresh.attempt)
                )
            else:
                weights = export(self.algebra, state.tensors, row)
                ended[row] = certified(self.algebra, state, row, weights, float(margins[row]))
        return ended

    def _depth_two_right(self, state: State, row: int) -> bool:
        """Are the training problems solved? What the right gate is, nobody asks."""
        seed, count = state.seeds[row], self.recipe.check_strings
        strings = generator(seed.seed, seed.attempt, CHECKS, seed.step)
        weights = export(self.algebra, state.tensors, row)
        problem = gate_problem(self.algebra, weights, count, 0.0, strings)
        return problem.right(ternary(state.tensors["gate"][row])) == count

    def _attempt_over(self, seed: Seed) -> bool:
        if self.recipe.give_up is not None:
            step, fraction = self.recipe.give_up
            due = 0 <= seed.step - step < self.recipe.look_every
            if due and seed.depth_one < fraction * self.n_bags:
                return True
        return seed.step >= self.recipe.steps or seed.gate_looks >= self.recipe.gate_looks

    def _move_gate(self, state: State, row: int, tolerance: float) -> None:
        """A few steps of the estimator, each on fresh depth-2 expressions."""
        seed, gate = state.seeds[row], state.tensors["gate"]
        estimator = ESTIMATORS[self.recipe.estimator]
        strings = generator(seed.seed, seed.attempt, STRINGS, seed.step)
        noise = generator(seed.seed, seed.attempt, NOISE, seed.step)
        weights = export(self.algebra, state.tensors, row)
        for _ in range(self.recipe.gate_steps):
            problem = gate_problem(self.algebra, weights, self.recipe.strings, tolerance, strings)
            with torch.enable_grad():
                gate[row] = estimator(gate[row], problem, noise, seed.memory)
            seed.depth_two = problem.right(ternary(gate[row]))
            if seed.depth_two == self.recipe.strings:
                break  # there is no error to learn from

    def _move_rank(self, state: State, row: int) -> None:
        """Steps of the estimator on the rank gate, until a bag determines the value of its span."""
        seed, rank = state.seeds[row], state.tensors["rank"]
        problem = RankProblem(self.rows)
        noise = generator(seed.seed, seed.attempt, RANKS, seed.step)
        for _ in range(self.recipe.gate_steps):
            if float(problem.errors(ternary(rank[row])[None])) == 0:
                break
            estimator = RANK_ESTIMATORS[self.recipe.estimator]
            rank[row] = estimator(rank[row], problem, noise, seed.rank_memory)
