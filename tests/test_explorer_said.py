"""A layer that the page has no picture of: what its steps say is drawn in a real browser."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

import exactformer as ef
from exactformer.domains.algebra import Algebra
from exactformer.domains.domain import Domain
from exactformer.domains.notation import NOTATIONS, Infix, Notation, Plain
from exactformer.explorer.choices import Choices
from exactformer.explorer.page import write_trace
from exactformer.model.iterations import COSTS
from exactformer.model.layers import LAYERS
from exactformer.trace import Explained
from exactformer.trace.runs import EXPLAINED
from tests.explorer import NO_BROWSER, Visit
from tests.programs import HALF_ADDER

pytestmark = NO_BROWSER


@dataclass(frozen=True)
class Change(Explained):
    """A record of the tokens that an iteration changed, for any layer."""

    tokens: list[str]
    state: list[str]

    def rows(self) -> dict[str, list[Any]]:
        pairs = list(zip(self.tokens, self.state, strict=True))
        moved = ["<b>" if new != old and new != "·" else "·" for old, new in pairs]
        changed = [int(old != new) for old, new in pairs]
        return {"tokens": self.tokens, "changed": changed, "moved": moved, "after": self.state}

    def events(self, domain: Domain) -> Iterator[str]:
        for position, (old, new) in enumerate(zip(self.tokens, self.state, strict=True)):
            if old != new:
                yield f"<i>{old}</i> at {position} becomes {new}"


CASES = {
    "infix": (Infix, "depth", ef.boolean(), "((1|(~(1&0)))&(~0))"),
    "prefix": (Notation, "depth", ef.listops(), "( MAX 1 ( SM 2 ( MIN 7 3 ) ) )"),
    "plain": (Plain, "plain", ef.arithmetic_plain(), "1+2*3+4*(5+6)*7"),
}


@pytest.fixture(params=CASES)
def case(request, monkeypatch) -> tuple[Algebra, str]:
    """The layers of CASES under another name, whose steps say something else."""
    notation, layer, algebra, text = CASES[request.param]
    toy = type("Toy", (notation,), {"layer": "toy"})("toy")
    monkeypatch.setitem(NOTATIONS, "toy", toy)
    monkeypatch.setitem(LAYERS, "toy", LAYERS[layer])
    monkeypatch.setitem(COSTS, "toy", COSTS[layer])
    monkeypatch.setitem(EXPLAINED, "toy", lambda algebra, step, *states: Change(*states))
    return replace(algebra, notation=toy), text


def cells(visit: Visit, row: int) -> list[str]:
    """The text of each cell in a row of the sheet; that of an empty place is empty."""
    drawn = visit.page.locator(".stage-said").nth(row)
    return drawn.evaluate("row => [...row.children].map(cell => cell.textContent)")


def test_its_rows_and_events_are_shown_at_each_iteration(visit, tmp_path, case):
    algebra, text = case
    path = tmp_path / "toy.html"
    write_trace(path, Choices(algebra, "constructed"), text)
    visit.open(path.as_uri())
    traced = ef.construct(algebra).trace(text)
    assert len(traced.steps) > 1
    for number, step in enumerate(traced.steps, start=1):
        assert visit.text("#sheet-title") == f"Iteration {number}"
        rows = step.rows()
        assert visit.page.locator(".label b").all_text_contents() == list(rows)
        for row, wanted in enumerate(rows.values()):
            assert cells(visit, row) == ["" if cell == "·" else str(cell) for cell in wanted]
        events = [*step.events(algebra)]
        assert visit.page.locator("#events li").all_text_contents() == events
        last = len(step.tokens) - 1
        visit.page.locator(".scroller svg").evaluate("(svg, at) => light(at)", last)
        assert visit.text("#details dl").split()[::2] == list(rows)
        visit.page.keyboard.press("ArrowRight")
    assert visit.page.locator("#events").is_hidden()
    assert visit.text("#value") == ef.oracle(ef.parse(algebra, text))
    assert visit.page.locator(".tree .node:not(.gone)").count() == 1
    assert f"It halts, after {len(traced.steps)} iterations" in visit.text("#sheet-caption")


MACHINES = {
    "parity": "1101",
    "flip-flop": None,
    "folds": "(DIFF 9 (LAST 4 5 6) (MAX 1 2))",
    "integers": "(12+(3*45))",
}


@pytest.mark.parametrize(("domain", "text"), MACHINES.items())
def test_machines_and_integers_are_shown_with_their_states(visit, address, domain, text):
    """There is a table for each iteration, no circuit, and a weights' view with states as rows."""
    view = {} if text is None else {"expression": text}
    visit.open(address, algebra=domain, **view)
    text = visit.page.input_value("#expression")
    traced = ef.construct(ef.find_domain(domain)).trace(text)
    assert visit.text("#value") == traced.value == ef.oracle(ef.parse(traced.domain, text))
    for step in traced.steps:
        rows = step.rows()
        assert "state" in rows
        assert visit.page.locator(".label b").all_text_contents() == list(rows)
        for row, wanted in enumerate(rows.values()):
            assert cells(visit, row) == ["" if cell == "·" else str(cell) for cell in wanted]
        events = [*step.events(traced.domain)]
        assert visit.page.locator("#events li").all_text_contents() == events
        visit.page.keyboard.press("ArrowRight")
    assert visit.page.locator("#circuit").is_hidden()
    assert visit.complaints == []


