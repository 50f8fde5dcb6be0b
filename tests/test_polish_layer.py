"""The layer for Polish and reverse Polish notation beside an independent evaluator."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import enumerate_length
from exactformer.model import polish
from exactformer.model.circuit import Weights
from exactformer.model.encode import encode
from exactformer.model.layers import layer_of
from tests.polish_algebras import (
    ALPHABETS,
    CALCULATOR,
    LISTOPS,
    SIDES,
    ordered_algebra,
    random_text,
    stack_value,
    value,
)

MODELS = {algebra.name: ef.construct(algebra) for algebra in (LISTOPS, CALCULATOR)}
MODELS |= {f"{name} of listops": ef.load(f"listops/{name}", LISTOPS) for name in ("7520",)}
MODELS["dense"] = ef.construct(CALCULATOR, dense=True)


def expressions(algebra, texts):
    return [Expression(algebra, np.array(ids, dtype=np.int16)) for ids in texts]


@pytest.mark.parametrize("notation", SIDES)
@pytest.mark.parametrize(("n_values", "arities"), ALPHABETS)
def test_every_short_text_gets_its_value_in_as_many_iterations_as_its_number(
    n_values, arities, notation
):
    algebra = ordered_algebra(n_values, arities, notation)
    every = [e for length in range(1, 8) for e in enumerate_length(algebra, length)]
    found = ef.construct(algebra).outcomes(every)
    assert [outcome.value for outcome in found] == [value(algebra, e.ids.tolist()) for e in every]
    assert [outcome.iterations for outcome in found] == list(map(ef.strahler, every))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_random_texts_get_their_values(name, dtype):
    model, rng = MODELS[name], np.random.default_rng(0)
    texts = [random_text(model.algebra, n, rng) for n in (0, 1, 2, 3, 10, 100, 1000) for _ in "12"]
    found = model.predict(expressions(model.algebra, texts), dtype=dtype)
    assert found == [stack_value(model.algebra, ids) for ids in texts]


@given(st.integers(0, 2**32), st.lists(st.integers(0, 40), min_size=1, max_size=6), st.booleans())
def test_batches_of_any_texts(seed, sizes, reverse):
    rng = np.random.default_rng(seed)
    algebra = ordered_algebra(3, (1, 2, 3), SIDES[reverse], seed % 5)
    texts = [random_text(algebra, size, rng) for size in sizes]
    drawn = expressions(algebra, texts)
    found = ef.construct(algebra).outcomes(drawn)
    assert [o.value for o in found] == [stack_value(algebra, ids) for ids in texts]
    assert [o.iterations for o in found] == list(map(ef.strahler, drawn))


@pytest.mark.parametrize("algebra", [LISTOPS, CALCULATOR], ids=str)
def test_a_text_of_a_hundred_thousand_tokens(algebra):
    rng = np.random.default_rng(1)
    model = ef.construct(algebra)
    operators = 60_000 if algebra is CALCULATOR else 40_000
    drawn = random_text(algebra, operators, rng)
    first = algebra.token_ids["SM" if algebra is LISTOPS else "_"]
    chain = [first, 4] * 50_000 + [5] if algebra is LISTOPS else [5] + [first] * 100_000
    for ids in (drawn, chain):
        assert len(ids) > 99_000
        (expression,) = expressions(algebra, [ids])
        (found,) = model.outcomes([expression])
        assert (found.value, found.iterations) == (
            stack_value(algebra, ids),
            ef.strahler(expression),
        )


@pytest.mark.parametrize("notation", SIDES)
def test_what_is_no_expression_stays_and_leaves_its_neighbours_alone(notation):
    algebra = ordered_algebra(2, (1, 2, 3), notation)
    weights = ef.construct(algebra).weights
    assert isinstance(weights, Weights)
    rng = np.random.default_rng(0)
    rows, good = [], []
    for _ in range(60):
        good.append(len(rows))
        rows.append(random_text(algebra, int(rng.integers(1, 12)), rng))
        size = int(rng.integers(0, 12))
        drawn = rng.integers(-1, len(algebra.vocabulary), size).tolist()  # parentheses and gaps
        whole = random_text(algebra, size, rng)
        for bad in (drawn, whole[1:], whole[:-1], [*whole, 2], [2, *whole]):
            if bad and value(algebra, [token for token in bad if token >= 0]) is None:
                rows.append(bad)
    longest = max(map(len, rows))
    ids = torch.tensor([row + [-1] * (longest - len(row)) for row in rows])
    X = encode(ids, len(algebra.vocabulary))
    steps = layer_of(algebra, "log").steps(X, ids >= 0, weights, algebra)
    last = [step.X for step in steps][-1]
    for i, row in enumerate(rows):
        left = last[i].argmax(-1)[last[i].any(-1)].tolist()
        wanted = [2 + algebra.values.index(stack_value(algebra, row))] if i in good else None
        assert left == (wanted or [token for token in row if token >= 0])


def test_counts_are_those_of_the_definition():
    model = ef.construct(LISTOPS)
    expression = ef.parse(LISTOPS, "MIN 1 SM 2 3 MAX 4 5")
    X, inside = model.module("log").encode([expression])
    (step,) = [*polish.steps(X, model.weights, 10)][:1]
    assert step.reading.g.tolist() == [2, -1, 1, -1, -1, 1, -1, -1]
    assert step.reading.h.tolist() == [0, 2, 1, 2, 1, 0, 1, 0]
    assert step.written.opened.tolist() == [1, 0, 1, 0, 0, 1, 0, 0]
    assert step.written.closed.tolist() == [0, 0, 0, 0, 1, 0, 0, 2]
    shown = [LISTOPS.vocabulary[token] for token in step.written.ids[0].tolist()]
    assert " ".join(shown) == str(expression.parenthesized)
    assert inside.all()


def test_the_declared_gates_are_on_the_device_and_of_the_weights():
    weights = ef.construct(CALCULATOR).weights
    assert isinstance(weights, Weights)
    assert weights.gates["G_A"].tolist()[-4:] == [1, 1, 1, 0]
    with pytest.raises(ValueError, match="a gate of arities with a side, or neither"):
        replace(weights, side=None)
