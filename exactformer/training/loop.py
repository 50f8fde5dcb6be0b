"""The training loop: all seeds at once on a leading axis, each with random numbers of its own.

Depth 1 trains attention and feedforward; the depth-2 expressions train the gate, once most of
depth 1 is right. (While the gate is wrong, gradients from depth 2 would destroy what depth 1 has
taught.) An attempt ends when every case of depth 1 and a fresh set of depth-2 expressions come out
right, or when it runs out of steps. What it has learned is polished, and the certificate judges it;
a seed that is not exact starts again from fresh random weights. On the CPU the result of a seed has
the same bits whichever others are trained beside it and however often the run was interrupted.
"""

from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from exactformer.certify import certify, findings_of_all
from exactformer.domains.algebra import Algebra
from exactformer.host.threads import subnormals_as_zero
from exactformer.model.architecture import paper_architecture
from exactformer.model.circuit import Weights
from exactformer.model.quantize import ternary
from exactformer.training.depth_one import depth_one_rows, rank_errors
from exactformer.training.depth_one_steps import CaseBatches, DepthOneSteps, DrawnBatches
from exactformer.training.depth_two import gate_problem, right_of
from exactformer.training.estimators import ASKING, Mover, answered, move_gates
from exactformer.training.polish import polish, rounded_if_large
from exactformer.training.recipe import Staged
from exactformer.training.repeat import repeat
from exactformer.training.state import (
    CHECKS,
    LEARNED,
    RANKS,
    Seed,
    State,
    Trained,
    adam_of,
    end_of,
    export,
    outputs,
)

NEARLY_RIGHT = 0.15  # balanced error of the right gate that a few wrong bags may cause


