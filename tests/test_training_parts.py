"""The parts of training, each beside a slower or independent way to the same numbers."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from exactformer.api import construct
from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.catalog import boolean, listops
from exactformer.domains.expression import EMPTY
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import enumerate_depth
from exactformer.model.architecture import paper_architecture
from exactformer.model.construct import gate as right_gate
from exactformer.model.feedforward import MLP
from exactformer.model.quantize import ternary
from exactformer.paper import published
from exactformer.training.depth_one import depth_one_rows
from exactformer.training.depth_two import GateProblem, gate_problem, right_of, try_gates
from exactformer.training.estimators import ASKING, BY_GRADIENT, Memory, answered
from exactformer.training.loop import Trainer
from exactformer.training.recipe import Staged, recipe_for
from exactformer.training.state import (
    BATCHES,
    LEARNED,
    State,
    begin,
    export,
    generator,
    initial,
    outputs,
)
from tests.algebras import MINUS

ROWS = {"boolean": 35, "arithmetic": 531, "listops": 5_901}  # the certificate's


def problem_for(algebra: Algebra, seed: int = 0, strings: int = 16) -> GateProblem:
    weights = construct(algebra).weights
    return gate_problem(algebra, weights, strings, np.random.default_rng(seed))


def errors_of(problem: GateProblem, gates: Tensor) -> Tensor:
    return try_gates([problem], [gates])[0][0]


def moved(
    name: str,
    logits: Tensor,
    problem: GateProblem,
    rng: np.random.Generator,
    memory: Memory,
    tolerance: float = 0.0,
) -> Tensor:
    """The logits after a step of an estimator."""
    if name in BY_GRADIENT:
        return BY_GRADIENT[name](logits, problem, rng, memory)
    asking = ASKING[name](logits, tolerance, rng, memory)
    return answered(asking, lambda gates: errors_of(problem, gates))


def test_rows_are_the_certificates(task):
    rows = depth_one_rows(task)
    real = rows.weight.sum(-1) > 0
    assert real.sum() == ROWS[task.name]
    assert float(rows.weight.double().sum()) == pytest.approx(1, abs=1e-5)
    assert (rows.token[real].sum(-1) == 1).sum() == ROWS[task.name] - 1  # and the zero vector
    assert rows.target[~real].count_nonzero() == 0


def full_loss(algebra: Algebra, parameters: dict[str, Tensor]) -> tuple[Tensor, int]:
    """The loss over every position of every depth-1 expression, one by one; and their number.

    Attention is written out as a matrix over the whole expression: on depth 1, with a zero gate,
    all of it is one span.
    """
    D = len(algebra.vocabulary)
    soft = torch.sigmoid(parameters["bits"])
    W_Q, W_K = soft + ((parameters["bits"] > 0).double() - soft).detach()
    square = paper_architecture(algebra).activation == "square"

    def feedforward(H: Tensor) -> Tensor:
        hidden = H @ parameters["W_1"][0] + parameters["b_1"]
        return (hidden**2 if square else hidden.relu()) @ parameters["W_2"] + parameters["b_2"]

    losses, positions = [], 0
    expressions = list(enumerate_depth(algebra, 1))
    for _, group in itertools.groupby(expressions, key=lambda e: len(e.positions)):
        same_length = list(group)
        ids = torch.tensor(np.stack([e.positions for e in same_length]), dtype=torch.int64)
        X = (ids.unsqueeze(-1) == torch.arange(D)).double()
        assert bool((X.sum(-1) == (ids != EMPTY)).all())
        target = torch.zeros_like(X)
        for row, expression in enumerate(same_length):
            target[row, expression.root, algebra.token_ids[evaluate(expression)]] = 1
        H = (X @ W_Q) @ (X @ W_K).mT @ X
        Z = feedforward(H)
        losses.append(binary_cross_entropy_with_logits(Z, target, reduction="sum"))
        positions += ids.numel()
    if not algebra.empty_after_close:  # then one zero vector stands for those left by reductions
        Z = feedforward(torch.zeros(1, D, dtype=torch.float64))
        losses.append(binary_cross_entropy_with_logits(Z, torch.zeros_like(Z), reduction="sum"))
        positions += 1
    return torch.stack(losses).sum() / (positions * D), positions


def test_collapsed_rows_have_the_loss_and_gradient_of_the_whole_set(task):
    size = paper_architecture(task)
    padded = {name: t.double() for name, t in initial(task, recipe_for(task), 5, 1).items()}
    cut = {"bits": (2, size.D, size.d_h), "W_1": (1, size.D, size.hidden)}
    cut |= {"b_1": (1, size.hidden), "W_2": (size.hidden, size.D), "b_2": (1, size.D)}
    real = {
        name: padded[name][tuple(map(slice, shape))].clone().requires_grad_()
        for name, shape in cut.items()
    }
    loss, positions = full_loss(task, real)
    gradients = torch.autograd.grad(loss, [real[name] for name in LEARNED])

    rows = depth_one_rows(task)
    token, bag, target, weight = (
        part.flatten(0, 1)[None].double()
        for part in (rows.token, rows.bags(None), rows.target, rows.weight)
    )
    counts = (weight * positions * size.D).round()  # float32 holds the weights to seven digits
    assert (weight * positions * size.D - counts).abs().max() < 0.01
    assert counts.sum() == positions * size.D
    weight = counts / (positions * size.D)
    batched = {name: padded[name][None].requires_grad_() for name in LEARNED}
    Z = outputs(batched, token, bag, size.activation)
    collapsed = (binary_cross_entropy_with_logits(Z, target, reduction="none") * weight).sum()
    slope = (torch.sigmoid(Z.detach()) - target) * weight
    by_slope = torch.autograd.grad(Z, list(batched.values()), slope)

    assert (collapsed - loss).abs().detach() < 1e-12
    for name, expected, found in zip(LEARNED, gradients, by_slope, strict=True):
        inside = tuple(map(slice, cut[name]))
        torch.testing.assert_close(found[0][inside], expected, rtol=0, atol=1e-12)
        assert expected.abs().max() > 1e-6  # or the comparison would say nothing
        outside = found[0].clone()
        outside[inside] = 0
        assert outside.count_nonzero() == 0


def test_padding_stays_zero_and_is_cut_off(task):
    size = paper_architecture(task)
    recipe = replace(recipe_for(task), look_every=20)
    state, trainer = begin(task, recipe, [3, 4]), Trainer(task, recipe)
    start = {name: tensor.clone() for name, tensor in state.tensors.items()}
    trainer._depth_one_steps(state)
    real = {"bits": (2, 2, size.D, size.d_h), "W_1": (2, 1, size.D, size.hidden)}
    real |= {"b_1": (2, 1, size.hidden), "W_2": (2, size.hidden, size.D), "b_2": (2, 1, size.D)}
    for name, shape in real.items():
        for kind in ("", ".m", ".v"):
            tensor = state.tensors[name + kind].detach().clone()
            assert not torch.equal(tensor, start[name + kind])
            tensor[tuple(map(slice, shape))] = 0
            assert tensor.count_nonzero() == 0, name + kind
    for row in range(2):
        weights = export(task, state.tensors, row)
        assert isinstance(weights.f, MLP)
        f = weights.f
        tensors = [weights.G_PE, weights.W_Q, weights.W_K, f.W_1, f.b_1, f.W_2, f.b_2]
        shapes = [(size.D,), (size.D, size.d_h), (size.D, size.d_h), (size.D, size.hidden)]
        shapes += [(size.hidden,), (size.hidden, size.D), (size.D,)]
        assert [tuple(tensor.shape) for tensor in tensors] == shapes
        assert sum(tensor.numel() for tensor in tensors) == published.PARAMETERS[task.name]
        assert set(weights.W_Q.unique().tolist()) <= {0.0, 1.0}


def test_schedule():
    adam = Trainer(boolean(), Staged(steps=1_000)).adam
    fractions = [adam.fraction(step) for step in range(1_001)]
    known = {0: 0.3, 50: 0.65, 100: 1, 550: (1 + 0.05) / 2, 1_000: 0.05}
    assert {step: fractions[step] for step in known} == pytest.approx(known)
    assert fractions == sorted(fractions[:101]) + sorted(fractions[101:], reverse=True)


def test_adam_is_torchs_for_each_seed():
    """One seed's gradients are far above the clip, one's far below; they start at other steps."""
    recipe = Staged(steps=40)
    trainer = Trainer(boolean(), recipe)
    adam, state = trainer.adam, begin(boolean(), recipe, [1, 2])
    scales, head_start = [50.0, 1e-3], [0, 7]
    rng = torch.Generator().manual_seed(0)
    expected, optimizers = [], []
    for row in range(2):
        own = {name: state.tensors[name][row].clone().requires_grad_() for name in LEARNED}
        attention, feedforward = [own["bits"]], [own[name] for name in LEARNED[1:]]
        groups = [{"params": attention, "rate": recipe.attention_rate}]
        groups += [{"params": feedforward, "rate": recipe.feedforward_rate}]
        expected.append(own)
        optimizers.append(torch.optim.Adam(groups, lr=0.0, betas=recipe.betas))
    for step in range(30):
        training = [row for row in range(2) if step >= head_start[row]]
        rows = state.tensors if len(training) == 2 else {n: t[:1] for n, t in state.tensors.items()}
        gradients = {
            name: torch.stack(
                [scales[r] * torch.randn(rows[name].shape[1:], generator=rng) for r in training]
            )
            for name in LEARNED
        }
        steps = [step - head_start[row] for row in training]
        means, squares = ({name: rows[f"{name}.{kind}"] for name in LEARNED} for kind in "mv")
        factors = adam.factors(steps, [s + 1 for s in steps])
        adam.update(rows, gradients, means, squares, trainer.rates, factors)
        for place, row in enumerate(training):
            for name in LEARNED:
                expected[row][name].grad = gradients[name][place].clone()
            norm = torch.nn.utils.clip_grad_norm_(list(expected[row].values()), recipe.clip)
            assert (norm > recipe.clip) == (row == 0)
            for group in optimizers[row].param_groups:
                group["lr"] = group["rate"] * adam.fraction(steps[place])
            optimizers[row].step()
    for row in range(2):
        for name in LEARNED:
            torch.testing.assert_close(
                state.tensors[name][row], expected[row][name].detach(), rtol=1e-5, atol=2e-6
            )


def test_a_seeds_start_is_its_own(task):
    recipe = recipe_for(task)
    together, other_order = begin(task, recipe, [7, 8, 9]), begin(task, recipe, [9, 7])
    for name, tensor in together.tensors.items():
        assert torch.equal(tensor[[2, 0]], other_order.tensors[name])
    drawn = [initial(task, recipe, *which) for which in [(7, 1), (8, 1), (7, 2)]]
    for a, b in itertools.combinations(drawn, 2):
        assert all(not torch.equal(a[name], b[name]) for name in a)


def test_a_seeds_batches_are_its_own():
    algebra = listops()
    trainer = Trainer(algebra, recipe_for(algebra))
    state = begin(algebra, trainer.recipe, [7, 8, 9])
    seeds = state.seeds
    for seed, step in zip(seeds, (0, 50, 0), strict=True):
        seed.step = step
    batches = trainer._batches(state)
    batches.turn()
    together = [part.clone() for part in batches.cases]
    for row, seed in enumerate(seeds):
        only = trainer._batches(State([seed], state.tensors))
        only.turn()
        for part, alone in zip(together, only.cases, strict=True):
            assert torch.equal(part[row], alone[0])
    assert not torch.equal(together[1][0], together[1][2])
    seeds[1].step = 51
    later = trainer._batches(state)
    later.turn()
    assert not torch.equal(together[1][1], later.cases[1][1])
    batches.turn()  # the next step of each
    assert torch.equal(batches.cases[1][1], later.cases[1][1])
    # The drawn bags stand for all of them: in the mean over batches their weights are the same.
    whole = float(trainer.rows.weight[:-1].sum())
    width = trainer.rows.weight.shape[1]
    assert float(together[3][:, :-width].sum()) / 3 == pytest.approx(whole, rel=0.1)


def test_batches_of_bags_that_a_rank_gate_has_made():
    """Each seed's are slotted by its own gate, as in the whole of its bags."""
    trainer = Trainer(MINUS, replace(recipe_for(MINUS), batch=5))
    state = begin(MINUS, trainer.recipe, [7, 8])
    state.tensors["rank"] = torch.eye(2, len(MINUS.vocabulary)).roll(FIRST_VALUE, -1)
    batches, bags = trainer._batches(state), trainer._bags(state)
    assert not torch.equal(*bags)
    for turn in range(3):
        batches.turn()
        for row, seed in enumerate(state.seeds):
            rng = generator(seed.seed, 1, BATCHES, turn)
            chosen = [*rng.integers(trainer.n_bags, size=5), trainer.n_bags]
            assert torch.equal(batches.cases[1][row], bags[row][chosen].flatten(0, 1))
            assert torch.equal(batches.cases[0][row], trainer.rows.token[chosen].flatten(0, 1))


