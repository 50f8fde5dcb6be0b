"""The kinds of local map: a perceptron with one hidden layer, a look-up table, and gated units."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from exactformer.model.architecture import Activation
from exactformer.model.exact import RowByRow, in_float32, product, wants_gradient
from exactformer.model.remembered import Remembering, remembered, tensors_of


def hash_rows(rows: Int[Tensor, "R d"]) -> Int[Tensor, " R"]:
    """A 64-bit hash of each row of whole numbers; it overflows on purpose."""
    odd = torch.tensor(0x9E3779B97F4A7C15 - (1 << 64), device=rows.device)
    return (rows * odd ** torch.arange(1, rows.shape[-1] + 1, device=rows.device)).sum(-1)


@dataclass(frozen=True)
class _OfRows(Remembering, ABC):
    """A feedforward: a map of single rows, `_rows`, that is made of tensors. A weights file lists
    those under its kind.
    """

    kind: ClassVar[str]

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors by the names of their fields."""
        return tensors_of(self)

    def __call__(self, H: Float[Tensor, "... n SD"]) -> Float[Tensor, "... n D"]:
        """In float32, with the signs of what `_rows` gives."""
        if wants_gradient(*self.tensors.values()):  # which no copy of them would be given
            return RowByRow(self._in_float32)(H)
        return self._row_by_row(H)

    @remembered
    def _row_by_row(self) -> RowByRow:
        return RowByRow(self._in_float32)

    def _in_float32(self, H: Tensor) -> Tensor:
        return in_float32(self._rows(H))

    @abstractmethod
    def _rows(self, H: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class MLP(_OfRows):
    """f(H) = act(H W_1 + b_1) W_2 + b_2."""

    kind = "perceptron"
    W_1: Float[Tensor, "... SD m"]
    b_1: Float[Tensor, "... m"]
    W_2: Float[Tensor, "... m D"]
    b_2: Float[Tensor, "... D"]
    activation: Activation

    @property
    def width(self) -> int:
        """Number of outputs."""
        return self.W_2.shape[-1]

    @property
    def slots(self) -> int:
        return self.W_1.shape[-2] // self.width

    def __call__(self, H: Float[Tensor, "... n SD"]) -> Float[Tensor, "... n D"]:
        """The outputs in float32, with the signs of a float64 computation that no setting of torch
        changes: this is the function that a proof covers. Weights of many seeds at once are in
        training, where no proof applies yet, and use `in_training`.
        """
        return super().__call__(H) if self.W_1.dim() == 2 else self.in_training(H)

    def in_training(self, H: Float[Tensor, "... n SD"]) -> Float[Tensor, "... n D"]:
        """The outputs by float32 matrix products: fast, and only as exact as torch is set to be."""
        with torch.autocast(H.device.type, enabled=False):
            hidden = H.to(self.W_1.dtype) @ self.W_1 + self.b_1.unsqueeze(-2)
            return self._activated(hidden) @ self.W_2 + self.b_2.unsqueeze(-2)

    def _rows(self, H: Tensor) -> Tensor:
        hidden = self._activated(product(H, self.W_1) + self.b_1)
        return product(hidden, self.W_2) + self.b_2

    def _activated(self, hidden: Tensor) -> Tensor:
        return hidden.square() if self.activation == "square" else hidden.relu()


@dataclass(frozen=True)
class Table(_OfRows):
    """f(H) is 1/2 on the output tokens of the bag that equals H, and -1/2 elsewhere.

    Bags are found by a 64-bit hash among sorted ones, then compared in full.
    """

    kind = "table"
    bags: Int[Tensor, "R SD"]
    outputs: Int[Tensor, "R D"]

    def __post_init__(self) -> None:
        _ = self._sorted  # refuse a table with colliding hashes here

    @property
    def width(self) -> int:
        """Number of outputs."""
        return self.outputs.shape[-1]

    @property
    def slots(self) -> int:
        return self.bags.shape[-1] // self.width

    @remembered
    def _sorted(self) -> tuple[Tensor, Tensor]:
        """Sorted hashes of the bags, and the index of the bag of each."""
        hashes, order = hash_rows(self.bags.to(torch.int64)).sort()
        if len(hashes.unique()) < len(hashes):
            raise ValueError("two bags of the table share one hash")
        return hashes, order

    def _rows(self, H: Tensor) -> Tensor:
        H = H.to(torch.int64)
        hashes, order = self._sorted
        found = order[torch.searchsorted(hashes, hash_rows(H)).clamp(max=len(order) - 1)]
        same = (self.bags[found] == H).all(-1, keepdim=True)
        return (self.outputs[found] * same).float() - 0.5


@dataclass(frozen=True)
class Units(_OfRows):
    """f(H) is 1/2 on the token that the operator in H reads out for its code, and -1/2 elsewhere.

    Each operator condenses its operands into one whole number, its code, as `domains/units.py`
    says. Its own token in H gates what it reads out, so that another operator's operands, however
    many, cannot leak into it. Every number is whole and within what float64 holds.
    """

    kind = "units"
    W: Int[Tensor, "SD m"]
    b: Int[Tensor, " m"]
    cap: Int[Tensor, " m"]
    period: Int[Tensor, " m"]  # 0 for a unit with a cap
    code: Int[Tensor, "m O"]  # weight of a unit in each operator's code
    readout: Int[Tensor, "O C"]  # the token for each code; -1 if there is none
    D: int

    @property
    def slots(self) -> int:
        return len(self.W) // self.D

    def _rows(self, H: Tensor) -> Tensor:
        n_operators, n_codes = self.readout.shape
        H = H.double()
        u = product(H, self.W) + self.b
        cut = u.clamp(min=0).minimum(self.cap.double())
        g = torch.where(self.period > 0, u.remainder(self.period.clamp(min=1)), cut)
        code = product(g, self.code).long()
        known = (code >= 0) & (code < n_codes)
        token = self.readout.T.gather(0, code.clamp(0, n_codes - 1)).long()
        gate = H[:, self.D - n_operators : self.D] * (known & (token >= 0))
        return H.new_zeros(len(H), self.D).scatter_add_(1, token.clamp(min=0), gate).float() - 0.5
