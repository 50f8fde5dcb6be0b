"""Steps of Adam on depth 1, with the gradient written out; and the batches they learn from.

A graph of operations is not needed for one hidden layer. Without it every large number is made in
memory that is used again, a few seeds at a time, so that it stays in the processor's cache; and all
that is learned is one row of numbers for each seed, so that an update is a few operations. What is
computed is what autograd computes, operation by operation, to the last bit.

A step asks nothing of the host: what changes from step to step (batches, Adam's factors) is read
from tables by counters on the device. The cases of a batch stay in the same memory, into which
`turn` puts the next ones.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from exactformer.protocol.optimizer import Adam
from exactformer.training.depth_one import CaseRows
from exactformer.training.state import BATCHES, LEARNED, Seed

CACHED = 1 << 18  # numbers of a hidden layer that stay in a core's cache, with two more like it


class CaseBatches:
    """Batches of all cases in every step."""

    def __init__(self, cases: Sequence[Tensor]) -> None:
        self.cases = cases

    def turn(self) -> None:
        """Do nothing: every step uses the same full batch."""


class DrawnBatches(CaseBatches):
    """Batches of a few bags drawn for each seed in every step, always with the zero vector."""

    def __init__(
        self, rows: CaseRows, bags: Tensor, seeds: Sequence[Seed], batch: int, turns: int
    ) -> None:
        B, w, D = rows.token.shape
        n_bags, device = B - 1, rows.token.device
        chosen = np.full((turns, len(seeds), batch + 1), n_bags)
        for row, seed in enumerate(seeds):
            for turn in range(turns):
                drawn = seed.generator(BATCHES, ahead=turn).integers(n_bags, size=batch)
                chosen[turn, row, :-1] = drawn
        self.chosen = torch.from_numpy(chosen).to(device)
        self.next = torch.zeros(1, dtype=torch.long, device=device)
        own = torch.arange(len(bags), device=device) * B  # where each seed's own bags begin
        self.first_bag = own.unsqueeze(-1)
        weight = rows.weight * (n_bags / batch)
        self.sources = [t.flatten(1) for t in (rows.token, bags.flatten(0, 1), rows.target, weight)]
        shape = (len(seeds), (batch + 1) * w)
        super().__init__([bags.new_empty(*shape, *s) for s in ((D,), bags.shape[-2:], (D,), (D,))])

    def turn(self) -> None:
        chosen = self.chosen.index_select(0, self.next)[0]
        of_bags = (chosen + self.first_bag).flatten()
        of_rows = chosen.flatten()
        for which, source, case in zip(
            (of_rows, of_bags, of_rows, of_rows), self.sources, self.cases, strict=True
        ):
            torch.index_select(source, 0, which, out=case.view(-1, source.shape[-1]))
        self.next += 1


class DepthOneSteps:
    """Steps on the learned tensors of a batch of seeds, which `unpacked` gives back."""

    def __init__(
        self,
        tensors: dict[str, Tensor],
        batches: CaseBatches,
        adam: Adam,
        rates: dict[str, float],
        factors: Tensor,
        steps: Sequence[int],
        activation: str,
    ) -> None:
        """`factors` are Adam's, by step; `steps` is the present step of each seed."""
        self.batches, self.adam, self.factors = batches, adam, factors
        self.shapes = {name: tensors[name].shape for name in LEARNED}
        self.sizes = [tensors[name][0].numel() for name in LEARNED]
        self.learned, self.mean, self.square = (
            torch.cat([tensors[name + kind].detach().flatten(1) for name in LEARNED], 1)
            for kind in ("", ".m", ".v")
        )
        device = self.learned.device
        self.at = torch.tensor(steps, device=device)
        by_name = [
            torch.full((size,), rates[n]) for n, size in zip(LEARNED, self.sizes, strict=True)
        ]
        self.rate = torch.cat(by_name).to(device)
        learned = self._parts(self.learned)
        self.bits = learned.pop("bits")
        seeds, _, D, _ = self.bits.shape
        self.soft, self.hard, self.of_hard, self.of_bits = (
            self.learned.new_empty(self.bits.shape) for _ in range(4)
        )
        self.zero = self.learned.new_zeros(())
        self.routes, self.of_routes = (self.learned.new_empty(seeds, D, D) for _ in range(2))
        gradients = {name: self.learned.new_empty(self.shapes[name]) for name in learned}
        self.of_learned = [self.of_bits, *gradients.values()]
        self.gradient = torch.empty_like(self.learned)
        wide = batches.cases[0].shape[1] * learned["b_1"].shape[-1]
        at_once = max(1, CACHED // wide) if device.type == "cpu" else seeds
        learned["P"], gradients["P"] = self.routes, self.of_routes
        groups = [slice(start, start + at_once) for start in range(0, seeds, at_once)]
        memory: dict[str, Tensor] = {}
        self.parts = [
            _SomeSeeds(some, learned, gradients, batches.cases, memory, activation)
            for some in groups
        ]

    def unpacked(self) -> dict[str, Tensor]:
        """The tensors by name, as they are now."""
        rows = {"": self.learned, ".m": self.mean, ".v": self.square}
        return {
            name + kind: part.contiguous()
            for kind, row in rows.items()
            for name, part in self._parts(row).items()
        }

    def _parts(self, rows: Tensor) -> dict[str, Tensor]:
        parts = zip(LEARNED, rows.split(self.sizes, 1), strict=True)
        return {name: part.view(-1, *self.shapes[name][1:]) for name, part in parts}

    def step(self) -> None:
        """One step on the binary cross entropy of the outputs."""
        self.batches.turn()
        torch.sigmoid(self.bits, out=self.soft)
        torch.heaviside(self.bits, self.zero, out=self.hard)
        self.hard.sub_(self.soft).add_(self.soft)  # as `binary` has it
        W_Q, W_K = self.hard.unbind(1)
        torch.bmm(W_Q, W_K.mT, out=self.routes)
        for part in self.parts:
            part.find_gradients()
        of_W_Q, of_W_K = self.of_hard.unbind(1)
        of_W_Q.copy_(torch.bmm(self.of_routes, W_K))
        of_W_K.copy_(torch.bmm(W_Q.mT, self.of_routes).mT)
        torch.ops.aten.sigmoid_backward.grad_input(self.of_hard, self.soft, grad_input=self.of_bits)
        torch.cat([gradient.flatten(1) for gradient in self.of_learned], 1, out=self.gradient)
        squares = (self.gradient * self.gradient).split(self.sizes, 1)
        scale = self.adam.clipping(squares).unsqueeze(1)
        factors = self.factors.index_select(0, self.at).unsqueeze(-1)
        self.adam.move(
            self.learned,
            self.gradient.mul_(scale),
            self.mean,
            self.square,
            self.rate,
            factors.unbind(1),
        )
        self.at += 1


class _SomeSeeds:
    """The gradients of a few seeds, with these seeds' part of all tensors that a step needs."""

    def __init__(
        self,
        some: slice,
        learned: dict[str, Tensor],
        gradients: dict[str, Tensor],
        cases: Sequence[Tensor],
        memory: dict[str, Tensor],
        activation: str,
    ) -> None:
        """`memory` is scratch memory, which other groups of seeds use later."""
        self.P, self.of_P = learned["P"][some], gradients["P"][some]
        self.W_1, self.of_W_1 = (named["W_1"][some].flatten(1, 2) for named in (learned, gradients))
        self.b_1, self.of_b_1 = learned["b_1"][some], gradients["b_1"][some]
        self.W_2, self.of_W_2 = learned["W_2"][some], gradients["W_2"][some]
        self.b_2, self.of_b_2 = learned["b_2"][some], gradients["b_2"][some]
        self.token, self.bag, self.target, self.weight = (case[some] for case in cases)
        self.square = activation == "square"

        def kept(name: str, shape: Sequence[int]) -> Tensor:
            if name not in memory:
                memory[name] = self.token.new_empty(shape)
            return memory[name][: len(self.token)]

        wide = (*self.token.shape[:2], self.b_1.shape[-1])
        self.T, self.Z = (kept(name, self.token.shape) for name in ("T", "Z"))
        self.H, self.received = (kept(name, self.bag.shape) for name in ("H", "received"))
        self.hidden, self.back = (kept(name, wide) for name in ("hidden", "back"))
        self.active = kept("active", wide) if self.square else self.hidden

    def find_gradients(self) -> None:
        """Compute the gradients of the routes and of all parameters but the bits."""
        torch.bmm(self.token, self.P, out=self.T)
        torch.mul(self.bag, self.T.unsqueeze(-2), out=self.H)
        H = self.H.flatten(2)
        torch.baddbmm(self.b_1, H, self.W_1, out=self.hidden)
        if self.square:
            torch.mul(self.hidden, self.hidden, out=self.active)
        else:
            self.hidden.relu_()
        slope = torch.baddbmm(self.b_2, self.active, self.W_2, out=self.Z)
        slope.sigmoid_().sub_(self.target).mul_(self.weight)  # of the cross entropy
        torch.bmm(self.active.mT, slope, out=self.of_W_2)
        torch.sum(slope, 1, keepdim=True, out=self.of_b_2)
        back = torch.bmm(slope, self.W_2.mT, out=self.back)
        if self.square:
            back.mul_(self.hidden.mul_(2))
        else:
            torch.ops.aten.threshold_backward.grad_input(back, self.hidden, 0, grad_input=back)
        torch.bmm(H.mT, back, out=self.of_W_1)
        torch.sum(back, 1, keepdim=True, out=self.of_b_1)
        torch.bmm(back, self.W_1.mT, out=self.received.flatten(2))
        received = self.received.mul_(self.bag)
        of_T = received.squeeze(-2) if received.shape[-2] == 1 else received.sum(-2)
        torch.bmm(self.token.mT, of_T, out=self.of_P)
