"""Tables made of an algebra's own values are those that running certified weights gives.

So weights that are known to be certified need not be run for their tables.
"""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.catalog import BUILT_IN, CATALOG
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.build import algebra_values, build_automaton
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.read_off import read_off, span_values
from exactformer.weights.named import SHIPPED
from tests import algebras, plain_algebras
from tests.test_plain_certify import with_levels

FOLDER = Path(__file__).parent.parent / "examples"
EXAMPLES = sorted([*FOLDER.glob("*.toml"), *FOLDER.glob("plain/*.toml")])
FILES = [path for task in CATALOG for path in sorted((SHIPPED / task).glob("*.safetensors"))]
ALGEBRAS = [*algebras.EVERY, *plain_algebras.ALGEBRAS]


def differences(model: ef.Model) -> list[str]:
    """What differs between the tables of certified weights and those of their algebra."""
    algebra = model.algebra
    assert model.certify().verdict == "exact"
    run, looked_up = read_off(algebra, model.weights), built(algebra)
    assert type(run) is type(looked_up)
    return [field.name for field in fields(run) if not same(run, looked_up, field.name)]


def built(algebra: ef.Algebra) -> SpanAutomaton:
    return build_automaton(algebra, algebra_values(algebra))


def same(one: SpanAutomaton, other: SpanAutomaton, name: str) -> bool:
    a, b = (np.asarray(getattr(automaton, name)) for automaton in (one, other))
    return a.dtype == b.dtype and np.array_equal(a, b)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_of_every_shipped_weights_file(path):
    assert differences(ef.load(path)) == []


def test_there_are_shipped_weights_and_examples():
    assert (len(FILES), len(EXAMPLES)) >= (32, 8)


@pytest.mark.parametrize("kind", ["closed", "table", "dense"])
@pytest.mark.parametrize("domain", BUILT_IN)
def test_of_every_built_in_algebra_by_construction(domain, kind):
    assert differences(ef.load(f"constructed/{kind}", BUILT_IN[domain]())) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_of_every_example(path):
    assert differences(ef.construct(ef.load_algebra(path))) == []


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_of_other_algebras_in_every_notation(algebra):
    assert differences(ef.construct(algebra)) == []


@pytest.mark.parametrize("task", ["boolean", "arithmetic"])
def test_of_learned_infix_weights_that_serve_plain_notation(task):
    assert differences(ef.load(f"{task}/7520", BUILT_IN[f"{task}-plain"]())) == []


def test_of_weights_that_group_otherwise_without_a_difference():
    """With `+` below `-`, 1+2-3 is 1+(2-3), modulo seven the same."""
    gate = ({"-": 2}, {"+": 1, "-": 2, "*": 3}, [0, -1, -1, -1])
    assert differences(with_levels(plain_algebras.MODULO7, *gate)) == []


def test_the_values_are_the_models_and_not_the_algebras():
    """Weights for other tables, under the grammar of this algebra, give those other values."""
    values = ("1", "0")
    swapped = ef.Algebra(
        "boolean",
        values,
        (
            ef.Operator.from_rule("&", [2], max, values),
            ef.Operator.from_rule("|", [2], min, values),
            ef.Operator.from_rule("~", [1], lambda a: a, values),
        ),
        "infix",
    )
    algebra, weights = ef.boolean(), ef.construct(swapped).weights
    with pytest.raises(ValueError, match="certified exact"):
        read_off(algebra, weights)
    past_the_certificate = build_automaton(
        algebra, lambda operator, keys: span_values(algebra, weights, operator, keys)
    )
    assert not same(past_the_certificate, built(algebra), "step")
    assert CpuEngine(past_the_certificate, algebra).value("((1|0)&(~0))") == "0"
    assert CpuEngine(built(algebra), algebra).value("((1|0)&(~0))") == "1"
