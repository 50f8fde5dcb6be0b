"""Learns a machine by beliefs: gradients from a fixed sample of short texts, through soft states.

While training, the state of a text is a belief, a probability for each of W states, which a symbol
maps to another one; the answer is a mixture by belief. All comes from one perceptron, of a token
beside a state: a softmax over answers, and one over next states. In use states are one-hot: the
largest of each softmax wins, which is when the machine is looked at.

    pi     (S, b, W)     belief of each text of each seed's batch
    T      (S, k, W, W)  next states by symbol and state
    E      (S, k, A, W)  answers by symbol and state; A tokens are answers
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad, relu

from exactformer.domains.machines import Machine
from exactformer.host.threads import subnormals_as_zero
from exactformer.model.feedforward import MLP
from exactformer.training.depth_one import padded
from exactformer.training.machine_recipes import Beliefs
from exactformer.training.machine_texts import NONE, Learned, Oracle, Texts
from exactformer.training.state import BATCHES, INITIAL, STRINGS, Seed, State, adam_of, generator

PERCEPTRON = ("W_1", "b_1", "W_2", "b_2")


def random_perceptron(width: int, outputs: int, hidden: int, rng: np.random.Generator) -> MLP:
    """A perceptron from random numbers, of so many inputs and outputs."""

    def normal(*shape: int, spread: float) -> Tensor:
        return torch.from_numpy(spread * rng.standard_normal(shape)).float()

    return MLP(
        normal(width, hidden, spread=0.5),
        normal(hidden, spread=0.1),
        normal(hidden, outputs, spread=hidden**-0.5),
        normal(outputs, spread=0.05),
        activation="relu",
    )


def first_beliefs(machine: Machine, recipe: Beliefs, seed: int, attempt: int) -> dict[str, Tensor]:
    """A seed's initial state: its parameters, and Adam's moments at zero."""
    rng = generator(seed, attempt, INITIAL)
    width = len(machine.vocabulary) + recipe.states
    f = random_perceptron(width, width, recipe.width, rng)
    start = {name: getattr(f, name) for name in PERCEPTRON}
    moments = {f"{n}.{kind}": torch.zeros_like(start[n]) for n in PERCEPTRON for kind in "mv"}
    return start | moments


class BeliefSteps:
    """Steps of Adam for all seeds at once."""

    def __init__(self, oracle: Oracle, recipe: Beliefs, device: str) -> None:
        machine = oracle.machine
        self.oracle, self.recipe, self.device = oracle, recipe, device
        self.adam = adam_of(recipe)
        self.rates: dict[str, float | Tensor] = dict.fromkeys(PERCEPTRON, recipe.rate)
        self.D, self.k = len(machine.vocabulary), len(machine.symbols)
        read = [*range(self.k)] if machine.end is None else [*range(self.k), machine.end]
        self.read = torch.tensor(read)  # tokens that are read, symbols first
        self.answering = slice(0, self.k) if machine.end is None else slice(self.k, None)
        self.answers = torch.tensor([machine.token_ids[s] for s in answer_symbols(machine)])
        self.samples: dict[int, Texts] = {}

    def sample(self, seed: Seed) -> Texts:
        """The texts that a seed learns from, in all its attempts."""
        if seed.seed not in self.samples:
            rng = generator(seed.seed, 1, STRINGS)
            self.samples[seed.seed] = self.oracle.draw(self.recipe.sample, rng)
        return self.samples[seed.seed]

    def run(self, state: State) -> None:
        """The steps up to the next evaluation."""
        batches = self._batches(state)
        with subnormals_as_zero():
            for tokens, answers in zip(*batches, strict=True):
                self._step(state, tokens, answers)

    def _batches(self, state: State) -> tuple[Tensor, Tensor]:
        """Tokens and answers of the next steps, (steps, S, b, places)."""
        recipe, size = self.recipe, (self.recipe.look_every, self.recipe.batch)
        tokens, answers = [], []
        for seed in state.seeds:
            sample = self.sample(seed)
            chosen = sample[seed.generator(BATCHES).integers(recipe.sample, size=size)]
            tokens.append(torch.from_numpy(chosen.tokens.astype(np.int64)))
            answers.append(torch.from_numpy(chosen.answers.astype(np.int64)))
        return torch.stack(tokens, 1).to(self.device), torch.stack(answers, 1).to(self.device)

    def _step(self, state: State, tokens: Tensor, answers: Tensor) -> None:
        tensors = state.tensors
        learned = {name: tensors[name].detach().requires_grad_() for name in PERCEPTRON}
        steps = [seed.step for seed in state.seeds]
        until = self.recipe.entropy_until * self.recipe.steps
        bonus = [self.recipe.entropy * max(0.0, 1 - step / max(1.0, until)) for step in steps]
        loss, shown = self._loss(learned, tokens, answers, torch.tensor(bonus).to(self.device))
        found = torch.autograd.grad(loss.sum(), list(learned.values()))
        gradients = dict(zip(learned, found, strict=True))
        factors = self.adam.factors(steps, (step + 1 for step in steps)).to(self.device)
        means, squares = ({n: tensors[f"{n}.{kind}"] for n in PERCEPTRON} for kind in "mv")
        self.adam.update(tensors, gradients, means, squares, self.rates, factors)
        for seed, part in zip(state.seeds, shown.tolist(), strict=True):
            seed.step, seed.spent, seed.loss = seed.step + 1, seed.spent + 1, part

    def _loss(
        self, learned: dict[str, Tensor], tokens: Tensor, answers: Tensor, bonus: Tensor
    ) -> tuple[Tensor, Tensor]:
        """For each seed something with the gradient of its loss, and the cross entropy."""
        S, b, places = tokens.shape
        E, Z = self._tables(learned)
        W, T = Z.shape[-1], Z.softmax(-1)
        entropy = -(T * Z.log_softmax(-1)).sum(-1).mean((1, 2))
        first = torch.arange(S, device=self.device).unsqueeze(-1)
        pi = torch.zeros(S, b, W, device=self.device)
        pi[..., 0] = 1
        total = torch.zeros(S, device=self.device)
        shown = torch.zeros(S, device=self.device)
        asked = (answers != NONE).sum((1, 2))
        number = torch.zeros(self.D + 1, dtype=torch.long, device=self.device)
        number[self.answers] = torch.arange(len(self.answers), device=self.device)
        for place in range(places):
            token, answer = tokens[..., place], answers[..., place]
            there = answer != NONE
            row = token.clamp(min=0)
            if there.any():
                answered = row.clamp(max=E.shape[1] - 1)  # the mark of the end is the only one
                index = (first * E.shape[1] + answered) * E.shape[2] + number[answer]
                e = E.flatten(0, 2).index_select(0, index.flatten()).view(S, b, W)
                z = (pi * e).sum(-1) + 1e-9
                # -z/z has the gradient of -log z, and unlike a logarithm rounds alike everywhere.
                total = total - torch.where(there, z / z.detach(), 0).sum(-1)
                shown = shown - torch.where(there, z.detach().log(), 0).sum(-1)
            if place + 1 < places:
                symbol = (token >= 0) & (token < self.k)
                index = (first * self.k + row.clamp(max=self.k - 1)).flatten()
                maps = T.flatten(0, 1).index_select(0, index).view(S, b, W, W)
                ahead = (pi.unsqueeze(-1) * maps).sum(-2)
                pi = torch.where(symbol.unsqueeze(-1), ahead, pi)
        return total / asked - bonus * entropy, shown / asked

    def _tables(self, learned: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """E of the tokens that are answered, and T before its softmax."""
        W_1, b_1, W_2, b_2 = learned.values()
        W_1, b_1 = _filled(W_1, -1), _filled(b_1, -1)
        W = W_1.shape[1] - self.D
        hidden = W_1[:, self.read].unsqueeze(2) + W_1[:, None, self.D :] + b_1[:, None, None]
        hidden = relu(hidden)

        def outputs(rows: slice, numbers: slice | Tensor) -> Tensor:
            above = _filled(_filled(W_2[..., numbers], -1), -2)
            Z = torch.bmm(hidden[:, rows].flatten(1, 2), above)
            b = b_2[:, None, numbers]
            return (Z[..., : b.shape[-1]] + b).unflatten(1, (-1, W))

        E = outputs(self.answering, self.answers).softmax(-1).mT.contiguous()
        return E, outputs(slice(self.k), slice(self.D, None))

    def perceptrons(self, state: State) -> list[MLP]:
        """The perceptron of each seed, on the CPU."""
        parts = [state.tensors[name].detach().cpu() for name in PERCEPTRON]
        # A seed that has diverged gets a verdict like any other.
        parts = [torch.nan_to_num(part, 0.0, 0.0, 0.0) for part in parts]
        return [MLP(*of_seed, activation="relu") for of_seed in zip(*parts, strict=True)]

    @torch.no_grad()
    def snapped(self, f: MLP) -> Learned:
        """The machine that a perceptron is where the largest of each softmax wins."""
        learned = {name: getattr(f, name).unsqueeze(0) for name in PERCEPTRON}
        E, Z = self._tables(learned)
        W = Z.shape[-1]
        answer, following = np.full((2, W, self.D), NONE)
        of_rows = self.answers[E[0].argmax(1)].numpy()  # (k, W)
        answer[:, self.read[self.answering].numpy()] = of_rows.T
        following[:, : self.k] = Z[0].argmax(-1).T.numpy()
        return Learned(answer, following)


def answer_symbols(machine: Machine) -> list[str]:
    """The symbols of answers, in the order of the vocabulary."""
    found = set(machine.output_ids[machine.output_ids >= 0].tolist())
    return [symbol for symbol in machine.vocabulary if machine.token_ids.get(symbol) in found]


def _filled(tensor: Tensor, axis: int) -> Tensor:
    """With zeros behind, up to a whole number of lanes: so a product of matrices rounds alike for
    each seed, wherever in memory its matrices begin. The axis is -1 or -2.
    """
    size = tensor.shape[axis]
    return pad(tensor, (*(0, 0) * (-1 - axis), 0, padded(size) - size))
