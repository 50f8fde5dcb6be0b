"""A tiny transformer that computes exactly, at any length, and can prove it."""

from typing import TYPE_CHECKING

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import (
    arithmetic,
    arithmetic_plain,
    arithmetic_polish,
    boolean,
    boolean_plain,
    boolean_polish,
    find_domain,
    listops,
)
from exactformer.domains.definition import load_algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.expression import Expression
from exactformer.domains.formats.syntaxes import parse
from exactformer.domains.kinds import load_domain
from exactformer.domains.machines import Machine
from exactformer.domains.precedence import Level
from exactformer.domains.program import Program
from exactformer.domains.program_syntax import parse_program
from exactformer.domains.rearrangements import Rearrangement
from exactformer.domains.reference import evaluate as oracle
from exactformer.domains.sampling import draw, draw_balanced, enumerate_depth
from exactformer.domains.span_machines import SpanMachine
from exactformer.domains.strahler import strahler

if TYPE_CHECKING:
    from exactformer import protocol as protocol
    from exactformer.api import Model, construct, load
    from exactformer.domains.formats.netlists import read_netlist
    from exactformer.interp.causal import causal_graph
    from exactformer.interp.score import score_circuit
    from exactformer.protocol.table import depth_table
    from exactformer.training.run import train_seeds as train

__version__ = "0.1.0"

__all__ = [
    "Algebra",
    "Expression",
    "ExpressionError",
    "Level",
    "Machine",
    "Model",
    "Operator",
    "Program",
    "Rearrangement",
    "SpanMachine",
    "arithmetic",
    "arithmetic_plain",
    "arithmetic_polish",
    "boolean",
    "boolean_plain",
    "boolean_polish",
    "causal_graph",
    "construct",
    "depth_table",
    "draw",
    "draw_balanced",
    "enumerate_depth",
    "find_domain",
    "listops",
    "load",
    "load_algebra",
    "load_domain",
    "oracle",
    "parse",
    "parse_program",
    "read_netlist",
    "score_circuit",
    "strahler",
    "train",
]


# What needs torch is imported when first used: without it the command line starts fast.
_LATER = {
    "Model": "exactformer.api:Model",
    "causal_graph": "exactformer.interp.causal:causal_graph",
    "construct": "exactformer.api:construct",
    "depth_table": "exactformer.protocol.table:depth_table",
    "load": "exactformer.api:load",
    "protocol": "exactformer.protocol:",  # with names of its own: `exactformer.protocol.train`
    "read_netlist": "exactformer.domains.formats.netlists:read_netlist",
    "score_circuit": "exactformer.interp.score:score_circuit",
    "train": "exactformer.training.run:train_seeds",
}


def __getattr__(name: str):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pkgutil import resolve_name

    return resolve_name(_LATER[name])


def __dir__() -> list[str]:
    return [*__all__, "protocol", "__version__"]
