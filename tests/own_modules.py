"""Modules such as a user may come with."""

import torch
from torch import Tensor, nn

from exactformer.domains.algebra import Algebra


class Recurrent(nn.Module):
    """An LSTM or a GRU; the answer is read off its state at the last token."""

    def __init__(
        self, algebra: Algebra, cell: type[nn.LSTM | nn.GRU] = nn.LSTM, width: int = 16
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(algebra.vocabulary), width)
        self.cell = cell(input_size=width, hidden_size=width, batch_first=True)
        self.out = nn.Linear(width, len(algebra.values))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states, _ = self.cell(self.embedding(tokens))
        return self.out(states[torch.arange(len(states)), mask.sum(1) - 1])


class Encoder(nn.Module):
    """An encoder layer of torch, used twice; the answer is read off the mean."""

    def __init__(self, algebra: Algebra, width: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(len(algebra.vocabulary), width)
        self.places = nn.Embedding(64, width)
        self.layer = nn.TransformerEncoderLayer(width, 2, 32, dropout, batch_first=True)
        self.out = nn.Linear(width, len(algebra.values))

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device) % 64
        x = self.embedding(tokens) + self.places(places)
        for _ in range(2):
            x = self.layer(x, src_key_padding_mask=~mask)
        return self.out((x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True))
