"""Training many seeds at once gives each the result that it has alone, to the bit where it says
so.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import exactformer as ef
from exactformer.certify import findings, findings_of_all
from exactformer.domains.algebra import Algebra
from exactformer.host.threads import one_thread
from exactformer.model.circuit import Weights, iterate
from exactformer.model.feedforward import MLP
from exactformer.training import depth_two
from exactformer.training.depth_one import depth_one_rows
from exactformer.training.depth_two import GateProblem, gate_problem, right_of, try_gates
from exactformer.training.loop import Trainer
from exactformer.training.polish import GRID, _distinct_cases, polish_perceptrons
from exactformer.training.recipe import recipe_for
from exactformer.training.state import LEARNED, begin, export, outputs
from tests.algebras import MINUS, S3

ALGEBRAS = [ef.boolean(), ef.arithmetic(), ef.listops(), MINUS, S3]


@pytest.fixture(params=ALGEBRAS, ids=lambda algebra: algebra.name)
def algebra(request) -> Algebra:
    return request.param


@pytest.fixture(scope="module")
def trained() -> list[Weights]:
    """Three of one routing, and others."""
    exact = [ef.load(f"boolean/{seed}").weights for seed in (8739, 7520, 1936)]
    f = exact[0].f
    assert isinstance(f, MLP)
    wrong = replace(exact[0], f=replace(f, b_2=f.b_2 + 2**10))
    long = replace(exact[0], f=replace(f, W_1=f.W_1 * 2.0**-60, b_1=f.b_1 / 3))
    return [*exact, wrong, long]


def test_steps_have_the_bits_of_autograd(algebra):
    recipe = recipe_for(algebra)
    trainer, state = Trainer(algebra, recipe), begin(algebra, recipe, [3, 4, 5])
    steps = trainer._steps(state)
    with one_thread():
        for step in range(6):
            with torch.no_grad():
                steps.step()
            autograd_step(trainer, state.tensors, steps.batches.cases, trainer.factors[[step] * 3])
    for name, tensor in steps.unpacked().items():
        assert torch.equal(tensor, state.tensors[name].detach()), name


def autograd_step(
    trainer: Trainer, tensors: dict[str, Tensor], cases: Sequence[Tensor], factors: Tensor
) -> None:
    token, bag, target, weight = cases
    learned = {name: tensors[name].requires_grad_() for name in LEARNED}
    Z = outputs(learned, token, bag, trainer.architecture.activation)
    slope = (torch.sigmoid(Z.detach()) - target) * weight
    gradients = torch.autograd.grad(Z, list(learned.values()), slope)
    trainer.adam.update(
        learned,
        dict(zip(LEARNED, gradients, strict=True)),
        means={name: tensors[f"{name}.m"] for name in LEARNED},
        squares={name: tensors[f"{name}.v"] for name in LEARNED},
        rates=trainer.rates,
        factors=factors,
    )


def problems_of(algebra: Algebra, seeds: int) -> tuple[list[GateProblem], list[Tensor]]:
    """Random weights, which leave several tokens in a place, and gates around the right one."""
    rng = np.random.default_rng(1)
    state = begin(algebra, replace(recipe_for(algebra), spread=0.3), range(seeds))
    problems = [
        gate_problem(algebra, export(algebra, state.tensors, row), 4, rng) for row in range(seeds)
    ]
    right = ef.construct(algebra).weights.G_PE.numpy()
    gates = [
        np.where(rng.random((9 + row, len(right))) < 0.7, right, rng.integers(-1, 2, len(right)))
        for row in range(seeds)
    ]
    return problems, [torch.from_numpy(tried).float() for tried in gates]


def by_the_model(problem: GateProblem, gate: Tensor) -> tuple[float, int]:
    """The error of a gate, and how many expressions come out right."""
    X, weights = problem.X, replace(problem.weights, G_PE=gate)
    for _ in range(2):
        X = iterate(X, weights, problem.inside).X
    found, wanted = X > 0, problem.target > 0
    missed, false = (~found & wanted).sum() / wanted.sum(), (found & ~wanted).sum()
    right = (problem.target == X).flatten(1).all(1).sum()
    return float(missed + false / (~wanted).sum()), int(right)


@pytest.mark.parametrize("together", [False, True])
def test_errors_of_gates_are_the_models(algebra, together, monkeypatch):
    problems, gates = problems_of(algebra, 3)
    if together:  # as for a GPU, with so few that a core tries them
        monkeypatch.setattr(depth_two, "FEW", 1 << 40)
    device = "cuda" if together else "cpu"
    found = [errors for errors, _ in try_gates(problems, gates, device)]
    right = right_of(problems, [tried[0] for tried in gates], device)
    different = set()
    for problem, tried, errors, count in zip(problems, gates, found, right, strict=True):
        expected = [by_the_model(problem, gate) for gate in tried]
        assert errors.tolist() == [error for error, _ in expected]
        assert count == expected[0][1]
        different |= {error for error, _ in expected}
    assert len(different) > 5


def test_polishing_together_is_nearly_polishing_alone(trained):
    """Rows that pad a seed with fewer cases leave no trace but in the last digits."""
    algebra = ef.boolean()
    recipe = replace(recipe_for(algebra), polish_steps=20)
    rows = depth_one_rows(algebra)
    seeds, f = list(trained[:3]), trained[0].f
    seeds[1] = replace(seeds[1], W_Q=torch.zeros_like(seeds[1].W_Q))  # receives nothing: one case
    cases = [_distinct_cases(weights, rows) for weights in seeds]
    assert len({len(part) for part in cases}) > 1
    together = polish_perceptrons(recipe, [weights.f for weights in seeds], cases)
    for weights, part, found in zip(seeds, cases, together, strict=True):
        (alone,) = polish_perceptrons(recipe, [weights.f], [part])
        for name in ("W_1", "b_1", "W_2", "b_2"):
            expected = getattr(alone, name)
            assert (getattr(found, name) - expected).abs().max() <= 2 / GRID
            assert not torch.equal(expected, getattr(f, name))


def test_findings_together_are_those_of_each(trained):
    together = findings_of_all(ef.boolean(), trained)
    assert together == [findings(ef.boolean(), weights) for weights in trained]
    assert [found.exact for found in together][:4] == [True, True, True, False]
    assert len({found.smallest_margin for found in together}) == len(trained)
    assert findings_of_all(ef.boolean(), []) == []
