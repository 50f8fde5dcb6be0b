"""Computes the output of each kind of cluster once.

The output of a cluster depends on its symbols and their order only, since `circuit.py` adds
operands up within a cluster. So of equal clusters one is computed, and its output remembered.
"""

from copy import copy
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from exactformer.model.alike import Stretches, one_of_each_hash, stretches
from exactformer.model.alphabet import Alphabet
from exactformer.model.circuit import Weights, evaluate_clusters
from exactformer.model.remembered import fixed

MOST_REMEMBERED = 1 << 17  # bound on symbols of clusters, and on rows of the alphabet


class Known(NamedTuple):
    """A cache of clusters with their outputs, in ascending order of hashes."""

    hashes: Int[Tensor, " c"]
    first: Int[Tensor, " c"]
    lengths: Int[Tensor, " c"]
    symbols: Int[Tensor, " f"]
    outputs: Int[Tensor, " f"]

    def look_up(self, clusters: Stretches) -> tuple[Int[Tensor, " e"], Bool[Tensor, " m"]]:
        """The index of each symbol in this cache, and whether each cluster is missing here."""
        kind = torch.searchsorted(self.hashes, clusters.hashes).clamp_(max=len(self.hashes) - 1)
        at = (self.first[kind].index_select(0, clusters.ids) + clusters.place).clamp_(
            max=len(self.symbols) - 1
        )
        missing = self.lengths[kind] != clusters.lengths
        differ = self.symbols.index_select(0, at) != clusters.symbols
        if differ.any():
            missing[clusters.ids[differ]] = True
        return at, missing

    def and_also(self, clusters: Stretches, outputs: Int[Tensor, " e"]) -> "Known":
        """Merge clusters into the cache, or restart the cache with them when it is full."""
        symbols, _, _, first, lengths, hashes = clusters
        known = Known(hashes, first, lengths, symbols, outputs)
        if len(self.symbols) + len(outputs) <= MOST_REMEMBERED:
            known = known._replace(first=first + len(self.symbols))
            known = Known(*(torch.cat(pair) for pair in zip(self, known, strict=True)))
        hashes, order = known.hashes.sort()
        return known._replace(hashes=hashes, first=known.first[order], lengths=known.lengths[order])


class Kinds:
    """The kinds of cluster seen so far, with an alphabet that grows with them."""

    def __init__(self, weights: Weights, dtype: torch.dtype) -> None:
        self.weights = weights
        self.alphabet = Alphabet.of(weights, dtype)
        zero = torch.zeros(1, dtype=torch.int64, device=weights.device)
        symbol = zero.int()
        self.known = Known(zero, zero, zero, symbol, symbol)  # a cluster without symbols
        self.zeros_stay = not self._evaluate(stretches(symbol, zero == 0)).any()

    @classmethod
    def of(cls, weights: Weights, dtype: torch.dtype) -> "Kinds":
        """The remembered kinds of spans of these weights, as a mutable start."""
        weights = fixed(weights)
        return copy(weights.kinds.get(dtype)) or cls(weights, dtype)

    def remember(self) -> None:
        if max(len(self.alphabet.rows), len(self.known.symbols)) <= MOST_REMEMBERED:
            self.weights.kinds[self.alphabet.tokens.dtype] = self

    def outputs(self, clusters: Stretches) -> Int[Tensor, " e"]:
        """The symbol that each position of these clusters becomes."""
        at, missing = self.known.look_up(clusters)
        if missing.any():
            which = missing.nonzero().squeeze(-1)
            new = clusters.of(which[one_of_each_hash(clusters.hashes[which])[0]])
            self.known = self.known.and_also(new, self._evaluate(new))
            at, missing = self.known.look_up(clusters)
        found = self.known.outputs.index_select(0, at)
        if missing.any():  # two different clusters have one hash
            which = missing.nonzero().squeeze(-1)
            found[missing[clusters.ids]] = self._evaluate(clusters.of(which))
        return found

    def _evaluate(self, clusters: Stretches) -> Int[Tensor, " e"]:
        tokens = self.alphabet.tokens[clusters.symbols]
        *_, Z = evaluate_clusters(tokens, clusters.ids + 1, self.weights)
        self.alphabet, numbers = self.alphabet.number(Z > 0, self.weights)
        return numbers
