"""Converts expressions to states, and states to values."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.domain import Domain
from exactformer.domains.expression import EMPTY, Expression
from exactformer.model.circuit import Weights, read_tokens, write_tokens
from exactformer.model.gated import Gated

NO_VALUE = -1

# Number of operands of one span up to which each format counts exactly.
MOST_OPERANDS = {torch.float32: 2**24, torch.float16: 2**11, torch.bfloat16: 2**8}


def flat_positions(
    expressions: Sequence[Expression],
) -> tuple[NDArray[np.int16], NDArray[np.int64]]:
    """The positions (`Expression.positions`) of expressions of one domain, one after another, and
    the length of each.
    """
    ids = np.concatenate([expression.ids for expression in expressions])
    lengths = np.array([len(expression.ids) for expression in expressions])
    return expressions[0].domain.positions(ids, lengths)


def pad_slots(expressions: Sequence[Expression]) -> tuple[Int[Tensor, "B n"], Bool[Tensor, "B n"]]:
    """Token ids of a batch padded with EMPTY, and the mask of the positions that are not
    padding.
    """
    return padded(*(torch.from_numpy(part) for part in flat_positions(expressions)))


def padded(
    ids: Int[Tensor, " t"], lengths: Int[Tensor, " B"]
) -> tuple[Int[Tensor, "B n"], Bool[Tensor, "B n"]]:
    """Sequences of token ids that are stored one after another, padded with EMPTY, and the mask of
    the positions that are not padding.
    """
    inside = torch.arange(int(lengths.max()), device=ids.device) < lengths.unsqueeze(-1)
    return ids.new_full(inside.shape, EMPTY).masked_scatter_(inside, ids), inside


def encode(
    ids: Int[Tensor, "... n"], D: int, dtype: torch.dtype = torch.float32
) -> Float[Tensor, "... n D"]:
    """One-hot rows of token ids; EMPTY becomes a zero row."""
    return (ids.unsqueeze(-1) == torch.arange(D, device=ids.device, dtype=ids.dtype)).to(dtype)


def initial_state(
    expressions: Sequence[Expression], weights: Gated, dtype: torch.dtype = torch.float32
) -> tuple[Float[Tensor, "B n D"], Bool[Tensor, "B n"]]:
    """The initial state of a batch and the mask of its positions, on the device of the weights."""
    require_countable(expressions, dtype)
    ids, inside = pad_slots(expressions)
    return state_of(ids.to(weights.device), inside.to(weights.device), weights, dtype)


def state_of(
    ids: Int[Tensor, "B n"],
    inside: Bool[Tensor, "B n"],
    weights: Gated,
    dtype: torch.dtype = torch.float32,
) -> tuple[Float[Tensor, "B n D"], Bool[Tensor, "B n"]]:
    """The initial state of padded sequences of token ids, and their mask as it is."""
    return write_tokens(encode(ids, weights.D, dtype), weights), inside


def require_countable(expressions: Sequence[Expression], dtype: torch.dtype) -> None:
    """Raise a ValueError if a span has more operands than the format counts exactly."""
    most = MOST_OPERANDS.get(dtype, 0)
    if not most:
        raise ValueError(f"expected float32, float16 or bfloat16, found {dtype}")
    for expression in expressions if max(len(e.ids) for e in expressions) > most else ():
        bound = expression.domain.max_fan_in
        if (bound is not None and bound <= most) or len(expression) <= most:
            continue
        if (widest := expression.widest) > most:
            raise ValueError(
                f"a span of {expression!r} has {widest} operands: {dtype} counts {most}"
            )


def read_answers(X: Float[Tensor, "B n D"], weights: Gated, domain: Domain) -> list[str | None]:
    """The answer that is left in each sequence; None if what is left is no answer. A row with two
    tokens counts as two tokens.
    """
    sequence, _, token = (read_tokens(X, weights) > 0).nonzero().cpu().numpy().T
    return domain.answers(token, np.bincount(sequence, minlength=len(X)))


def read_values(
    X: Float[Tensor, "... n D"], weights: Weights, algebra: Algebra
) -> Int[Tensor, "..."]:
    """Index of the value that is left in each sequence; NO_VALUE unless it is the only token.

    The paper pools with a maximum over positions. Counting instead also sees a token left over in
    a second position, which would make the answer of a larger expression wrong.
    """
    counts = (read_tokens(X, weights) > 0).sum(-2)
    values = counts[..., FIRST_VALUE : algebra.first_operator]
    single = (counts.sum(-1) == 1) & (values.sum(-1) == 1)
    return torch.where(single, values.argmax(-1), NO_VALUE)
