"""The engine in tensor operations, against the oracle and against the automaton's definition."""

from functools import cache
from itertools import pairwise
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from exactformer.api import construct
from exactformer.domains.algebra import FIRST_VALUE, Algebra, Operator
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.read_off import read_off
from exactformer.engine.tensor import TensorEngine, longest_span
from tests.algebras import ALGEBRAS, TASKS
from tests.automata import automaton_of, run
from tests.cases import CASES
from tests.texts import SHAPES, spoil, tree
from tests.trees import algebras_with_trees, symbols, value

automaton_for = cache(automaton_of)


@cache
def engine(algebra: Algebra) -> TensorEngine:
    return TensorEngine(automaton_for(algebra), algebra)


def as_bytes(text: str | bytes) -> Tensor:
    data = text.encode() if isinstance(text, str) else text
    return torch.from_numpy(np.frombuffer(data, np.uint8).copy())


def as_ids(ids: list[int]) -> Tensor:
    return torch.tensor(ids, dtype=torch.uint8)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.domain} {case.text}")
def test_every_case(case):
    algebra = next(task for task in TASKS if task.name == case.domain)
    found = engine(algebra).value(as_bytes(case.text))
    if "\u00a0" in case.text or ("[" in case.text and "(" in case.text):
        assert found is None  # left to the pass that also locates errors
    else:
        assert found == algebra.values.index(case.value)


@given(algebras_with_trees())
def test_every_tree(drawn):
    algebra, tree = drawn
    text = " ".join(symbols(algebra, tree))
    assert engine(algebra).value(as_bytes(text)) == algebra.values.index(value(algebra, tree))


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes_and_slips(algebra, shape):
    rng = Random(f"{algebra.name} {shape}")
    automaton = automaton_for(algebra)
    spoilt = 0
    for size in (1, 2, 3, 5, 8, 20, 60, 200, 600):
        ids = tree(algebra, shape, size, rng)
        expected = run(automaton, ids)
        assert expected is not None
        assert engine(algebra).value_of_ids(as_ids(ids)) == expected
        for _ in range(6):
            wrong = spoil(algebra, ids, rng)
            expected = run(automaton, wrong)
            assert engine(algebra).value_of_ids(as_ids(wrong)) == expected
            spoilt += expected is None
    assert spoilt > 20


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_automata_read_off_weights(task):
    automaton = read_off(task, construct(task).weights)
    trial = TensorEngine(automaton, task)
    for depth in (1, 4, 9):
        for expression in draw(task, depth, 20, np.random.default_rng(depth)):
            found = trial.value(as_bytes(str(expression)))
            assert found == task.values.index(evaluate(expression))


@pytest.mark.parametrize("shape", ["left", "right", "zigzag", "skewed", "balanced"])
def test_long_texts(shape):
    """In a number of steps that does not grow with the depth: a comb is 100,000 deep."""
    task = arithmetic()
    ids = tree(task, shape, 100_000, Random(shape))
    assert engine(task).value_of_ids(as_ids(ids)) == run(automaton_for(task), ids)


@given(st.sampled_from(ALGEBRAS), st.data())
def test_any_text_is_read_as_the_parser_reads_it(algebra, data):
    """Spellings glued and spaced at random: the parser's value, or none."""
    parts = data.draw(
        st.lists(st.sampled_from([*algebra.token_ids, " ", "\n", "x", "é", "\0", "_"]), max_size=9)
    )
    text = "".join(parts)
    found = engine(algebra).value(as_bytes(text))
    try:
        expected = algebra.values.index(evaluate(parse(algebra, text)))
    except ExpressionError:
        expected = None
    assert found == expected or found is None
    if not {"é", "\0"} & set(text) and not set(text) & set("[]"):
        assert found == expected or _in_a_row(algebra, text)


def _in_a_row(algebra: Algebra, text: str) -> bool:
    """Whether marks stand side by side, which only the parser tells apart."""
    marks = {s for s in algebra.token_ids if not s.isalnum() and s not in "()"}
    return any(a in marks and b in marks for a, b in pairwise(text))


def test_many_values_and_no_bound_on_operands():
    """More values than fit in half a byte, and an operator that takes any number of operands."""
    values = tuple(f"v{i}" for i in range(40))
    rule = lambda a, b: f"v{(3 * int(a[1:]) + int(b[1:])) % 40}"  # noqa: E731
    algebra = Algebra(
        "forty", values, (Operator.from_rule("op", [2], rule, values, ordered=True),), "infix"
    )
    automaton, rng = automaton_of(algebra), Random(1)
    for shape in SHAPES:
        ids = tree(algebra, shape, 300, rng)
        found = TensorEngine(automaton, algebra).value_of_ids(as_ids(ids))
        assert found == run(automaton, ids) is not None
    endless = any_number_of_operands()
    assert longest_span(endless, 1000) == 1000
    for count in (1, 2, 500):
        ids = [0, 4, *([2, 3] * count), 1]
        trial = TensorEngine(endless, boolean())
        assert trial.value_of_ids(as_ids(ids)) == run(endless, ids) == count % 2


def any_number_of_operands() -> SpanAutomaton:
    """`( op a b c ... )`, worth the parity of the values number 1, from one operand on."""
    step = np.full((7, 7), -1, dtype=np.int32)
    value = np.full(7, -1, dtype=np.int32)
    step[0, FIRST_VALUE : FIRST_VALUE + 2] = 1, 2
    step[3, 4] = 4
    for state, parity in ((4, 0), (5, 0), (6, 1)):
        step[state, FIRST_VALUE], step[state, FIRST_VALUE + 1] = 5 + parity, 6 - parity
    value[5:] = 0, 1
    return SpanAutomaton(step, value, np.zeros_like(value), 2)


def test_longest_span():
    assert longest_span(automaton_for(boolean()), 100) == 3
    assert longest_span(automaton_for(listops()), 100) == 4
    assert longest_span(automaton_for(arithmetic()), 2) == 2
