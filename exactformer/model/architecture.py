"""The sizes of the paper's transformer for an algebra. No torch in here, so `info` starts fast."""

from dataclasses import dataclass
from typing import Literal

from exactformer.domains.algebra import Algebra
from exactformer.domains.units import slots_of

Activation = Literal["square", "relu"]


@dataclass(frozen=True)
class Architecture:
    """Sizes of a model: D tokens, attention width d_h, hidden units, and slots (1 if order does not
    matter).
    """

    D: int
    d_h: int
    hidden: int
    activation: Activation
    slots: int = 1

    @property
    def parameters(self) -> int:
        """Number of parameters: gate, W_Q and W_K, and the feedforward with its biases; W_V is
        fixed. If order matters there is a second gate, and the feedforward reads a bag in each
        slot.
        """
        gates = self.D if self.slots == 1 else 2 * self.D
        attention = 2 * self.D * self.d_h
        read = self.slots * self.D
        feedforward = read * self.hidden + self.hidden + self.hidden * self.D + self.D
        return gates + attention + feedforward


def paper_architecture(
    algebra: Algebra, hidden: int | None = None, activation: Activation | None = None
) -> Architecture:
    """The paper's choices: attention has one dimension for operands and one for each operator;
    2D squared units for operators on at most two operands, 8D rectified ones for wider ones; or
    `hidden` units, or another `activation`, where these are given.
    """
    D = len(algebra.vocabulary)
    wide = algebra.max_fan_in is None or algebra.max_fan_in > 2
    return Architecture(
        D=D,
        d_h=1 + len(algebra.operators),
        hidden=(8 if wide else 2) * D if hidden is None else hidden,
        activation=activation or ("relu" if wide else "square"),
        slots=slots_of(algebra),
    )
