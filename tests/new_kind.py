"""A kind of domain, with a layer, as somebody would add them: walks around a circle.

A text is a list of steps, `+` and `-`, or a place; its answer is the place where the walk ends. The
layer adds up all steps of a text at once, and a table turns the sum into a place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import Tensor

from exactformer.domains import kinds, reference
from exactformer.domains.data import Place
from exactformer.domains.domain import Domain, TokenType
from exactformer.domains.expression import Expression
from exactformer.domains.lexicon import Lexicon
from exactformer.model import construct, iterations, layers, storage
from exactformer.model.circuit import NO_TAP, Tap
from exactformer.model.feedforward import Table
from exactformer.model.gated import Gated
from exactformer.trace import Explained, runs
from exactformer.verify import Fault, Findings, conditions
from exactformer.weights import tensors
from exactformer.weights.tensors import Arrays, Contents, TensorSpec

STEPS = ("+", "-")


# domains/


@dataclass(frozen=True)
class Walk(Domain):
    """Walks around a circle of some places."""

    kind = "walk"
    name: str
    places: int

    @cached_property
    def vocabulary(self) -> tuple[str, ...]:
        return (*STEPS, *map(str, range(self.places)))

    @cached_property
    def token_ids(self) -> Mapping[str, int]:
        return {symbol: i for i, symbol in enumerate(self.vocabulary)}

    @cached_property
    def lexicon(self) -> Lexicon:
        return Lexicon(self.token_ids)

    @cached_property
    def packs(self) -> bool:
        return True

    @property
    def max_fan_in(self) -> int:
        return 1

    def token_type(self, token: int) -> TokenType:
        return "operator" if token < 2 else "value"

    def first_error(self, ids: list[int], words: list[str]) -> tuple[int, str] | None:
        for place, token in enumerate(ids):
            if token not in (0, 1) and (place or token < 0):
                return place, "expected + or -, {found}"
            if place and ids[0] > 1:
                return place, "expected the end of the text, {found}"
        return None if ids else (0, "expected + or - or a place, {found}")

    def layer(self, iterations: str) -> str:
        return "walk"

    def positions(self, ids: Any, lengths: Any) -> tuple[Any, Any]:
        return ids, lengths

    def answers(self, tokens: Any, lengths: Any) -> list[str | None]:
        ends = np.cumsum(lengths)
        last = [int(tokens[end - 1]) if n == 1 else 0 for n, end in zip(lengths, ends, strict=True)]
        return [self.vocabulary[token] if token > 1 else None for token in last]

    @property
    def answer_symbols(self) -> Sequence[str]:
        return self.vocabulary[2:]

    def read_answer(self, text: str) -> str | None:
        return text.strip() if text.strip() in self.answer_symbols else None

    def every(self, length: int) -> Iterator[tuple[int, ...]]:
        if length == 1:
            yield from ((token,) for token in range(2, len(self.vocabulary)))
        yield from product((0, 1), repeat=length)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "name": self.name, "places": self.places}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Walk":
        fields = Place(data).fields(("kind", "name", "places"))
        if type(places := fields["places"].value) is not int or not 2 <= places <= 9:
            raise fields["places"].unexpected("a number from 2 to 9")
        return cls(fields["name"].text(), places)


def answer(expression: Expression) -> str:
    """The reference: one step after the other."""
    walk, at = expression.domain, 0
    assert isinstance(walk, Walk)
    for token in expression.ids.tolist():
        at = token - 2 if token > 1 else (at + (1, -1)[token]) % walk.places
    return str(at)


# model/


@dataclass(frozen=True)
class WalkWeights(Gated):
    """G is what each token adds to the sum; f turns the sum, modulo the places, into a token."""

    G: Tensor
    f: Table


class Step(NamedTuple):
    A: Tensor
    P: Tensor
    Y: Tensor
    X: Tensor


def walk_steps(
    X: Tensor, inside: Tensor, weights: WalkWeights, domain: Walk, tap: Tap = NO_TAP
) -> Iterator[Step]:
    """One iteration: the sum A, the mask P of all steps, the table's output Y, and the state X."""
    P = tap("P", inside & ((X @ weights.G) != 0))
    if not P.any():
        return
    A = tap("A", (X @ weights.G).sum(-1).remainder(domain.places).long())
    H = torch.nn.functional.one_hot(A, X.shape[-1]).to(X.dtype)
    Y = tap("Y", (weights.f(H) > 0).to(X.dtype))
    first = torch.nn.functional.one_hot(P.long().argmax(-1), X.shape[-2]).bool() & P
    X = torch.where(first.unsqueeze(-1), Y.unsqueeze(-2), X.masked_fill(P.unsqueeze(-1), 0))
    yield Step(A, P, Y, tap("X", X))


