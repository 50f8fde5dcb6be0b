"""The depth-1 expressions as the distinct cases they are made of.

What a position of a depth-1 expression receives depends on its token and on the bag of tokens, so
the whole set collapses to one row for each pair of these, weighted by how many positions it stands
for: the same loss and gradient at a fraction of the cost. One more row teaches that the zero vector
stays zero. Rows come bag by bag, each padded to the same number, so that a batch is a choice of
bags.

Tokens are padded to a multiple of LANE and rows to an even number. Then each seed's numbers start
on a cache line and fill whole pairs of vector registers, and its results have the same bits
whichever seeds are trained beside it.
"""

from dataclasses import dataclass
from math import factorial, prod

import torch
from jaxtyping import Float
from torch import Tensor

from exactformer.domains.algebra import CLOSE, OPEN, Algebra

LANE = 16


def padded(size: int) -> int:
    return -(-size // LANE) * LANE


@dataclass(frozen=True)
class Rows:
    """Every case of depth 1: B bags of w rows, and one last bag with the zero vector's row."""

    token: Float[Tensor, "B w D"]  # one-hot; zeros for filler and for the zero vector
    bag: Float[Tensor, "B w D"]  # how often each token is in the span
    target: Float[Tensor, "B w D"]
    weight: Float[Tensor, "B w D"]  # sums to 1; 0 for filler and beyond the vocabulary

    def to(self, device: torch.device | str) -> "Rows":
        return Rows(*(t.to(device) for t in (self.token, self.bag, self.target, self.weight)))


def depth_one_rows(algebra: Algebra) -> Rows:
    vocabulary = len(algebra.vocabulary)
    D, width = padded(vocabulary), 2 * ((3 + algebra.require_fan_in() + 1) // 2)
    n_bags = sum(len(op.table) for op in algebra.operators)
    token, bag, target, weight = (torch.zeros(n_bags + 1, width, D) for _ in range(4))
    at, expressions = 0, 0
    for o, operator in enumerate(algebra.operators, start=algebra.first_operator):
        for operands, value in operator.table.items():
            counts = torch.zeros(D)
            for symbol in (OPEN, CLOSE, o, *(2 + i for i in operands)):
                counts[symbol] += 1
            orders = factorial(len(operands)) // prod(
                factorial(operands.count(i)) for i in set(operands)
            )
            bag[at] = counts
            for row, symbol in enumerate(counts.nonzero().flatten().tolist()):
                token[at, row, symbol] = 1
                weight[at, row, :vocabulary] = orders * counts[symbol]
                if symbol == o:
                    target[at, row, 2 + value] = 1
            at, expressions = at + 1, expressions + orders
    # As many zero vectors as there are slots after `)`; one where the notation has none.
    weight[at, 0, :vocabulary] = expressions if algebra.closing_slot else 1
    return Rows(token, bag, target, weight / weight.sum())
