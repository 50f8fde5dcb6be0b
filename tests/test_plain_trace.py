"""Traces of plain notation."""

import json
import subprocess
import sys

import numpy as np
import pytest

import exactformer as ef
from exactformer.trace import PlainStep
from tests.plain_algebras import ALGEBRAS, MODULO7

SUMS = """\
1+2*3+4*(5+6)*7

iteration 1
  tokens    1 + 2 * 3 + 4 * ( 5 + 6 ) * 7
  level     · 1 · 2 · 1 · 2 · · 1 · · 2 ·
  opened    1 · 1 · · · 1 · · 1 · · · · ·
  closed    · · · · 1 · · · · · · 1 · · 2
  span      1 1 2 2 2 1 3 3 4 5 5 5 4 3 3
  mask      0 0 1 1 1 0 1 1 1 1 1 1 1 1 1
  after     1 + 6 · · + 8 · · · · · · · ·
  span 1: (1+□+□), which is 1+□, then …+□, waits for span 2 and span 3
  span 2: (2*3) is 6, written at 2
  span 3: (4*□*7), which is 4*□, then …*7, maps 0→0 1→8 2→6 3→4 4→2 5→0 6→8 7→6 8→4 9→2; \
with span 4 it is 8, written at 6
  span 4: (□) maps 0→0 1→1 2→2 3→3 4→4 5→5 6→6 7→7 8→8 9→9; with span 5 it is 1
  span 5: (5+6) is 1

iteration 2
  tokens    1 + 6 · · + 8 · · · · · · · ·
  level     · 1 · · · 1 · · · · · · · · ·
  opened    1 · · · · · · · · · · · · · ·
  closed    · · · · · · 1 · · · · · · · ·
  span      1 1 1 · · 1 1 · · · · · · · ·
  mask      1 1 1 0 0 1 1 0 0 0 0 0 0 0 0
  after     5 · · · · · · · · · · · · · ·
  span 1: (1+6+8), which is 1+6=7, then 7+8=5, is 5, written at 0

value 5 after 2 iterations"""


def test_as_text():
    assert str(ef.construct(ef.arithmetic_plain()).trace("1+2*3+4*(5+6)*7")) == SUMS


def test_on_the_command_line():
    text = "1 + 2 * 3 + 4 * (5 + 6) * 7"
    command = [sys.executable, "-m", "exactformer", "trace", "arithmetic-plain", text, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    data = json.loads(done.stdout)
    assert data["value"] == "5"
    assert data["steps"][0]["spans"][2]["fold"] == ["4*□", "…*7"]
    assert data["steps"][0]["levels"][:4] == [0, 1, 0, 2]


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=lambda algebra: algebra.name)
def test_every_step_follows_from_what_is_shown(algebra):
    """Maps compose to the values, values are written where it is said, and the rest stays."""
    model, rng = ef.construct(algebra), np.random.default_rng(0)
    for depth in range(1, 6):
        for expression in ef.draw(algebra, depth, 5, rng, parentheses=0.3):
            traced = model.trace(expression)
            assert traced.value == ef.oracle(expression)
            assert len(traced.steps) == ef.strahler(expression)
            for step in traced.steps:
                assert isinstance(step, PlainStep)
                _follows(algebra, step)


def _follows(algebra: ef.Algebra, step: PlainStep) -> None:
    by_number = {span.number: span for span in step.spans}
    assert list(by_number) == list(range(1, len(step.spans) + 1))
    written = {}
    for span in step.spans:
        if span.map is not None:
            (inner,) = span.inner
            arriving = by_number[inner].value
            assert span.value == (None if arriving is None else span.map[arriving])
        elif span.inner:
            assert span.value is None
        if span.at is not None:
            written[span.at] = span.value
    for position, (token, mask, after) in enumerate(
        zip(step.tokens, step.mask, step.state, strict=True)
    ):
        assert after == (written.get(position, "·") if mask else token)


def test_known_operands_are_folded_up_to_the_hole():
    (step,) = ef.construct(MODULO7).trace("1-2-3*(4)-5-6").steps
    assert isinstance(step, PlainStep)
    assert step.spans[0].fold == ["1-2=6", "6-□", "…-5", "…-6"]


def test_in_a_notebook():
    html = ef.construct(ef.boolean_plain()).trace("~1|0&1")._repr_html_()
    assert "opened" in html
    assert "<b>value 0 after 2 iterations</b>" in html
