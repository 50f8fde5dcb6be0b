"""Rows of a state by number: 0 is the zero vector, 1 + i is token i, what else comes up follows.

Weights with a proof turn rows into rows of these kinds. Others may leave several tokens in one
position, each set of which gets a number when it is first seen.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from exactformer.domains.algebra import FIRST_VALUE, OPEN, Algebra
from exactformer.domains.expression import EMPTY
from exactformer.model.circuit import Weights, gated, read_tokens, write_tokens
from exactformer.model.encode import NO_VALUE


class Alphabet(NamedTuple):
    """What the layer has to know of each number."""

    rows: Bool[Tensor, "N D"]  # as the feedforward leaves them after the threshold
    tokens: Float[Tensor, "N D"]  # as the layer reads them: the same, but for what dense vectors do
    gate: Int[Tensor, " N"]
    opens: Bool[Tensor, " N"]
    numbers: dict[bytes, int]  # of the rows with several tokens

    @staticmethod
    def of(weights: Weights, dtype: torch.dtype) -> "Alphabet":
        D, device = weights.G_PE.shape[-1], weights.G_PE.device
        tokens = torch.arange(D, device=device)
        rows = torch.arange(EMPTY, D, device=device).unsqueeze(-1) == tokens
        return _described(rows, {}, weights, dtype)

    def number(
        self, Y: Bool[Tensor, "R D"], weights: Weights
    ) -> tuple["Alphabet", Int[Tensor, " R"]]:
        """The number of each row; and the alphabet with those that are new."""
        held = Y.sum(-1)
        number = torch.where(held > 0, 1 + Y.byte().argmax(-1), 0)
        several = (held > 1).nonzero().squeeze(-1)
        if not len(several):
            return self, number.int()
        rows, which = Y[several].unique(dim=0, return_inverse=True)
        keys = [row.tobytes() for row in rows.cpu().numpy()]
        new = [i for i, key in enumerate(keys) if key not in self.numbers]
        numbers = self.numbers | {keys[i]: len(self.rows) + j for j, i in enumerate(new)}
        found = torch.tensor([numbers[key] for key in keys], device=Y.device)
        number[several] = found[which]
        rows = torch.cat([self.rows, rows[new]])
        return _described(rows, numbers, weights, self.tokens.dtype), number.int()

    def values(
        self, left: Int[Tensor, " l"], sequence: Int[Tensor, " l"], B: int, algebra: Algebra
    ) -> Int[Tensor, " B"]:
        """As `read_values`, of the rows that are left and the sequence of each."""
        held = (self.tokens > 0).sum(-1)
        value = self.tokens.argmax(-1) - FIRST_VALUE
        value[(value < 0) | (value >= len(algebra.values))] = NO_VALUE
        value[held == 0] = 0  # what adds nothing, so that the only token's value is the sum
        count, found = (
            torch.zeros(B, dtype=torch.int64, device=left.device).index_add_(0, sequence, of[left])
            for of in (held, value)
        )
        return torch.where(count == 1, found, NO_VALUE)


def _described(
    rows: Tensor, numbers: dict[bytes, int], weights: Weights, dtype: torch.dtype
) -> Alphabet:
    tokens = read_tokens(write_tokens(rows.to(dtype), weights), weights)
    gate = gated(tokens, weights.G_PE).int()
    return Alphabet(rows, tokens, gate, tokens[:, OPEN] > 0, numbers)
