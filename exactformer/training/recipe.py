"""Training recipes: functions that return a frozen dataclass.

`Staged` goes in stages: depth 1 teaches attention and feedforward, then depth 2 the gate. There
are two of them, a fast one and a sure one. `EndToEnd` trains every parameter together, by
straight-through gradients, as the paper does.
"""

from dataclasses import dataclass, replace
from math import ceil, isfinite
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from exactformer.domains.algebra import Algebra
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import suggestion
from exactformer.domains.sampling import problems_of_depth
from exactformer.domains.units import slots_of
from exactformer.model.architecture import Activation, paper_architecture

PAPER_SEEDS = (8739, 7520, 1936, 7439, 6210, 5650, 5395, 3140, 1243, 5353)

EstimatorName = Literal["search", "score", "straight-through", "gumbel"]
GateEstimator = Literal["straight-through", "gumbel", "reinmax", "score", "search"]
Surrogate = Literal["exp", "sigmoid", "linear"]


@dataclass(frozen=True)
class Staged:
    """Every constant of a run in stages. Rates are Adam's; fractions are of `steps`."""

    steps: int  # of one attempt
    batch: int | None = None  # bags a step, drawn for each seed; None: all of them
    attempts: int = 5  # an uncertified seed starts again from its next draw, this often in all
    estimator: EstimatorName = "score"  # how depth 2 moves the gate
    spread: float = 0.1  # standard deviation of every initial logit, weight and bias
    open_bits: float = 0.1  # mean of the initial attention logits: most bits start open
    # A step, and the fraction of the bags that must be right then, or the attempt ends.
    give_up: tuple[int, float] | None = None
    feedforward_rate: float = 0.05
    attention_rate: float = 0.001
    betas: tuple[float, float] = (0.9, 0.99)
    clip: float = 1.0  # largest gradient norm of a seed
    warmup: float = 0.1  # fraction of the steps in which the rate rises,
    warmup_from: float = 0.3  # from this fraction of it
    floor: float = 0.05  # and then falls, as a cosine, to this fraction
    look_every: int = 50  # steps between evaluations
    gate_from: float = 0.98  # fraction of depth-1 bags that must be right before the gate learns
    gate_steps: int = 10  # steps of the gate after each evaluation from then on
    gate_looks: int = 8  # evaluations with depth 1 right and the gate wrong that end the attempt
    strings: int = 16  # depth-2 expressions for one step of the gate
    check_strings: int = 256  # depth-2 expressions that must come out right to end an attempt
    polish_steps: int = 300  # after the last row is right, to move outputs off the threshold
    polish_rate: float = 0.01
    width: int | None = None  # units of the hidden layer; None: as many as the paper's
    activation: Activation | None = None  # of these units; None: the paper's
    level_texts: int = 512  # in plain notation: short texts that teach the gate of levels
    # Of the estimator on it, at most; and as many again where prefix operators need more levels.
    level_steps: int = 300


FEW, SOME = 20, 400  # bags


def count_bags(algebra: Algebra) -> int:
    """Number of bags of depth 1, or of spans of depth 1 if order matters."""
    return algebra.count_cases(every_order=slots_of(algebra) > 1)


def recipe_for(algebra: Algebra) -> Staged:
    """The recipe of staged training, with steps by the number of cases. They are few, since a seed
    that fails has other attempts.
    """
    bags = count_bags(algebra)
    if bags <= FEW:
        return Staged(steps=1_000)
    if bags <= SOME:
        return Staged(steps=8_000, give_up=(1_000, 0.55), polish_steps=600, polish_rate=0.02)
    if paper_architecture(algebra).activation == "square":
        return _rectified(algebra, bags)
    return Staged(steps=3_000, batch=160)