def test_no_two_streams_are_alike():
    draws = {
        generator(seed, attempt, stream, step).integers(1 << 62)
        for seed, attempt, stream, step in itertools.product([0, 1], [1, 2], range(4), [0, 1])
    }
    assert len(draws) == 32


def test_only_the_right_gate_has_no_error(task):
    problem = problem_for(task)
    right = right_gate(task)
    changed = []
    for coordinate, turn in itertools.product(range(len(right)), (1, 2)):
        gate = right.clone()
        gate[coordinate] = (gate[coordinate] + 1 + turn) % 3 - 1
        changed.append(gate)
    errors = errors_of(problem, torch.stack([right, *changed]))
    assert errors[0] == 0
    assert errors[1:].min() > 0
    assert right_of([problem], [right]) == [16]
    assert all(right_of([problem], [gate])[0] < 16 for gate in changed)


def test_an_output_of_nothing_does_not_look_nearly_right(task):
    """Missed ones count as much as false ones, though there are far fewer of them."""
    problem = problem_for(task)
    f = construct(task).weights.f
    assert isinstance(f, MLP)
    silent = replace(f, W_2=torch.zeros_like(f.W_2), b_2=-torch.ones_like(f.b_2))
    nothing = replace(problem, weights=replace(problem.weights, f=silent))
    assert float(errors_of(nothing, right_gate(task)[None])) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("name", ["search", "score"])
