"""Integers: changed weights beside Python's arithmetic, and weights with other states.

    python -m attacks.integers [--count N] [--seed S] [--only NUMBER]

Weights that are written down, and learned ones, of the bases 2, 3 and 10 are changed: what one row
of a table writes or leads to, one number of a gate or of a perceptron. Or their states only get
other numbers, or two copies each, between which the ways are drawn: then they are as right as
before. All short texts and random longer and nested ones say what weights are worth. What breaks
the claim: "exact" for weights that are wrong on any of these; a counterexample that is none, or
that the model does not answer as it says; "inexact" for weights that have but other states. Those
that are called undecided are counted: right ones may be, since the check asks for a little more
than must hold.
"""

import argparse
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import torch
from torch import Tensor

import exactformer as ef
from attacks.report import Report, numbered, run_alone
from exactformer.domains.integer_sampling import draw_integers
from exactformer.domains.integers import OPERATORS, Integers, integers
from exactformer.domains.numerals import to_numeral
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.syntax import parse
from exactformer.model.feedforward import MLP, Table
from exactformer.model.integers import IntegerWeights
from exactformer.training.run import train_seeds

CLAIM = "What the certificate of integers calls exact is right, and what it calls inexact wrong."
# Tables of base 10 take seconds to check, perceptrons much longer.
SOURCES = {
    "integers-2 table": 8,
    "integers-2 closed": 3,
    "integers-2 learned": 5,
    "integers-3 table": 4,
    "integers-3 learned": 3,
    "integers table": 1,
}
LEARNED_FROM = 7520  # the seed of those that are learned
SHORT = 8  # tokens up to which every text is tried, if not more than EVERY of a length
EVERY = 400
BELOW = 6  # pairs of smaller numbers are tried with each operator, too
NESTED = 40  # random texts of each depth, with numerals of up to
DIGITS = 12
GATES = ("G_PE", "G_N", "G_O", "G_F")


def attack(count: int, seed: int, only: int | None = None) -> Report:
    """Attack with `count` changed weights, or with those of the number `only`."""
    report = Report(CLAIM)
    for number in numbered(count) if only is None else [only]:
        rng = np.random.default_rng([seed, number])
        fault = _fault(rng, report)
        if fault is not None:
            report.found.append(f"weights {number} of seed {seed}: {fault}")
    return report


def _fault(rng: np.random.Generator, report: Report) -> str | None:
    shares = np.array([*SOURCES.values()])
    source = str(rng.choice([*SOURCES], p=shares / shares.sum()))
    model, texts, expected = problems(source)
    change, weights = changed(model.weights, rng)
    held = ef.Model(model.domain, weights)
    certificate = held.certify()
    wrong = held.predict(texts) != expected
    report.count("texts", len(texts))
    verdict = certificate.verdict
    if verdict == "undecided":
        verdict += ", wrong" if wrong else ", right on all that was tried"
    report.count(f"{source}, {change}: {verdict}")
    if certificate.exact and wrong:
        return f"{source}, {change}: called exact, and wrong"
    if change == "other states" and wrong:
        return f"{source}: other states give other values"
    if change == "other states" and certificate.verdict == "inexact":
        return f"{source}: called inexact with other states"
    if (example := certificate.counterexample) is not None:
        if held.predict([example.expression]) != [example.found]:
            return f"{source}, {change}: {example.expression} is not answered {example.found}"
        if evaluate(example.expression) == example.found:
            return f"{source}, {change}: the counterexample {example.expression} is none"
    return None


@cache
def problems(source: str) -> tuple[ef.Model, list[ef.Expression], list[str]]:
    """Weights, and texts with their values."""
    name, made = source.split()
    base = int(name.partition("-")[2] or 10)
    domain = integers(base)
    if made == "learned":
        (result,) = train_seeds(domain, [LEARNED_FROM])
        model = result.model
    else:
        model = ef.construct(domain, made)
    texts = _texts(domain)
    return model, texts, [evaluate(text) for text in texts]


