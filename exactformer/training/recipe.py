"""How to train: a recipe is a function that returns a frozen dataclass."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from exactformer.domains.algebra import Algebra
from exactformer.domains.units import slots_of

PAPER_SEEDS = (8739, 7520, 1936, 7439, 6210, 5650, 5395, 3140, 1243, 5353)

EstimatorName = Literal["search", "score", "straight-through", "gumbel"]


@dataclass(frozen=True)
class Recipe:
    """Every constant of a training run. Rates are Adam's; fractions are of `steps`."""

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
    polish_steps: int = 300  # after the last row is right, to move outputs off the threshold
    polish_rate: float = 0.01


def recipe_for(algebra: Algebra) -> Recipe:
    """Steps by how much there is to learn: the number of bags, or of spans where order matters."""
    bags = algebra.count_cases(every_order=slots_of(algebra) > 1)
    if bags <= 20:
        return Recipe(steps=1_000)
    if bags <= 400:
        return Recipe(steps=8_000, give_up=(1_000, 0.55), polish_steps=600, polish_rate=0.02)
    return Recipe(steps=3_000, batch=160)


def change(recipe: Recipe, **settings: object) -> Recipe:
    """The recipe with those settings that are not None; the estimator's name is checked."""
    given = {name: value for name, value in settings.items() if value is not None}
    names = get_args(EstimatorName)
    if given.get("estimator", names[0]) not in names:
        raise ValueError(f"expected one of {', '.join(names)}, found {given['estimator']!r}")
    return replace(recipe, **given)
