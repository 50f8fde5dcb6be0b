"""Standard ways to find a circuit, for numbers to beat: they see the model, not the truth.

Each looks at one iteration after the other. What an iteration writes are the targets; what stood in
the state before are the sources. All compare an expression with variants of the same bracketing and
other tokens, so none needs to know the basis of the state.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from exactformer.domains.algebra import FIRST_VALUE
from exactformer.domains.expression import EMPTY, Expression
from exactformer.interp.causal import Edge, Node, causal_graph
from exactformer.interp.module import CircuitModule
from exactformer.model import circuit

Weighted = dict[Edge, float]  # how much speaks for each edge


def variants(expression: Expression, count: int, rng: np.random.Generator) -> list[Expression]:
    """Other tokens in the same places: any value for a value, and for an operator any that takes
    as many operands, which parentheses alone decide.
    """
    algebra, spans = expression.algebra, causal_graph(expression).causes.values()
    numbers = {operator.position: len(operands) for operator, *operands in spans}
    found = []
    for _ in range(count):
        tokens = expression.positions.copy()
        for position, token in enumerate(tokens.tolist()):
            if FIRST_VALUE <= token < algebra.first_operator:
                tokens[position] = rng.integers(FIRST_VALUE, algebra.first_operator)
            elif token >= algebra.first_operator:
                fits = [o for o, op in enumerate(algebra.operators) if op.takes(numbers[position])]
                tokens[position] = algebra.first_operator + fits[rng.integers(len(fits))]
        found.append(Expression(algebra, tokens[tokens != EMPTY]))
    return found


@dataclass(frozen=True)
class _Runs:
    """The states of an expression, (n, D), and of its variants, (V, n, D), after each iteration."""

    module: CircuitModule
    states: list[Tensor]
    others: list[Tensor]
    routed: list[Tensor]  # H of the expression and its variants, of each iteration

    @classmethod
    def of(
        cls, module: CircuitModule, expression: Expression, count: int, rng: np.random.Generator
    ) -> "_Runs":
        batch = [expression, *variants(expression, count, rng)]
        with torch.no_grad():
            _, cache = module.run_with_cache(*module.encode(batch))
        states = [cache[i, "X"] for i in range(module.iteration + 1)]
        routed = [cache[i, "H"] for i in range(1, module.iteration + 1)]
        return cls(module, [s[0] for s in states], [s[1:] for s in states], routed)

    def node(self, iteration: int, position: int) -> Node:
        """Where the token that stands here after an iteration was written."""
        while iteration and torch.equal(
            self.states[iteration][position], self.states[iteration - 1][position]
        ):
            iteration -= 1
        return Node(iteration, position)

    def targets(self, iteration: int) -> list[int]:
        """Positions that an iteration writes something to."""
        after = self.states[iteration]
        changed = (after != self.states[iteration - 1]).any(-1) & after.any(-1)
        return changed.nonzero().flatten().tolist()

    def sources(self, iteration: int) -> list[int]:
        """Positions with something before an iteration that is not the same in all variants."""
        before = self.states[iteration - 1]
        differs = (self.others[iteration - 1] != before).any(-1).any(0) & before.any(-1)
        return differs.nonzero().flatten().tolist()

    def after(self, states: Tensor) -> Tensor:
        """One iteration on."""
        with torch.no_grad():
            inside = torch.ones_like(states[..., 0], dtype=torch.bool)
            return circuit.iterate(states, self.module.weights, inside).X


def activation_patching(
    module: CircuitModule, expression: Expression, count: int, rng: np.random.Generator
) -> Weighted:
    """Put a source's vector from a variant in its place; an edge is where that changes a target.
    How much speaks for it is the share of the variants in which it does.
    """
    runs = _Runs.of(module, expression, count, rng)
    found: Weighted = {}
    for t in range(1, len(runs.states)):
        targets, before = runs.targets(t), runs.states[t - 1]
        for p in runs.sources(t):
            patched = before.repeat(count, 1, 1)
            patched[:, p] = runs.others[t - 1][:, p]
            changed = (runs.after(patched) != runs.states[t]).any(-1)
            for q in targets:
                share = changed[:, q].float().mean().item()
                found[Edge(runs.node(t - 1, p), Node(t, q))] = share
    return found


def edge_attribution(
    module: CircuitModule, expression: Expression, count: int, rng: np.random.Generator
) -> Weighted:
    """The gradient of a target's largest output with respect to a source, times how its vector
    differs in a variant: what patching would do if the model were linear. The largest of all
    variants, as a share of the target's largest.
    """
    runs = _Runs.of(module, expression, count, rng)
    found: Weighted = {}
    for t in range(1, len(runs.states)):
        X = runs.states[t - 1].clone().requires_grad_()
        _, cache = module.run_with_cache(X, torch.ones_like(X[:, 0]).bool())
        for q in runs.targets(t):
            (gradient,) = torch.autograd.grad(cache[1, "Z"][q].max(), X, retain_graph=True)
            moved = (runs.others[t - 1] - runs.states[t - 1]) * gradient
            effect = moved.sum(-1).abs().amax(0)
            for p in runs.sources(t):
                share = (effect[p] / effect.max().clamp(min=1e-9)).item()
                found[Edge(runs.node(t - 1, p), Node(t, q))] = share
    return found


def linear_probe(
    module: CircuitModule, expression: Expression, count: int, rng: np.random.Generator
) -> Weighted:
    """Whether a source can be read off what a target receives, H, by a linear map: the accuracy on
    variants that the map was not fitted to, above that of the commonest token.
    """
    runs = _Runs.of(module, expression, count, rng)
    half, found = count // 2, {}
    for t in range(1, len(runs.states)):
        routed = runs.routed[t - 1][1:].double()
        for q in runs.targets(t):
            features = torch.cat([routed[:, q], torch.ones(count, 1, dtype=torch.float64)], dim=1)
            for p in runs.sources(t):
                _, label = runs.others[t - 1][:, p].unique(dim=0, return_inverse=True)
                one_hot = torch.nn.functional.one_hot(label).double()
                gram = features[:half].T @ features[:half]
                gram += 1e-3 * torch.eye(len(gram), dtype=torch.float64)
                probe = torch.linalg.solve(gram, features[:half].T @ one_hot[:half])
                guess = (features[half:] @ probe).argmax(-1)
                commonest = label[:half].bincount().argmax()
                gain = (guess == label[half:]).double() - (commonest == label[half:]).double()
                found[Edge(runs.node(t - 1, p), Node(t, q))] = gain.mean().item()
    return found


METHODS = {
    "activation patching": activation_patching,
    "edge attribution": edge_attribution,
    "linear probe": linear_probe,
}


def above(weighted: Weighted, threshold: float) -> set[Edge]:
    """The edges for which more speaks than that."""
    return {edge for edge, weight in weighted.items() if weight > threshold}


def best_threshold(found: Sequence[Weighted], truths: Sequence[frozenset[Edge]]) -> float:
    """The threshold with the largest F1 over several expressions, those to learn from."""
    weights = sorted({0.0, *(round(w, 6) for each in found for w in each.values() if w > 0)})
    tried = weights[:: max(1, len(weights) // 100)]

    def f1(threshold: float) -> float:
        chosen = [above(each, threshold) for each in found]
        right = sum(len(a & b) for a, b in zip(chosen, truths, strict=True))
        return 2 * right / max(1, sum(map(len, chosen)) + sum(map(len, truths)))

    return max(tried, key=f1)
