"""The logarithmic layer as a graph: what `model/speculate.py` computes, with fixed shapes.

Its docstring has the argument and the glossary. How many spans there are is not known beforehand,
so there is room for the most there can be: a sequence of L positions has 2L places for entries, one
for each token and one for each hole, and tables of spans have L + 1 rows. Row 0 is for places
without an entry; it has no value, and neither has a row without a span. Every value is tried in
every span, as V batches in one.

The scan doubles: after k rounds a map is composed of 2^k neighbours, so a loop of log2(L) rounds
does. That is O(L V log L) operations where `model/scan.py` takes O(L V).
"""

from typing import NamedTuple

import torch
from torch import Tensor

from exactformer.domains.algebra import FIRST_VALUE, OPEN
from exactformer.domains.expression import EMPTY
from exactformer.export.graph import AlgebraGraph, add_up, before, behind
from exactformer.model.encode import encode

NO_ENTRY = 1 << 62  # sorts behind every entry


class Entries(NamedTuple):
    """The entries of all spans of each sequence, span by span, and behind them the places without
    an entry; (B, 2L) each.
    """

    position: Tensor
    hole: Tensor
    ids: Tensor  # number of the span in the order of the text, from 1; 0 without an entry
    starts: Tensor  # 1 at the first entry of each span


class SpanGraph(AlgebraGraph):
    """The common part of the graphs of layers that try values."""

    def symbols(self, X: Tensor) -> Tensor:
        """The token in each position; EMPTY where there is none."""
        tokens = self.read(X)
        return torch.where(tokens.sum(-1) > 0, tokens.argmax(-1), EMPTY)

    def matched(self, symbols: Tensor) -> Tensor:
        """Whether the parentheses of each sequence match."""
        count, _ = self.counts(encode(symbols, self.D))
        return (count >= 0).all(-1) & (count[:, -1:] == 0).all(-1)

    def enter(self, symbols: Tensor) -> Entries:
        """The entries of all spans of sequences whose parentheses match."""
        L = symbols.shape[1]
        forward, backward = self.counts(encode(symbols, self.D))
        own, around = torch.maximum(forward, backward), torch.minimum(forward, backward)
        live = (symbols != EMPTY) & (own > 0)
        opens = live & (symbols == OPEN)
        is_entry = torch.cat([live, opens & (around > 0)], 1)
        place = torch.arange(L, device=symbols.device).repeat(2)
        key = torch.cat([own, around], 1) * L + place
        order = torch.where(is_entry, key, NO_ENTRY).sort(-1).indices
        position, is_entry = place[order], is_entry.gather(1, order)
        hole = is_entry & (order >= L)
        starts = (is_entry & ~hole & opens.gather(1, position)).long()
        ids = starts.cumsum(-1) * is_entry
        in_text = add_up(starts * opens.cumsum(-1).gather(1, position), ids, L + 1)
        return Entries(position, hole, in_text.gather(1, ids), starts)

    def try_values(self, symbols: Tensor, hole: Tensor, ids: Tensor, starts: Tensor) -> Tensor:
        """Y of each entry in each trial, (V, B, E, D): trial v has the value v in every hole."""
        V, (B, E) = self.V, ids.shape
        value = FIRST_VALUE + torch.arange(V, device=ids.device).view(V, 1).repeat(1, B).view(-1, 1)
        hole, symbols, ids, starts = (x.repeat(V, 1) for x in (hole, symbols, ids, starts))
        tokens = torch.where(ids > 0, torch.where(hole, value, symbols), EMPTY)
        Y = self.f(self.attention(encode(tokens, self.D), ids, starts)) > 0
        return (Y & (ids > 0).unsqueeze(-1)).float().view(V, B, E, self.D)

    def span_values(self, Y: Tensor, ids: Tensor, rows: int) -> Tensor:
        """The value that each span becomes in each trial, (B, rows, V); V if its outputs are not a
        single value.
        """
        V, ids = self.V, ids.expand(Y.shape[:-1])
        outputs = add_up(Y.sum(-1), ids, rows)
        tokens = Y @ torch.arange(self.D, dtype=Y.dtype, device=Y.device)
        values = add_up(tokens, ids, rows) - FIRST_VALUE
        known = (outputs == 1) & (values >= 0) & (values < V)
        return torch.where(known, values, V).permute(1, 2, 0)

    def outermost(self, u: Tensor, holes: Tensor) -> Tensor:
        """Whether each span has a value and is not the hole of a span that has one."""
        return (u < self.V) & (before(((holes == 1) & (u < self.V)).long()) == 0)


def scan_from_right(F: Tensor, last: int) -> Tensor:
    """u_j = F_j(u_{j+1}) for every j at once, (B, m), of maps (B, m, W)."""
    from torch._higher_order_ops import while_loop

    same = torch.arange(F.shape[-1], device=F.device)

    def go_on(F: Tensor, step: Tensor) -> Tensor:
        return step < F.shape[1]

    def double(F: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        m = F.shape[1]  # found here, since a loop in a loop can be given tensors only
        right = torch.arange(m, device=F.device) + step
        theirs = F.gather(1, right.clamp(max=m - 1).view(1, m, 1).expand(F.shape))
        theirs = torch.where((right < m).view(1, m, 1), theirs, same)
        return F.gather(2, theirs), 2 * step  # x goes to F[theirs[x]]

    F, _ = while_loop(go_on, double, (F.contiguous(), torch.ones((), dtype=torch.int64)))
    return F[..., last]


class LogGraph(SpanGraph):
    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        (B, n, D), V = X.shape, self.V
        symbols = torch.where(inside, self.symbols(X), EMPTY)
        symbols = torch.where(self.matched(symbols).unsqueeze(-1), symbols, EMPTY)
        position, hole, ids, starts = self.enter(symbols)
        Y = self.try_values(symbols.gather(1, position), hole, ids, starts)
        F = self.span_values(Y, ids, n + 1)
        holes = add_up(hole, ids, n + 1)
        F = torch.cat([F, torch.where(holes.unsqueeze(-1) == 0, F[..., :1], V)], -1)
        u = scan_from_right(torch.where(holes.unsqueeze(-1) > 1, V, F), V)
        top = self.outermost(u, holes)
        P = add_up((u < V).gather(1, ids), position, n) > 0
        inner = behind(u, V).clamp(max=V - 1).gather(1, ids)  # without a hole, any will do
        Y = Y.gather(0, inner.view(1, B, 2 * n, 1).expand(1, B, 2 * n, D)).squeeze(0)
        Y = Y * top.gather(1, ids).unsqueeze(-1)
        rows = torch.zeros_like(X).scatter_add(1, position.unsqueeze(-1).expand(B, 2 * n, D), Y)
        return torch.where(P.unsqueeze(-1), self.write(rows), X)

    def running(self, X: Tensor) -> Tensor:
        symbols = self.symbols(X)
        return self.matched(symbols) & (symbols == OPEN).any(-1)
