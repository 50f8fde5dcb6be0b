"""Learns machines: states are latent, and only texts with their answers are given.

Given is also how a text is read (from which end, one row a token) and how many states the weights
may have; learned are the states, all transitions and outputs, as a perceptron's weights.

There are two ways to states: by futures (`futures.py`), where a black box answers chosen texts, and
by beliefs (`beliefs.py`), from a fixed sample of random ones. Either ends with rows of a state and
a token. The perceptron is trained on its own rows until each output is far from the threshold, and
then the certificate judges it, once: neither it nor the machine's transitions steer, stop or select
anything, and no text is looked at that is longer than the recipe says.
"""

from collections.abc import Sequence
from time import perf_counter

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from exactformer.certify import certify
from exactformer.domains.machines import Machine
from exactformer.model.feedforward import MLP
from exactformer.model.machine import MachineWeights
from exactformer.training.beliefs import BeliefSteps, first_beliefs, random_perceptron
from exactformer.training.futures import Discoverer
from exactformer.training.machine_recipes import Beliefs, Futures, MachineRecipe
from exactformer.training.machine_texts import Learned, Oracle
from exactformer.training.polish import margin, polished_to_margin
from exactformer.training.state import CHECKS, INITIAL, Seed, State, Trained, generator

GLANCE = 500  # texts of the sample that are looked at before fresh ones


def begin(machine: Machine, recipe: MachineRecipe, seeds: Sequence[int]) -> State:
    """The start of a run. Futures are found a seed at a time, so that there is nothing to keep."""
    if not isinstance(recipe, Beliefs):
        return State([Seed(seed) for seed in seeds], {})
    rows = [first_beliefs(machine, recipe, seed, attempt=1) for seed in seeds]
    tensors = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    return State([Seed(seed) for seed in seeds], tensors)


def learner(machine: Machine, recipe: MachineRecipe, device: str) -> "ByFutures | ByBeliefs":
    if isinstance(recipe, Beliefs):
        return ByBeliefs(machine, recipe, device)
    assert isinstance(recipe, Futures)
    return ByFutures(machine, recipe)


def counted(machine: Machine, recipe: MachineRecipe) -> dict[str, tuple[str, int]]:
    """The fields of a seed that count what is right, each with a name and out of how many."""
    texts = min(GLANCE, recipe.sample) if isinstance(recipe, Beliefs) else 0
    return {"depth_one": ("texts", texts)} if texts else {}


class ByFutures:
    """Finds the states of one seed after the other, and fits a perceptron to their rows."""

    def __init__(self, machine: Machine, recipe: Futures) -> None:
        self.machine, self.recipe = machine, recipe
        oracle = Oracle(machine, recipe.longest, recipe.often)
        self.discoverer = Discoverer(oracle, recipe)

    def advance(self, state: State) -> dict[int, Trained]:
        """Learn the first seed from beginning to end. It starts again, from other random weights,
        where the perceptron does not get the margin.
        """
        seed = state.seeds[0]
        hypothesis, right = self.discoverer.find(seed.seed)
        learned = hypothesis.learned
        while True:
            rng = generator(seed.seed, seed.attempt, INITIAL)
            width = len(self.machine.vocabulary) + learned.states
            start = random_perceptron(width, width, self.recipe.width, rng)
            f, steps = fitted(start, learned, self.recipe)
            seed.step, seed.spent = steps, seed.spent + steps
            if (
                seed.attempt == self.recipe.attempts
                or margin(f, _cases(learned, learned.states)) >= self.recipe.margin
            ):
                break
            seed.attempt += 1
        counts = {"states": learned.states, "texts_asked": hypothesis.asked}
        counts |= {"continuations": hypothesis.continuations, "fresh_texts_right": right}
        return {0: judged(self.machine, state, 0, f, counts)}


class ByBeliefs:
    """Trains all seeds at once, on a leading axis; each on texts of its own."""

    def __init__(self, machine: Machine, recipe: Beliefs, device: str) -> None:
        self.machine, self.recipe = machine, recipe
        self.oracle = Oracle(machine, recipe.longest, recipe.often)
        self.steps = BeliefSteps(self.oracle, recipe, device)

    def advance(self, state: State) -> dict[int, Trained]:
        """Train up to the next evaluation; returns the seeds that have ended, by row. A seed ends
        when fresh short texts come out right; where they do not until its steps are over, it starts
        again.
        """
        recipe = self.recipe
        self.steps.run(state)
        ended: dict[int, Trained] = {}
        for row, f in enumerate(self.steps.perceptrons(state)):
            seed, learned = state.seeds[row], self.steps.snapped(f)
            glance = learned.right(self.steps.sample(seed)[:GLANCE])
            seed.depth_one = int(glance.sum())
            over = seed.step >= recipe.steps
            fresh = 0
            if glance.all() or over:
                texts = self.oracle.draw(recipe.checks, seed.generator(CHECKS))
                fresh = int(learned.right(texts).sum())
            seed.clean_looks = seed.clean_looks + 1 if fresh == recipe.checks else 0
            if seed.clean_looks == recipe.looks or (over and seed.attempt == recipe.attempts):
                learned = learned.reached()
                f, _ = fitted(f, learned, recipe)
                states = int((learned.following >= 0).any(1).sum())
                counts = {"states": states, "fresh_texts_right": fresh}
                ended[row] = judged(self.machine, state, row, f, counts)
            elif over:
                again = first_beliefs(self.machine, recipe, seed.seed, seed.attempt + 1)
                state.start_again(row, again)
        return ended


def judged(machine: Machine, state: State, row: int, f: MLP, counts: dict[str, int]) -> Trained:
    """The end of a seed: its weights, and what the certificate says about them."""
    weights = MachineWeights(torch.ones(len(machine.vocabulary)), f)
    certificate = certify(machine, weights)
    seconds = perf_counter() - state.started
    return Trained(state.seeds[row], weights, certificate, float("nan"), seconds, {}, counts)


def fitted(f: MLP, learned: Learned, recipe: MachineRecipe) -> tuple[MLP, int]:
    """A perceptron trained on the rows that were found until every output has the margin, or for as
    many rounds as the recipe says; and in how many steps.
    """
    return polished_to_margin(recipe, f, _cases(learned, f.width - learned.answer.shape[1]))


def _cases(learned: Learned, W: int) -> Tensor:
    """For each row what the perceptron receives, and the sign of each number that it is to give:
    tokens, then W states.
    """
    D = learned.answer.shape[1]
    state, token = learned.rows
    H = one_hot(torch.from_numpy(token), D + W) + one_hot(torch.from_numpy(D + state), D + W)
    wanted = np.zeros((len(state), D + W + 1))
    rows = np.arange(len(state))
    wanted[rows, learned.answer[state, token]] = 1  # NONE is the last column
    following = learned.following[state, token]
    wanted[rows, np.where(following < 0, following, D + following)] = 1
    return torch.cat([H, 2 * torch.from_numpy(wanted[:, :-1]) - 1], 1).float()
