"""Every intermediate of every iteration, as text for people and as plain data for programs."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from exactformer.domains.algebra import Algebra
from exactformer.domains.syntax import Expression
from exactformer.model.circuit import Weights, read_tokens, steps
from exactformer.model.encode import NO_VALUE, initial_state, read_values

EMPTY_POSITION = "·"


@dataclass(frozen=True)
class TraceStep:
    """One iteration, position by position. `routed` and `outputs` are by position in the mask.

    Where the order of operands matters, `ranks` has the rank of each position in its cluster, and
    `slots` what each position received in each slot; `routed` then is the sum over the slots.
    """

    tokens: list[str]
    forward: list[int]  # A_1
    backward: list[int]  # A_2
    mask: list[int]  # P
    clusters: list[int]  # ids
    routed: dict[int, dict[str, int]]  # H: how much of each token a position received
    outputs: dict[int, dict[str, float]]  # Z, before the threshold, by token
    state: list[str]  # X afterwards
    ranks: list[int] | None = None  # R; 0 outside the mask
    slots: dict[int, list[dict[str, int]]] = field(default_factory=dict)

    def received(self, position: int) -> str:
        """What a position received, in words."""
        if not self.slots:
            return _sum(self.routed[position]) or "nothing"
        filled = [(slot, bag) for slot, bag in enumerate(self.slots[position], start=1) if bag]
        return ", ".join(f"{_sum(bag)} in slot {slot}" for slot, bag in filled) or "nothing"


@dataclass(frozen=True)
class Trace:
    expression: str
    steps: list[TraceStep]
    value: str | None  # None where the model ends with anything but a single value

    def to_dict(self) -> dict[str, Any]:
        """Plain data. Lists are shared with the trace: a long one has millions of entries."""
        return vars(self) | {"steps": [vars(step) for step in self.steps]}

    def __str__(self) -> str:
        parts = [f"{self.expression}"]
        for number, step in enumerate(self.steps, start=1):
            rows = {
                "tokens": step.tokens,
                "forward": step.forward,
                "backward": step.backward,
                "mask": step.mask,
                "cluster": [c or EMPTY_POSITION for c in step.clusters],
            }
            if step.ranks is not None:
                pairs = zip(step.ranks, step.clusters, strict=True)
                rows["rank"] = [rank if cluster else EMPTY_POSITION for rank, cluster in pairs]
            rows["after"] = step.state
            columns = zip(*rows.values(), strict=True)
            widths = [max(len(str(cell)) for cell in column) for column in columns]
            parts.append(f"\niteration {number}")
            for name, cells in rows.items():
                line = " ".join(
                    f"{cell!s:>{width}}" for cell, width in zip(cells, widths, strict=True)
                )
                parts.append(f"  {name:<9} {line}".rstrip())
            for position in step.routed:
                became = step.state[position]
                parts.append(
                    f"  cluster {step.clusters[position]}: {step.tokens[position]} at "
                    f"{position} receives {step.received(position)} and becomes {became}"
                )
        value = "no single value is left" if self.value is None else f"value {self.value}"
        parts.append(f"\n{value} after {len(self.steps)} iteration{'s'[: len(self.steps) != 1]}")
        return "\n".join(parts)


def _sum(bag: dict[str, int]) -> str:
    return " + ".join(token if count == 1 else f"{count}×{token}" for token, count in bag.items())


def _ignore(step: TraceStep) -> None:
    pass


@torch.no_grad()
def trace(
    algebra: Algebra,
    weights: Weights,
    expression: Expression,
    observe: Callable[[TraceStep], None] = _ignore,
) -> Trace:
    """Run one expression, keeping what `iterate` returns.

    `observe` sees each iteration as soon as it is there; it may raise to put an end to a long run.
    """
    X, inside = initial_state([expression], weights)
    traced: list[TraceStep] = []
    for step in steps(X, weights, inside):
        acts = step.P[0] & (step.H[0].any(-1) | step.Y[0].any(-1))
        busy = acts.nonzero().squeeze(-1).tolist()
        outputs = {i: step.Z[0, i].tolist() for i in busy}
        bags = {i: step.H[0, i].view(-1, len(algebra.vocabulary)) for i in busy}  # slot by slot
        traced.append(
            TraceStep(
                tokens=_symbols(algebra, read_tokens(X, weights)[0]),
                forward=step.A[0, :, 0].tolist(),
                backward=step.A[0, :, 1].tolist(),
                mask=step.P[0].int().tolist(),
                clusters=step.ids[0].tolist(),
                routed={i: _counts(algebra, bag.sum(0)) for i, bag in bags.items()},
                outputs={i: dict(zip(algebra.vocabulary, outputs[i], strict=True)) for i in busy},
                state=_symbols(algebra, read_tokens(step.X, weights)[0]),
                ranks=None if step.R is None else (step.R[0] * step.P[0]).tolist(),
                slots={}
                if step.R is None
                else {i: [_counts(algebra, slot) for slot in bag] for i, bag in bags.items()},
            )
        )
        observe(traced[-1])
        X = step.X
    value = int(read_values(X, weights, algebra)[0])
    return Trace(str(expression), traced, None if value == NO_VALUE else algebra.values[value])


def _symbols(algebra: Algebra, rows: torch.Tensor) -> list[str]:
    """The token of each row; several, joined, where uncertified weights leave more than one."""
    held: list[list[str]] = [[] for _ in range(len(rows))]
    for position, token in rows.nonzero().tolist():
        held[position].append(algebra.vocabulary[token])
    return ["+".join(tokens) or EMPTY_POSITION for tokens in held]


def _counts(algebra: Algebra, row: torch.Tensor) -> dict[str, int]:
    return {algebra.vocabulary[i]: int(row[i]) for i in row.nonzero().flatten().tolist()}
