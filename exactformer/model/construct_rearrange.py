"""Weights for any rearrangement, written down: a row of the feedforward for each bag."""

import torch
from torch import Tensor

from exactformer.domains.bounds import MOST_HIDDEN, MOST_NUMBERS, require
from exactformer.domains.data import suggestion
from exactformer.domains.rearrangements import NOTHING, Rearrangement
from exactformer.model.feedforward import MLP, Table
from exactformer.model.rearrange import RearrangeWeights

FEW_NUMBERS = 1 << 16  # of all bags up to which the perceptron in closed form is tried first
MOST_CODED = 12  # tokens in pairs whose codes are within what float32 adds exactly: 2 * 3^12 < 2^23


def made(domain: Rearrangement, kind: str | None, dense: bool) -> tuple[str, RearrangeWeights]:
    """The weights, with the name of the feedforward; the first that is possible for None."""
    if dense:
        raise ValueError(f"{domain.name!r}: only one-hot vectors are for rearrangements")
    if kind not in (None, "closed", "table"):
        hint = suggestion(kind, ("closed", "table"))
        raise ValueError(
            f"expected feedforward closed or table for a rearrangement, found {kind!r}{hint}"
        )
    H, Y = _rows(domain)
    coded = domain.max_fan_in == 1 or int(domain.has_place.sum()) <= MOST_CODED
    if kind == "closed" and not coded:
        raise ValueError(
            f"pairs of {domain.name!r} are of more than {MOST_CODED} symbols: use the table instead"
        )
    kind = kind or ("closed" if coded and H.numel() <= FEW_NUMBERS else "table")
    if kind == "table":
        f: MLP | Table = Table(H.to(torch.int16), Y.to(torch.int8))
    else:
        f = _of_tokens(H, Y) if domain.max_fan_in == 1 else _of_pairs(H, Y)
    counted = None if domain.counted is None else torch.tensor(domain.counted).long()
    return kind, RearrangeWeights(torch.tensor(domain.has_place).float(), f, G_C=counted)


def _rows(domain: Rearrangement) -> tuple[Tensor, Tensor]:
    """Bags for which something is written, and that."""
    written = {bag: token for bag, token in domain.bags.items() if token != NOTHING}
    D = len(domain.vocabulary)
    require(f"bags of {domain.name!r}", len(written), MOST_HIDDEN)
    require(f"numbers of the bags of {domain.name!r}", len(written) * D, MOST_NUMBERS)
    H, Y = torch.zeros(2, len(written), D)
    for row, (bag, token) in enumerate(written.items()):
        for part in bag:
            H[row, part] += 1
        Y[row, token] = 1
    return H, Y


def _of_tokens(H: Tensor, Y: Tensor) -> MLP:
    """A hidden unit for each token, which is 1 for it and 0 for others and for nothing."""
    return _perceptron(H.T, torch.zeros(len(H)), Y)


def _of_pairs(H: Tensor, Y: Tensor) -> MLP:
    """Three units for each pair. Powers of three are codes of tokens with which no two bags of up
    to two tokens have one sum s; for the pair with the sum c, relu(s - c + 1) - 2 relu(s - c) +
    relu(s - c - 1) is 1, and it is 0 for all others.
    """
    tokens = H.any(0).nonzero().squeeze(-1)
    codes = torch.zeros(H.shape[1], dtype=H.dtype)
    codes[tokens] = 3.0 ** torch.arange(len(tokens))
    shift = torch.tensor([1.0, 0.0, -1.0]).repeat(len(H))
    sums = (H @ codes).repeat_interleave(3)
    parts = torch.tensor([1.0, -2.0, 1.0]).repeat(len(H)).unsqueeze(-1)
    return _perceptron(
        codes.unsqueeze(-1).expand(-1, 3 * len(H)), shift - sums, parts * Y.repeat_interleave(3, 0)
    )


def _perceptron(W_1: Tensor, b_1: Tensor, Y: Tensor) -> MLP:
    b_2 = torch.full((Y.shape[1],), -0.5)
    return MLP(W_1.contiguous(), b_1, Y.contiguous(), b_2, activation="relu")