def test_an_estimator_finds_the_gate(task, name):
    """From zero logits, with everything else right. Each call has fresh expressions."""
    at_most = {"search": 1, "score": 30}[name]  # calls; score has been seen to need 6 to 12
    strings, noise = np.random.default_rng(1), np.random.default_rng(2)
    logits, memory = torch.zeros(len(task.vocabulary)), {}
    weights = construct(task).weights
    for _ in range(at_most):
        problem = gate_problem(task, weights, 16, strings)
        logits = moved(name, logits, problem, noise, memory)
        if torch.equal(ternary(logits), right_gate(task)):
            break
    assert ternary(logits).tolist() == right_gate(task).tolist()
    problem = gate_problem(task, weights, 16, strings)
    after = moved(name, logits, problem, noise, memory)
    assert torch.equal(ternary(after), right_gate(task))  # and stays there


@pytest.mark.parametrize("name", [*ASKING, *BY_GRADIENT])
def test_an_estimator_moves_the_logits_and_repeats_itself(task, name):
    problem = problem_for(task, strings=4)
    logits = torch.full((len(task.vocabulary),), 0.1)
    results = []
    for _ in range(2):
        memory: Memory = {}
        after = moved(name, logits, problem, np.random.default_rng(3), memory)
        assert after.shape == logits.shape
        assert after.isfinite().all()
        assert not after.requires_grad
        assert not torch.equal(after, logits)
        assert all(
            tensor.isfinite().all() and not tensor.requires_grad for tensor in memory.values()
        )
        results.append(after)
    assert torch.equal(*results)
    assert (logits == 0.1).all()  # the estimator's caller keeps its own


