"""Changed weights beside the oracle: what the certificate calls exact must be right.

    python -m attacks.weights [--count 1000] [--seed 0]

A mutant has gates, routing bits or numbers of its feedforward changed, by much, by little or to the
very edge of the threshold. The ground truth is brute force: every span (or a choice of them), and
random expressions up to depth 6.
"""

from collections.abc import Sequence
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from attacks.report import Report, numbered, run_alone
from exactformer import certify as certificates
from exactformer.api import Model, construct, load
from exactformer.domains.catalog import boolean, listops
from exactformer.domains.definition import load_algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_depth
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP

EXAMPLES = Path(__file__).parents[1] / "examples"
MOST_SPANS = 300  # of depth 1 that are tried

MODELS = {
    **{
        f"{task}/7520": lambda task=task: load(f"{task}/7520") for task in ("boolean", "arithmetic")
    },
    "boolean fitted": lambda: construct(boolean(), "fitted"),
    "boolean closed": lambda: construct(boolean(), "closed"),
    "boolean table": lambda: construct(boolean(), "table"),
    "boolean dense": lambda: construct(boolean(), dense=True),
    "listops-2 closed": lambda: construct(listops(2), "closed"),
    "listops-any units": lambda: construct(listops(None)),
    **{
        f"{name} closed": lambda name=name: construct(load_algebra(EXAMPLES / f"{name}.toml"))
        for name in ("modulo7", "s3", "kleene")
    },
}


@cache
def problems(name: str) -> tuple[Model, list[Expression], list[str]]:
    model = MODELS[name]()
    rng = np.random.default_rng(1)
    expressions = list(enumerate_depth(model.algebra, 0))
    if model.algebra.max_fan_in is None:
        expressions += draw(model.algebra, 1, MOST_SPANS, rng)
    else:
        spans = list(enumerate_depth(model.algebra, 1))
        expressions += spans[:: 1 + len(spans) // MOST_SPANS]
    expressions += draw(model.algebra, 2, 100, rng)
    expressions += [e for d in range(3, 7) for e in draw(model.algebra, d, 4, rng) if len(e) < 200]
    return model, expressions, [evaluate(e) for e in expressions]


def mutant(weights: Weights, rng: np.random.Generator) -> tuple[str, Weights]:
    """What was changed, and the weights after it."""
    kind = str(rng.choice(["routing", "routing", "feedforward", "edge"]))
    if kind == "edge" and isinstance(weights.f, MLP):
        return kind, at_the_edge(weights, rng)
    if kind == "routing":
        return kind, rerouted(weights, rng, count=int(rng.choice([1, 1, 1, 2, 4])))
    return "feedforward", refed(weights, rng)


def rerouted(weights: Weights, rng: np.random.Generator, count: int) -> Weights:
    """Some entries of gates and routing moved to other small whole numbers."""
    names = ["G_PE", "W_Q", "W_K"] + (["G_R"] if weights.G_R is not None else [])
    for name in rng.choice(names, count):
        tensor = getattr(weights, str(name)).clone()
        flat = tensor.view(-1)
        place = int(rng.integers(len(flat)))
        flat[place] = float(rng.choice([v for v in (-1, 0, 1, 2) if v != flat[place]]))
        weights = replace(weights, **{str(name): tensor})
    return weights


def refed(weights: Weights, rng: np.random.Generator) -> Weights:
    """One tensor of the feedforward, or one number of it, moved by noise of any scale."""
    f = weights.f
    names = [field.name for field in fields(f) if isinstance(getattr(f, field.name), torch.Tensor)]  # pyright: ignore[reportArgumentType]
    name = str(rng.choice(names))
    tensor = getattr(f, name).clone()
    flat = tensor.view(-1)
    if tensor.is_floating_point():
        noise = torch.from_numpy(rng.standard_normal(len(flat)) * 10 ** rng.uniform(-8, 2)).float()
        if rng.random() < 0.5:
            noise[torch.arange(len(flat)) != int(rng.integers(len(flat)))] = 0
        flat += noise
    elif name == "outputs":
        place = int(rng.integers(len(flat)))
        flat[place] = 1 - flat[place]
    elif name == "readout":
        flat[int(rng.integers(len(flat)))] = int(rng.integers(-1, int(tensor.max()) + 1))
    else:
        flat[int(rng.integers(len(flat)))] += int(rng.choice([-2, -1, 1, 2]))
    return replace(weights, f=replace(f, **{name: tensor}))  # pyright: ignore[reportArgumentType]


def at_the_edge(weights: Weights, rng: np.random.Generator) -> Weights:
    """The bias of an output moved so that some other output nearly reaches the threshold."""
    f = weights.f
    assert isinstance(f, MLP)
    H = torch.from_numpy(rng.integers(0, 2, (50, len(f.W_1)))).float()
    Z = f(H)
    output = int(rng.integers(Z.shape[1]))
    b_2 = f.b_2.clone()
    b_2[output] -= Z[int(rng.integers(len(Z))), output].float() * (1 + 10 ** rng.uniform(-9, 0))
    return replace(weights, f=replace(f, b_2=b_2))


def faults(name: str, weights: Weights) -> tuple[str, list[str]]:
    """The verdict on weights, and what is wrong with it."""
    model, expressions, truth = problems(name)
    try:
        certificate = certificates.certify(model.algebra, weights)
    except ValueError as error:  # such weights cannot be in a file
        return f"refused: {str(error)[:40]}", []
    found = Model(model.algebra, weights).predict(expressions)
    wrong = [e for e, a, b in zip(expressions, found, truth, strict=True) if a != b]
    said: list[str] = []
    if certificate.verdict == "exact" and wrong:
        said.append(f"called exact, and wrong on {wrong[0]}")
    if certificate.verdict == "undecided" and wrong:
        said.append(f"called undecided, and wrong on {wrong[0]}")
    if example := certificate.counterexample:
        answer = Model(model.algebra, weights).predict([example.expression])[0]
        if not (answer == example.found != example.expected == evaluate(example.expression)):
            said.append(f"{example.expression} is no counterexample")
        if example.shortest and wrong and min(map(len, wrong)) < len(example.expression):
            said.append(f"{example.expression} is not the shortest counterexample")
    return certificate.verdict, said


def attack(count: int, seed: int, names: Sequence[str] = tuple(MODELS)) -> Report:
    report = Report("what the certificate calls exact is right; a counterexample is one")
    search = certificates.LONGEST, certificates.AT_MOST
    certificates.LONGEST, certificates.AT_MOST = 9, 500  # a short search tries more mutants
    try:
        for number in numbered(count):
            rng = np.random.default_rng([seed, number])
            name = names[number % len(names)]
            kind, weights = mutant(problems(name)[0].weights, rng)
            verdict, said = faults(name, weights)
            report.count(f"{name}, {kind}: {verdict.split(':')[0]}")
            report.found += [f"{name}, mutant {number} of seed {seed}, {kind}: {s}" for s in said]
    finally:
        certificates.LONGEST, certificates.AT_MOST = search
    return report


if __name__ == "__main__":
    run_alone(attack, count=1_000)
