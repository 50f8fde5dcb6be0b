"""Learns integers: states are latent, and only short spans with their values are given.

The machine of each operation is found by futures (`integer_futures.py`). Its rows, and those of the
second reading, which are written down, are taught to one perceptron that starts from random
numbers, until each output is far from the threshold. Then the certificate judges it, once: neither
it nor carries or tables of sums steer, stop or select anything.
"""

from collections.abc import Mapping, Sequence
from time import perf_counter

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from exactformer.certify import certify
from exactformer.domains.integers import Integers
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.host.threads import subnormals_as_zero
from exactformer.model.construct_integers import Case, gates, rows_of, second_reading
from exactformer.model.feedforward import MLP
from exactformer.model.integers import IntegerWeights
from exactformer.protocol.optimizer import Adam
from exactformer.training.beliefs import PERCEPTRON, random_perceptron
from exactformer.training.integer_futures import Discoverer
from exactformer.training.integer_recipes import IntegerFutures
from exactformer.training.integer_texts import ASKED, Learned, Operation, Oracle
from exactformer.training.machine_texts import NONE
from exactformer.training.polish import margin, polished_to_margin
from exactformer.training.state import BATCHES, INITIAL, Seed, State, Trained

OF_SECOND_READING = 3  # states


def begin(domain: Integers, recipe: IntegerFutures, seeds: Sequence[int]) -> State:
    """The start of a run. A seed is learned from beginning to end, so there is nothing to keep."""
    return State([Seed(seed) for seed in seeds], {})


def counted(domain: Integers, recipe: IntegerFutures) -> dict[str, tuple[str, int]]:
    return {}


class ByFutures:
    """Finds the machines of one seed after the other, and fits a perceptron to their rows."""

    def __init__(self, domain: Integers, recipe: IntegerFutures, device: str) -> None:
        self.domain, self.recipe, self.device = domain, recipe, device
        self.discoverer = Discoverer(Oracle(domain, recipe.longest, recipe.alike), recipe)

    def advance(self, state: State) -> dict[int, Trained]:
        """Learn the first seed from beginning to end. It starts again, from other random weights,
        where the perceptron does not get the margin.
        """
        seed, recipe, domain = state.seeds[0], self.recipe, self.domain
        found, right = self.discoverer.find(seed.seed)
        cases, W = cases_of(domain, {o: h.learned for o, h in found.items()})
        H, Y = rows_of(domain, cases, W)
        rows = torch.cat([H.float(), 2 * Y.float() - 1], 1).to(self.device)
        while True:
            start = random_perceptron(H.shape[1], Y.shape[1], recipe.width, seed.generator(INITIAL))
            f, steps = fitted(start, rows, recipe, seed.generator(BATCHES))
            f, more = polished_to_margin(recipe, f, rows)
            seed.step, seed.spent = steps + more, seed.spent + steps + more
            if seed.attempt == recipe.attempts or margin(f, rows) >= recipe.margin:
                break
            seed.attempt, seed.step = seed.attempt + 1, 0
        f = MLP(*(part.cpu() for part in f.tensors.values()), activation=f.activation)
        weights = IntegerWeights(*gates(domain), f=f)
        certificate = certify(domain, weights)
        counts = {"states": sum(h.learned.states for h in found.values())}
        counts["texts_asked"] = sum(h.asked for h in found.values())
        counts["continuations"] = max(h.continuations for h in found.values())
        counts["fresh_texts_right"] = right
        seconds = perf_counter() - state.started
        return {0: Trained(seed, weights, certificate, float("nan"), seconds, {}, counts)}


def cases_of(domain: Integers, found: Mapping[Operation, Learned]) -> tuple[list[Case], int]:
    """The rows of all machines and of the second reading, and the number of states. One more, the
    last, has nothing left to write.
    """
    done = max(OF_SECOND_READING - 1, *(learned.states for learned in found.values()))
    cases: list[Case] = []

    def tokens(digit: int) -> list[int]:
        asked = [domain.none] if digit == ASKED else [FIRST_VALUE + digit]
        return [] if digit == NONE else asked

    for (symbol, taken), learned in found.items():
        sent = [*tokens(taken), domain.operator_id(symbol)]
        for state, letter in np.argwhere(learned.following != NONE).tolist():
            a, b = learned.letters[letter].tolist()
            left, right = tokens(a), [*tokens(b), *sent]
            if symbol == "*":
                left, right = [*left, *([] if b == NONE else [domain.first_kept + b])], sent
            written = tokens(int(learned.digit[state, letter]))
            following = int(learned.following[state, letter])
            cases.append((left, right, state, written[0] if written else None, following))
        for state, written in enumerate(map(tokens, learned.end.tolist())):
            cases.append(([], sent, state, written[0] if written else None, done))
        cases.append(([], sent, done, None, done))
    return [*cases, *second_reading(domain)], done + 1


def fitted(
    f: MLP, rows: Tensor, recipe: IntegerFutures, rng: np.random.Generator
) -> tuple[MLP, int]:
    """A perceptron trained on batches of rows, each its inputs and the sign of each output, until
    every output has the margin, or for as many steps as there are; and in how many.
    """
    adam = Adam(
        recipe.batch_steps,
        recipe.warmup,
        recipe.warmup_from,
        recipe.floor,
        recipe.betas,
        recipe.clip,
    )
    device = rows.device
    learned = {name: getattr(f, name).to(device).unsqueeze(0) for name in PERCEPTRON}
    means, squares = ({n: torch.zeros_like(p) for n, p in learned.items()} for _ in range(2))
    rates: dict[str, float | Tensor] = dict.fromkeys(PERCEPTRON, recipe.rate)
    with subnormals_as_zero():
        for step in range(recipe.batch_steps):
            some = torch.from_numpy(rng.integers(len(rows), size=recipe.batch)).to(device)
            H, signs = rows[some].split([f.W_1.shape[0], f.width], 1)
            learned = {name: part.detach().requires_grad_() for name, part in learned.items()}
            given = MLP(*learned.values(), activation=f.activation).in_training(H)
            loss = softplus(-given * signs).sum(-1).mean()
            found = torch.autograd.grad(loss, list(learned.values()))
            gradients = dict(zip(learned, found, strict=True))
            factors = adam.factors([step], [step + 1]).to(device)
            adam.update(learned, gradients, means, squares, rates, factors)
            if (step + 1) % recipe.look_every == 0:
                f = MLP(*(part.detach()[0] for part in learned.values()), activation=f.activation)
                if margin(f, rows) >= recipe.margin:
                    return f, step + 1
    return MLP(
        *(part.detach()[0] for part in learned.values()), activation="relu"
    ), recipe.batch_steps
