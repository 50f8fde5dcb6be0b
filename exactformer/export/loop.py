"""The whole model as a graph: the iterations of any layer in a loop."""

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from exactformer.api import Model
from exactformer.domains.algebra import FIRST_VALUE, OPEN
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import listed
from exactformer.domains.expression import EMPTY
from exactformer.export.depth import DepthGraph
from exactformer.export.graph import IterationGraph
from exactformer.export.plain import PlainGraph
from exactformer.export.spans import LogGraph
from exactformer.model.encode import NO_VALUE, encode
from exactformer.model.iterations import Iterations, check_iterations

GRAPHS: dict[str, type[IterationGraph]] = {  # by layer
    "depth": DepthGraph,
    "log": LogGraph,
    "plain": PlainGraph,
}


def iteration_graph(model: Model, iterations: Iterations = "depth") -> IterationGraph:
    """One iteration of the layer that reads the model's expressions."""
    check_iterations(iterations)
    require_capability("graph", model.domain, iterations)
    if (layer := model.domain.layer(iterations)) not in GRAPHS:
        raise ValueError(f"expected a layer with a graph, {listed([*GRAPHS])}, found {layer}")
    return GRAPHS[layer](model)


class LoopGraph(nn.Module):
    """From token ids (B, n), -1 for an empty position, to the value index of each sequence (-1 if
    there is none) and the number of iterations.
    """

    def __init__(self, model: Model, iterations: Iterations = "depth") -> None:
        super().__init__()
        self.iteration = iteration_graph(model, iterations)

    def forward(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        from torch._higher_order_ops import while_loop

        graph = self.iteration
        # An empty sequence more, and an empty position: runtimes fail on tensors without elements.
        ids = pad(ids, (0, 1, 0, 1), value=EMPTY)
        X = graph.write(encode(ids, graph.D))
        # An expression takes no more iterations than it has spans; ids of other texts may.
        limit = ((ids == OPEN) | (ids >= graph.first_operator)).long().sum(-1)

        def go_on(X: Tensor, acts: Tensor, taken: Tensor) -> Tensor:
            return acts.any()

        def iterate(X: Tensor, acts: Tensor, taken: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            X = graph(X, acts.unsqueeze(-1).expand(X.shape[:2]))
            taken = taken + acts.long()
            return X, graph.running(X) & (taken < limit), taken

        start = (X, graph.running(X) & (limit > 0), torch.zeros_like(limit))
        X, _, taken = while_loop(go_on, iterate, start)
        held = (graph.read(X) > 0).long().sum(1)
        values = held[:, FIRST_VALUE : graph.first_operator]
        single = (held.sum(-1) == 1) & (values.sum(-1) == 1)
        return torch.where(single, values.argmax(-1), NO_VALUE)[:-1], taken[:-1]
