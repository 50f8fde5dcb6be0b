"""The depth-1 expressions as the distinct cases they are made of.

What a position of a depth-1 expression receives depends on its token and on the bag of tokens, so
the whole set collapses to one row for each pair of these, weighted by how many positions it stands
for: the same loss and gradient at a fraction of the cost. One more row teaches that the zero vector
stays zero. Rows come bag by bag, each padded to the same number, so that a batch is a choice of
bags. Where the order of operands matters, a bag is a span with its tokens in their order, and what
is received slot by slot depends on the rank gate, which is learned as well.

Tokens are padded to a multiple of LANE and rows to an even number. Then each seed's numbers start
on a cache line and fill whole pairs of vector registers, and its results have the same bits
whichever seeds are trained beside it.
"""

from dataclasses import dataclass
from math import factorial, prod

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import one_hot

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.expression import span_tokens
from exactformer.domains.units import slots_of
from exactformer.model.feedforward import hash_rows

LANE = 16


def padded(size: int) -> int:
    return -(-size // LANE) * LANE


@dataclass(frozen=True)
class CaseRows:
    """Every case of depth 1: B bags of w rows, and one last bag with the zero vector's row."""

    token: Float[Tensor, "B w D"]  # one-hot; zeros for filler and for the zero vector
    span: Float[Tensor, "B L D"]  # the tokens of the bag in their order, one-hot
    target: Float[Tensor, "B w D"]
    weight: Float[Tensor, "B w D"]  # sums to 1; 0 for filler and beyond the vocabulary
    slots: int

    def to(self, device: torch.device | str) -> "CaseRows":
        tensors = (self.token, self.span, self.target, self.weight)
        return CaseRows(*(tensor.to(device) for tensor in tensors), slots=self.slots)

    def bags(self, G_R: Float[Tensor, " d"] | None) -> Float[Tensor, "B w S D"]:
        """Count of each token in each slot of the span; equal for all rows of a bag."""
        if G_R is None:
            bags = self.span.sum(1, keepdim=True)
        else:
            ranks = (self.span[..., : len(G_R)] @ G_R).cumsum(-1).long()
            slot = (ranks - 1).clamp(0, self.slots - 1)
            bags = one_hot(slot, self.slots).to(self.span.dtype).mT @ self.span
        return bags.unsqueeze(1).expand(-1, self.token.shape[1], -1, -1)

    def cases(self, bags: Float[Tensor, "M B w S D"], seeds: int) -> list[Tensor]:
        """Tokens, bags, targets and weights of every case: (seeds, rows, D) each, with slots before
        D for bags. The leading axis M is the number of seeds, or 1 if they are equal for all.
        """
        of_rows = (self.token, self.target, self.weight)
        token, target, weight = (t.flatten(0, 1).expand(seeds, -1, -1) for t in of_rows)
        return [token, bags.flatten(1, 2).expand(seeds, -1, -1, -1), target, weight]

    def right(self, Z: Float[Tensor, "M Bw D"]) -> Bool[Tensor, "M B"]:
        """Whether the outputs of each seed for all rows have the right signs, bag by bag."""
        signs = Z.unflatten(1, self.token.shape[:2]) > 0
        return ((signs == (self.target > 0)) | (self.weight == 0)).flatten(2).all(2)


def depth_one_rows(algebra: Algebra) -> CaseRows:
    vocabulary = len(algebra.vocabulary)
    length, slots = 3 + algebra.require_fan_in(), slots_of(algebra)
    D, width = padded(vocabulary), 2 * ((length + 1) // 2)
    cases = list(algebra.cases(every_order=slots > 1))
    token, target, weight = (torch.zeros(len(cases) + 1, width, D) for _ in range(3))
    span = torch.zeros(len(cases) + 1, length, D)
    expressions = 0
    for at, (o, operands, value) in enumerate(cases):
        operator = algebra.first_operator + o
        symbols = span_tokens(algebra, operator, [FIRST_VALUE + i for i in operands])
        span[at, range(len(symbols)), symbols] = 1
        repeats = [factorial(operands.count(i)) for i in set(operands)]
        orders = 1 if slots > 1 else factorial(len(operands)) // prod(repeats)
        for row, symbol in enumerate(sorted(set(symbols))):
            token[at, row, symbol] = 1
            weight[at, row, :vocabulary] = orders * symbols.count(symbol)
            if symbol == operator:
                target[at, row, FIRST_VALUE + value] = 1
        expressions += orders
    # As many zero vectors as there are slots after `)`; one where the notation has none.
    weight[-1, 0, :vocabulary] = expressions if algebra.empty_after_close else 1
    return CaseRows(token, span, target, weight / weight.sum(), slots)


@torch.no_grad()
def rank_errors(rows: CaseRows, gates: Float[Tensor, "K d"]) -> Float[Tensor, " K"]:
    """Error of each rank gate: how well it distinguishes spans of depth 1 that have different
    values.

    The error of a gate is that of the best feedforward there could be behind it: one that gives
    each slot-wise bag the value that most spans with this bag have. It is 1 for a gate that counts
    nothing, under which `5-3` and `3-5` are one bag.
    """
    nothing = _undecided(rows, torch.zeros_like(gates[0]))
    distinct, back = torch.unique(gates, dim=0, return_inverse=True)
    found = torch.stack([_undecided(rows, gate) for gate in distinct])
    return (found / nothing.clamp(min=1))[back]


def _undecided(rows: CaseRows, gate: Tensor) -> Tensor:
    """Number of spans whose value is not the commonest one of their bag."""
    bags = rows.bags(gate)[:-1, 0].flatten(1)  # without the zero vector
    values = rows.target[:-1].sum(1)
    _, kind = torch.unique(hash_rows(bags.long()), return_inverse=True)
    counts = values.new_zeros(len(bags), values.shape[-1]).index_add_(0, kind, values)
    return len(bags) - counts.amax(-1).sum()
