"""How each kind of domain is trained: a table by the name of the kind, and recipes by method."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from exactformer.domains.algebra import Algebra
from exactformer.domains.capabilities import require_capability
from exactformer.domains.data import listed, suggestion
from exactformer.domains.domain import Domain
from exactformer.domains.integers import Integers
from exactformer.domains.machines import Machine
from exactformer.training import algebras, integer_recipes, integers, machine_recipes, machines
from exactformer.training.integer_recipes import IntegerFutures
from exactformer.training.machine_recipes import Beliefs, Futures
from exactformer.training.recipe import (
    EndToEnd,
    Staged,
    end_to_end_recipe,
    read_setting,
    recipe_for,
    sure_recipe_for,
)
from exactformer.training.state import State, Trained

AnyRecipe = Staged | EndToEnd | Futures | Beliefs | IntegerFutures


class Learner(Protocol):
    def advance(self, state: State) -> dict[int, Trained]:
        """Train up to the next evaluation; returns the seeds that have ended, by row."""
        ...


class Method(NamedTuple):
    """A way to learn: its name in the table of capabilities, the type of its recipe, and what makes
    the recipe for a domain with some settings.
    """

    capability: str
    recipe: type
    make: Callable[..., Any]


class Training(NamedTuple):
    """All that training has to know of a kind of domain. `Any` is a domain of that kind, or one of
    its recipes.

    methods   by their names; the first is taken where none is named.
    require   raises a ValueError for what nothing can be learned with.
    begin     the state of a run before its first step.
    learner   what advances such a state, on a device.
    counted   fields of a seed that count what is right, each with a name and out of how many.
    counts    constants of a recipe of which there must be one at least.
    """

    methods: Mapping[str, Method]
    require: Callable[[Any, Any], None]
    begin: Callable[[Any, Any, Sequence[int]], State]
    learner: Callable[[Any, Any, str], Learner]
    counted: Callable[[Any, Any], Mapping[str, tuple[str, int]]]
    counts: Callable[[Any], Sequence[str]]


TRAININGS: dict[str, Training] = {
    Algebra.kind: Training(
        {
            "staged": Method("stages", Staged, lambda a, **given: replace(recipe_for(a), **given)),
            "sure": Method(
                "stages", Staged, lambda a, **given: replace(sure_recipe_for(a), **given)
            ),
            "end-to-end": Method("end to end", EndToEnd, end_to_end_recipe),
        },
        algebras.require_learnable,
        algebras.begin_spans,
        algebras.SpansThenLevels,
        algebras.counted,
        algebras.counts_of,
    ),
    Machine.kind: Training(
        {
            "futures": Method("short texts", Futures, machine_recipes.futures_recipe),
            "beliefs": Method("short texts", Beliefs, machine_recipes.beliefs_recipe),
        },
        machine_recipes.require_learnable,
        machines.begin,
        machines.learner,
        machines.counted,
        machine_recipes.counts_of,
    ),
    Integers.kind: Training(
        {"futures": Method("short texts", IntegerFutures, integer_recipes.integer_recipe)},
        integer_recipes.require_learnable,
        integers.begin,
        integers.ByFutures,
        integers.counted,
        integer_recipes.counts_of,
    ),
}


def training_of(domain: Domain) -> Training:
    """How a domain is trained; a ValueError for one of a kind that is not."""
    if (training := TRAININGS.get(domain.kind)) is None:
        kinds = [
            k if k[-1] == "s" else f"an {k}" if k[0] in "aeiou" else f"a {k}" for k in TRAININGS
        ]
        raise ValueError(
            f"expected {listed(kinds)}, found {domain.name!r} of the kind {domain.kind}"
        )
    return training


def recipe_by_method(
    method: str | None, domain: Domain, settings: Mapping[str, object]
) -> AnyRecipe:
    """The recipe of a method for a domain, with those settings that are not None; settings may be
    text, as on a command line. Without a method it is the first of the domain's kind.
    """
    for training in TRAININGS.values():
        if method is not None and method in training.methods:
            require_capability(training.methods[method].capability, domain)
    methods = training_of(domain).methods
    method = method or next(iter(methods))
    if method not in methods:
        hint = suggestion(method, methods)
        raise ValueError(f"expected the method {listed([*methods])}, found {method!r}{hint}")
    require_capability(methods[method].capability, domain)
    fields = methods[method].recipe.__dataclass_fields__
    given: dict[str, Any] = {k: value for k, value in settings.items() if value is not None}
    for name, value in given.items():
        if name not in fields:
            hint = suggestion(name, fields)
            raise ValueError(f"the method {method} has no {name!r}{hint}")
        given[name] = read_setting(name, fields[name].type, value)
    return methods[method].make(domain, **given)