def test_the_weights_of_a_machine_have_rows_for_states(visit, address):
    visit.open(address, algebra="parity", view="weights")
    rows = visit.page.locator("svg[aria-label=W_1] .row-name")
    rows.first.wait_for()
    assert rows.all_text_contents() == ["0", "1", "$", "q0", "q1"]
    assert visit.page.locator("svg[aria-label=G_K] .row-name").all_text_contents() == [
        "0",
        "1",
        "$",
    ]
    assert visit.text("#size-name") == "length"


def test_from_a_machine_back_to_an_algebra(visit, address):
    visit.open(address, algebra="parity")
    visit.page.select_option("#algebra", "boolean")
    visit.page.locator("#circuit .node").first.wait_for()
    assert visit.text("#size-name") == "depth"
    visit.page.select_option("#algebra", "compare")
    visit.page.locator("#circuit").wait_for(state="hidden")
    visit.page.keyboard.press("r")  # draw a text of this length
    visit.page.wait_for_selector("#value")
    assert visit.complaints == []


def test_a_layer_with_a_picture_shows_that(visit, address):
    visit.open(address)
    assert visit.page.locator(".stage-attention").count() == 1
    assert visit.page.locator(".stage-said").count() == 0
    assert visit.page.locator("#events").is_hidden()


def test_the_statements_of_a_program_are_drawn_so_too(visit, tmp_path, monkeypatch):
    """The rows and events of each statement are drawn, as for an expression."""
    monkeypatch.setitem(NOTATIONS, "toy", type("Toy", (Infix,), {"layer": "toy"})("toy"))
    monkeypatch.setitem(LAYERS, "toy", LAYERS["depth"])
    monkeypatch.setitem(COSTS, "toy", COSTS["depth"])
    monkeypatch.setitem(EXPLAINED, "toy", lambda algebra, step, *states: Change(*states))
    algebra = replace(ef.boolean(), notation=NOTATIONS["toy"])
    path = tmp_path / "toy.html"
    write_trace(path, Choices(algebra, "constructed"), HALF_ADDER, kind="program")
    visit.open(path.as_uri(), statement="sum")
    (traced, *_) = ef.construct(algebra).trace_program(HALF_ADDER).statements
    assert visit.text("#sheet-title") == "Waiting"
    visit.page.keyboard.press("ArrowRight")
    for number, step in enumerate(traced.run.steps):
        wires = visit.page.locator(".stage-wires").count()
        assert wires == (number == 0)
        assert visit.page.locator(".label b").all_text_contents()[wires:] == list(step.rows())
        for row, wanted in enumerate(step.rows().values()):
            assert cells(visit, row) == ["" if cell == "·" else str(cell) for cell in wanted]
        events = [*step.events(algebra)]
        assert visit.page.locator("#events li").all_text_contents() == events
        visit.page.keyboard.press("ArrowRight")
