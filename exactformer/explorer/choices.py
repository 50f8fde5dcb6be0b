"""The domains and weights that the page offers, by name.

A name is looked up in lists made at the start and is never taken for a path, so that a request
cannot reach a file that was not offered. `random/SEED` is the one name that is not in a list.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from exactformer.api import Model, construct, load
from exactformer.domains.algebra import Algebra
from exactformer.domains.belonging import algebra_of
from exactformer.domains.catalog import BUILT_IN, BUILT_IN_OTHERS, CATALOG
from exactformer.domains.domain import Domain
from exactformer.domains.errors import quote
from exactformer.explorer.certifier import Certify, Shown
from exactformer.model.architecture import paper_architecture
from exactformer.model.quantize import binary, ternary
from exactformer.model.storage import from_file, to_file
from exactformer.weights.file import WeightFile
from exactformer.weights.named import is_constructed, read_weights, shipped_names
from exactformer.weights.tensors import ALGEBRA_GATES, FEEDFORWARDS, Arrays, stored

KEPT = 64  # models in memory with their certificates; the seeds of random ones are many
GRID = 64  # random weights are multiples of one over this: exact arithmetic is then quick
MOST_CASES = 20_000  # of a table that one waits for
RANDOM = re.compile(r"random/([0-9]{1,9})")


@dataclass(eq=False)
class Subject:
    """Weights that the page shows. The file also has the logits behind learned discrete weights."""

    domain_name: str
    weights_name: str
    file: WeightFile
    _certifying: Lock = field(default_factory=Lock, repr=False)
    _certificate: Shown | None = field(default=None, repr=False)

    @cached_property
    def model(self) -> Model:
        return Model(self.file.domain, from_file(self.file), self.file.origin)

    def certificate(self, certify: Certify) -> Shown:
        """The certificate of the weights, computed once however many requests ask for it."""
        with self._certifying:
            if self._certificate is None:
                self._certificate = certify(self.file)
        return self._certificate


class Choices:
    """Domains that are built in, and those given on the command line, with or without weights."""

    def __init__(self, domain: Domain | None = None, weights: str | None = None) -> None:
        built_in = {**BUILT_IN, **BUILT_IN_OTHERS}
        self.domains: dict[str, Domain] = {name: make() for name, make in built_in.items()}
        self._given: dict[tuple[str, str], WeightFile] = {}
        self._subject = lru_cache(maxsize=KEPT)(self._make)
        self._making = Lock()  # once, however many ask at the same time
        name = self._add(domain) if domain else next(iter(self.domains))
        self.first = (name, weights or "constructed")  # what the page starts with
        if not self._offers(*self.first):
            file = _read(self.first[1], domain)
            self.first = (self._add(file.domain), f"file/{Path(self.first[1]).name}")
            self._given[self.first] = file

    def _add(self, domain: Domain) -> str:
        known = self.domains.get(domain.name)
        name = domain.name if known in (None, domain) else f"{domain.name} (given)"
        self.domains[name] = domain
        return name

    def weights(self, domain_name: str) -> list[str]:
        """Names of the weights for a domain, in the order in which the page lists them."""
        domain = self.domain(domain_name)
        given = [name for of, name in self._given if of == domain_name]
        return [*given, *OFFERED.get(domain.kind, _constructed)(domain)]

    def _offers(self, domain_name: str, weights_name: str) -> bool:
        offered = self.weights(domain_name)
        drawn = RANDOM.fullmatch(weights_name) is not None and "random/0" in offered
        return drawn or weights_name in offered

    def domain(self, name: str) -> Domain:
        if name not in self.domains:
            raise ValueError(
                f"expected as algebra one of {', '.join(self.domains)}, found {quote(name, 40)}"
            )
        return self.domains[name]

    def subject(self, domain_name: str, weights_name: str) -> Subject:
        """The weights of these names; a ValueError if they are not offered or cannot be made."""
        if not self._offers(domain_name, weights_name):
            *offered, last = self.weights(domain_name)
            drawn = last == "random/0"
            others = "random/ and a seed of up to nine digits" if drawn else last
            raise ValueError(
                f"expected as weights for {domain_name} one of {', '.join(offered)}, or {others}; "
                f"found {quote(weights_name, 40)}"
            )
        with self._making:
            return self._subject(domain_name, weights_name)

    def _make(self, domain_name: str, weights_name: str) -> Subject:
        domain = self.domains[domain_name]
        if (domain_name, weights_name) in self._given:
            file = self._given[domain_name, weights_name]
        elif seed := RANDOM.fullmatch(weights_name):
            file = random_weights(algebra_of(domain), int(seed[1]))
        else:
            file = _read(weights_name, domain)
        return Subject(domain_name, weights_name, file)


def _of_algebra(algebra: Algebra) -> list[str]:
    by_hand = ["constructed", "constructed/table", "constructed/dense"]
    shipped, every_order = _shipped(algebra), algebra.ordered
    if algebra.max_fan_in is None or algebra.count_cases(every_order=every_order) > MOST_CASES:
        by_hand.remove("constructed/table")
    if "fitted" in shipped:
        shipped.remove("fitted")
        by_hand.insert(2, "constructed/fitted")
    return [*by_hand, *shipped, "random/0"]


def _constructed(domain: Domain) -> list[str]:
    return ["constructed", "constructed/table", *_shipped(domain)]


# Names of the weights for a domain, given ones aside, by its kind; `_constructed` for any other.
OFFERED: dict[str, Callable[[Any], list[str]]] = {Algebra.kind: _of_algebra}


def _shipped(domain: Domain) -> list[str]:
    """Names of the shipped weights for a domain, or for the same operators in infix notation."""
    if domain.name in BUILT_IN_OTHERS and domain == BUILT_IN_OTHERS[domain.name]():
        return shipped_names(domain.name)
    for name, make in CATALOG.items():
        if domain == make():
            return shipped_names(name)
        if domain.has_spans_of(make()):
            return [f"{name}/{own}" for own in shipped_names(name)]
    return []


def _read(weights: str, domain: Domain | None) -> WeightFile:
    """Read weights by name, with the logits that the file may hold."""
    if domain is None or not is_constructed(weights):
        return read_weights(weights, domain)
    model = load(weights, domain)
    return to_file(domain, model.weights, model.origin)


def random_weights(algebra: Algebra, seed: int) -> WeightFile:
    """Weights of the paper's sizes with random numbers, to see what fails.

    Gates (vectors) and routing (matrices) are made from random logits, as learned ones are.
    """
    rng = np.random.default_rng(seed)
    weights = construct(algebra).weights
    by_hand = to_file(algebra, weights, {"made": "random", "seed": seed})
    if algebra.precedence:
        return replace(by_hand, arrays=by_hand.arrays | _random_levels(algebra, rng))

    def draw_numbers(*shape: int) -> NDArray[np.float32]:
        return ((rng.standard_normal(shape) * GRID).round() / GRID).astype(np.float32)

    arrays: Arrays = {}
    for name, array in by_hand.arrays.items():
        if name in ALGEBRA_GATES and ALGEBRA_GATES[name].logits:
            logits = draw_numbers(*array.shape)
            discrete = (ternary if array.ndim == 1 else binary)(torch.from_numpy(logits))
            arrays |= stored(**{name: discrete.round().numpy()}) | {f"{name}_logits": logits}
    size = paper_architecture(algebra)
    sizes = {"S*D": weights.f.slots * size.D, "m": size.hidden, "D": size.D}
    for name, spec in FEEDFORWARDS["perceptron"].items():
        arrays[name] = draw_numbers(*(sizes[axis] for axis in spec.shape.split()))
    return WeightFile(algebra, arrays, size.activation, by_hand.origin)


def _random_levels(algebra: Algebra, rng: np.random.Generator) -> Arrays:
    """Random levels and directions for plain notation. The depth gate is not random: with a random
    one not even one iteration would take place.
    """
    declared, directions = algebra.declared_levels, algebra.declared_directions
    return stored(
        G_L=rng.integers(1, len(directions), declared.shape) * (declared > 0),
        directions=rng.integers(-1, 2, directions.shape),
    )
