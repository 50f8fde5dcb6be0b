"""An iteration of the paper's layer: cluster by cluster, in words and as data."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from exactformer.domains.algebra import Algebra
from exactformer.domains.data import listed
from exactformer.domains.domain import Domain
from exactformer.model import circuit
from exactformer.trace.palette import Kind, kind_of
from exactformer.trace.shown import EMPTY_POSITION, Explained

NAMES: dict[Kind, tuple[str, str]] = {
    "value": ("operand", "operands"),
    "operator": ("operator", "operators"),
    "parenthesis": ("parenthesis", "parentheses"),
}


@dataclass(frozen=True)
class TraceStep(Explained):
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

    def rows(self) -> dict[str, list[Any]]:
        rows: dict[str, list[Any]] = {
            "tokens": self.tokens,
            "forward": self.forward,
            "backward": self.backward,
            "mask": self.mask,
            "cluster": [c or EMPTY_POSITION for c in self.clusters],
        }
        if self.ranks is not None:
            pairs = zip(self.ranks, self.clusters, strict=True)
            rows["rank"] = [rank if cluster else EMPTY_POSITION for rank, cluster in pairs]
        return rows | {"after": self.state}

    def events(self, domain: Domain) -> Iterator[str]:
        """The input and output of each position of the mask, in words."""
        for position in self.routed:
            yield (
                f"cluster {self.clusters[position]}: {self.tokens[position]} at {position} "
                f"receives {self._received(position, domain)}, and becomes {self.state[position]}"
            )

    @property
    def size(self) -> int:
        return super().size + sum(map(len, self.outputs.values()))

    def _received(self, position: int, domain: Domain) -> str:
        if not self.slots:
            return _in_words(domain, self.routed[position]) or "nothing"
        filled = [(slot, bag) for slot, bag in enumerate(self.slots[position], start=1) if bag]
        parts = [f"{_in_words(domain, bag)} in slot {slot}" for slot, bag in filled]
        return ", ".join(parts) or "nothing"


def explain(algebra: Algebra, step: circuit.Step, tokens: list[str], state: list[str]) -> TraceStep:
    """The record of an iteration, by position."""
    acts = step.P[0] & (step.H[0].any(-1) | step.Y[0].any(-1))
    busy = acts.nonzero().squeeze(-1).tolist()
    bags = {i: step.H[0, i].view(-1, len(algebra.vocabulary)) for i in busy}  # slot by slot
    outputs = {i: step.Z[0, i].tolist() for i in busy}
    by_slot = {i: [_counts(algebra, slot) for slot in bag] for i, bag in bags.items()}
    return TraceStep(
        tokens=tokens,
        forward=step.A[0, :, 0].tolist(),
        backward=step.A[0, :, 1].tolist(),
        mask=step.P[0].int().tolist(),
        clusters=step.ids[0].tolist(),
        routed={i: _counts(algebra, bag.sum(0)) for i, bag in bags.items()},
        outputs={i: dict(zip(algebra.vocabulary, outputs[i], strict=True)) for i in busy},
        state=state,
        ranks=None if step.R is None else (step.R[0] * step.P[0]).tolist(),
        slots={} if step.R is None else by_slot,
    )


def _counts(algebra: Algebra, row: Tensor) -> dict[str, int]:
    return {algebra.vocabulary[i]: int(row[i]) for i in row.nonzero().flatten().tolist()}


def _in_words(domain: Domain, bag: dict[str, int]) -> str:
    """A bag of tokens in words: which are operands and which operators, such as `+`."""
    parts = []
    for kind, (one, several) in NAMES.items():
        counts = {token: n for token, n in bag.items() if kind_of(domain, token) == kind}
        if counts:
            tokens = [token if n == 1 else f"{n}×{token}" for token, n in counts.items()]
            parts.append(f"{several if sum(counts.values()) > 1 else one} {' '.join(tokens)}")
    return listed(parts, "and")
