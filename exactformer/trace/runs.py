"""Runs of one expression in which every intermediate is kept."""

from collections.abc import Callable
from typing import Any

import torch

from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.model.circuit import read_tokens
from exactformer.model.encode import initial_state, read_answers
from exactformer.model.gated import Gated
from exactformer.model.iterations import Iterations
from exactformer.model.layers import layer_of
from exactformer.model.remembered import fixed
from exactformer.trace import (
    depth,
    integers,
    machines,
    plain,
    polish,
    rearrangements,
    span_machines,
    spans,
    square_roots,
)
from exactformer.trace.shown import EMPTY_POSITION, Explained, Trace

# What an iteration was, by the name of the layer: from the domain, the layer's own step, and the
# tokens before and after it.
EXPLAINED: dict[str, Callable[[Any, Any, list[str], list[str]], Explained]] = {
    "depth": depth.explain,
    "log": spans.explain,
    "plain": plain.explain,
    "polish": polish.explain,
    "machine": machines.explain,
    "span-machine": span_machines.explain,
    "integers": integers.explain,
    "little-endian": integers.explain,
    "square-root": square_roots.explain,
    "rearrange": rearrangements.explain,
}


@torch.no_grad()
def trace(
    domain: Domain,
    weights: Gated,
    expression: Expression,
    iterations: Iterations = "depth",
    observe: Callable[[Explained], None] = lambda step: None,
) -> Trace[Any]:
    """Run one expression and keep the results of `iterate` of its layer. The logarithmic layer
    requires certified weights. `observe` gets each iteration at once; it may raise to end a long
    run.
    """
    weights = fixed(weights)
    X, inside = initial_state([expression], weights)
    explained = EXPLAINED[domain.layer(iterations)]
    tokens, traced = _symbols(domain, read_tokens(X, weights)[0]), []
    for step in layer_of(domain, iterations).steps(X, inside, weights, domain):
        X = step.X
        state = _symbols(domain, read_tokens(X, weights)[0])
        traced.append(explained(domain, step, tokens, state))
        observe(traced[-1])
        tokens = state
    (answer,) = read_answers(X, weights, domain)
    return Trace(domain, str(expression), traced, answer)


def _symbols(domain: Domain, rows: torch.Tensor) -> list[str]:
    """The token of each row; several, joined, where uncertified weights leave more than one."""
    held: list[list[str]] = [[] for _ in range(len(rows))]
    for position, token in rows.nonzero().tolist():
        held[position].append(domain.vocabulary[token])
    return ["+".join(tokens) or EMPTY_POSITION for tokens in held]