class Trainer:
    """Trains a batch of seeds for an algebra by a recipe."""

    def __init__(self, algebra: Algebra, recipe: Staged, device: str = "cpu") -> None:
        self.algebra, self.recipe, self.device = algebra, recipe, device
        self.architecture = paper_architecture(algebra, recipe.width, recipe.activation)
        self.adam = adam_of(recipe)
        every_step = range(recipe.steps + recipe.look_every)
        self.factors = self.adam.factors(every_step, (step + 1 for step in every_step)).to(device)
        self.rates: dict[str, float] = dict.fromkeys(LEARNED, recipe.feedforward_rate)
        self.rates["bits"] = recipe.attention_rate
        rows = depth_one_rows(algebra)
        self.rank_errors = partial(rank_errors, rows)
        self.rows = rows.to(device)
        self.n_bags = len(self.rows.token) - 1  # the last is the zero vector's
        self.bags = self.rows.bags(None).contiguous().unsqueeze(0)
        self.ranked_by = torch.empty(0, device=device)  # the rank gates that `bags` was made with

    def advance(self, state: State) -> dict[int, Trained]:
        """Train up to the next evaluation; returns the seeds that have ended, by row."""
        self._depth_one_steps(state)
        return self._evaluate(state)

    @torch.no_grad()
    def _depth_one_steps(self, state: State) -> None:
        """Steps of Adam up to the next evaluation."""
        count, steps = self.recipe.look_every, self._steps(state)
        with subnormals_as_zero():
            repeat(steps.step, count, self.rows.token.device)
        state.tensors |= steps.unpacked()
        for seed in state.seeds:
            seed.step, seed.spent = seed.step + count, seed.spent + count

    def _steps(self, state: State) -> DepthOneSteps:
        return DepthOneSteps(
            state.tensors,
            self._batches(state),
            self.adam,
            self.rates,
            self.factors,
            [seed.step for seed in state.seeds],
            self.architecture.activation,
        )

    def _batches(self, state: State) -> CaseBatches:
        batch, bags = self.recipe.batch, self._bags(state)
        if batch is None:
            return CaseBatches(self.rows.cases(bags, len(state.seeds)))
        return DrawnBatches(self.rows, bags, state.seeds, batch, self.recipe.look_every)

    def _bags(self, state: State) -> Tensor:
        """All bags by each seed's rank gate, (seeds, B, w, S, D); without rank gates, (1, B, w, S,
        D) for all seeds.
        """
        if "rank" not in state.tensors:
            return self.bags
        gates = ternary(state.tensors["rank"])
        if not torch.equal(gates, self.ranked_by):  # they change at evaluations only
            self.bags = torch.stack([self.rows.bags(gate) for gate in gates])
            self.ranked_by = gates
        return self.bags

    @torch.no_grad()
    def _evaluate(self, state: State) -> dict[int, Trained]:
        """Measure every seed, move its gate, and end or restart seeds that are due."""
        losses, counts, learned, margins = self._look(state)
        for row, seed in enumerate(state.seeds):
            seed.loss, seed.depth_one = losses[row], counts[row]
            if "rank" in state.tensors and not learned[row]:
                self._move_rank(state, row)
        here = {name: tensor.cpu() for name, tensor in state.tensors.items() if "." not in name}
        enough = self.recipe.gate_from * self.n_bags
        nearly = [row for row, count in enumerate(counts) if count >= enough]
        self._move_gates(state, here, {r: 0.0 if learned[r] else NEARLY_RIGHT for r in nearly})
        finished = self._finished(
            state, here, [row for row, all_right in enumerate(learned) if all_right]
        )
        exported = [self._export(here, row) for row in finished]
        ending = dict(zip(finished, polish(self.recipe, exported, self.rows), strict=True))
        for row, seed in enumerate(state.seeds):
            last = seed.attempt == self.recipe.attempts
            if row not in ending and last and self._attempt_over(seed):
                ending[row] = rounded_if_large(self._export(here, row), self.rows)
        ending = {row: weights.to("cpu") for row, weights in ending.items()}
        found = findings_of_all(self.algebra, list(ending.values()))
        ended: dict[int, Trained] = {}
        for (row, weights), findings in zip(ending.items(), found, strict=True):
            if findings.exact or state.seeds[row].attempt == self.recipe.attempts:
                certificate = certify(self.algebra, weights, findings)
                ended[row] = end_of(state, row, weights, certificate, margins[row])
        for row, seed in enumerate(state.seeds):
            if row not in ended and (row in ending or self._attempt_over(seed)):
                state.restart(row, self.algebra, self.recipe)
        return ended

    def _look(self, state: State) -> list[list]:
        """For each seed, on every case of depth 1: the loss, the number of right bags, whether all
        cases are right, and the smallest margin. A CPU does one seed at a time, whose numbers then
        stay in its cache.
        """
        seeds = len(state.seeds)
        cases = self.rows.cases(self._bags(state), seeds)
        at_once = 1 if self.rows.token.device.type == "cpu" else seeds
        found = []
        for start in range(0, seeds, at_once):
            some = slice(start, start + at_once)
            token, bag, target, weight = (tensor[some] for tensor in cases)
            tensors = {name: state.tensors[name][some] for name in LEARNED}
            Z = outputs(tensors, token, bag, self.architecture.activation)
            loss = binary_cross_entropy_with_logits(Z, target, reduction="none").mul_(weight)
            filler = weight == 0
            right = self.rows.right(Z)
            margin = Z.abs_().masked_fill_(filler, torch.inf).amin((1, 2))
            found.append((loss.sum((1, 2)), right[:, :-1].sum(1), right.all(1), margin))
        return [torch.cat(parts).tolist() for parts in zip(*found, strict=True)]

    def _finished(self, state: State, here: dict[str, Tensor], rows: list[int]) -> list[int]:
        """The rows of the seeds whose training problems are solved. The right gate is not
        consulted.
        """
        count = self.recipe.check_strings
        problems = []
        for row in rows:
            seed = state.seeds[row]
            seed.gate_looks += 1
            weights, strings = self._export(here, row), seed.generator(CHECKS)
            problems.append(gate_problem(self.algebra, weights, count, strings))
        right = right_of(problems, [problem.weights.G_PE for problem in problems], self.device)
        return [row for row, solved in zip(rows, right, strict=True) if solved == count]

    def _attempt_over(self, seed: Seed) -> bool:
        if self.recipe.give_up is not None:
            step, fraction = self.recipe.give_up
            due = 0 <= seed.step - step < self.recipe.look_every
            if due and seed.depth_one < fraction * self.n_bags:
                return True
        return seed.step >= self.recipe.steps or seed.gate_looks >= self.recipe.gate_looks

    def _move_gates(
        self, state: State, here: dict[str, Tensor], tolerances: dict[int, float]
    ) -> None:
        """Move the depth gates; `here` are the tensors on the CPU."""
        logits = here["gate"]
        movers = {
            row: Mover(state.seeds[row], self._export(here, row), logits[row], tolerance)
            for row, tolerance in tolerances.items()
        }
        move_gates(self.algebra, self.recipe, list(movers.values()), self.device)
        for row, mover in movers.items():
            logits[row] = mover.logits
        state.tensors["gate"] = logits.to(self.device)

    def _move_rank(self, state: State, row: int) -> None:
        """Move the rank gate by the estimator's steps until a bag determines its span's value."""
        seed = state.seeds[row]
        logits, noise = state.tensors["rank"][row].cpu(), seed.generator(RANKS)
        for _ in range(self.recipe.gate_steps):
            if float(self.rank_errors(ternary(logits)[None])) == 0:
                break
            asking = ASKING[self.recipe.estimator](logits, 0.0, noise, seed.rank_memory)
            logits = answered(asking, self.rank_errors)
        state.tensors["rank"][row] = logits.to(self.device)

    def _export(self, tensors: dict[str, Tensor], row: int) -> Weights:
        return export(self.algebra, tensors, row, self.recipe.width, self.recipe.activation)
