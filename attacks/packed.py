"""The packed layer beside the paper's: the same states after every iteration, whatever the weights.

    python -m attacks.packed [--count 1000] [--seed 0]

Weights are a model's, a mutant of one, or random numbers through and through: with or without
slots, on one-hot or dense vectors, in each format. Batches mix depths and lengths.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import torch
from torch import Tensor

from attacks.report import Report, numbered, run_alone
from attacks.weights import MODELS, PLAIN, mutant
from exactformer.api import Model
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import draw
from exactformer.model import circuit, packed
from exactformer.model.circuit import Weights, write_tokens
from exactformer.model.encode import MOST_OPERANDS, flat_positions, initial_state, read_values
from exactformer.model.feedforward import MLP
from exactformer.model.kinds import Kinds

NAMES = [name for name in MODELS if name not in PLAIN]
MOST_TOKENS = 200  # of one expression


@cache
def model_of(name: str) -> Model:
    return MODELS[name]()


def random_weights(weights: Weights, rng: np.random.Generator) -> Weights:
    """Nothing but the sizes is left."""
    D, S = weights.G_PE.shape[-1], int(rng.integers(1, 4))
    hidden = int(rng.integers(1, 2 * D))
    shapes = (S * D, hidden), (hidden,), (hidden, D), (D,)
    W_1, b_1, W_2, b_2 = (torch.from_numpy(rng.standard_normal(shape)).float() for shape in shapes)
    f = MLP(W_1, b_1, W_2, b_2 - float(rng.uniform(0, 10)), "relu")
    W_Q, W_K = torch.from_numpy(rng.integers(0, 2, (2, D, weights.W_Q.shape[1]))).float()
    G_PE, G_R = torch.from_numpy(rng.choice([-1, 0, 0, 1], (2, D))).float()
    if rng.random() < 0.5:
        G_PE = weights.G_PE
    E = torch.from_numpy(rng.standard_normal((D, D)) / D**0.5).float()
    dense = E if rng.random() < 0.2 else None
    return Weights(G_PE, W_Q, W_K, f, E=dense, G_R=G_R if S > 1 else None)


def problems(model: Model, rng: np.random.Generator) -> list[Expression]:
    depths = rng.integers(0, 6, size=int(rng.integers(1, 9)))
    drawn = [draw(model.algebra, int(depth), 1, rng)[0] for depth in depths]
    return [e for e in drawn if len(e) < MOST_TOKENS] or draw(model.algebra, 1, 1, rng)


def states(
    weights: Weights, expressions: list[Expression], dtype: torch.dtype
) -> tuple[list[Tensor], Tensor, packed.Packed, Kinds]:
    """The padded state after each iteration of the packed layer, the number of iterations of each
    expression, what is left in the end, and the kinds that came up.
    """
    X, inside = initial_state(expressions, weights, dtype)
    place = inside.flatten().nonzero().squeeze(-1)  # of a position in the padded batch
    kinds = Kinds.of(weights, dtype)
    found: list[Tensor] = []

    def look(state: packed.Packed) -> None:
        after = (found[-1] if found else X).clone()
        after[state.sequence] = 0
        rows = write_tokens(kinds.alphabet.rows[state.symbols].to(dtype), weights)
        after.flatten(0, 1)[place[state.position]] = rows
        found.append(after)

    ids, lengths = map(torch.from_numpy, flat_positions(expressions))
    last, taken = packed.run(packed.pack(ids, lengths, kinds), kinds, look)
    kinds.remember()
    return found, taken, last, kinds


def differences(model: Model, expressions: list[Expression], dtype: torch.dtype) -> list[str]:
    """The differences between the packed layer and the paper's."""
    weights = model.weights
    X, inside = initial_state(expressions, weights, dtype)
    steps = list(circuit.steps(X, weights, inside))
    found, taken, last, kinds = states(weights, expressions, dtype)
    X, iterations = circuit.finish(X, steps)
    values = kinds.alphabet.values(
        last.symbols, last.sequence[last.owner], len(taken), model.algebra
    )
    said = [
        f"another state after iteration {i}"
        for i, (step, state) in enumerate(zip(steps, found, strict=False), start=1)
        if not torch.equal(step.X, state)
    ]
    if not torch.equal(iterations, taken):
        said.append("other numbers of iterations")
    if not torch.equal(read_values(X, weights, model.algebra), values):
        said.append("other values")
    return said


@torch.no_grad()
def attack(count: int, seed: int) -> Report:
    report = Report("the packed layer has the states, iterations and values of the paper's")
    for number in numbered(count):
        rng = np.random.default_rng([seed, number])
        name = NAMES[number % len(NAMES)]
        model = model_of(name)
        kind, weights = "as they are", model.weights
        if rng.random() < 0.5:
            kind, weights = mutant(weights, rng)
        elif rng.random() < 0.8:
            kind, weights = "random", random_weights(weights, rng)
        dtype = list(MOST_OPERANDS)[int(rng.integers(len(MOST_OPERANDS)))]
        expressions = problems(model, rng)
        changed = replace(model, weights=weights)
        zeros = "dropped" if Kinds(weights, dtype).zeros_stay else "kept"
        report.count(f"weights: {kind}; zeros: {zeros}")
        for said in differences(changed, expressions, dtype):
            report.found.append(f"{name}, case {number} of seed {seed}, {kind}, {dtype}: {said}")
    return report


if __name__ == "__main__":
    run_alone(attack, count=1_000)
