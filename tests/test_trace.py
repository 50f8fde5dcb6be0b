"""Every intermediate of a run, as text and as data."""

import json

import numpy as np
import pytest
import torch

from exactformer.api import Model, construct
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.expression import EMPTY
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.model.circuit import Weights
from exactformer.model.feedforward import MLP
from exactformer.model.layers import LAYERS
from exactformer.trace import EMPTY_POSITION
from exactformer.trace.runs import EXPLAINED

# The example of the paper's Figs. 2 and 3.
PAPER = """\
((1|0)&(~0))

iteration 1
  tokens    ( ( 1 | 0 ) & ( ~ 0 ) )
  forward   1 2 2 2 2 1 1 2 2 2 1 0
  backward  0 1 2 2 2 2 1 1 2 2 2 1
  mask      0 1 1 1 1 1 0 1 1 1 1 0
  cluster   · 1 1 1 1 1 · 2 2 2 2 ·
  after     ( · · 1 · · & · 1 · · )
  cluster 1: | at 3 receives operands 1 0 and operator |, and becomes 1
  cluster 2: ~ at 8 receives operand 0 and operator ~, and becomes 1

iteration 2
  tokens    ( · · 1 · · & · 1 · · )
  forward   1 1 1 1 1 1 1 1 1 1 1 0
  backward  0 1 1 1 1 1 1 1 1 1 1 1
  mask      1 1 1 1 1 1 1 1 1 1 1 1
  cluster   1 1 1 1 1 1 1 1 1 1 1 1
  after     · · · · · · 1 · · · · ·
  cluster 1: & at 6 receives operands 2×1 and operator &, and becomes 1

value 1 after 2 iterations"""

LISTOPS = """\
( MAX 1 ( SM 2 2 ) )

iteration 1
  tokens    ( MAX 1 ( SM 2 2 ) · ) ·
  forward   1   1 1 2  2 2 2 1 1 0 0
  backward  0   1 1 1  2 2 2 2 1 1 0
  mask      0   0 0 1  1 1 1 1 0 0 0
  cluster   ·   · · 1  1 1 1 1 · · ·
  after     ( MAX 1 ·  4 · · · · ) ·
  cluster 1: SM at 4 receives operands 2×2 and operator SM, and becomes 4

iteration 2
  tokens    ( MAX 1 · 4 · · · · ) ·
  forward   1   1 1 1 1 1 1 1 1 0 0
  backward  0   1 1 1 1 1 1 1 1 1 0
  mask      1   1 1 1 1 1 1 1 1 1 0
  cluster   1   1 1 1 1 1 1 1 1 1 ·
  after     ·   4 · · · · · · · · ·
  cluster 1: MAX at 1 receives operands 1 4 and operator MAX, and becomes 4

value 4 after 2 iterations"""

LOGARITHMIC = """\
((1|(~(1&0)))&(~0))

iteration 1
  tokens    ( ( 1 | ( ~ ( 1 & 0 ) ) ) & ( ~ 0 ) )
  forward   1 2 2 2 3 3 4 4 4 4 3 2 1 1 2 2 2 1 0
  backward  0 1 2 2 2 3 3 4 4 4 4 3 2 1 1 2 2 2 1
  span      1 2 2 2 3 3 4 4 4 4 4 3 2 1 5 5 5 5 1
  mask      0 1 1 1 1 1 1 1 1 1 1 1 1 0 1 1 1 1 0
  after     ( · · 1 · · · · · · · · · & · 1 · · )
  span 1: (□&□) waits for span 2 and span 5
  span 2: (1|□) maps 1→1 0→1; with span 3 it is 1, written at 3
  span 3: (~□) maps 1→0 0→1; with span 4 it is 1
  span 4: (1&0) is 0
  span 5: (~0) is 1, written at 15

iteration 2
  tokens    ( · · 1 · · · · · · · · · & · 1 · · )
  forward   1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 0
  backward  0 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1
  span      1 · · 1 · · · · · · · · · 1 · 1 · · 1
  mask      1 0 0 1 0 0 0 0 0 0 0 0 0 1 0 1 0 0 1
  after     · · · · · · · · · · · · · 1 · · · · ·
  span 1: (1&1) is 1, written at 13

value 1 after 2 iterations"""


def test_every_layer_is_explained():
    assert EXPLAINED.keys() == LAYERS.keys()


@pytest.mark.parametrize("dense", [False, True])
def test_spans_by_the_logarithm(dense):
    assert (
        str(construct(boolean(), dense=dense).trace(LOGARITHMIC.split()[0], "log")) == LOGARITHMIC
    )


