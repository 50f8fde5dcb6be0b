"""A tiny transformer that computes exactly, at any length, and can prove it."""

from importlib import import_module
from typing import TYPE_CHECKING

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import (
    arithmetic,
    arithmetic_plain,
    boolean,
    boolean_plain,
    listops,
)
from exactformer.domains.definition import load_algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.formats.syntaxes import parse
from exactformer.domains.precedence import Level
from exactformer.domains.reference import evaluate as oracle
from exactformer.domains.sampling import draw, draw_balanced, enumerate_depth
from exactformer.domains.strahler import strahler

if TYPE_CHECKING:
    from exactformer.api import Model, construct, load
    from exactformer.training.run import train_seeds as train

__version__ = "0.1.0"

__all__ = [
    "Algebra",
    "Expression",
    "ExpressionError",
    "Level",
    "Model",
    "Operator",
    "arithmetic",
    "arithmetic_plain",
    "boolean",
    "boolean_plain",
    "construct",
    "draw",
    "draw_balanced",
    "enumerate_depth",
    "listops",
    "load",
    "load_algebra",
    "oracle",
    "parse",
    "strahler",
    "train",
]


# What needs torch is imported when first used: without it the command line starts fast.
_LATER = {
    "Model": ("exactformer.api", "Model"),
    "construct": ("exactformer.api", "construct"),
    "load": ("exactformer.api", "load"),
    "train": ("exactformer.training.run", "train_seeds"),
}


def __getattr__(name: str):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, attribute = _LATER[name]
    return getattr(import_module(module), attribute)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
