"""The automaton of certified weights, read off by running them.

The value of each span is what one iteration of the model makes of it, and none is taken from the
algebra's tables. `build.py` does the rest, and forgets the order of operands only where the
certificate proves that the weights ignore it.
"""

from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from exactformer.certify import findings
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN, Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.domain import Domain
from exactformer.domains.expression import EMPTY
from exactformer.engine.automaton import Keys, SpanAutomaton
from exactformer.engine.build import build_automaton
from exactformer.model.circuit import Weights, iterate, write_tokens
from exactformer.model.encode import encode, read_values
from exactformer.verify import Findings

NUMBERS_AT_ONCE = 1 << 21  # of the states of spans that run together; a few tensors have as many


def read_off(domain: Domain, weights: Weights, found: Findings | None = None) -> SpanAutomaton:
    """The automaton of weights that are proved exact; a ValueError for others. `found` are the
    findings of the check, if it was made already.
    """
    found = found or findings(domain, weights)
    if not found.exact:
        raise ValueError(
            f"the fast engine needs weights that are certified exact; not so here: "
            f"{'; '.join(found.failed)}. "
            f"`exactformer certify` tells more, and --engine model runs them"
        )
    return build_automaton(domain, partial(span_values, domain, weights))


@torch.no_grad()
def span_values(domain: Domain, weights: Weights, operator: int, keys: Keys) -> NDArray[np.int32]:
    """The values of spans with these operands, computed by one iteration of the model's layer."""
    algebra = algebra_of(domain)
    ids = span_ids(algebra, operator, keys)
    values: list[NDArray[np.int32]] = []
    of_a_span = ids.shape[1] * len(algebra.vocabulary) * len(algebra.operators)
    for part in torch.from_numpy(ids).split(max(1, NUMBERS_AT_ONCE // of_a_span)):
        X = encode(part.to(weights.G_PE.device), len(algebra.vocabulary))
        inside = torch.ones_like(part, dtype=torch.bool).to(X.device)
        step = iterate(write_tokens(X, weights), weights, inside)
        left = read_values(step.X, weights, algebra)
        values.append(left.cpu().numpy().astype(np.int32))
    found = np.concatenate(values)
    assert (found >= 0).all(), "certified weights leave a single value of every span"
    return found


def span_ids(algebra: Algebra, operator: int, keys: Keys) -> NDArray[np.int16]:
    """The span of an operator on each row of operands, as the transformer reads it."""
    written = algebra.notation.arrange(operator, [*(FIRST_VALUE + keys.T)])
    ends = (CLOSE, EMPTY) if algebra.empty_after_close else (CLOSE,)
    return np.column_stack(np.broadcast_arrays(OPEN, *written, *ends)).astype(np.int16)