def test_scores_gradient_is_that_of_the_free_energy():
    """On Boolean all 3^7 gates can be tried, and their probabilities are known."""
    algebra, temperature, spread = boolean(), 0.1, 0.4
    problem = problem_for(algebra)
    gates = torch.tensor(list(itertools.product((-1.0, 0.0, 1.0), repeat=7)))
    errors = errors_of(problem, gates).double()
    start = 0.1 * torch.randn(7, generator=torch.Generator().manual_seed(4))
    logits = start.double().requires_grad_()
    normal = torch.distributions.Normal(0.0, 1.0)
    below, above = normal.cdf((-0.5 - logits) / spread), normal.cdf((logits - 0.5) / spread)
    chances = torch.stack([below, 1 - below - above, above], -1)  # (7, 3)
    chance = chances[torch.arange(7), gates.long() + 1].prod(-1)
    energy = -temperature * torch.log((chance * torch.exp(-errors / temperature)).sum())
    (exact,) = torch.autograd.grad(energy, logits)

    noise, mean = np.random.default_rng(5), torch.zeros(7)
    for _ in range(200):
        memory: Memory = {}
        moved("score", start, problem, noise, memory)
        mean += memory["m"] / 200
    assert float(torch.cosine_similarity(mean.double(), exact, dim=0)) > 0.95
    assert exact[0] < 0 < exact[1]  # downhill is up for `(` and down for `)`


def test_score_starts_again_when_it_stays_wrong():
    problem = problem_for(boolean())
    memory: Memory = {"wrong": torch.tensor([20.0]), "m": torch.ones(7)}
    logits = torch.full((7,), -0.7)
    again = moved("score", logits, problem, np.random.default_rng(0), memory)
    assert again.count_nonzero() == 0
    assert memory == {}


def test_tolerance_leaves_a_gate_alone():
    """While some bags are wrong, the right gate has an error too and must not be left for it."""
    problem = problem_for(boolean())
    logits = torch.full((7,), 0.2)
    score = moved("score", logits, problem, np.random.default_rng(0), {}, tolerance=3.0)
    assert torch.equal(score, logits)
    search = moved("search", logits, problem, np.random.default_rng(0), {}, tolerance=3.0)
    assert ternary(search).count_nonzero() == 0
