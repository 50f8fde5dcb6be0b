"""The expected number of tokens of a random text, by its depth."""

from collections.abc import Iterator
from itertools import count, islice
from typing import NamedTuple


class Growth(NamedTuple):
    """A law by which random texts of an exact depth are drawn.

    A text of depth 0 has `leaf` tokens. A span of depth d has `own` tokens, one part of depth d-1
    and `others` more; each of these is a text of depth 0 with probability `shallow`, and otherwise
    has a depth uniform in 0..d-1. All of them are means.
    """

    leaf: float
    own: float
    others: float
    shallow: float

    def tokens(self, depth: int) -> list[float]:
        """The expected number of tokens of a text, for each depth from 0 to `depth`."""
        return list(islice(self._means(), depth + 1))

    def _means(self) -> Iterator[float]:
        mean, total = self.leaf, 0.0
        for deeper in count(1):
            yield mean
            total += mean
            other = self.shallow * self.leaf + (1 - self.shallow) * total / deeper
            mean += self.own + self.others * other
