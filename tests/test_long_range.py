"""The Long Range Arena's ListOps set: the law of the published generator, and its file."""

import random
from itertools import pairwise

import numpy as np
import pytest

from exactformer.domains.formats.long_range import draw_long_range
from exactformer.domains.formats.nangia import format_nangia

TREES = 20_000


def published_tree(level: int, rng: random.Random) -> list[str]:
    """The published law, as it is told: one node after the other, from the outermost inwards."""
    if level == 10 or rng.random() > 0.25:
        return [str(rng.randrange(10))]
    words = [rng.choice(["[MIN", "[MAX", "[MED", "[SM"])]
    for _ in range(rng.randint(2, 10)):
        words += published_tree(level + 1, rng)
    return [*words, "]"]


@pytest.fixture(scope="module")
def published() -> list[list[str]]:
    rng = random.Random(0)
    trees = (published_tree(1, rng) for _ in range(TREES))
    return [words for words in trees if 500 < len(words) < 2000]


@pytest.fixture(scope="module")
def ours() -> list[list[str]]:
    expressions = draw_long_range(1_000, np.random.default_rng(0))
    texts = [format_nangia(expression).split() for expression in expressions]
    return [[word for word in words if word not in "()"] for words in texts]


def test_the_bounds(ours):
    assert all(500 < len(words) < 2000 for words in ours)
    assert len({" ".join(words) for words in ours}) == 1_000
    expressions = draw_long_range(50, np.random.default_rng(1))
    assert max(expression.depth for expression in expressions) == 9
    assert {expression.algebra.name for expression in expressions} == {"listops-10-mean"}


def close(a: list[float], b: list[float]) -> bool:
    """Whether two samples have the same mean, within four standard errors of the difference."""
    error = np.hypot(np.std(a) / len(a) ** 0.5, np.std(b) / len(b) ** 0.5)
    return abs(np.mean(a) - np.mean(b)) < 4 * error


def test_the_law_is_the_published_one(ours, published):
    assert len(published) > 1_000
    for statistic in (
        len,
        lambda words: sum(word.startswith("[") for word in words) / len(words),
        lambda words: words.count("[MED") / len(words),
        lambda words: words.count("7") / len(words),
        lambda words: float(len(words) < 1_000),
        lambda words: sum(a == b == "]" for a, b in pairwise(words)),
    ):
        assert close([statistic(words) for words in ours], [statistic(w) for w in published])


def test_the_seed_decides_and_a_longer_draw_begins_alike():
    short = draw_long_range(3, np.random.default_rng(4))
    assert short == draw_long_range(5, np.random.default_rng(4))[:3]
    assert short != draw_long_range(3, np.random.default_rng(5))
    assert draw_long_range(0, np.random.default_rng(4)) == []
    with pytest.raises(ValueError, match="count from 0 to 200,000, found -1"):
        draw_long_range(-1, np.random.default_rng(4))
