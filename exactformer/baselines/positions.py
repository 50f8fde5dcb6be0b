"""Three ways to tell a transformer where its tokens stand, behind one interface.

Every parameter has the seeds in front. Shapes: S seeds, b problems, n tokens, d_h a head's width.

A positional encoding may add to the input embedding (`embedding`), turn queries and keys
(`rotated`), or add to the attention's logits (`bias`); by default it does none of them.
"""

from collections.abc import Callable, Mapping
from typing import ClassVar

import torch
from torch import Tensor

from exactformer.protocol.state import Parameters

AT_ONCE = 1 << 28  # numbers that FIRE's hidden units hold together, so that long texts fit
CACHED = 1 << 14  # distances that are mapped together: faster, as they stay in the CPU's cache


class Positions:
    """A network without positions, and the base class of the other kinds."""

    relative: ClassVar[bool] = False  # whether attention itself depends on positions

    def initial(self, width: int, heads: int, generator: torch.Generator) -> Parameters:
        """The parameters of one seed, without the seeds' axis."""
        return {}

    def embedding(self, parameters: Mapping[str, Tensor], length: int) -> Tensor | float:
        """Added to the tokens' embedding: (S, 1, n, width)."""
        return 0.0

    def rotated(self, x: Tensor) -> Tensor:
        """Queries or keys, (S, b, heads, n, d_h), turned by their positions."""
        return x

    def bias(self, parameters: Mapping[str, Tensor], length: int) -> Tensor | float:
        """Added to the attention's logits: (S, 1, heads, n, n), row i for the query at i."""
        return 0.0

    def bias_of(
        self, parameters: Mapping[str, Tensor], length: int, queries: slice
    ) -> Tensor | None:
        """Rows of the attention bias, (S, heads, queries, n), up to a constant; None if there is no
        bias.
        """
        return None


class Learned(Positions):
    """A vector for each position. Those past the training lengths keep their random start.

    The table has `limit` rows; a position beyond them takes the last.
    """

    def __init__(self, limit: int = 1024) -> None:
        self.limit = limit

    def initial(self, width: int, heads: int, generator: torch.Generator) -> Parameters:
        return {"positions/table": 0.1 * torch.randn(self.limit, width, generator=generator)}

    def embedding(self, parameters: Mapping[str, Tensor], length: int) -> Tensor:
        table = parameters["positions/table"]
        rows = table[:, : min(length, self.limit)]
        if length > self.limit:
            last = table[:, -1:].expand(-1, length - self.limit, -1)
            rows = torch.cat([rows, last], dim=1)
        return rows.unsqueeze(1)


class RoPE(Positions):
    """Su et al. 2022: the k-th pair of a head's coordinates turned by i · base^(-2k/d_h)."""

    relative = True
    BASE = 10_000.0

    def rotated(self, x: Tensor) -> Tensor:
        n, half = x.shape[-2], x.shape[-1] // 2
        rates = self.BASE ** (-torch.arange(half, device=x.device) / half)
        angles = torch.arange(n, device=x.device)[:, None] * rates
        cos, sin = angles.cos(), angles.sin()
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * cos - second * sin, first * sin + second * cos], dim=-1)


