"""How algebras are trained: what training asks of them, and who does it by which recipe."""

from collections.abc import Sequence
from typing import Any

from exactformer.domains.algebra import Algebra
from exactformer.domains.bounds import MOST_HIDDEN, MOST_LEARNED, MOST_NUMBERS, require
from exactformer.domains.capabilities import require_capability
from exactformer.domains.units import slots_of
from exactformer.model.architecture import paper_architecture
from exactformer.training.depth_one import padded
from exactformer.training.end_to_end import EndToEndTrainer
from exactformer.training.estimators import ASKING, BY_GRADIENT
from exactformer.training.levels import learn_levels
from exactformer.training.loop import Trainer
from exactformer.training.recipe import EndToEnd, Staged, count_bags
from exactformer.training.state import State, Trained, begin


def begin_spans(algebra: Algebra, recipe: Staged | EndToEnd, seeds: Sequence[int]) -> State:
    """The start of a run: spans in parentheses are learned first, also in plain notation."""
    return begin(algebra.parenthesized, recipe, seeds)


class SpansThenLevels:
    """Trains spans and then, in plain notation, the gate of levels of each seed that has ended."""

    def __init__(self, algebra: Algebra, recipe: Staged | EndToEnd, device: str) -> None:
        self.algebra, self.recipe = algebra, recipe
        spans = algebra.parenthesized
        staged = isinstance(recipe, Staged)
        self.spans = (Trainer if staged else EndToEndTrainer)(spans, recipe, device)  # type: ignore[arg-type]

    def advance(self, state: State) -> dict[int, Trained]:
        ended = self.spans.advance(state)
        if not (isinstance(self.recipe, Staged) and self.algebra.precedence):
            return ended
        return {row: learn_levels(self.algebra, end, self.recipe) for row, end in ended.items()}


def counted(algebra: Algebra, recipe: Staged | EndToEnd) -> dict[str, tuple[str, int]]:
    """The fields of a seed that count what is right, each with a name and out of how many."""
    drawn = recipe.strings if isinstance(recipe, Staged) else recipe.depth_two_batch
    return {"depth_one": ("depth 1", count_bags(algebra)), "depth_two": ("depth 2", drawn)}


def require_learnable(algebra: Algebra, recipe: Staged | EndToEnd) -> None:
    """Raise a ValueError for an algebra or constants that nothing can be learned with."""
    require_capability("end to end" if isinstance(recipe, EndToEnd) else "stages", algebra)
    cases = count_bags(algebra)
    what = f"cases of depth 1 of {algebra.name!r} to learn from"
    require(what, cases, MOST_LEARNED, "construct it instead")
    numbers = cases * (algebra.require_fan_in() + 3) * padded(len(algebra.vocabulary))
    require(f"numbers of all {what}", numbers, MOST_NUMBERS, "construct it instead")
    size = paper_architecture(algebra, recipe.width)
    certified = cases * (size.slots * size.D + size.hidden)
    what = f"numbers of the certificate for {size.hidden} units and {cases} cases"
    require(what, certified, MOST_NUMBERS, "choose a smaller width, or construct it instead")
    if isinstance(recipe, EndToEnd):
        return
    require("units of the hidden layer", recipe.width or 0, MOST_HIDDEN)
    _check_estimator(algebra, recipe.estimator)


def counts_of(recipe: Any) -> tuple[str, ...]:
    """The constants that are numbers of something, of which there must be one at least."""
    if isinstance(recipe, EndToEnd):
        counts = ("steps", "attempts", "batch", "depth_two_batch", "depth_two_pool")
        return (*counts, "gate_draws", "gate_strings", "search_every")
    counts = ("steps", "attempts", "look_every", "strings", "level_texts", "level_steps")
    return counts + tuple(n for n in ("width", "batch") if getattr(recipe, n) is not None)


def _check_estimator(algebra: Algebra, estimator: str) -> None:
    gate = "rank gate" if slots_of(algebra) > 1 else ""
    gate = "gate of levels" if algebra.precedence else gate
    if gate and estimator not in ASKING:
        raise ValueError(
            f"expected the estimator {' or '.join(ASKING)}, which can learn the {gate} "
            f"of {algebra.name!r}, found {estimator!r}"
        )
    if estimator not in (known := [*ASKING, *BY_GRADIENT]):
        raise ValueError(f"expected one of {', '.join(known)}, found {estimator!r}")
