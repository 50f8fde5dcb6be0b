"""How the gate may learn end to end: each estimator against what it must be."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.model.architecture import paper_architecture
from exactformer.model.circuit import iterate
from exactformer.model.quantize import ternary
from exactformer.training.end_to_end import EndToEndTrainer
from exactformer.training.gates import (
    VALUES,
    gate_with_gradient,
    rotations,
    score_gradient,
    searched,
)
from exactformer.training.recipe import end_to_end_recipe
from exactformer.training.soft_layer import Constants, ProblemTensors, SoftLayer, gate_errors
from exactformer.training.state import begin, export

BOOLEAN = ef.boolean()


def constants(**settings) -> Constants:
    return Constants(end_to_end_recipe(BOOLEAN, **settings))


def drawing(value: int) -> torch.Tensor:
    """Numbers between 0 and 1 by which one coordinate is drawn as this value, whatever its logit.
    The values that are not drawn get so little that no score makes up for it.
    """
    noise = torch.full((1, 1, 3), 1e-30)
    noise[..., value] = 1 - 1e-7
    return noise.double()


@pytest.mark.parametrize("estimator", ["gumbel", "reinmax"])
def test_a_drawn_gate_is_one_of_the_values_as_often_as_it_should_be(estimator):
    rng = np.random.default_rng(0)
    logits = torch.tensor([[0.3]]).expand(20_000, 1)
    noise = torch.from_numpy(rng.uniform(1e-6, 1 - 1e-6, (20_000, 1, 3))).float()
    drawn = gate_with_gradient(logits, noise, constants(estimator=estimator)).flatten()
    scores = torch.tensor([-((0.3 - value) ** 2) / (2 * 0.4**2) for value in VALUES])
    for value, probability in zip(VALUES, torch.softmax(scores, 0), strict=True):
        share = (drawn == value).float().mean()
        assert float(share) == pytest.approx(float(probability), abs=0.02)


def test_reinmax_has_the_exact_gradient_of_a_quadratic():
    """In expectation over the draw, which is what the method is for; straight-through has not."""
    for start in (-0.6, 0.1, 0.7):
        logit = torch.tensor([[start]], dtype=torch.float64, requires_grad=True)
        scores = torch.stack([-((logit - value) ** 2) / (2 * 0.4**2) for value in VALUES], -1)
        probabilities = torch.softmax(scores, -1).flatten()

        def quadratic(gate):
            return gate**2 + 0.5 * gate

        expected = (probabilities * quadratic(torch.tensor(VALUES).double())).sum()
        (exact,) = torch.autograd.grad(expected, logit, retain_graph=True)
        found = torch.zeros_like(exact)
        for value in range(3):
            settings = constants(estimator="reinmax")
            gate = gate_with_gradient(logit, drawing(value), settings)
            assert float(gate.detach()) == VALUES[value]
            (gradient,) = torch.autograd.grad(quadratic(gate).sum(), logit)
            found += probabilities[value].detach() * gradient
        assert float(found) == pytest.approx(float(exact), rel=1e-4)


def test_the_score_function_points_downhill_and_a_baseline_takes_constants_away():
    """An error that the first coordinate alone decides: 0 for a 1 there, and 1 otherwise."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.zeros(3, 5)
    noise = torch.randn(3, 400, 5, generator=generator)

    def errors(gates):
        return 1.0 - (gates[..., 0] == 1).float()

    gradient = score_gradient(logits, noise, errors, constants(score_baseline=1.0))
    assert (gradient[:, 0] < -0.3).all()
    assert (gradient[:, 1:].abs() < 0.2).all()
    moved = score_gradient(logits, noise, lambda gates: errors(gates) + 7, constants())
    torch.testing.assert_close(moved, gradient, atol=1e-4, rtol=1e-4)


def test_a_search_finds_what_is_two_coordinates_away_and_else_stays():
    right = torch.tensor([1.0, -1.0, 0.0, 0.0])

    def errors(gates):
        return (gates != right).any(-1).float()

    near, far = torch.zeros(1, 4), torch.tensor([[0.0, 0.0, 0.9, 0.9]])
    assert searched(near, errors)[0].tolist() == pytest.approx([0.6, -0.6, 0, 0])
    assert torch.equal(searched(far, errors), far)
    assert len(rotations(4)) == 1 + 4 * 2 + 6 * 4


