"""Changed weights beside the oracle: what the certificate calls exact must be right.

    python -m attacks.weights [--count 1000] [--seed 0]

A mutant has gates, routing bits or numbers of its feedforward changed, by much, by little or to the
very edge of the threshold; in plain notation, levels and directions as well. The ground truth is
brute force: every span (or a choice of them; in plain notation, all short texts), and random
expressions up to depth 6.
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
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic_plain, boolean, boolean_plain, listops
from exactformer.domains.definition import load_algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_depth, enumerate_length
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP

EXAMPLES = Path(__file__).parents[1] / "examples"
MOST_SPANS = 300  # of depth 1 that are tried, and in plain notation of each length
LONGEST_TEXT = 5  # tokens of a text in plain notation

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
PLAIN = {
    "boolean-plain, boolean/7520": lambda: load("boolean/7520", boolean_plain()),
    "boolean-plain table": lambda: construct(boolean_plain(), "table"),
    "arithmetic-plain, arithmetic/7520": lambda: load("arithmetic/7520", arithmetic_plain()),
    **{
        f"{name}-plain closed": lambda name=name: construct(
            load_algebra(EXAMPLES / "plain" / f"{name}.toml")
        )
        for name in ("modulo7", "implication")
    },
}
MODELS |= PLAIN


@cache
def problems(name: str) -> tuple[Model, list[Expression], list[str]]:
    model = MODELS[name]()
    rng = np.random.default_rng(1)
    expressions = list(enumerate_depth(model.algebra, 0))
    if name in PLAIN:
        expressions += short_texts(model.algebra)
    elif model.algebra.max_fan_in is None:
        expressions += draw(model.algebra, 1, MOST_SPANS, rng)
    else:
        spans = list(enumerate_depth(model.algebra, 1))
        expressions += spans[:: 1 + len(spans) // MOST_SPANS]
    expressions += draw(model.algebra, 2, 100, rng)
    expressions += [e for d in range(3, 7) for e in draw(model.algebra, d, 4, rng) if len(e) < 200]
    return model, expressions, [evaluate(e) for e in expressions]


def short_texts(algebra: Algebra) -> list[Expression]:
    """Texts of each length up to LONGEST_TEXT, all of them where they are few; then longer ones
    without parentheses, which levels alone decide about.
    """
    texts: list[Expression] = []
    for length in range(2, LONGEST_TEXT + 1):
        some = list(enumerate_length(algebra, length))
        texts += some[:: 1 + len(some) // MOST_SPANS]
    rng = np.random.default_rng(2)
    depths = rng.integers(2, 6, size=MOST_SPANS)
    drawn = [draw(algebra, int(depth), 1, rng, parentheses=0.0)[0] for depth in depths]
    return texts + [text for text in drawn if len(text) < 50]


def mutant(weights: Weights, rng: np.random.Generator) -> tuple[str, Weights]:
    """A mutant of the weights, with the kind of the change."""
    if weights.G_L is not None and rng.random() < 0.6:
        return "levels", regrouped(weights, rng)
    kind = str(rng.choice(["routing", "routing", "feedforward", "edge"]))
    if kind == "edge" and isinstance(weights.f, MLP):
        return kind, at_the_edge(weights, rng)
    if kind == "routing":
        return kind, rerouted(weights, rng, count=int(rng.choice([1, 1, 1, 2, 4])))
    return "feedforward", refed(weights, rng)


def regrouped(weights: Weights, rng: np.random.Generator) -> Weights:
    """Some levels and directions moved, or all of them drawn anew."""
    assert weights.G_L is not None
    assert weights.directions is not None
    G_L, directions = weights.G_L.clone(), weights.directions.clone()
    if rng.random() < 0.3:
        directions = torch.zeros(int(rng.integers(2, 7)), dtype=torch.int64)
        places = list(range(int((G_L > 0).sum()) + len(directions)))
    else:
        count = int(rng.choice([1, 1, 2, 3]))
        places = rng.integers(int((G_L > 0).sum()) + len(directions), size=count).tolist()
    used = (G_L > 0).nonzero().tolist()
    for place in places:
        if place < len(used):
            G_L[*used[place]] = int(rng.integers(1, len(directions)))
        else:
            directions[place - len(used)] = int(rng.integers(-1, 2))
    return replace(weights, G_L=G_L, directions=directions)


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
    grouping = certificate.findings.grouping
    harmless = certificate.verdict == "exact" and grouping is not None and grouping.harmless
    return f"{certificate.verdict}{', harmless' if harmless else ''}", said


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
