"""Standard ways to find a circuit, for numbers to beat: they see the model, not the truth.

Each looks at one iteration after the other. What an iteration writes are the targets; what stood in
the state before are the sources. All compare an expression with variants of the same bracketing and
other tokens, so none needs to know the basis of the state.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from exactformer.domains.capabilities import require_capability
from exactformer.domains.expression import EMPTY, Expression
from exactformer.interp.causal import Edge, Node, causal_graph
from exactformer.interp.module import LayerModule

Weighted = dict[Edge, float]  # how much speaks for each edge


def variants(expression: Expression, count: int, rng: np.random.Generator) -> list[Expression]:
    """Random variants of an expression: any value for a value, and for an operator any that can
    stand there without a change to what belongs together.
    """
    algebra, effects = expression.algebra, causal_graph(expression).effects
    read = sorted(node for node in effects if node.iteration == 0)
    choices = {node.position: [algebra.token_ids[s] for s in effects[node]] for node in read}
    found = []
    for _ in range(count):
        tokens = expression.positions.copy()
        for position, fits in choices.items():
            tokens[position] = fits[rng.integers(len(fits))]
        found.append(Expression(algebra, tokens[tokens != EMPTY]))
    return found


class _Runs:
    """The states of an expression, (n, D), and of its variants, (V, n, D), after each iteration."""

    def __init__(
        self, module: LayerModule, expression: Expression, count: int, rng: np.random.Generator
    ) -> None:
        batch = [expression, *variants(expression, count, rng)]
        with torch.no_grad():
            _, cache = module.run_with_cache(*module.encode(batch))
        self.module, self.count = module, count
        self.iterations = range(1, module.iteration + 1)
        self.states = [cache[t, "X"][0] for t in (0, *self.iterations)]
        self.others = [cache[t, "X"][1:] for t in (0, *self.iterations)]
        self.cache = cache

    def node(self, iteration: int, position: int) -> Node:
        """The node of the token at a position after an iteration: the iteration that wrote it."""
        while iteration and not self.cache[iteration, "P"][0, position]:
            iteration -= 1
        return Node(iteration, position)

    def targets(self, iteration: int) -> list[int]:
        """Positions that an iteration writes a token to."""
        written = self.cache[iteration, "P"][0] & self.states[iteration].any(-1)
        return written.nonzero().flatten().tolist()

    def sources(self, iteration: int) -> list[int]:
        """Positions that hold a token before an iteration and differ between variants."""
        before = self.states[iteration - 1]
        differs = (self.others[iteration - 1] != before).any(-1).any(0) & before.any(-1)
        return differs.nonzero().flatten().tolist()

    def after(self, states: Tensor) -> Tensor:
        """The states after one more iteration."""
        inside = torch.ones_like(states[..., 0], dtype=torch.bool)
        module = self.module
        with torch.no_grad():
            return next(module.layer.steps(states, inside, module.weights, module.domain)).X


Shares = Iterator[tuple[int, int, float]]  # a source, a target, and how much speaks for the edge


def activation_patching(runs: _Runs, t: int) -> Shares:
    """Put a source's vector from a variant in its place; an edge is found if that changes a target.
    Its weight is the share of variants in which it does.
    """
    targets, before = runs.targets(t), runs.states[t - 1]
    for p in runs.sources(t):
        patched = before.repeat(runs.count, 1, 1)
        patched[:, p] = runs.others[t - 1][:, p]
        changed = (runs.after(patched) != runs.states[t]).any(-1)
        for q in targets:
            yield p, q, changed[:, q].float().mean().item()


def edge_attribution(runs: _Runs, t: int) -> Shares:
    """The gradient of a target's largest output with respect to a source, times the difference of
    its vector in a variant: the effect of patching if the model were linear. The weight is the
    largest over all variants, as a share of the target's largest.
    """
    X = runs.states[t - 1].clone().requires_grad_()
    _, cache = runs.module.run_with_cache(X, torch.ones_like(X[:, 0]).bool())
    for q in runs.targets(t):
        (gradient,) = torch.autograd.grad(cache[1, "Z"][q].max(), X, retain_graph=True)
        moved = (runs.others[t - 1] - runs.states[t - 1]) * gradient
        effect = moved.sum(-1).abs().amax(0)
        for p in runs.sources(t):
            yield p, q, (effect[p] / effect.max().clamp(min=1e-9)).item()


def linear_probe(runs: _Runs, t: int) -> Shares:
    """Whether a linear map reads a source off the row H that a target receives: its accuracy on
    variants that it was not fitted to, above that of the commonest token.
    """
    half, routed = runs.count // 2, runs.cache[t, "H"][1:].double()
    for q in runs.targets(t):
        features = torch.cat([routed[:, q], torch.ones_like(routed[:, q, :1])], dim=1)
        for p in runs.sources(t):
            _, label = runs.others[t - 1][:, p].unique(dim=0, return_inverse=True)
            one_hot = torch.nn.functional.one_hot(label).double()
            gram = features[:half].T @ features[:half]
            gram += 1e-3 * torch.eye(len(gram), dtype=torch.float64)
            probe = torch.linalg.solve(gram, features[:half].T @ one_hot[:half])
            guess = (features[half:] @ probe).argmax(-1)
            commonest = label[:half].bincount().argmax()
            gain = (guess == label[half:]).double() - (commonest == label[half:]).double()
            yield p, q, gain.mean().item()


def _weigh(
    name: str,
    method: Callable[[_Runs, int], Shares],
    module: LayerModule,
    expression: Expression,
    count: int,
    rng: np.random.Generator,
) -> Weighted:
    """The edges that a method finds, with their weights, from `count` variants of an expression."""
    require_capability(name, module.domain, module.iterations)
    runs = _Runs(module, expression, count, rng)
    return {
        Edge(runs.node(t - 1, p), Node(t, q)): share
        for t in runs.iterations
        for p, q, share in method(runs, t)
    }


METHODS = {
    name: partial(_weigh, name, method)
    for name, method in {
        "activation patching": activation_patching,
        "edge attribution": edge_attribution,
        "linear probe": linear_probe,
    }.items()
}


def above(weighted: Weighted, threshold: float) -> set[Edge]:
    """The edges whose weight is above a threshold."""
    return {edge for edge, weight in weighted.items() if weight > threshold}


def best_threshold(found: Sequence[Weighted], truths: Sequence[frozenset[Edge]]) -> float:
    """The threshold with the largest F1 over several expressions, which are for tuning."""
    weights = sorted({0.0, *(round(w, 6) for each in found for w in each.values() if w > 0)})
    tried = weights[:: max(1, len(weights) // 100)]

    def f1(threshold: float) -> float:
        chosen = [above(each, threshold) for each in found]
        right = sum(len(a & b) for a, b in zip(chosen, truths, strict=True))
        return 2 * right / max(1, sum(map(len, chosen)) + sum(map(len, truths)))

    return max(tried, key=f1)
