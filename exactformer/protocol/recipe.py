"""Every constant of the paper's protocol, and those it has for an algebra."""

from dataclasses import dataclass

from exactformer.domains.algebra import Algebra
from exactformer.domains.sampling import problems_of_depth

FITTED = 0.95  # the training accuracy, at both depths, from which on a seed counts
EPOCHS = {"arithmetic": 50, "boolean": 1000, "listops": 300}  # the paper's; 300 for any other
MOST_DEPTH_TWO = 100_000  # problems of depth 2 that are all taken; of more, some are drawn
SAMPLED = 8800  # so many


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Length and settings of a network's training."""

    epochs: int
    batch: int = 500
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    clip: float = 1.0
    warm_up: float = 0.1  # fraction of the steps in which the rate rises,
    warm_up_from: float = 0.3  # from this fraction of it
    cosine_to: float = 0.05  # and then falls to this fraction
    sampled: int = 0  # depth-2 problems drawn afresh each epoch; 0 takes all there are
    measured: int = 10_000  # at most so many problems of a depth measure the training accuracy
    share: float = 1.0  # fraction of an epoch's batches that are used


def default_recipe(algebra: Algebra) -> Recipe:
    """The paper's recipe for its three tasks; for another algebra, that of the closest task."""
    algebra.require_listable(every_order=True)
    sampled = SAMPLED if problems_of_depth(algebra, 2) > MOST_DEPTH_TWO else 0
    return Recipe(epochs=EPOCHS.get(algebra.name, EPOCHS["listops"]), sampled=sampled)
