"""A reading: rows of tokens, each tried with every state of a machine, and the states composed.

Glossary
    D, W    size of the vocabulary; states of the machine, of which 0 is the start. W, one more,
            stands for a state that is not known
    r, k    rows, in the order in which they are read; kinds of rows, of which one is tried for all
    S       slots of a bag
    H       (r, S*D)   the bag of each row: the sum of its tokens, slot by slot
    kind    (r,)       index of each row's kind
    O       (k, W, D)  tokens that the feedforward gives, by kind and by the state that arrives
    F       (k, W+1)   the next state, by kind and by the state that arrives; F[:, W] = W, but for
                       a row that forgets what arrives
    starts  (r,)       rows at which another text begins: the start arrives there
    u       (r,)       state that arrives at each row

The feedforward takes a bag beside a one-hot state, S*D + W numbers, and gives D + W: tokens and
next states. The next state is known where exactly one of its W numbers is above the threshold.

Each row is a map of states to states, found by trying them all. Maps compose, so that one scan
(`scan.py`) finds what arrives everywhere: linear work, in a number of rounds that grows with the
logarithm of the length.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.model.circuit import Feedforward
from exactformer.model.feedforward import MLP, Table
from exactformer.model.gated import Gated
from exactformer.model.scan import scan_from_right

NUMBERS_AT_ONCE = 1 << 22  # of maps that are composed in one scan; the next one goes on from there


class WithStates(Gated):
    """The base of weights whose feedforward has states besides tokens."""

    f: MLP | Table

    @property
    def W(self) -> int:
        """Number of states."""
        return self.f.width - self.D


class Tried(NamedTuple):
    """The feedforward's outputs for each kind of row in each state."""

    kind: Int[Tensor, " r"]
    O: Bool[Tensor, "k W D"]  # noqa: E741
    F: Int[Tensor, "k W_1"]


def distinct(H: Float[Tensor, "r SD"]) -> tuple[Float[Tensor, "k SD"], Int[Tensor, " r"]]:
    """The distinct rows of whole numbers, and which of them each row is."""
    factors = [pow(0x9E3779B1, place, 2**31 - 1) for place in range(1, H.shape[-1] + 1)]
    numbers = H.double() @ torch.tensor(factors, dtype=torch.float64, device=H.device)
    numbers, kind = numbers.unique(return_inverse=True)
    rows = H.new_empty(len(numbers), H.shape[-1]).index_copy_(0, kind, H)
    if not torch.equal(rows[kind], H):  # two different rows have the same number
        rows, kind = H.unique(dim=0, return_inverse=True)
    return rows, kind


def try_states(H: Float[Tensor, "r SD"], f: Feedforward, W: int) -> Tried:
    """Try each kind of row with each state."""
    rows, kind = distinct(H)
    states = torch.eye(W, dtype=H.dtype, device=H.device)
    given, ahead = [], []
    for some in rows.split(max(1, NUMBERS_AT_ONCE // (W * (rows.shape[-1] + W)))):
        tried = torch.cat([some.repeat_interleave(W, 0), states.repeat(len(some), 1)], 1)
        positive = (f(tried) > 0).unflatten(0, (len(some), W))
        given.append(positive[..., :-W].clone())
        Q = positive[..., -W:]
        ahead.append(torch.where(Q.sum(-1) == 1, Q.long().argmax(-1), W))
    F = torch.nn.functional.pad(torch.cat(ahead), (0, 1), value=W)
    return Tried(kind, torch.cat(given), F)


def arriving(
    F: Int[Tensor, "k W_1"], kind: Int[Tensor, " r"], starts: Bool[Tensor, " r"]
) -> Int[Tensor, " r"]:
    """The state that arrives at each row: the start at `starts`, elsewhere what the row before it
    leads to. Rows are composed some at a time, so that their maps fit into memory.
    """
    u = torch.empty_like(kind)
    last = 0
    step = max(1, NUMBERS_AT_ONCE // F.shape[-1])
    for begin in range(0, len(kind), step):
        some = slice(begin, begin + step)
        maps = F[kind[some]]
        maps = torch.where(starts[some].unsqueeze(-1), maps[:, :1], maps)
        after = scan_from_right(maps.flip(0), last).flip(0)
        u[some][0], u[some][1:] = last, after[:-1]
        last = int(after[-1])
    return torch.where(starts, 0, u)


def outputs(tried: Tried, u: Int[Tensor, " r"]) -> Bool[Tensor, "r D"]:
    """The tokens that each row gives for the state that arrives; none for a state not known."""
    known = u < tried.O.shape[1]
    return tried.O[tried.kind, torch.where(known, u, 0)] & known.unsqueeze(-1)
