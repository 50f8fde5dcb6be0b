"""CRvNN (Ray Chowdhury and Caragea 2021): composition of neighbours, softened to be learned.

Every token has a probability p of still existing. At each step a scorer looks at a token, its two
nearest existing neighbours on each side and whether the token was just composed; the score,
against those of the left and right neighbours and of doing nothing, is the probability that the
token goes into its right neighbour now. That neighbour becomes Cell(left, itself) as far as it
happened. The last token is never consumed; it is read out when no other exists.

The seeds' axis S stands in front; b problems, n positions (the tokens between START and END).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from exactformer.baselines.looped import embedded, layer_norm, linear, random_linear, unit_norm
from exactformer.baselines.positions import Parameters
from exactformer.protocol.state import Inputs

TINY = 1e-9
DENSE = 256  # positions up to which every pair is looked at
CHUNK = 128  # and how many are looked at together past that


@dataclass(frozen=True)
class CRvNN:
    recordable: ClassVar[bool] = True

    vocabulary: int = 16
    values: int = 10
    width: int = 128
    feature: int = 64  # width of "was just composed"
    hidden: int = 512
    stop: float = 0.01  # a token with a smaller p does not exist
    halt_penalty: float = 0.01
    input_dropout: float = 0.3
    cell_dropout: float = 0.1
    output_dropout: float = 0.2

    def initial(self, generator: torch.Generator) -> Parameters:
        d = self.width
        vectors = {"start": d, "end": d, "composed": self.feature, "left_alone": self.feature}
        parameters: Parameters = {
            "embedding": torch.randn(self.vocabulary, d, generator=generator),
            **{name: torch.randn(size, generator=generator) for name, size in vectors.items()},
        }
        for name, i, o in (
            ("input", d, d),
            ("initial", d, d),
            ("window", 5 * d + self.feature, d),
            ("score", d, 1),
            ("cell_in", 2 * d, self.hidden),
            ("cell_out", self.hidden, 4 * d),
            ("read_out", d, self.values),
        ):
            parameters |= random_linear(name, i, o, generator)
        return parameters | unit_norm("norm", d)

    def forward(
        self, p: Mapping[str, Tensor], inputs: Inputs, training: bool = False
    ) -> tuple[Tensor, Tensor]:
        """Logits of the values, and a penalty for tokens that are left over.

        Depths are not used: the network stops by itself. In training it goes on to the last step
        that any problem could need, so that every batch does the same work.
        """
        tokens = inputs.tokens
        S, b, n = tokens.shape
        length = (tokens >= 0).sum(-1, keepdim=True)  # (S, b, 1)
        position = torch.arange(n + 2, device=tokens.device)
        inside = (position >= 1) & (position <= length)
        exists = position <= length + 1  # START and END too
        may_go = (inside & (position < length)).unsqueeze(-1)
        # The tokens' vectors between START and END: (S, b, n + 2, width).
        x = F.dropout(embedded(p, tokens), self.input_dropout, training)
        x = F.pad(linear(p, "input", x), (0, 0, 1, 1))
        x = torch.where(inside.unsqueeze(-1), x, 0.0)
        x = torch.where((position == 0).view(-1, 1), p["start"][:, None, None], x)
        x = torch.where((position == length + 1).unsqueeze(-1), p["end"][:, None, None], x)
        x = layer_norm(p, "norm", linear(p, "initial", x)) * exists.unsqueeze(-1)
        exist = exists.to(x.dtype)
        composed = torch.zeros_like(exist).unsqueeze(-1)
        running = torch.ones(S, b, 1, dtype=torch.bool, device=tokens.device)
        for t in range(1, n + 1):
            near = Neighbours(exist)
            left, right = near.left(x), near.right(x)
            share = self._share(p, x, near, left, right, composed, may_go)
            now = near.left(share) * inside.unsqueeze(-1)
            new = now * self.cell(p, left, x, training) + (1 - now) * x
            x = torch.where(running.unsqueeze(-1), new * exists.unsqueeze(-1), x)
            exist = torch.where(running, exist * (1 - share.squeeze(-1)), exist)
            composed = now
            left_over = (exist > self.stop).sum(-1, keepdim=True) - 2
            running = running & (left_over > 1) & (t < length)
            if not training and not running.any():
                break
        at_last = (position == length).to(x.dtype)
        answer = (x * at_last.unsqueeze(-1)).sum(2)
        logits = linear(p, "read_out", F.dropout(answer, self.output_dropout, training))
        rest = (exist * inside).sum(-1) + TINY
        penalty = -torch.log((exist * at_last).sum(-1) / rest + TINY)
        return logits, self.halt_penalty * penalty

    def _share(
        self,
        p: Mapping[str, Tensor],
        x: Tensor,
        near: "Neighbours",
        left: Tensor,
        right: Tensor,
        composed: Tensor,
        may_go: Tensor,
    ) -> Tensor:
        """The probability that each token goes into its right neighbour now: (S, b, n, 1)."""
        feature = (
            composed * p["composed"][:, None, None]
            + (1 - composed) * p["left_alone"][:, None, None]
        )
        window = torch.cat([near.left(left), left, x, right, near.right(right), feature], dim=-1)
        score = linear(p, "score", F.gelu(linear(p, "window", window)))
        top = score.amax(2, keepdim=True).clamp(min=0).detach()  # doing nothing scores 0
        go = torch.exp(score - top) * may_go
        return go / (go + torch.exp(-top) + near.left(go) + near.right(go) + TINY)

    def cell(self, p: Mapping[str, Tensor], left: Tensor, x: Tensor, training: bool) -> Tensor:
        hidden = F.gelu(linear(p, "cell_in", torch.cat([left, x], dim=-1)))
        out = linear(p, "cell_out", F.dropout(hidden, self.cell_dropout, training))
        gates, content = out[..., : 3 * self.width].sigmoid(), out[..., 3 * self.width :]
        forget_left, forget_own, take = gates.chunk(3, dim=-1)
        mixed = forget_left * left + forget_own * x + take * content
        return layer_norm(p, "norm", mixed)


class Neighbours:
    """For every position, the nearest existing token on its left and on its right, softly: j is it
    as far as j exists and nobody between does.

    Up to DENSE positions this is a matrix for each side. Past that it is one for each chunk, and
    what lies past a chunk comes in through one of the chunks: n * CHUNK pairs, and those of
    n / CHUNK chunks, in place of all n * n. The sums of logarithms are float64, since those of many
    sure tokens are large.
    """

    def __init__(self, exist: Tensor):
        self.positions = exist.shape[-1]
        self.chunk = self.positions if self.positions <= DENSE else CHUNK
        exist = self._chunked(exist.unsqueeze(-1)).squeeze(-1)  # (S, b, chunks, chunk)
        log_absent = torch.log((1 - exist).double() + TINY)
        found = exist.unsqueeze(-2)
        self.within = [found * gap.exp().to(exist.dtype) for gap in gaps(log_absent)]
        if exist.shape[-2] == 1:
            return
        chunk_absent = log_absent.sum(-1, keepdim=True)
        before = log_absent.cumsum(-1) - log_absent
        after = chunk_absent - before - log_absent
        # Of a token, what is seen past its chunk; of what lies past the chunk, what a token sees.
        self.out = [exist * gap.exp().to(exist.dtype) for gap in (after, before)]
        self.across = [gap.exp().to(exist.dtype) for gap in gaps(chunk_absent.squeeze(-1))]
        self.into = [gap.exp().to(exist.dtype) for gap in (before, after)]

    def left(self, x: Tensor) -> Tensor:
        """Each position's left neighbour in x (S, b, positions, width)."""
        return self._of_side(0, x)

    def right(self, x: Tensor) -> Tensor:
        return self._of_side(1, x)

    def _of_side(self, side: int, x: Tensor) -> Tensor:
        x = self._chunked(x)
        near = self.within[side] @ x
        if x.shape[-3] > 1:
            seen = (self.out[side].unsqueeze(-2) @ x).squeeze(-2)  # (S, b, chunks, width)
            far = (self.across[side] @ seen).unsqueeze(-2)
            near = near + self.into[side].unsqueeze(-1) * far
        return near.flatten(-3, -2)[..., : self.positions, :]

    def _chunked(self, x: Tensor) -> Tensor:
        """(S, b, positions, width) as (S, b, chunks, chunk, width), the last chunk filled up."""
        return F.pad(x, (0, 0, 0, -self.positions % self.chunk)).unflatten(-2, (-1, self.chunk))


def gaps(log_absent: Tensor) -> tuple[Tensor, Tensor]:
    """[i, j]: the logarithm of the probability that nobody exists between i and j, for j on the
    left of i, and for j on its right; minus infinity elsewhere.
    """
    n = log_absent.shape[-1]
    total = log_absent.cumsum(-1)
    before = total - log_absent
    after = torch.ones(n, n, dtype=torch.bool, device=log_absent.device).triu(1)  # j > i
    right = torch.where(after, before.unsqueeze(-2) - total.unsqueeze(-1), -torch.inf)
    left = torch.where(after.T, before.unsqueeze(-1) - total.unsqueeze(-2), -torch.inf)
    return left, right
