"""The layer for plain notation as a graph: what `model/levels.py` and `model/precedence.py`
compute, with fixed shapes.

Their docstrings have the argument and the glossary. A token brings at most H parentheses for H
levels, so each has H + 1 places in the text with all parentheses. Steps are tried at the tokens of
their operators, each as a span of five positions. A place that is no step hands on what comes from
its right, so steps need not stand side by side for a scan.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from exactformer.api import Model
from exactformer.domains.algebra import CLOSE, FIRST_VALUE, OPEN
from exactformer.domains.expression import EMPTY
from exactformer.export.graph import add_up, before, behind, restarted
from exactformer.export.spans import Entries, SpanGraph, scan_from_right
from exactformer.model.encode import encode
from exactformer.model.levels import Levels, levels_of
from exactformer.model.precedence import LEFT_KNOWN, PREFIX, RIGHT_KNOWN
from exactformer.model.remembered import fixed

HOLE = -2  # a symbol that no token has


class Remaining(NamedTuple):
    """The remaining tokens of each sequence, side by side; (B, n) each."""

    symbols: Tensor
    prefix: Tensor  # whether it is a prefix operator
    level: Tensor
    running: Tensor  # (B,) whether the sequence is an expression of more than one token


class Folds(NamedTuple):
    """The steps of every span in backward order, and places that are no steps; (B, 2L) each."""

    ids: Tensor  # number of the span
    source: Tensor  # the token that a place belongs to
    operator: Tensor  # whether it is a step with an operator
    is_first: Tensor  # whether it is a first operand
    side: Tensor
    known: Tensor  # value of the operand that a step brings, V for a hole
    hole: Tensor  # whether that operand is the hole


class PlainGraph(SpanGraph):
    def __init__(self, model: Model) -> None:
        model = fixed(model)  # one content for the certificate and the levels
        super().__init__(model)
        levels = levels_of(model.weights)
        self.H = levels.H
        for name, part in levels._asdict().items():
            if isinstance(part, Tensor):
                self.register_buffer(name, part.clone())

    def forward(self, X: Tensor, inside: Tensor) -> Tensor:
        n, V = X.shape[1], self.V
        symbols = torch.where(inside, self.symbols(X), EMPTY)
        reading = self.reading(symbols)
        written = self.written(reading)
        entries = self.enter(written)
        ids, source = entries.ids, entries.position // (self.H + 1)
        holes = add_up(entries.hole, ids, rows := written.shape[1] + 1)
        u = self.compose(self.fold(entries, written, reading, rows), reading.symbols, holes)
        first = entries.starts * self.outermost(u, holes).gather(1, ids)
        value = add_up(first * (u.gather(1, ids) + 1), source, n) - 1
        finished = add_up((u < V).gather(1, ids), source, n)
        live = symbols != EMPTY
        at = (live.cumsum(-1) - 1).clamp(min=0)  # where each position's token is in `reading`
        value, finished = value.gather(1, at), finished.gather(1, at)
        Y = encode(torch.where(value >= 0, FIRST_VALUE + value, EMPTY), self.D, X.dtype)
        return torch.where(((finished > 0) & live).unsqueeze(-1), self.write(Y), X)

    def running(self, X: Tensor) -> Tensor:
        return self.reading(self.symbols(X)).running

    def reading(self, symbols: Tensor) -> Remaining:
        """Kinds and levels of all tokens, as in `levels.read`."""
        n, live = symbols.shape[1], symbols != EMPTY
        into = torch.where(live, live.cumsum(-1) - 1, n)
        symbols = pad(torch.full_like(symbols, EMPTY), (0, 1)).scatter(1, into, symbols)[:, :n]
        here, token = symbols != EMPTY, symbols.clamp(min=0)
        first, last = here & ~before(here), here & ~behind(here)
        operator = symbols >= self.first_operator
        operand_ends = here & ~operator & (symbols != OPEN)
        follows = before(operand_ends)  # an operand ends right before
        prefix, binary = operator & ~follows, operator & follows
        as_prefix, as_binary, least = (self.get_buffer(g)[token] for g in Levels._fields[:3])
        alone = torch.where(prefix, as_prefix, as_binary * binary)
        handed = torch.where(binary, least, alone)  # to the prefix operators behind it
        starts = (first | ~prefix).long()  # of a token and these
        run = starts.cumsum(-1)
        highest = torch.zeros_like(alone)
        for level in range(1, self.H + 1):  # a running maximum, as far as ONNX has one
            highest = highest + (restarted((handed >= level).long(), run, starts) > 0)
        fitting = torch.where(operator, alone, (follows == (symbols == CLOSE)).long()) > 0
        fitting = fitting & self.get_buffer("counted")[token] & (~last | (operand_ends & ~first))
        running = self.matched(symbols) & (fitting | ~here).all(-1) & here.any(-1)
        return Remaining(symbols, prefix, torch.where(prefix, highest, alone), running)

    def written(self, reading: Remaining) -> Tensor:
        """The symbols with the implied parentheses, (B, n (H + 1)); EMPTY for those not needed."""
        symbols, prefix, level, running = reading
        p, q = before(level), behind(level)
        value, opening, closing = symbols >= FIRST_VALUE, symbols == OPEN, symbols == CLOSE
        value = value & (level == 0)
        tighter = torch.where(value, torch.maximum(p, q), self.H)
        opened = torch.where(prefix, level - p, (tighter - p) * (value | opening)).unsqueeze(-1)
        closed = ((tighter - q) * (value | closing)).unsqueeze(-1)
        place = torch.arange(self.H + 1, device=symbols.device)
        right = torch.where(place <= opened + closed, CLOSE, EMPTY)
        token = torch.where(place == opened, symbols.unsqueeze(-1), right)
        there = ((symbols != EMPTY) & running.unsqueeze(-1)).unsqueeze(-1)
        return torch.where(there, torch.where(place < opened, OPEN, token), EMPTY).flatten(1)

    def fold(self, entries: Entries, written: Tensor, reading: Remaining, rows: int) -> Folds:
        """The steps of every span, as in `precedence.fold`; spans are in a table of `rows`."""
        position, hole, ids, _ = entries
        source, E = position // (self.H + 1), ids.shape[1]
        place = torch.arange(E, device=ids.device)
        symbol = torch.where(hole, HOLE, written.gather(1, position))
        inner = (ids > 0) & (hole | (symbol >= FIRST_VALUE))  # no parentheses
        operator = inner & (symbol >= self.first_operator)
        prefix = operator & reading.prefix.gather(1, source)
        value = torch.where(hole | operator, self.V, symbol - FIRST_VALUE)
        level = reading.level.gather(1, source) * operator
        from_left = add_up(self.get_buffer("from_left")[level] & operator, ids, rows)
        from_left = from_left.gather(1, ids) > 0
        more = torch.where(from_left, *(beside(inner.long()) for beside in (before, behind)))
        is_first = inner & ~operator & (more == 0)
        brings = torch.where(is_first, 0, torch.where(from_left, 1, -1))  # where the operand stands
        brings = (place + brings).clamp(min=0).clamp(max=E - 1)
        known = torch.where(prefix, 0, value.gather(1, brings))
        hole = hole.gather(1, brings) & (is_first | operator) & ~prefix
        side = torch.where(prefix, PREFIX, torch.where(from_left, RIGHT_KNOWN, LEFT_KNOWN))
        within = torch.where(from_left, E - 1 - place, place)
        backward = (ids * E + within).sort(-1).indices
        steps = Folds(ids, source, operator, is_first, side, known, hole)
        return Folds(*(part.gather(1, backward) for part in steps))

    def compose(self, folds: Folds, symbols: Tensor, holes: Tensor) -> Tensor:
        """u of each span, by the two scans of `precedence.py`."""
        ids, source, operator, is_first, side, known, hole = folds
        V, n = self.V, symbols.shape[1]
        same = torch.arange(V + 1, device=ids.device)

        def steps(side: Tensor, known: Tensor) -> Tensor:
            side, known = (add_up(x * operator, source, n) for x in (side, known))
            tried = self.try_steps(symbols, side, known)
            return tried.gather(1, source.unsqueeze(-1).expand(*source.shape, V + 1))

        def where(chosen: Tensor, there: Tensor | int, M: Tensor) -> Tensor:
            return torch.where(chosen.unsqueeze(-1), there, M)

        M = where(operator, steps(side, known), where(is_first, known.unsqueeze(-1), same))
        c = scan_from_right(M, V)
        other = torch.where(side == RIGHT_KNOWN, LEFT_KNOWN, RIGHT_KNOWN)
        M = where(hole & operator, steps(other, behind(c, V)), M)
        starts = (ids != before(ids)).long()
        met = restarted(hole.long(), ids, starts) - hole.long()  # holes to the left, so after it
        M = where((met > 0) | (hole & is_first), same, M)
        u = scan_from_right(where(holes.gather(1, ids) > 1, V, M), V)
        return V + add_up(starts * (u - V), ids, holes.shape[1])

    def try_steps(self, symbols: Tensor, side: Tensor, known: Tensor) -> Tensor:
        """The result of each operator's step for every value, (B, n, V + 1)."""
        n = symbols.shape[1]
        value = FIRST_VALUE + known.clamp(max=self.V - 1)
        left = torch.where(side == LEFT_KNOWN, value, torch.where(side == PREFIX, EMPTY, HOLE))
        right = torch.where(side == RIGHT_KNOWN, value, HOLE)
        opened, closed = (torch.full_like(side, token) for token in (OPEN, CLOSE))
        spans = torch.stack([opened, left, symbols, right, closed], -1).flatten(1)
        place = torch.arange(5 * n, device=symbols.device)
        ids, starts = (place // 5 + 1).expand_as(spans), (place % 5 == 0).long()
        Y = self.try_values(spans, spans == HOLE, ids, starts.expand_as(spans))
        F = self.span_values(Y, ids, n + 1)[:, 1:]
        F = torch.where((known < self.V).unsqueeze(-1), F, self.V)
        return pad(F, (0, 1), value=self.V)
