"""The picture of a program's wires, in a real browser: where its boxes and arcs are."""

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.program_syntax import parse_program
from tests.explorer import NO_BROWSER, Visit
from tests.test_explorer_programs import HALF_ADDER

pytestmark = NO_BROWSER


def test_wires_lead_from_values_to_their_uses(visit, address):
    text = str(draw_program(ef.boolean(), 30, np.random.default_rng(1)))
    visit.open(address, program=text)
    program = parse_program(ef.boolean(), text)
    wires = set(zip(program.wires.tolist(), program.users.tolist(), strict=True))
    visit.page.set_viewport_size({"width": 2400, "height": 1800})
    visit.page.evaluate("byId('wires').style.maxHeight = 'none'")
    visit.page.wait_for_function("() => document.querySelectorAll('.statement').length >= 30")
    seen = visit.page.evaluate(
        """() => ({
            boxes: run.statements.map((statement) => ({...wires.place(statement),
                start: statement.start, end: statement.end})),
            room: wires.room, gap: GAP, lefts: run.statements.map(({end}) => wires.left(end)),
            arcs: [...document.querySelectorAll(".wire")].map((wire) => ({...wire.dataset,
                points: wire.getAttribute("d").match(/-?[\\d.]+/g).map(Number),
                way: Array.from({length: 101}, (_, i) =>
                    wire.getPointAtLength(wire.getTotalLength() * i / 100)).map(({x, y}) => [x, y]),
            })),
        })"""
    )
    assert {(int(arc["from"]), int(arc["to"])) for arc in seen["arcs"]} == wires
    for arc in seen["arcs"]:
        one, other = seen["boxes"][int(arc["from"])], seen["boxes"][int(arc["to"])]
        points = arc["points"]
        assert points[0] == pytest.approx(one["x"] + one["width"])
        assert points[-2] == pytest.approx(other["x"])
        assert points[0] < points[-2]  # to the right: a value is there before it is used
        assert one["y"] < points[1] < one["y"] + one["height"]
        assert other["y"] < points[-1] < other["y"] + other["height"]
        for x, y in arc["way"]:  # and no box is in its way, but one that spans a gap
            in_a_gap = (x - min(seen["lefts"]) - seen["room"]) % (seen["room"] + seen["gap"])
            if not 0.5 < in_a_gap < seen["gap"] - 0.5:
                for box in seen["boxes"]:
                    beside = not box["x"] + 0.5 < x < box["x"] + box["width"] - 0.5
                    assert beside or not box["y"] + 0.5 < y < box["y"] + box["height"] - 0.5
    for box, left in zip(seen["boxes"], seen["lefts"], strict=True):
        assert box["x"] + box["width"] == pytest.approx(left + seen["room"])
    for i, one in enumerate(seen["boxes"]):
        for other in seen["boxes"][:i]:  # no two overlap
            apart = one["x"] >= other["x"] + other["width"] or other["x"] >= one["x"] + one["width"]
            assert apart or abs(one["y"] - other["y"]) >= one["height"]


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1000, "light"), (2000, "dark")])
def test_every_width(browser, address, width, scheme):
    visit = Visit(browser, color_scheme=scheme)
    visit.page.set_viewport_size({"width": width, "height": 800})
    visit.open(address, program=HALF_ADDER)
    for _ in range(4):
        inside = visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert inside, "the page does not scroll sideways; its parts do"
        column, box = visit.page.evaluate(
            """() => [document.querySelector(".wires .column"), byId("wires")]
                .map((element) => element?.getBoundingClientRect().toJSON() ?? null)"""
        )
        assert (column is None) == (visit.text("#where") == "end, after 3")
        if column is not None:  # the iteration that is about to take place is in view
            assert box["left"] - 30 <= column["left"]
            assert column["right"] <= box["right"] + 30
        visit.page.keyboard.press("ArrowRight")
    visit.page.locator(".statement").last.click()
    assert visit.complaints == []
    visit.page.close()


def test_a_tap_selects_a_statement(browser, address):
    """The first touch also enters the box: it has to stay where it is."""
    visit = Visit(browser, has_touch=True)
    visit.open(address, program=HALF_ADDER)
    visit.page.locator(".statement[data-statement='0']").tap()
    assert visit.text("#statement") == "sum ="
    assert visit.page.locator(".statement.pinned").count() == 1
    assert visit.complaints == []
    visit.page.close()


def test_a_long_program_costs_no_more_than_what_is_seen(visit, address):
    chain = "x0=1;" + "".join(f"x{i + 1}=(~x{i});" for i in range(390))
    visit.open(address, program=chain)
    assert visit.text("#value") == "x390=1"
    assert visit.text("#where") == "1 of 390"
    for key in ("End", "ArrowLeft", "Home", "n"):
        visit.page.keyboard.press(key)
        assert visit.page.locator(".statement").count() < 60
    assert visit.page.evaluate("document.querySelectorAll('*').length") < 2500
    visit.type("a=1;" + "".join(f"x{i}=a;" for i in range(1000)), "Control+Enter")
    visit.page.wait_for_function("() => run.statements.length === 1001")
    assert visit.page.locator(".statement").count() < 60
    names = " ".join(f"x{i}=1" for i in range(1000))
    assert visit.page.locator("#value").get_attribute("title") == names
    width = visit.page.locator("#value").bounding_box()
    assert width is not None
    assert width["width"] < 900
