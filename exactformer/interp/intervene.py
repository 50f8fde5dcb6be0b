"""Sets nodes of the causal graph to other tokens in the model, and reads its answer."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from exactformer.interp.causal import CausalGraph
from exactformer.interp.module import Key, LayerModule, Patch
from exactformer.model.circuit import write_tokens


class Intervention(NamedTuple):
    """An expression's causal graph, and the tokens that its nodes are set to."""

    graph: CausalGraph
    tokens: Mapping[tuple[int, int], str]


@torch.no_grad()
def intervene(module: LayerModule, interventions: Sequence[Intervention]) -> list[str | None]:
    """The model's answer to each expression, with its nodes set as soon as they are written.

    All run at once: the iterations of a batch are counted from the same start.
    """
    for graph, _ in interventions:
        if graph.layer != (layer := module.domain.layer(module.iterations)):
            raise ValueError(
                f"expected causal graphs of the module's layer, {layer!r}, found one of the layer "
                f"{graph.layer!r}: causal_graph and module take the same iterations"
            )
    if not interventions:
        return []
    algebra, weights = module.algebra, module.weights
    vectors = write_tokens(torch.eye(len(algebra.vocabulary)), weights).to(weights.device)
    places: dict[int, list[tuple[int, int, int]]] = {}  # by iteration: row, position, token
    for row, (graph, tokens) in enumerate(interventions):
        for node, token in tokens.items():
            if node not in graph.tokens:
                raise ValueError(f"{tuple(node)} is no node of {graph.expression!r}")
            iteration, position = node
            places.setdefault(iteration, []).append((row, position, algebra.token_ids[token]))

    def setting(at: list[tuple[int, int, int]]) -> Patch:
        rows, positions, tokens = (torch.tensor(part) for part in zip(*at, strict=True))

        def patch(X: Tensor) -> Tensor:
            X[rows, positions] = vectors[tokens].to(X.dtype)
            return X

        return patch

    X, inside = module.encode([graph.expression for graph, _ in interventions])
    patches: dict[Key, Patch] = {(i, "X"): setting(at) for i, at in places.items()}
    return module.decode(module.run_with_cache(X, inside, patches)[0])