def test_the_data_of_spans():
    trace = construct(listops()).trace("( MAX ( MIN 9 ( SM 2 2 ) ) ( MED 1 2 ) )", "log")
    data = json.loads(json.dumps(trace.to_dict()))
    assert (data["value"], len(data["steps"])) == ("4", 2)
    first, second = data["steps"]
    assert first["state"] == second["tokens"]
    waiting, inner, innermost, other = first["spans"]
    assert (waiting["text"], waiting["inner"], waiting["value"]) == ("( MAX □ □ )", [2, 4], None)
    assert inner["map"] == {str(digit): str(digit) for digit in range(10)}
    assert (inner["inner"], inner["value"], first["state"][inner["at"]]) == ([3], "4", "4")
    assert (innermost["value"], innermost["at"]) == ("4", None)
    assert (other["text"], other["start"], other["map"]) == ("( MED 1 2 )", 13, None)
    assert second["spans"][0]["text"] == "( MAX 4 1 )"
    waiting = str(construct(boolean()).trace("(~((~1)&(~0)))", "log"))
    assert "span 1: (~□) maps 1→0 0→1; waits for span 2\n" in waiting


def test_a_notebook_shows_spans_in_their_colours():
    html = construct(boolean()).trace("(~(~1))", "log")._repr_html_()
    assert html.count("<table>") == 1
    assert "span 2: (~1) is 0" in html


@pytest.mark.parametrize("kind", ["closed", "table", "fitted"])
def test_the_example_of_the_paper(kind):
    assert str(construct(boolean(), kind).trace("((1|0)&(~0))")) == PAPER


def test_dense_vectors_are_shown_as_their_tokens():
    assert str(construct(boolean(), dense=True).trace("((1|0)&(~0))")) == PAPER


def test_prefix_notation_shows_its_empty_slots():
    assert str(construct(listops()).trace("( MAX 1 ( SM 2 2 ) )")) == LISTOPS


def test_depth_1_and_0():
    model = construct(arithmetic())
    assert str(model.trace("(7*8)")).endswith("\n\nvalue 6 after 1 iteration")
    assert str(model.trace("7")) == "7\n\nvalue 7 after 0 iterations"


def test_the_data():
    trace = construct(boolean()).trace("((1|0)&(~0))")
    data = json.loads(json.dumps(trace.to_dict()))
    assert data.keys() == {"expression", "steps", "value"}
    assert (data["expression"], data["value"]) == ("((1|0)&(~0))", "1")
    first, second = data["steps"]
    lists = {"tokens", "forward", "backward", "mask", "clusters", "state"}
    assert first.keys() == lists | {"routed", "outputs", "ranks", "slots"}
    assert (first["ranks"], first["slots"]) == (None, {})  # only where order matters
    assert {len(first[name]) for name in lists} == {12}
    assert first["state"] == second["tokens"]
    assert first["routed"] == {"3": {"1": 1, "0": 1, "|": 1}, "8": {"0": 1, "~": 1}}
    assert first["outputs"].keys() == first["routed"].keys()
    above = {token for token, number in first["outputs"]["3"].items() if number > 0}
    assert above == {"1"}


def test_the_end_is_what_the_model_says(task):
    model = construct(task, "table")
    rng = np.random.default_rng(0)
    for depth in range(6):
        for expression in draw(task, depth, 4, rng):
            trace = model.trace(expression)
            assert trace.value == model(expression) == evaluate(expression)
            assert len(trace.steps) == depth
            symbols = [*task.vocabulary, EMPTY_POSITION]
            if trace.steps:
                assert trace.steps[0].tokens == [
                    symbols[i if i != EMPTY else -1] for i in expression.positions
                ]


def test_weights_that_are_not_exact_can_be_traced():
    """Whatever they do, the trace ends and agrees with the model."""
    generator = torch.Generator().manual_seed(0)
    several = 0
    for _ in range(50):
        W_1, b_1, W_2, b_2 = (
            torch.randn(shape, generator=generator) for shape in ((7, 14), (14,), (14, 7), (7,))
        )
        f = MLP(W_1, b_1, W_2, b_2, "square")
        gate = torch.randint(-1, 2, (7,), generator=generator).float()
        W_Q, W_K = torch.randint(0, 2, (2, 7, 4), generator=generator).float()
        model = Model(boolean(), Weights(gate, W_Q, W_K, f))
        for expression in draw(boolean(), 3, 2, np.random.default_rng(0)):
            trace = model.trace(expression)
            assert trace.value == model.predict([expression])[0]
            assert len(trace.steps) <= int((expression.ids == 0).sum())
            text = str(trace)
            assert (trace.value is None) == ("no single value is left after" in text)
            several += any("+" in token for step in trace.steps for token in step.state)
    assert several  # positions that hold more than one token are shown as such
