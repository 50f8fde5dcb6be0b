"""The recipe for integers: a frozen dataclass with every constant of a run.

Given are the values of short spans, the two readings with their keys and gates, and the rows of the
second reading, which leaves out zeros at the top and digits below a `?`. The states of the first
reading and all its rows are learned, for every operator.
"""

from dataclasses import dataclass
from typing import Any

from exactformer.domains.bounds import MOST_HIDDEN, MOST_NUMBERS, MOST_STATES, require
from exactformer.domains.integers import Integers
from exactformer.training.integer_texts import MOST_LONG


@dataclass(frozen=True)
class IntegerFutures:
    """Every constant of learning by futures: a state is what the value will be, whatever follows.

    The perceptron starts from random numbers and is taught the rows that were found, first in
    batches, then those that are nearest to the threshold.
    """

    width: int  # units of the hidden layer
    states: int = 64  # of one operation, at most
    longest: int = 5  # digits of the operands of the short spans that are drawn
    alike: float = 0.5  # share of their places that have two equal digits
    checks: int = 2_000  # fresh short spans of each operation that must come out right
    continuations: int = 3  # columns of the longest ones by which states are told apart
    most_asked: int = 1 << 22  # spans asked for with continuations of one length, at most
    attempts: int = 4  # starts of a perceptron that does not get the margin, in all
    batch_steps: int = 4_000  # steps on batches, at most
    batch: int = 1_024  # rows of a step
    rate: float = 0.01
    betas: tuple[float, float] = (0.9, 0.99)  # Adam's
    clip: float = 1.0  # largest gradient norm
    warmup: float = 0.02  # fraction of these steps in which the rate rises,
    warmup_from: float = 0.3  # from this fraction of it
    floor: float = 0.02  # and then falls, as a cosine, to this fraction
    look_every: int = 100  # steps between evaluations of all rows
    margin: float = 0.5  # distance from the threshold that every output is to have
    polish_steps: int = 300  # of one round of moving outputs off the threshold
    polish_rate: float = 0.002
    polish_rounds: int = 4  # at most, until outputs have the margin

    @property
    def steps(self) -> int:
        """The most steps that the perceptron takes in an attempt."""
        return self.batch_steps + self.polish_rounds * self.polish_steps


def integer_recipe(domain: Integers, **settings: Any) -> IntegerFutures:
    """With more units for larger bases: there are about base^4 rows, most of them of products."""
    constants: dict[str, Any] = {"width": max(64, 5 * domain.base**2)}
    return IntegerFutures(**(constants | settings))


def counts_of(recipe: IntegerFutures) -> list[str]:
    """The constants that are numbers of something, of which there must be one at least."""
    return [name for name, part in IntegerFutures.__dataclass_fields__.items() if part.type is int]


def require_learnable(domain: Integers, recipe: IntegerFutures) -> None:
    """Raise a ValueError for constants that nothing can be learned with."""
    require("states", recipe.states, MOST_STATES)
    require("units of the hidden layer", recipe.width, MOST_HIDDEN)
    require("digits of a short operand", recipe.longest, MOST_LONG)
    numbers = recipe.batch * (2 * len(domain.vocabulary) + recipe.width)
    require("numbers of a batch", numbers, MOST_NUMBERS)
    require("digits of the spans of one draw", recipe.checks * recipe.longest, MOST_NUMBERS)
    if not 0 <= recipe.alike <= 1:
        raise ValueError(f"expected alike of 0 to 1, found {recipe.alike}")
