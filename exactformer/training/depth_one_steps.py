"""Steps of Adam on depth 1, with the gradient written out.

A graph of operations is not needed for one hidden layer. Without it every large number is made in
memory that is used again, a few seeds at a time, so that it stays in the processor's cache; and all
that is learned is one row of numbers for each seed, so that an update is a few operations. What is
computed is what autograd computes, operation by operation, to the last bit.
"""

import torch
from torch import Tensor

from exactformer.model.quantize import binary
from exactformer.optimizer import Adam
from exactformer.training.parameters import LEARNED

CACHED = 1 << 18  # numbers of a hidden layer that stay in a core's cache, with two more like it


class DepthOneSteps:
    """Steps on the learned tensors of a batch of seeds, which `unpacked` gives back."""

    def __init__(
        self, tensors: dict[str, Tensor], adam: Adam, rates: dict[str, float], activation: str
    ) -> None:
        self.adam, self.activation = adam, activation
        self.shapes = {name: tensors[name].shape for name in LEARNED}
        self.sizes = [tensors[name][0].numel() for name in LEARNED]
        self.learned, self.mean, self.square = (
            torch.cat([tensors[name + kind].detach().flatten(1) for name in LEARNED], 1)
            for kind in ("", ".m", ".v")
        )
        by_name = [
            torch.full((size,), rates[n]) for n, size in zip(LEARNED, self.sizes, strict=True)
        ]
        self.rate = torch.cat(by_name).to(self.learned.device)
        self.memory: dict[str, Tensor] = {}

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

    def step(
        self, token: Tensor, bag: Tensor, target: Tensor, weight: Tensor, factors: Tensor
    ) -> None:
        """One step on the binary cross entropy of the outputs: (seeds, rows, D) each, bags with
        slots before D. `factors` are Adam's.
        """
        learned = self._parts(self.learned)
        bits = learned["bits"].detach().requires_grad_()
        with torch.enable_grad():
            W_Q, W_K = binary(bits).unbind(1)
            routes = torch.bmm(W_Q, W_K.mT)
        P = routes.detach()
        seeds, rows, hidden = len(P), token.shape[1], learned["b_1"].shape[-1]
        at_once = max(1, CACHED // (rows * hidden)) if P.device.type == "cpu" else seeds
        parts = []
        for start in range(0, seeds, at_once):
            some = slice(start, start + at_once)
            of_some = {name: tensor[some] for name, tensor in learned.items()}
            cases = [tensor[some] for tensor in (token, bag, target, weight)]
            parts.append(self._gradients(P[some], of_some, *cases))
        of_routes, *others = (torch.cat(of_name) for of_name in zip(*parts, strict=True))
        (of_bits,) = torch.autograd.grad(routes, bits, of_routes)
        gradients = [gradient.flatten(1) for gradient in (of_bits, *others)]
        scale = self.adam.clipping(gradients).unsqueeze(1)
        gradient = torch.cat(gradients, 1)
        self.adam.move(
            self.learned,
            gradient * scale,
            self.mean,
            self.square,
            self.rate,
            factors.unsqueeze(-1).unbind(1),
        )

    def _gradients(
        self,
        P: Tensor,
        learned: dict[str, Tensor],
        token: Tensor,
        bag: Tensor,
        target: Tensor,
        weight: Tensor,
    ) -> list[Tensor]:
        """Of the routes, and of all that is learned but the bits."""
        seeds, rows, D = token.shape
        W_1, b_1 = learned["W_1"].flatten(1, 2), learned["b_1"]
        W_2, b_2 = learned["W_2"], learned["b_2"]
        T = torch.bmm(token, P, out=self._memory("T", seeds, rows, D))
        H = self._memory("H", *bag.shape)
        H = torch.mul(bag, T.unsqueeze(-2), out=H).flatten(2)
        wide = (seeds, rows, b_1.shape[-1])
        hidden = torch.baddbmm(b_1, H, W_1, out=self._memory("hidden", *wide))
        if self.activation == "square":
            activated = torch.mul(hidden, hidden, out=self._memory("activated", *wide))
        else:
            activated = hidden.relu_()
        slope = torch.baddbmm(b_2, activated, W_2, out=self._memory("Z", seeds, rows, D))
        slope.sigmoid_().sub_(target).mul_(weight)  # of the cross entropy
        of_W_2, of_b_2 = torch.bmm(activated.mT, slope), slope.sum(1, keepdim=True)
        back = torch.bmm(slope, W_2.mT, out=self._memory("back", *wide))
        if self.activation == "square":
            back.mul_(hidden.mul_(2))
        else:
            torch.ops.aten.threshold_backward.grad_input(back, hidden, 0, grad_input=back)
        of_W_1, of_b_1 = torch.bmm(H.mT, back), back.sum(1, keepdim=True)
        received = torch.bmm(back, W_1.mT, out=self._memory("received", *H.shape))
        received = received.view(bag.shape).mul_(bag)
        of_T = received.squeeze(-2) if bag.shape[-2] == 1 else received.sum(-2)
        return [torch.bmm(token.mT, of_T), of_W_1, of_b_1, of_W_2, of_b_2]

    def _memory(self, name: str, *shape: int) -> Tensor:
        held = self.memory.get(name)
        if held is None or held.shape[1:] != shape[1:] or len(held) < shape[0]:
            held = self.memory[name] = self.learned.new_empty(shape)
        return held[: shape[0]]
