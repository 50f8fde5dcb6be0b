"""Recipes for machines: functions that return a frozen dataclass with every constant of a run.

What is given is texts with their answers: which texts are allowed, the symbols of answers, and
whether a machine answers at the end or each symbol. States, transitions and outputs are learned.
"""

from dataclasses import dataclass
from typing import Any

from exactformer.domains.bounds import MOST_HIDDEN, MOST_NUMBERS, MOST_STATES, require
from exactformer.domains.machines import Machine
from exactformer.verify.machine import require_checkable

# Symbols that half of all places have, where the others hide what a state is about: two numbers
# are seldom equal for long.
OFTEN = {"compare": " ".join(2 * digit for digit in "0123456789")}
MOST_LONG = 1_000  # symbols
STATES = (256, 128, 64, 32, 16, 8, 1)  # of weights at most, the first that the certificate takes


@dataclass(frozen=True)
class MachineRecipe:
    """The constants that both ways to learn a machine have."""

    states: int  # that the weights may have at most; by beliefs, that they have
    longest: int = 5  # symbols of the short texts that are drawn
    often: str = ""  # symbols, with spaces between, that half of the places in drawn texts have
    checks: int = 20_000  # fresh short texts that must come out right to end an attempt
    width: int = 64  # units of the hidden layer
    attempts: int = 4  # starts of a seed whose short texts are not all right, in all
    betas: tuple[float, float] = (0.9, 0.99)  # Adam's
    margin: float = 0.5  # distance from the threshold that every output is to have
    polish_steps: int = 300  # of one round of moving outputs off the threshold
    polish_rate: float = 0.02
    polish_rounds: int = 8  # at most, until outputs have the margin


@dataclass(frozen=True)
class Futures(MachineRecipe):
    """Every constant of learning by futures: a state is what it answers to all that may follow.

    The perceptron starts from random numbers and is taught the rows that were found.
    """

    continuations: int = 5  # symbols of the longest ones by which states are told apart
    most_asked: int = 1 << 22  # texts asked for with continuations of one length, at most

    @property
    def steps(self) -> int:
        """The most steps that the perceptron takes in an attempt."""
        return self.polish_rounds * self.polish_steps


@dataclass(frozen=True)
class Beliefs(MachineRecipe):
    """Every constant of learning by beliefs: states are probabilities, and all is one gradient.

    The loss is the mean cross entropy of answers, less a bonus for the entropy of transitions.
    """

    steps: int = 1_500  # of one attempt
    sample: int = 40_000  # texts that a seed learns from
    batch: int = 128  # of them, for a step
    rate: float = 0.01
    entropy: float = 0.3  # weight of the bonus at first: it keeps states undecided
    entropy_until: float = 0.6  # fraction of the steps at which it has fallen to zero
    clip: float = 1.0  # largest gradient norm of a seed
    warmup: float = 0.02  # fraction of the steps in which the rate rises,
    warmup_from: float = 0.3  # from this fraction of it
    floor: float = 0.05  # and then falls, as a cosine, to this fraction
    look_every: int = 25  # steps between evaluations
    looks: int = 10  # evaluations in a row with all fresh texts right, to end an attempt


def futures_recipe(machine: Machine, **settings: Any) -> Futures:
    states = next(W for W in STATES if _checkable(machine, W))
    return Futures(**({"states": states, "often": _often(machine)} | settings))


def beliefs_recipe(machine: Machine, **settings: Any) -> Beliefs:
    """Twice as many states as the machine has: with fewer, seeds are stuck more often."""
    states = min(2 * len(machine.states), MOST_STATES)
    return Beliefs(**({"states": states, "often": _often(machine)} | settings))


def _checkable(machine: Machine, W: int) -> bool:
    try:
        require_checkable(machine, W)
    except ValueError:
        return False
    return True


def _often(machine: Machine) -> str:
    found = OFTEN.get(machine.name, "")
    return found if {*found.split()} <= {*machine.symbols} else ""


def counts_of(recipe: MachineRecipe) -> list[str]:
    """The constants that are numbers of something, of which there must be one at least."""
    return [name for name, part in type(recipe).__dataclass_fields__.items() if part.type is int]


def require_learnable(machine: Machine, recipe: MachineRecipe) -> None:
    """Raise a ValueError for a machine or constants that nothing can be learned with."""
    require("states", recipe.states, MOST_STATES)
    require("units of the hidden layer", recipe.width, MOST_HIDDEN)
    require_checkable(machine, recipe.states)
    read = len(machine.vocabulary) * recipe.states
    require("hidden numbers of all tokens in all states", read * recipe.width, MOST_NUMBERS)
    drawn = recipe.checks
    if isinstance(recipe, Beliefs):
        require("numbers of the maps of a batch", recipe.batch * recipe.states**2, MOST_NUMBERS)
        drawn = max(drawn, recipe.sample)
    require("symbols of the texts of one draw", drawn * recipe.longest, MOST_NUMBERS)
    require("symbols of a short text", recipe.longest, MOST_LONG)
    if not (machine.completions(recipe.longest)[1:, machine.start] > 0).any():
        raise ValueError(f"{machine.name!r} has no text of up to {recipe.longest} symbols")
    for symbol in recipe.often.split():
        if symbol not in machine.symbols:
            raise ValueError(f"expected symbols of {machine.name!r} as often, found {symbol!r}")
