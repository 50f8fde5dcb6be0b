"""Adam with warm-up and cosine, for many seeds at once: every tensor has the seeds first."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

EPSILON = 1e-8  # keeps Adam's quotient finite


@dataclass(frozen=True)
class Adam:
    """The learning rate rises linearly, then falls as a cosine; a seed's gradient is clipped."""

    steps: int
    warm_up: float  # fraction of the steps in which the rate rises,
    warm_up_from: float  # from this fraction of it
    floor: float  # and then falls to this fraction
    betas: tuple[float, float]
    clip: float  # largest gradient norm of a seed
    weight_decay: float = 0.0  # decoupled from the gradient, as in AdamW

    def fraction(self, step: int) -> float:
        """Fraction of the full learning rate at a step."""
        warm = self.warm_up * self.steps
        if step < warm:
            return self.warm_up_from + (1 - self.warm_up_from) * step / warm
        progress = min(1.0, (step - warm) / max(1.0, self.steps - warm))
        return self.floor + (1 - self.floor) * (1 + math.cos(math.pi * progress)) / 2

    def factors(self, steps: Iterable[int], updates: Iterable[int]) -> Tensor:
        """A row for each pair of a step of the schedule and a number of updates, this one included:
        the fraction of the rate, that fraction over the mean's bias, and the root of the square's
        bias.
        """
        b1, b2 = self.betas
        pairs = ((self.fraction(step), n) for step, n in zip(steps, updates, strict=True))
        return torch.tensor([[f, f / (1 - b1**n), math.sqrt(1 - b2**n)] for f, n in pairs])

    @torch.no_grad()
    def update(
        self,
        parameters: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        means: Mapping[str, Tensor],
        squares: Mapping[str, Tensor],
        rates: Mapping[str, float | Tensor],
        factors: Tensor,
    ) -> None:
        """One update in place; `factors` has a row for each seed, or one for all, and a rate may be
        a number for each seed.

        Only sums, products, quotients and roots, which round alike in vector and scalar code: so a
        seed's bits do not depend on the others in the batch.
        """
        scale = self.clipping((g * g).reshape(len(g), -1) for g in gradients.values())
        for name, gradient in gradients.items():
            shape = (-1, *[1] * (gradient.dim() - 1))
            of_seeds = [column.view(shape) for column in factors.unbind(1)]
            rate = rates[name]
            rate = rate.view(shape) if isinstance(rate, Tensor) else rate
            clipped = gradient * scale.view(shape)
            self.move(parameters[name], clipped, means[name], squares[name], rate, of_seeds)

    def clipping(self, squares: Iterable[Tensor]) -> Tensor:
        """The factor that clips each seed's gradients; the squares are (seeds, numbers)."""
        squared_norm = sum(square.sum(1) for square in squares)
        assert isinstance(squared_norm, Tensor)
        return self.clip / squared_norm.sqrt().clamp(min=self.clip)

    def move(
        self,
        parameter: Tensor,
        gradient: Tensor,
        mean: Tensor,
        square: Tensor,
        rate: float | Tensor,
        factors: Sequence[Tensor],
    ) -> None:
        """Update one tensor in place, by a clipped gradient; all arguments broadcast against it."""
        fraction, unbiased, root = factors
        update_moments(mean, square, gradient, self.betas)
        if self.weight_decay:
            parameter.mul_(1 - rate * self.weight_decay * fraction)
        parameter.sub_(mean * (rate * unbiased) / (square.sqrt() / root + EPSILON))


def update_moments(
    mean: Tensor, square: Tensor, gradient: Tensor, betas: tuple[float, float]
) -> None:
    """Update Adam's running means of the gradient and of its square, in place."""
    b1, b2 = betas
    mean.mul_(b1).add_(gradient * (1 - b1))
    square.mul_(b2).add_(gradient * gradient * (1 - b2))
