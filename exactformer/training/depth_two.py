"""The depth-2 expressions that teach the gate, and how wrong they come out under given gates.

Many gates are tried on a few expressions, for one seed or for many at once. What a position becomes
depends on its own state and on those of its cluster, and most clusters are alike: so states are
numbers (a token, nothing, or an entry in a list of what else came up), and attention and
feedforward are computed once for each distinct pair of a state and a cluster.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.alike import one_of_each_hash
from exactformer.model.circuit import Weights, clusters
from exactformer.model.encode import encode, pad_slots
from exactformer.model.feedforward import MLP, hash_rows
from exactformer.training.state import stacked

AT_ONCE = 1 << 25  # positions of all gates and expressions that a GPU holds together
FEW = 1 << 15  # positions below which a core is faster than a GPU, whose launches cost time
ODD = (0x9E3779B97F4A7C15 - (1 << 64), 0xBF58476D1CE4E5B9 - (1 << 64))  # to mix 64 bits with


@dataclass(frozen=True)
class GateProblem:
    """The problem of finding a gate: one seed's weights, and depth-2 expressions with targets."""

    weights: Weights
    X: Tensor  # (s, n, D); all on the CPU
    inside: Tensor  # (s, n)
    target: Tensor  # (s, n, D): the value at the outermost operator, zero elsewhere


def gate_problem(
    algebra: Algebra, weights: Weights, count: int, rng: np.random.Generator
) -> GateProblem:
    return GateProblem(weights, *with_targets(algebra, draw(algebra, 2, count, rng)))


def with_targets(
    algebra: Algebra, expressions: Sequence[Expression]
) -> tuple[Tensor, Tensor, Tensor]:
    """Expressions as one-hot states, the mask of their positions, and their target states."""
    ids, inside = pad_slots(expressions)
    D = len(algebra.vocabulary)
    target = torch.zeros(*ids.shape, D)
    roots = [expression.root for expression in expressions]
    values = [algebra.token_ids[evaluate(expression)] for expression in expressions]
    target[range(len(ids)), roots, values] = 1
    return encode(ids, D), inside, target


@torch.no_grad()
def try_gates(
    problems: Sequence[GateProblem], gates: Sequence[Tensor], device: str = "cpu"
) -> list[tuple[Tensor, Tensor]]:
    """Try gates, (K, D), on each problem's expressions: for each gate the balanced error, and the
    number of expressions that come out right in every position.

    The balanced error is the fraction of ones missed plus the fraction of zeros that became ones.
    Unbalanced, an output of zeros alone would seem nearly right.
    """
    which = [_distinct(tried) for tried in gates]
    outcomes = _outcomes(problems, [distinct for distinct, _ in which], device)
    found = []
    for problem, (ones, hits), (_, back) in zip(problems, outcomes, which, strict=True):
        wanted = torch.tensor(len(problem.target))  # one in each
        missed = (wanted - hits.sum(-1)) / wanted
        errors = missed + (ones - hits).sum(-1) / (problem.target.numel() - wanted)
        right = ((ones == 1) & (hits == 1)).sum(-1)
        found.append((errors[back], right[back]))
    return found


def right_of(
    problems: Sequence[GateProblem], gates: Sequence[Tensor], device: str = "cpu"
) -> list[int]:
    """Number of expressions of each problem that come out wholly right under its gate."""
    return [int(right) for _, right in try_gates(problems, [gate[None] for gate in gates], device)]


