"""Numbers the rows of a state: 0 is the zero vector, 1 + i is token i, larger ones are other rows.

Weights with a proof only produce zero rows and tokens. Other weights may leave several tokens in
one position; each such set gets a number when it first occurs.
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
    """Properties of each numbered row that the layer needs."""

    rows: Bool[Tensor, "N D"]  # rows as the feedforward leaves them after the threshold
    tokens: Float[Tensor, "N D"]  # rows as the layer reads them: dense ones are rounded
    gate: Int[Tensor, " N"]
    opens: Bool[Tensor, " N"]
    numbers: dict[bytes, int]  # numbers of the rows with several tokens

    @staticmethod
    def of(weights: Weights, dtype: torch.dtype) -> "Alphabet":
        D, device = weights.D, weights.device
        tokens = torch.arange(D, device=device)
        rows = torch.arange(EMPTY, D, device=device).unsqueeze(-1) == tokens
        return _described(rows, {}, weights, dtype)

    def number(
        self, Y: Bool[Tensor, "R D"], weights: Weights
    ) -> tuple["Alphabet", Int[Tensor, " R"]]:
        """The alphabet extended by the new rows of `Y`, and the number of each row."""
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
        """Value index of each of B sequences, or NO_VALUE, from the remaining rows `left` and the
        sequence of each: what `read_values` finds in a padded state.
        """
        held = (self.tokens > 0).sum(-1)
        value = self.tokens.argmax(-1) - FIRST_VALUE
        value[(value < 0) | (value >= len(algebra.values))] = NO_VALUE
        value[held == 0] = 0  # a zero row adds nothing, so that the sum is the only token's value
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
