"""A tiny transformer that computes exactly, at any length, and can prove it."""

from typing import TYPE_CHECKING

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.definition import load_algebra
from exactformer.domains.notations import parse
from exactformer.domains.reference import evaluate as oracle
from exactformer.domains.sampling import draw, draw_balanced, enumerate_depth
from exactformer.domains.syntax import Expression, ExpressionError

if TYPE_CHECKING:
    from exactformer.api import Model, construct, load
    from exactformer.training.run import train_seeds as train

__all__ = [
    "Algebra",
    "Expression",
    "ExpressionError",
    "Model",
    "Operator",
    "arithmetic",
    "boolean",
    "construct",
    "draw",
    "draw_balanced",
    "enumerate_depth",
    "listops",
    "load",
    "load_algebra",
    "oracle",
    "parse",
    "train",
]


def __getattr__(name: str):
    """What needs torch is imported when first used: without it the command line starts fast."""
    if name in ("Model", "construct", "load"):
        from exactformer import api

        return getattr(api, name)
    if name == "train":
        from exactformer.training.run import train_seeds

        return train_seeds
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