def test_errors_of_gates_are_those_of_the_model():
    """Many gates at once in the layer of training, beside the model itself, gate by gate."""
    algebra = ef.listops()
    recipe = end_to_end_recipe(algebra)
    state = begin(algebra, recipe, [200, 201])
    trainer = EndToEndTrainer(algebra, recipe)
    few = ProblemTensors(*(part[:, :12] for part in trainer.depth_two))
    rng = np.random.default_rng(0)
    gates = torch.from_numpy(rng.integers(-1, 2, (2, 6, len(algebra.vocabulary)))).float()
    gates[0, 0] = ef.construct(algebra).weights.G_PE
    activation = paper_architecture(algebra).activation
    first = ternary(state.tensors["gate"]).unsqueeze(1)
    layer = SoftLayer(state.tensors, first, activation, trainer.constants)
    found = gate_errors(layer, few, gates)
    for row in range(2):
        weights = export(algebra, state.tensors, row)
        X, inside, target, _ = (part[0] for part in few)
        wanted = target > 0
        for k in range(6):
            gated, outputs = replace(weights, G_PE=gates[row, k]), X
            for _ in range(2):
                outputs = iterate(outputs, gated, inside).X
            outputs = outputs > 0
            missed = (~outputs & wanted).sum() / wanted.sum()
            zeros = ~wanted & inside.unsqueeze(-1)
            false = (outputs & zeros).sum() / zeros.sum()
            assert float(found[row, k]) == pytest.approx(float(missed + false))


@pytest.mark.parametrize("estimator", ["gumbel", "reinmax", "score", "search"])
def test_every_estimator_trains(estimator):
    recipe = end_to_end_recipe(BOOLEAN, epochs=30, estimator=estimator, gate_start=0.2)
    (one,) = ef.train(BOOLEAN, [200], recipe=recipe)
    (again,) = ef.train(BOOLEAN, [200], recipe=recipe)
    assert one.record["weights_sha256"] == again.record["weights_sha256"]
    assert one.record["steps_in_all"] == recipe.steps


def test_a_search_comes_up_in_every_task():
    """Whatever the rhythm of its epochs: Boolean has one step on depth 1, one joint, and so on."""
    recipe = end_to_end_recipe(BOOLEAN, epochs=120, estimator="search", gate_start=0.5)
    trainer, state = EndToEndTrainer(BOOLEAN, recipe), begin(BOOLEAN, recipe, [200])
    start = state.tensors["gate"].clone()
    while state.seeds[0].step < recipe.steps:
        before = state.seeds[0].step
        trainer.steps(state, slice(0, 1))
        if before < recipe.steps / 2 - 50:
            assert torch.equal(state.tensors["gate"], start)
    assert not torch.equal(state.tensors["gate"], start)


def test_the_pull_takes_logits_to_their_own_values_and_across_no_threshold():
    """Alone, since the gate's gradient starts only after these steps."""
    recipe = end_to_end_recipe(BOOLEAN, epochs=100, gate_start=1.0, gate_pull=20.0)
    start = torch.tensor([[-1.4, -0.51, -0.49, 0.0, 0.49, 0.51, 1.4]])
    state = begin(BOOLEAN, recipe, [200])
    state.tensors["gate"] = start.clone()
    EndToEndTrainer(BOOLEAN, recipe).steps(state, slice(0, 1))
    values = torch.tensor([[-1.0, -1.0, 0.0, 0.0, 0.0, 1.0, 1.0]])
    left = (1 - recipe.rate * recipe.gate_factor * recipe.gate_pull) ** 50
    torch.testing.assert_close(state.tensors["gate"], values + left * (start - values))


def test_seeds_may_have_constants_of_their_own():
    """Two rows with two rates, trained at once, are close to each alone with its own."""
    recipe = end_to_end_recipe(BOOLEAN, epochs=20)
    rates = (0.05, 0.3)
    varied = {"gate_factor": torch.tensor(rates)}
    both = begin(BOOLEAN, recipe, [200, 201])
    EndToEndTrainer(BOOLEAN, recipe, varied=varied).steps(both, slice(0, 2))
    for row, (seed, rate) in enumerate(zip((200, 201), rates, strict=True)):
        own = end_to_end_recipe(BOOLEAN, epochs=20, gate_factor=rate)
        alone = begin(BOOLEAN, own, [seed])
        EndToEndTrainer(BOOLEAN, own).steps(alone, slice(0, 1))
        for name, tensor in alone.tensors.items():
            torch.testing.assert_close(both.tensors[name][row], tensor[0], atol=1e-4, rtol=1e-3)
