"""Parentheses that a text implies, written out, and values put back into the text without them.

The glossaries are those of `levels.py`, `polish.py` and `speculate.py`.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from exactformer.domains.expression import EMPTY
from exactformer.domains.symbols import CLOSE, FIRST_VALUE, OPEN
from exactformer.model.circuit import Tap, Weights, write_tokens
from exactformer.model.encode import encode
from exactformer.model.speculate import Entries


class Written(NamedTuple):
    """The remaining tokens with the implied parentheses written out."""

    opened: Int[Tensor, " t"]  # number of parentheses opened before each token
    closed: Int[Tensor, " t"]  # number of parentheses closed after it
    place: Int[Tensor, " t"]  # index of the token in the batch laid out flat
    ids: Int[Tensor, "B N"]
    source: Int[Tensor, " BN"]  # the token at each place, or the one whose parenthesis it is


def write_out(
    token: Int[Tensor, " t"],
    sequence: Int[Tensor, " t"],
    opened: Int[Tensor, " t"],
    closed: Int[Tensor, " t"],
    B: int,
) -> Written:
    """Write out the implied parentheses of B sequences, which may come in any order."""
    sizes = opened + 1 + closed
    lengths = torch.zeros(B, dtype=sizes.dtype, device=sizes.device).index_add_(0, sequence, sizes)
    N, ends = int(lengths.amax()), sizes.cumsum(0)
    first = sequence != pad(sequence, (1, 0), value=-1)[:-1]
    row_begins = torch.zeros_like(lengths).index_copy_(0, sequence[first], (ends - sizes)[first])
    begins = sequence * N + (ends - sizes) - row_begins[sequence]  # with what is opened
    source = torch.repeat_interleave(sizes)
    offset = torch.arange(len(source), device=source.device) - (ends - sizes)[source]
    symbol = token[source].masked_fill_(offset < opened[source], OPEN)
    symbol.masked_fill_(offset > opened[source], CLOSE)
    places = begins[source] + offset
    ids = torch.full((B * N,), EMPTY, dtype=token.dtype, device=token.device)
    sources = torch.zeros_like(ids).index_copy_(0, places, source)
    ids.index_copy_(0, places, symbol)
    return Written(opened, closed, begins + opened, ids.view(B, N), sources)


def put_values(
    X: Float[Tensor, "B n D"],
    entries: Entries,
    token_of: Int[Tensor, " BN"],
    u: Int[Tensor, " m"],
    top: Bool[Tensor, " m"],
    weights: Weights,
    V: int,
    tap: Tap,
) -> tuple[Bool[Tensor, "B n"], Float[Tensor, "B n D"]]:
    """The positions of finished spans, and the state with the values of those in `top` at their
    first tokens and zero in the rest of them. `token_of` says where in X each place was put.
    """
    finished = token_of[entries.position[(u < V)[entries.ids - 1]]]
    P = torch.zeros(X.shape[:2], dtype=torch.bool, device=X.device)
    P.view(-1)[finished] = True
    P = tap("P", P)
    opens = entries.ids != pad(entries.ids, (1, 0))[:-1]
    first = torch.empty_like(u).index_copy_(0, entries.ids[opens] - 1, entries.position[opens])
    Y = tap("Y", encode(FIRST_VALUE + u[top], weights.D, X.dtype))
    rows = X.flatten(0, 1).index_fill(0, finished, 0)
    X = rows.index_copy_(0, token_of[first[top]], write_tokens(Y, weights)).view_as(X)
    return P, tap("X", X)
