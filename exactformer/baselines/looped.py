"""The looped transformer (Fan et al. 2025): one block, run as many times as the problem is deep.

    h_0 = 0,   h_{t+1} = Block(h_t + E(x)),   Block(x) = y + MLP(LN(y)),  y = x + Attention(LN(x))

The input embedding is added again at every step. Attention is softmax over all tokens, both ways,
with learned W_Q, W_K, W_V and W_O. The value is read off the last token, the outermost `)`, by a
layer norm and a linear map onto the algebra's values.

The seeds' axis S stands in front of every parameter and every activation.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from exactformer.baselines.positions import Parameters, Positions
from exactformer.protocol.state import Inputs

# What each query gets; queries, keys and values are (S, b, heads, n, d_h): b problems, n tokens.
Attend = Callable[[Tensor, Tensor, Tensor], Tensor]

BLOCK = 1 << 26  # numbers of a bias that are made together: 256 MiB
KEPT = 1 << 28  # all of a bias, if it is kept for the next step: 1 GiB


def linear(p: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    """Each seed's own map: (S, ..., i) by (S, i, o) plus (S, o)."""
    flat = x.reshape(len(x), -1, x.shape[-1])
    product = torch.baddbmm(p[f"{name}/bias"].unsqueeze(1), flat, p[f"{name}/weight"])
    return product.reshape(*x.shape[:-1], -1)


def layer_norm(p: Mapping[str, Tensor], name: str, x: Tensor) -> Tensor:
    shape = (len(x), *[1] * (x.dim() - 2), x.shape[-1])
    gain, shift = (p[f"{name}/{part}"].view(shape) for part in ("gain", "shift"))
    return F.layer_norm(x, x.shape[-1:]) * gain + shift


def embedded(p: Mapping[str, Tensor], tokens: Tensor) -> Tensor:
    """The tokens' vectors, (S, b, n, width); zero for the padding, whose id is negative. A product
    with one-hot rows has a repeatable gradient.
    """
    table = p["embedding"]
    hot = tokens.unsqueeze(-1) == torch.arange(table.shape[1], device=tokens.device)
    return torch.bmm(hot.flatten(1, 2).to(table.dtype), table).view(*tokens.shape, -1)


def random_linear(name: str, i: int, o: int, generator: torch.Generator) -> Parameters:
    weight = i**-0.5 * torch.randn(i, o, generator=generator)
    return {f"{name}/weight": weight, f"{name}/bias": torch.zeros(o)}


def unit_norm(name: str, width: int) -> Parameters:
    return {f"{name}/gain": torch.ones(width), f"{name}/shift": torch.zeros(width)}


def over_batch(bias: Tensor, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention all at once, with (S, b, heads or 1, n, n) added to the logits."""
    logits = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5 + bias
    return logits.softmax(-1) @ v


def over_one(bias: Callable[[slice], Tensor | None], row: int, length: int) -> Attend:
    """Attention of one problem, b = 1, by blocks of queries: no matrix of all its pairs of tokens
    is made. It has no gradient.

    `bias` gives what is added to the logits of some queries, (S, heads or 1, queries, n), in which
    each of them has `row` numbers. If all of it is small it is made once.
    """
    size = max(1, BLOCK // row)
    blocks = [slice(first, first + size) for first in range(0, length, size)]
    kept = [bias(block) for block in blocks] if row * length <= KEPT else None

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k, v = q.squeeze(1), k.squeeze(1), v.squeeze(1)
        biases = kept or map(bias, blocks)
        parts = [
            F.scaled_dot_product_attention(q[:, :, block], k, v, attn_mask=added)
            for block, added in zip(blocks, biases, strict=True)
        ]
        return torch.cat(parts, 2).unsqueeze(1)

    return attend


@dataclass(frozen=True)
class Looped:
    recordable: ClassVar[bool] = True

    vocabulary: int
    values: int
    positions: Positions = field(default_factory=Positions)
    width: int = 128
    heads: int = 4
    hidden: int = 512

    def initial(self, generator: torch.Generator) -> Parameters:
        d = self.width
        parameters: Parameters = {
            "embedding": 0.1 * torch.randn(self.vocabulary, d, generator=generator)
        }
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            parameters |= random_linear(name, d, d, generator)
        parameters |= random_linear("mlp_in", d, self.hidden, generator)
        parameters |= random_linear("mlp_out", self.hidden, d, generator)
        parameters |= random_linear("read_out", d, self.values, generator)
        for name in ("norm_attention", "norm_mlp", "norm_out"):
            parameters |= unit_norm(name, d)
        return parameters | self.positions.initial(d, self.heads, generator)

    def forward(
        self, p: Mapping[str, Tensor], inputs: Inputs, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Logits of the values after as many steps as a problem is deep, and no penalty."""
        tokens, depths, steps = inputs
        S, b, n = tokens.shape
        inside = tokens >= 0
        E = embedded(p, tokens) + self.positions.embedding(p, n)
        last = (inside.sum(-1) - 1).clamp(min=0)
        if torch.is_grad_enabled() or b > 1 or not inside.all():
            bias = self.positions.bias(p, n)
            bias = torch.where(inside[:, :, None, None, :], bias, -1e9)  # (S, b, heads or 1, n, n)
            attend = partial(over_batch, bias)
        elif self.positions.relative:
            attend = over_one(partial(self.positions.bias_of, p, n), S * self.heads * n, n)
        else:  # tokens with the same vector keep the same: one stands for all, times their number
            E, place, number = E.unique(dim=2, return_inverse=True, return_counts=True)
            last, times = place[last], number.log().expand(1, 1, 1, -1)
            attend = over_one(lambda _: times, len(number), len(number))
        last = last[:, :, None, None].expand(S, b, 1, self.width)
        h = torch.zeros_like(E)
        answer = E.new_zeros(S, b, self.width)
        for t in range(1, steps + 1):
            h = self.block(p, h + E, attend)
            answer = torch.where((depths == t)[:, :, None], h.gather(2, last).squeeze(2), answer)
        logits = linear(p, "read_out", layer_norm(p, "norm_out", answer))
        return logits, logits.new_zeros(S, b)

    def block(self, p: Mapping[str, Tensor], x: Tensor, attend: Attend) -> Tensor:
        x = x + self.attention(p, layer_norm(p, "norm_attention", x), attend)
        hidden = F.gelu(linear(p, "mlp_in", layer_norm(p, "norm_mlp", x)))
        return x + linear(p, "mlp_out", hidden)

    def attention(self, p: Mapping[str, Tensor], x: Tensor, attend: Attend) -> Tensor:
        S, b, n, d = x.shape
        q, k, v = (
            linear(p, name, x).view(S, b, n, self.heads, -1).transpose(2, 3)
            for name in ("W_Q", "W_K", "W_V")
        )
        q, k = self.positions.rotated(q), self.positions.rotated(k)
        mixed = attend(q, k, v).transpose(2, 3).reshape(S, b, n, d)
        return linear(p, "W_O", mixed)
