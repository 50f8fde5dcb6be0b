"""The paper's own feedforward: a perceptron of its size, fitted to the table of bags.

`python -m exactformer.model.fit FOLDER` makes the ones that are shipped.
"""

import sys
from pathlib import Path

import torch
from torch.nn.functional import softplus

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import boolean, listops
from exactformer.model.architecture import paper_architecture
from exactformer.model.construct import assemble, bags
from exactformer.model.feedforward import MLP
from exactformer.model.storage import to_file

STEPS = 2_000
LEARNING_RATE = 0.02
MARGIN = 4.0  # outputs are pushed this far from the threshold
GRID = 2**10  # weights end as multiples of 1/GRID, so that the proof's whole numbers stay short


def fit(algebra: Algebra, generator: torch.Generator) -> MLP:
    """Train by Adam on every bag and the zero vector at once; a ValueError if a row stays wrong."""
    shape = paper_architecture(algebra)
    H, outputs = (torch.cat([rows, rows.new_zeros(1, shape.D)]) for rows in bags(algebra))
    sign = 2 * outputs - 1

    def normal(scale: float, *size: int) -> torch.Tensor:
        return (scale * torch.randn(*size, generator=generator)).requires_grad_()

    parameters = [
        normal(0.3, shape.D, shape.hidden),
        normal(0.3, shape.hidden),
        normal(0.1, shape.hidden, shape.D),
        normal(0.0, shape.D),
    ]
    optimizer = torch.optim.Adam(parameters, lr=LEARNING_RATE, betas=(0.9, 0.99))
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, LEARNING_RATE, total_steps=STEPS, pct_start=0.1
    )
    for _ in range(STEPS):
        Z = MLP(*parameters, activation=shape.activation).in_training(H)
        loss = softplus(MARGIN - sign * Z).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
    on_grid = [(p.detach() * GRID).round() / GRID for p in parameters]
    rounded = MLP(*on_grid, activation=shape.activation)
    wrong = int((sign * rounded(H) <= 0).any(-1).sum())
    if wrong:
        raise ValueError(f"{wrong} of the {len(H)} rows of {algebra.name!r} could not be fitted")
    return rounded


if __name__ == "__main__":
    for algebra in (boolean(), listops()):
        weights = assemble(algebra, fit(algebra, torch.Generator().manual_seed(0)))
        path = Path(sys.argv[1]) / algebra.name / "fitted.safetensors"
        path.parent.mkdir(parents=True, exist_ok=True)
        to_file(algebra, weights, {"made": "constructed", "feedforward": "fitted"}).write(path)
        print(path)