class FIRE(Positions):
    """Li et al. 2024: b(i, j) = f( ψ(|i-j|) / ψ(max(L, i)) ), ψ(x) = log(c·x + 1).

    f is Linear(1, 32), ReLU, Linear(32, heads). c and L are learned and used by their absolute
    values; L is stored as a multiple of its start. The attention here looks both ways, so the
    distance is |i-j|: the bias does not tell left from right.
    """

    relative = True

    def __init__(self, c: float = 0.1, L: float = 512.0, hidden: int = 32) -> None:
        self.c, self.L, self.hidden = c, L, hidden

    def initial(self, width: int, heads: int, generator: torch.Generator) -> Parameters:
        scale = self.hidden**-0.5
        return {
            "positions/c": torch.tensor(self.c),
            "positions/L": torch.tensor(1.0),
            "positions/W_1": torch.randn(self.hidden, generator=generator),
            "positions/b_1": torch.randn(self.hidden, generator=generator),
            "positions/W_2": scale * torch.randn(self.hidden, heads, generator=generator),
            "positions/b_2": torch.zeros(heads),
        }

    def bias(self, parameters: Mapping[str, Tensor], length: int) -> Tensor:
        names = ("c", "L", "W_1", "b_1", "W_2", "b_2")
        c, L, W_1, b_1, W_2, b_2 = (parameters[f"positions/{name}"] for name in names)
        c, L = c.abs()[:, None, None], (self.L * L).abs()[:, None, None]
        i = torch.arange(length, device=c.device, dtype=c.dtype)
        distance = (i[:, None] - i[None, :]).abs()
        reach = torch.maximum(i[None, :, None], L)
        ratio = torch.log(c * distance + 1) / torch.log(c * reach + 1)  # (S, n, n)
        S, n = len(c), length

        def mapped(rows: Tensor) -> Tensor:
            """f of some rows of the ratio, (S, heads, rows, n)."""
            hidden = torch.relu(rows.reshape(S, -1, 1) * W_1[:, None] + b_1[:, None])
            out = torch.baddbmm(b_2[:, None], hidden, W_2)  # (S, rows·n, heads)
            return out.reshape(S, -1, n, out.shape[-1]).permute(0, 3, 1, 2)

        rows = max(1, AT_ONCE // (S * n * self.hidden))
        return torch.cat([mapped(part) for part in ratio.split(rows, 1)], 2).unsqueeze(1)

    def bias_of(self, parameters: Mapping[str, Tensor], length: int, queries: slice) -> Tensor:
        """Rows of the attention bias. Up to a constant, which softmax ignores, f(r) is a sum of
        slope · max(r, kink). So a row uses the same ψ of all distances as every other row, and
        scales the kinks.
        """
        names = ("c", "L", "W_1", "b_1", "W_2")
        c, L, W_1, b_1, W_2 = (parameters[f"positions/{name}"] for name in names)
        c, L = c.abs()[:, None], (self.L * L).abs()[:, None]
        i = torch.arange(length, device=c.device, dtype=c.dtype)
        near = torch.log(c * i + 1)  # (S, n)
        far = torch.log(c * torch.maximum(i[queries], L) + 1)  # (S, queries)
        most = near[:, -1:] / torch.log(c * L + 1)
        # relu(w·r + b) = |w| max(r, -b/w) + min(w, 0) r + a constant, and r is from 0 to `most`.
        kinks = (-b_1 / W_1).nan_to_num().clamp(min=0).minimum(most)  # (S, hidden)
        slopes = W_1.abs()[:, :, None] * W_2  # (S, hidden, heads)
        inner = ((kinks > 0) & (kinks < most)).any(0)
        straight = W_1.clamp(max=0) + W_1.abs() * (~inner & (kinks == 0))
        slopes = torch.cat([straight[:, None] @ W_2, slopes[:, inner]], 1).transpose(1, 2)
        kinks = torch.cat([torch.zeros_like(most), kinks[:, inner]], 1)[:, :, None]
        apart = torch.cat([near.flip(1), near[:, 1:]], 1)[:, None]  # from -(n-1) to n-1
        bias = near.new_empty(len(c), slopes.shape[1], far.shape[1], length)
        for row, query in enumerate(range(length)[queries]):
            scale = far[:, row, None, None]
            distances = apart[..., length - 1 - query : 2 * length - 1 - query]
            outs = bias[:, :, row].split(CACHED, -1)
            for part, out in zip(distances.split(CACHED, -1), outs, strict=True):
                torch.bmm(slopes / scale, torch.maximum(part, kinks * scale), out=out)
        return bias


ENCODINGS: dict[str, Callable[[], Positions]] = {"learned": Learned, "rope": RoPE, "fire": FIRE}