def _rectified(algebra: Algebra, bags: int) -> Staged:
    """For many cases of operators on at most two operands.

    With squared units, the term in which two operands meet is the same for all operators, but for
    the factors that attention gives each operand, and attention has few of them: the more values
    there are, the more conflicts a routing has to resolve. Rectified units can be off for one
    operator. As they learn, attention may close all bits of an operator for good, unless
    most start well open. The gate has a logit for each of many tokens: drawn gates are wrong in
    some of them, so pairs are searched instead. Constants were tuned on seeds 200 to 206.
    """
    return Staged(
        steps=3_000,
        batch=max(512, bags // 8),
        estimator="search",
        open_bits=0.3,
        feedforward_rate=0.01,
        width=min(8 * len(algebra.vocabulary), 512),  # the paper's for rectified ones, or fewer
        activation="relu",
    )


def sure_recipe_for(algebra: Algebra) -> Staged:
    """The recipe that is meant to succeed at the first attempt, which takes longer. Its differences
    were tuned on seeds 30000 to 30119: see results/first-attempts.md.
    """
    recipe, bags = recipe_for(algebra), count_bags(algebra)
    if bags <= FEW:  # sure as it is
        return recipe
    if bags <= SOME:
        wide = 3 * paper_architecture(algebra).hidden
        return replace(recipe, give_up=None, width=wide, feedforward_rate=0.02, steps=16_000)
    if recipe.activation is not None:
        return replace(recipe, steps=6_000)
    return replace(recipe, open_bits=0.3, feedforward_rate=0.03, steps=6_000)


@dataclass(frozen=True)
class EndToEnd:
    """Every constant of a run in which all parameters are trained together.

    The loss of a step is
        E(sigmoid(Z)) + blended_weight * E(B) on depth 1, and depth_two_weight * E(B) on depth 2,
    where E is the binary cross entropy over all tokens, Z the feedforward's outputs, and B the
    state after the last iteration with softened numbers, as `soft_layer.py` says. The first term
    does not saturate, so that attention and feedforward become exact; the second and third pass a
    gradient to the gate.
    """

    epochs: int
    depth_one_steps: int  # steps of an epoch on depth 1 alone; they come first, as in the paper
    joint_steps: int  # steps of an epoch on depth 1 and 2 together
    batch: int = 500  # depth-1 problems a step: all of them, if there are no more
    depth_two_batch: int = 64  # depth-2 problems of a joint step
    depth_two_pool: int = 20_000  # size of the pool of depth-2 problems, if there are as many
    balanced: bool = False  # every answer has the same weight in the loss of a depth
    rate: float = 0.01  # the paper's rate
    feedforward_factor: float = 5.0  # factor of the rate for the feedforward
    attention_factor: float = 0.1  # factor of the rate for attention
    gate_factor: float = 0.1  # factor of the rate for the gate
    optimizer: Literal["adam", "adamw"] = "adamw"
    weight_decay: float = 0.0
    blended_weight: float = 3.0
    depth_two_weight: float = 0.1
    margin: float = 0.1  # probabilities in E(B) are squeezed into [margin, 1 - margin]
    temperature: float = 3.0  # of the outputs' sigmoid wherever a gradient passes it
    surrogate: Surrogate = "exp"  # function whose gradient the mask has
    slope: float = 1.0  # steepness of the surrogate
    maximum_detached: float = 0.0  # 1: the largest count of the mask has no gradient
    through_residual: float = 1.0  # fraction of the mask's gradient in the residual
    through_attention: float = 0.0  # fraction of the mask's gradient in attention
    estimator: GateEstimator = "straight-through"  # how the gate learns, as `gates.py` says
    gate_start: float = 0.0  # fraction of the steps after which it does
    gate_pull: float = 0.0  # of its logits to -1, 0 or 1 a step, as a fraction of the full rate
    gate_noise: float = 0.4  # of the estimators that draw gates: standard deviation of logits
    gumbel_temperature: float = 0.5
    gate_draws: int = 16  # of the score function, in antithetic pairs
    gate_strings: int = 16  # depth-2 problems that a drawn gate is tried on
    score_baseline: float = 1.0  # 1: a draw's error counts relative to the others' mean
    search_every: int = 50  # joint steps
    attempts: int = 1
    spread: float = 0.1  # standard deviation of every initial logit, weight and bias
    open_bits: float = 0.1  # mean of the initial attention logits: most bits start open
    betas: tuple[float, float] = (0.9, 0.99)
    clip: float = 1.0  # largest gradient norm of a seed
    warmup: float = 0.1  # fraction of the steps in which the rate rises,
    warmup_from: float = 0.3  # from this fraction of it
    floor: float = 0.05  # and then falls, as a cosine, to this fraction

    @property
    def width(self) -> None:
        """None, which means the paper's number of hidden units."""

    @property
    def epoch_steps(self) -> int:
        return self.depth_one_steps + self.joint_steps

    @property
    def steps(self) -> int:
        return self.epochs * self.epoch_steps

    def joint_step(self, step: int) -> int:
        """Index of a step among the joint steps; -1 if it is on depth 1 alone."""
        epoch, within = divmod(step, self.epoch_steps)
        within -= self.depth_one_steps
        return epoch * self.joint_steps + within if within >= 0 else -1


ENUMERATED = 100_000  # depth-2 problems; an epoch of an algebra with more has 2 for each of depth 1


def end_to_end_recipe(
    algebra: Algebra, epochs: int | None = None, batch: int = 500, **settings: Any
) -> EndToEnd:
    """The paper's number of epochs, each with as many steps as it takes to go through the problems
    of depth 1 and then through those of both depths, though batches are drawn; with any other
    constants as `settings`.
    """
    require_capability("end to end", algebra)
    if slots_of(algebra) > 1:
        raise ValueError(
            f"expected an algebra whose operators ignore the order of their operands, found "
            f"{algebra.name!r}: end to end, there is no rank gate"
        )
    algebra.require_fan_in()
    depth_one, depth_two = problems_of_depth(algebra, 1), problems_of_depth(algebra, 2)
    if depth_two > ENUMERATED:
        depth_two = 2 * depth_one
    if epochs is None:  # the paper's three, by how many problems there are
        epochs = 1000 if depth_two < 1000 else 300 if depth_one > 1000 else 50
    if epochs < 1 or batch < 1:
        raise ValueError(f"expected epochs and batch of 1 or more, found {epochs} and {batch}")
    steps = ceil(depth_one / batch), ceil((depth_one + depth_two) / batch)
    if depth_one > 1000:
        # So many cases need smaller steps of the feedforward, and larger ones of the gate. The pull
        # was tuned on seeds 301 to 308: without it the logits stay at the thresholds to the end.
        settings = {"feedforward_factor": 2.0, "gate_factor": 0.2, "gate_pull": 1.0, **settings}
    return EndToEnd(epochs, *steps, batch, **settings)


def read_setting(name: str, kind: object, value: object) -> object:
    """Convert a setting to the type of its field; a type that is not simple is not converted."""
    if not isinstance(value, str) or kind is str:
        return value
    if NoneType in get_args(kind):
        if value == "none":
            return None
        kind = int if int in get_args(kind) else kind
    try:
        if kind is bool:
            return {"true": True, "false": False}[value.lower()]
        if kind is int:
            return int(value)
        if kind is float and isfinite(number := float(value)):
            return number
        if get_origin(kind) is Literal:
            return get_args(kind)[get_args(kind).index(value)]
    except (ValueError, KeyError):
        what = {bool: "true or false", int: "a whole number", float: "a number"}
        expected = what.get(kind) or f"one of {', '.join(get_args(kind))}"
        hint = suggestion(value, get_args(kind))
        raise ValueError(f"expected {expected} for {name}, found {value!r}{hint}") from None
    raise ValueError(f"{name} cannot be set to {value!r}")
