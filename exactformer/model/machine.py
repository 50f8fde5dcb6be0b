"""The layer of machines: one iteration, in which each token is read in the state of all before it.

Glossary, beyond those of `circuit.py` and `reading.py`
    G_K     (D,)        the gate of the key, in {-1, 0, 1}
    key     (B, n)      the count of gated tokens up to here, in the order in which they are read
    rows    (B, n)      the row that each position is in, of all sequences together; -1 for none
    Y       (r, D)      the tokens that each row gives
    P       (B, n)      reduction mask: all positions that hold a token

The iteration
    key  = a running sum of G_K, as Eq. 3 is one of G_PE, from the end that is read first
    H    = for each key, the sum of the tokens that have it: Eqs. 10 to 12 with keys for clusters
    O, F = what the feedforward gives for H, beside each state
    u    = the states that arrive, by a scan
    X    : Eq. 13, with Y = O at the state that arrives, written at the last position of its row

With the gate 1 on every token, each is a row of its own. A text of a machine that answers at the
end has a mark there, and only the mark gives a token.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.machines import Machine
from exactformer.model.circuit import NO_TAP, Tap, gated, read_tokens, write_tokens
from exactformer.model.feedforward import MLP, Table
from exactformer.model.reading import Tried, WithStates, arriving, outputs, try_states


@dataclass(frozen=True)
class MachineWeights(WithStates):
    """The gate of the key, and a feedforward of tokens and states."""

    G_K: Tensor
    f: MLP | Table


class Step(NamedTuple):
    """All intermediate results of one iteration; X is the state after it."""

    key: Tensor
    rows: Tensor
    H: Tensor
    kind: Tensor
    F: Tensor
    u: Tensor
    Y: Tensor
    P: Tensor
    X: Tensor


def keys(
    tokens: Float[Tensor, "B n D"], G_K: Float[Tensor, " D"], backwards: bool
) -> Int[Tensor, "B n"]:
    """The running sum of the gate, from the left or, backwards, from the right."""
    gate = gated(tokens, G_K)
    count = gate.cumsum(-1, dtype=torch.int64)  # Eq. 3
    return count[..., -1:] - count + gate if backwards else count


def number_rows(
    key: Int[Tensor, "B n"], P: Bool[Tensor, "B n"]
) -> tuple[Int[Tensor, "B n"], Bool[Tensor, " r"]]:
    """The row of each position: one for each key of a sequence, from 1 up, sequence by sequence;
    and at which rows a sequence starts.
    """
    key = torch.where(P, key.clamp(min=1), 0)
    count = key.amax(-1)
    first = count.cumsum(0) - count
    rows = torch.where(P, key - 1 + first.unsqueeze(-1), -1)
    starts = torch.zeros(int(count.sum()), dtype=torch.bool, device=key.device)
    starts[first[count > 0]] = True
    return rows, starts


def iterate(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    weights: MachineWeights,
    backwards: bool,
    tap: Tap = NO_TAP,
) -> Step:
    """The one iteration; `backwards` if texts are read from the right."""
    tokens = tap("tokens", read_tokens(X, weights))
    P = tap("P", inside & (tokens.sum(-1) > 0))
    key = tap("key", keys(tokens, weights.G_K, backwards))
    rows, starts = number_rows(key, P)
    row, place = rows[P], P.flatten().nonzero().squeeze(-1)
    H = X.new_zeros(len(starts), X.shape[-1]).index_add_(0, row, tokens.flatten(0, 1)[place])
    H = tap("H", H)  # Eq. 12
    kind, O, F = try_states(H, weights.f, weights.W)  # noqa: E741
    F = tap("F", F)
    u = tap("u", arriving(F, kind, starts))
    Y = tap("Y", outputs(Tried(kind, O, F), u).to(X.dtype))
    at = row.new_full((len(starts),), -1).scatter_reduce_(0, row, place, "amax")
    written = X.flatten(0, 1).masked_fill(P.flatten().unsqueeze(-1), 0)
    written = written.index_copy(0, at[at >= 0], write_tokens(Y, weights)[at >= 0])
    return Step(key, rows, H, kind, F, u, Y, P, tap("X", written.view_as(X)))  # Eq. 13


def steps(
    X: Float[Tensor, "B n D"],
    inside: Bool[Tensor, "B n"],
    weights: MachineWeights,
    domain: Machine,
    tap: Tap = NO_TAP,
) -> Iterator[Step]:
    """The one iteration of texts of a machine."""
    yield iterate(X, inside, weights, domain.read == "right", tap)