def made(walk: Walk, feedforward: str | None, dense: bool) -> tuple[str, WalkWeights]:
    D = len(walk.vocabulary)
    G = torch.zeros(D, dtype=torch.float32)
    G[0], G[1] = 1, -1
    table = torch.eye(D, dtype=torch.int16)[: walk.places]
    f = Table(table, torch.eye(D, dtype=torch.int8)[2:])
    return "table", WalkWeights(G, f)


# trace/


@dataclass(frozen=True)
class Leg(Explained):
    """All steps of a walk, taken at once."""

    tokens: list[str]
    place: int
    state: list[str]

    def rows(self) -> dict[str, list[Any]]:
        return {"tokens": self.tokens, "after": self.state}

    def events(self, domain: Domain) -> Iterator[str]:
        yield f"{len(self.tokens)} steps lead to {self.place}"


def explain(walk: Walk, step: Step, tokens: list[str], state: list[str]) -> Leg:
    return Leg(tokens, int(step.A), state)


# verify/


def check(walk: Walk, weights: Sequence[tuple[Arrays, str | None]]) -> list[Findings]:
    found = []
    for arrays, _ in weights:
        D = len(walk.vocabulary)
        right = np.array([1, -1, *[0] * walk.places])
        table = {
            bag.tobytes(): out for bag, out in zip(arrays["bags"], arrays["outputs"], strict=True)
        }
        zero = np.zeros(D, dtype=np.int8)
        wrong = tuple(
            Fault(f"the sum {i}", (0,) * (i or walk.places))
            for i, bag in enumerate(np.eye(D, dtype=np.int16)[: walk.places])
            if not np.array_equal(table.get(bag.tobytes(), zero), np.eye(D, dtype=np.int8)[2 + i])
        )
        holds = {"the gate counts steps": bool((arrays["G"] == right).all())}
        holds["every sum becomes its place"] = not wrong
        found.append(Findings(walk, holds, walk.places, wrong, Fraction(1, 2), Fraction(0)))
    return found


def add_to_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line in each table that a kind of domain with a layer of its own has one in."""
    contents = Contents(
        {"G": TensorSpec("D", "int8", "float32")},
        lambda walk, arrays: {"D": len(walk.vocabulary), "S*D": len(walk.vocabulary)},
        lambda walk, arrays: None,
    )
    layer = layers.Layer(walk_steps, taps=("A", "P", "Y", "X"))
    for table, key, line in (
        (kinds.KINDS, "walk", Walk),
        (reference.REFERENCES, "walk", answer),
        (tensors.CONTENTS, "walk", contents),
        (storage.WEIGHTS, "walk", WalkWeights),
        (construct.MAKERS, "walk", made),
        (conditions.CHECKS, "walk", check),
        (layers.LAYERS, "walk", layer),
        (runs.EXPLAINED, "walk", explain),
        (iterations.COSTS, "walk", iterations.Cost(lambda text: 1, lambda text: 0)),
    ):
        monkeypatch.setitem(table, key, line)