def _distinct(gates: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct gates, and the index of each gate among them."""
    first, back = one_of_each_hash(hash_rows(gates.long()))
    return gates[first], back


def _mixed(numbers: Tensor) -> Tensor:
    """Hash whole numbers; overflow at 64 bits is intended."""
    for odd in ODD:
        numbers = (numbers ^ (numbers >> 29)) * odd
    return numbers ^ (numbers >> 31)


def _outcomes(
    problems: Sequence[GateProblem], gates: Sequence[Tensor], device: str
) -> list[tuple[Tensor, Tensor]]:
    """Run two iterations on each problem's expressions under each of its gates: the number of ones
    that are left, (K, s), and whether the value is among them in its position. Without a GPU, a
    core tries the gates of one seed at a time, so that no seed's numbers depend on the others.
    """
    sizes = [len(g) * p.inside.numel() for p, g in zip(problems, gates, strict=True)]
    groups: list[list[int]] = []
    room = 0
    for row, size in enumerate(sizes):
        if device == "cpu" or size > room:
            groups, room = [*groups, []], AT_ONCE
        groups[-1].append(row)
        room -= size
    found: list[tuple[Tensor, Tensor]] = []
    for group in groups:
        tried = [gates[row] for row in group]
        where = device if sum(sizes[row] for row in group) > FEW else "cpu"
        run = _Run([problems[row] for row in group], tried, where)
        for _ in range(2):
            run.iterate()
        found += zip(*(part.split([len(g) for g in tried]) for part in run.outcome()), strict=True)
    return found


class _Run:
    """The expressions of several seeds' problems, each under all gates that its seed tries."""

    def __init__(
        self, problems: Sequence[GateProblem], gates: Sequence[Tensor], device: str
    ) -> None:
        D = problems[0].X.shape[-1]
        self.gates = pad(torch.cat(list(gates)), (0, 1)).to(device)  # nothing counts as 0
        counts = torch.tensor([len(g) for g in gates])
        self.seed = torch.repeat_interleave(torch.arange(len(gates)), counts).to(device)
        ids = [torch.where(p.X.any(-1), p.X.argmax(-1), D).mT for p in problems]
        ids = pad_sequence(ids, batch_first=True, padding_value=D).mT
        inside = pad_sequence([p.inside.mT for p in problems], batch_first=True).mT
        self.state, self.inside = ids.to(device)[self.seed], inside.to(device)[self.seed]
        self.rows = torch.eye(D + 1, D, device=device)  # row of tokens for each number in `state`
        self.nothing = D
        self.W_Q = torch.stack([p.weights.W_Q for p in problems]).to(device)
        self.W_K = torch.stack([p.weights.W_K for p in problems]).to(device)
        ranks = [p.weights.G_R for p in problems]
        self.G_R = None
        if ranks[0] is not None:
            self.G_R = torch.stack([g for g in ranks if g is not None]).to(device)
        parts = [p.weights.f for p in problems if isinstance(p.weights.f, MLP)]
        self.f = stacked(parts).to(device)
        answer = torch.stack([p.target.flatten(1).argmax(-1) for p in problems]).to(device)
        self.answer = (answer // D)[self.seed], (answer % D)[self.seed]  # place and value

    def iterate(self) -> None:
        """Run one iteration of `model/circuit.py`, with hard decisions."""
        move = self._gated(self.gates)
        A_1 = move.cumsum(-1)
        deepest = torch.maximum(A_1, A_1 - move - A_1[..., -1:])
        deepest.masked_fill_(~self.inside, -torch.inf)
        P = (deepest == deepest.amax(-1, keepdim=True)) & self.inside
        number = clusters(P)
        where = (P & (self.state != self.nothing)).flatten().nonzero().squeeze(-1)
        n = P.shape[-1]
        cluster = where // n * (n + 1) + number.flatten()[where]
        ids, seed = self.state.flatten()[where], self.seed[where // P[0].numel()]
        slot = self._slots(number).flatten()[where] if self.G_R is not None else None

        # Sums of mixed numbers distinguish clusters whatever the order of their members.
        S = self.f.slots
        members = _mixed(ids + 1 if slot is None else (ids + 1) * S + slot)
        sums = members.new_zeros(number.numel() // n * (n + 1)).index_add_(0, cluster, members)
        first, kind = one_of_each_hash(_mixed(_mixed(_mixed(sums)[cluster] + ids) + seed))

        H = self._received(first, cluster, ids, seed, slot)
        everyone = torch.arange(len(self.W_Q), device=seed.device)
        H = torch.cat([H, H.new_zeros(len(everyone), H.shape[-1])])  # empty ones receive nothing
        new = self._numbered(self._feedforward(H, torch.cat([seed[first], everyone])))
        empty = new[len(first) :][self.seed]
        self.state = torch.where(P, empty[:, None, None], self.state)
        self.state.view(-1)[where] = new[kind]

    def outcome(self) -> tuple[Tensor, Tensor]:
        """Number of ones of each expression in all, and at its answer."""
        place, value = self.answer
        final = self.state.gather(-1, place.unsqueeze(-1)).squeeze(-1)
        ones = self.rows.sum(-1).long()
        return ones[self.state].sum(-1).cpu(), self.rows[final, value].long().cpu()

    def _gated(self, gates: Tensor) -> Tensor:
        """The number that each position adds to a count under its gate; gates are (gates, D +
        1).
        """
        flat = self.state.flatten(1)
        move = gates.gather(1, flat.clamp(max=self.nothing))
        several = (flat > self.nothing).nonzero()  # positions of more than one token
        g, at = several.unbind(-1)
        move[g, at] = (self.rows[flat[g, at]] * gates[g, :-1]).sum(-1)
        return move.view(self.state.shape)

    def _slots(self, number: Tensor) -> Tensor:
        """The slot of each position, by the rank gate's count within its cluster."""
        assert self.G_R is not None
        move = self._gated(pad(self.G_R, (0, 1))[self.seed])
        count = move.cumsum(-1)
        places = torch.arange(count.shape[-1], device=count.device)
        starts = number > pad(number, (1, 0))[..., :-1]
        start = (starts * places).cummax(-1).values
        ranks = count - (count - move).gather(-1, start)
        return (ranks.long() - 1).clamp(0, self.f.slots - 1)

    def _received(
        self, first: Tensor, cluster: Tensor, ids: Tensor, seed: Tensor, slot: Tensor | None
    ) -> Tensor:
        """The bag that one position of each kind receives: (kinds, S D)."""
        S, D = self.f.slots, self.rows.shape[-1]
        needed, own = torch.unique(cluster[first], return_inverse=True)
        place = torch.searchsorted(needed, cluster).clamp_(max=len(needed) - 1)
        member = (needed[place] == cluster).nonzero().squeeze(-1)
        into = place[member] * S + (0 if slot is None else slot[member])
        V = self.rows[ids[member]]
        K = torch.einsum("rd,rdh->rh", V, self.W_K[seed[member]])
        sums = V.new_zeros(len(needed) * S, K.shape[-1], D)
        sums.index_add_(0, into, K.unsqueeze(-1) * V.unsqueeze(1))
        Q = torch.einsum("rd,rdh->rh", self.rows[ids[first]], self.W_Q[seed[first]])
        sums = sums.unflatten(0, (len(needed), S))[own]
        return (Q[:, None, :, None] * sums).sum(2).flatten(1)

    def _feedforward(self, H: Tensor, seed: Tensor) -> Tensor:
        """Apply the feedforward of its seed to each row, in float32 as in training."""
        counts = torch.bincount(seed, minlength=len(self.W_Q))
        order = seed.argsort(stable=True)
        first = counts.cumsum(0) - counts
        place = torch.empty_like(order)
        place[order] = torch.arange(len(order), device=order.device) - first[seed[order]]
        rows = H.new_zeros(len(counts), int(counts.max()), H.shape[-1])
        rows[seed, place] = H
        return self.f.in_training(rows)[seed, place] > 0

    def _numbered(self, Y: Tensor) -> Tensor:
        """The number of each row; new rows with several tokens are added to the list."""
        ones = Y.sum(-1)
        numbers = torch.where(ones == 0, self.nothing, Y.int().argmax(-1))
        several = (ones > 1).nonzero().squeeze(-1)
        numbers[several] = len(self.rows) + torch.arange(len(several), device=Y.device)
        self.rows = torch.cat([self.rows, Y[several].to(self.rows.dtype)])
        return numbers