def _texts(domain: Integers) -> list[ef.Expression]:
    rng = np.random.default_rng(0)
    lengths = range(1, SHORT + 1)
    texts = [text for n in lengths for text in islice(enumerate_length(domain, n), EVERY)]
    numerals = [to_numeral(n, domain.base) for n in range(BELOW)]
    texts += [parse(domain, f"({a}{o}{b})") for o in OPERATORS for a in numerals for b in numerals]
    drawn = (draw_integers(domain, depth, NESTED, rng, DIGITS) for depth in (1, 1, 2, 3))
    return [*texts, *(text for some in drawn for text in some)]


def changed(weights: IntegerWeights, rng: np.random.Generator) -> tuple[str, IntegerWeights]:
    """Changed weights, with the kind of the change."""
    kind = str(rng.choice(["states", "gate", "feedforward", "feedforward"]))
    if kind == "states":
        return "other states", with_other_states(weights, rng)
    if kind == "gate":
        name = str(rng.choice(GATES))
        gate = getattr(weights, name).clone()
        gate[rng.integers(len(gate))] = int(rng.integers(-1, 2))
        return "gate", replace(weights, **{name: gate})
    if isinstance(weights.f, Table):
        return "row", replace(weights, f=_with_another_row(weights.f, weights.D, rng))
    return "number", replace(weights, f=_with_another_number(weights.f, rng))


def _with_another_row(f: Table, D: int, rng: np.random.Generator) -> Table:
    """One row is changed: it writes or leads to something else, or to nothing."""
    outputs, row = f.outputs.clone(), int(rng.integers(len(f.outputs)))
    first, count = (0, D) if rng.random() < 0.5 else (D, f.width - D)
    outputs[row, first : first + count] = 0
    if (chosen := int(rng.integers(-1, count))) >= 0:
        outputs[row, first + chosen] = 1
    return replace(f, outputs=outputs)


def _with_another_number(f: MLP, rng: np.random.Generator) -> MLP:
    """One number of a perceptron is moved, by little or by much, or is zero."""
    name = str(rng.choice(["W_1", "b_1", "W_2", "b_2"]))
    tensor = getattr(f, name).clone()
    place = int(rng.integers(tensor.numel()))
    by = float(rng.choice([-4, -1, -0.25, 0.25, 1, 4, 0]))
    tensor.view(-1)[place] = tensor.view(-1)[place] + by if by else 0.0
    return replace(f, **{name: tensor})


def with_other_states(weights: IntegerWeights, rng: np.random.Generator) -> IntegerWeights:
    """The states in another order but for the start; of a table, each of them twice, too, with ways
    that lead to either.
    """
    f, D, W = weights.f, weights.D, weights.W
    if isinstance(f, MLP):
        order = torch.from_numpy(np.concatenate([[0], 1 + rng.permutation(W - 1)]))
        inputs = torch.cat([torch.arange(len(f.W_1) - W), len(f.W_1) - W + order])
        outputs = torch.cat([torch.arange(D), D + order])
        parts = f.W_1[inputs], f.b_1, f.W_2[:, outputs], f.b_2[outputs]
        return replace(weights, f=MLP(*(p.contiguous() for p in parts), activation=f.activation))
    assert isinstance(f, Table)
    names = torch.from_numpy(np.concatenate([[0], 1 + rng.permutation(2 * W - 1)]))
    bag, state = f.bags[:, :-W], f.bags[:, -W:].argmax(1)
    written, ahead = f.outputs[:, :D], f.outputs[:, D:]
    bags, outputs = [], []
    for copy in range(2):
        bags.append(torch.cat([bag, _one_hot(names[state + copy * W], 2 * W, bag)], 1))
        to = ahead.argmax(1) + W * torch.from_numpy(rng.integers(2, size=len(ahead)))
        following = _one_hot(names[to], 2 * W, ahead) * ahead.sum(1, keepdim=True)
        outputs.append(torch.cat([written, following.to(ahead.dtype)], 1))
    return replace(weights, f=Table(torch.cat(bags), torch.cat(outputs)))


def _one_hot(index: Tensor, size: int, like: Tensor) -> Tensor:
    return torch.nn.functional.one_hot(index, size).to(like.dtype)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--only", type=int, help="repeat these weights")
    run_alone(attack, count=2_000, parser=options)
