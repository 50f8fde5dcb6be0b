"""The page in a real browser: what a visitor does, and what they then see."""

import re
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest

from exactformer.domains.catalog import CATALOG, arithmetic, boolean
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.trace.palette import DIVERGING, DIVERGING_ENDS, KINDS, at_night
from tests.explorer import NO_BROWSER, Visit, serving

pytestmark = NO_BROWSER

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

EXAMPLE = "((1|0)&(~0))"


@pytest.mark.parametrize("domain", CATALOG)
@pytest.mark.parametrize("weights", ["constructed", "7520"])
def test_step_to_the_end(visit, address, domain, weights):
    algebra = CATALOG[domain]()
    expression = draw(algebra, 3, 1, np.random.default_rng(5))[0]
    visit.open(address, algebra=domain, weights=weights)
    visit.type(str(expression))
    visit.page.wait_for_function("text => trace.expression === text", arg=str(expression))
    before: list[str] = []
    for iteration in range(1, 4):
        assert visit.text("#sheet-title") == f"Iteration {iteration}"
        assert visit.text("#where") == f"{iteration} of 3"
        before = visit.tokens("state")
        visit.page.keyboard.press("ArrowRight")
        if iteration < 3:
            assert visit.tokens("tokens") == before
    assert visit.text("#sheet-title") == "The whole reduction"
    assert visit.text("#value") == evaluate(expression)
    assert "as the oracle says" in visit.text("#result")
    left = [symbol for symbol in visit.tokens("reduction")[-len(before) :] if symbol]
    assert left == [evaluate(expression)]
    assert visit.page.locator(".tree .node:not(.gone)").count() == 1
    visit.page.wait_for_selector("#verdict.exact")


def test_every_stage_is_there_and_names_its_equation(visit, address):
    visit.open(address, expression=EXAMPLE)
    labels = visit.page.locator(".label").all_inner_texts()
    assert len(labels) == 8
    numbers = " ".join(labels)
    assert all(f"Eq. {n}" in numbers for n in (1, 5, 12, 13))
    assert all(f"Eqs. {n}" in numbers for n in ("2–4", "6–9", "10–11"))
    assert visit.tokens("tokens") == list(EXAMPLE)
    assert visit.tokens("state") == ["(", "", "", "1", "", "", "&", "", "1", "", "", ")"]
    counts = visit.page.locator(".forward-count").all_text_contents()
    assert counts == list("122221122210")
    assert visit.page.locator(".bit").all_text_contents() == list("011111011110")
    assert visit.page.locator(".stage-clusters text").all_text_contents() == ["1", "2"]
    assert visit.page.locator(".arc").count() == 3 + 2  # operands and the operator itself
    assert visit.page.locator(".stage-bag .chip").all_text_contents() == ["1", "0", "|", "0", "~"]
    assert visit.page.locator(".stage-outputs .kept").all_text_contents() == ["1", "1"]
    assert visit.page.locator(".stage-outputs .bar").count() == 2 * len(boolean().vocabulary)


def test_an_algebra_of_ones_own_where_order_matters(visit):
    """Subtraction modulo 7: ranks are shown, and each operand of a bag with its slot."""
    with serving(str(EXAMPLES / "modulo7.toml")) as address:
        visit.open(address, expression="((5-3)-(2-6))")
        assert visit.page.locator(".label").count() == 9  # one more than without order
        ranks = visit.page.locator(".stage-ranks text").all_text_contents()
        assert len(ranks) == 2 * len("(5-3)")  # of the two spans that are reduced first
        assert visit.page.locator(".stage-bag .slot").all_text_contents() == ["1", "2", "1", "2"]
        visit.page.keyboard.press("End")
        visit.page.wait_for_function("trace.value !== undefined")
        assert visit.text("#value") == str((2 + 4) % 7)
        assert "as the oracle says" in visit.text("#result")
        visit.page.wait_for_selector("#verdict.exact")


def test_columns_are_aligned(visit, address):
    visit.open(address, expression=EXAMPLE)
    for stage in (".stage-tokens .token", ".forward-count", ".bit", ".stage-state .token"):
        middles = visit.page.locator(stage).evaluate_all(
            "all => all.map(e => e.getBoundingClientRect()).map(b => b.left + b.width / 2)"
        )
        steps = np.diff(middles)
        assert len(middles) == 12
        assert np.abs(steps - steps.mean()).max() < 1.5


def test_a_malformed_expression_shows_its_caret(mistaken_visit, address):
    visit = mistaken_visit
    visit.open(address, expression=EXAMPLE)
    visit.type("((1|0)&(~0)&1)")
    visit.page.wait_for_selector(".caret")
    assert visit.text("#problem").startswith("line 1, column 12: expected ')', found '&'")
    assert visit.page.locator("#mirror").evaluate("m => m.childNodes[0].length") == 11
    caret = visit.page.locator(".caret")
    assert caret.text_content() == "&"
    field = visit.page.locator("#expression").bounding_box()
    box = caret.bounding_box()
    assert field is not None
    assert box is not None
    assert 0.8 < (box["x"] - field["x"] - 14) / (11 * box["width"]) < 1.2  # under its character
    visit.type("((1|0)&(~0")
    assert "2 parentheses unclosed" in visit.text("#problem")
    visit.type(EXAMPLE)
    visit.page.wait_for_selector("#problem", state="hidden")
    assert visit.page.locator(".caret").count() == 0


def test_too_long_to_draw_is_said_plainly(mistaken_visit, address):
    visit = mistaken_visit
    text = "1"
    for _ in range(10):
        text = f"({text}|{text})"
    visit.open(address)
    visit.type(text)
    visit.page.wait_for_selector("#problem:not([hidden])")
    assert "4,093 tokens, too many to draw: the page takes 2,000" in visit.text("#problem")


def test_a_link_restores_the_view(visit, browser, address):
    visit.open(address)
    visit.page.select_option("#algebra", "arithmetic")
    visit.page.select_option("#weights", "1936")
    visit.type("((1+2)*((3+4)+5))")
    visit.page.wait_for_function("() => trace.weights === '1936' && trace.tokens.length === 17")
    visit.page.keyboard.press("ArrowRight")
    visit.page.locator(".stage-tokens .token").nth(11).click()
    assert visit.text("#details h2") == "Position 11"
    link = visit.link("weights=1936", "iteration=2", "position=11")

    def seen(visit: Visit) -> list:
        visit.page.wait_for_selector("#verdict.exact")
        fields = ["algebra", "weights", "expression", "scrub"]
        return [
            *(visit.page.input_value(f"#{name}") for name in fields),
            *(visit.text(place) for place in ("#where", "#sheet-title", "#result", "#details")),
            visit.page.locator(".scroller .pinned").get_attribute("x"),
        ]

    other = Visit(browser)
    other.page.goto(link)
    other.page.wait_for_selector("#value")
    assert seen(other) == seen(visit)
    other.page.keyboard.press("w")
    third = Visit(browser)
    third.page.goto(other.link("view=weights"))
    third.page.wait_for_selector(".certificate .exact")
    assert third.page.locator("#view-weights").is_visible()
    third.page.keyboard.press("w")
    assert seen(third) == seen(visit)
    assert other.complaints == third.complaints == []
    other.page.close()
    third.page.close()


def test_an_address_changed_by_hand(visit, address):
    visit.open(address, expression=EXAMPLE)
    visit.page.evaluate("location.hash = 'algebra=listops&expression=( SM 9 9 9 )'")
    visit.page.wait_for_function("() => trace.algebra === 'listops'")
    assert visit.text("#value") == "7"
    visit.page.evaluate("location.hash = 'algebra=nothing&iteration=many&position=-1'")
    visit.page.wait_for_selector("#problem:not([hidden])")
    assert "unknown task: nothing" in visit.text("#problem")


def thousand() -> str:
    """A random expression of about a thousand tokens."""
    rng = np.random.default_rng(1)
    drawn = draw(arithmetic(), 17, 100, rng)
    return str(next(e for e in drawn if 1000 <= len(e) <= 1100))


def test_a_thousand_tokens(visit, address):
    """What is drawn does not grow with the text, so neither does the work of a scroll."""
    text = thousand()
    visit.open(address, algebra="arithmetic", weights="7520", expression=text)
    assert visit.text("#value") == evaluate(parse(arithmetic(), text))
    visit.page.wait_for_selector("#overview:not([hidden])")
    measured = visit.page.evaluate(
        """async () => {
            const seen = [];
            const scroller = document.getElementById("scroller");
            const frame = () => new Promise(requestAnimationFrame);
            const far = scroller.scrollWidth - scroller.clientWidth;
            for (let part = 0; part <= 40; part++) {
                scroller.scrollLeft = (far * part) / 40;
                await frame();
                await frame();
                const boxes = [...scroller.querySelectorAll(".stage-tokens .token")];
                const edges = boxes.map((box) => box.getBoundingClientRect());
                const view = scroller.getBoundingClientRect();
                const started = performance.now();
                sheet.drawn = null;
                sheet.draw();
                seen.push({
                    nodes: document.querySelectorAll("*").length,
                    columns: boxes.length,
                    covered:
                        edges.some((edge) => edge.left <= view.left + 40) &&
                        edges.some((edge) => edge.right >= view.right - 40),
                    text: boxes.map((box) => box.textContent).join(""),
                    milliseconds: performance.now() - started,
                });
            }
            return seen;
        }"""
    )
    assert all(place["covered"] and place["text"] in text for place in measured)
    assert max(place["columns"] for place in measured) < 100
    assert max(place["nodes"] for place in measured) < 3500
    # 10 to 20 on a machine busy with other things.
    assert np.median([place["milliseconds"] for place in measured]) < 100
    for key in ("ArrowRight", "End", "Home"):
        visit.page.keyboard.press(key)
    assert visit.page.evaluate("document.querySelectorAll('*').length") < 3500


def test_hovering_links_columns_circuit_and_details(visit, address):
    visit.open(address, expression=EXAMPLE)
    visit.page.locator(".stage-mask .bit").nth(4).hover()
    assert visit.text("#details h2") == "Position 4"
    assert visit.page.locator(".tree .hovered").get_attribute("data-of") == "4"
    visit.page.locator(".tree .node").filter(has_text="~").hover()
    assert visit.text("#details h2") == "Position 8"
    mark = visit.page.locator(".scroller .hovered").bounding_box()
    token = visit.page.locator(".stage-tokens .token").nth(8).bounding_box()
    assert mark is not None
    assert token is not None
    assert mark["x"] <= token["x"] <= mark["x"] + mark["width"]
    assert "receives from 9 and becomes 1" in visit.text("#details .caption")
    assert visit.page.locator(".arc.bold").count() == 2
    visit.page.locator(".stage-tokens .token").nth(5).hover()  # a parenthesis: its span's gate
    assert visit.page.locator(".tree .hovered").get_attribute("data-of") == "3"


def test_play_and_keys(visit, address):
    visit.open(address, expression=EXAMPLE)
    visit.page.keyboard.press("Space")
    visit.page.wait_for_function(
        "() => document.getElementById('where').textContent === 'end, after 2'"
    )
    visit.page.keyboard.press("Home")
    assert visit.text("#where") == "1 of 2"
    visit.page.keyboard.press("End")
    assert visit.page.locator("#next").is_disabled()
    visit.page.fill("#scrub", "1")
    assert visit.text("#where") == "2 of 2"
    visit.page.keyboard.press("?")
    assert visit.page.locator("#help-dialog").is_visible()
    visit.page.keyboard.press("Escape")
    assert visit.page.locator("#help-dialog").is_hidden()
    visit.page.fill("#depth", "4")
    visit.page.locator("#depth").blur()
    visit.page.keyboard.press("r")
    visit.page.wait_for_function("() => trace.depth === 4")
    assert parse(boolean(), visit.page.input_value("#expression")).depth == 4


def test_random_weights_are_seen_to_fail(visit, address):
    visit.open(address, algebra="boolean", weights="random/3", expression=EXAMPLE)
    visit.page.wait_for_selector("#verdict.inexact")
    assert "the oracle says 1" in visit.text("#result")
    visit.page.locator("#verdict").click()
    visit.page.get_by_text("Watch it fail").click()
    visit.page.wait_for_function("() => trace.expression !== '((1|0)&(~0))'")
    assert "✗" in visit.text("#result")
    visit.page.fill("#seed", "4")
    visit.page.locator("#seed").blur()
    visit.page.wait_for_function("() => trace.weights === 'random/4'")
    assert visit.link("weights=random%2F4")


def test_the_weights(visit, address):
    visit.open(address, algebra="boolean", weights="7520", view="weights")
    visit.page.wait_for_selector(".certificate")
    titles = " ".join(visit.page.locator(".matrix h3").all_inner_texts())
    assert all(name in titles for name in ("G_PE", "W_Q", "W_K", "W_1", "b_1", "W_2", "b_2"))
    notes = visit.page.locator(".matrix figcaption").all_inner_texts()
    assert notes == ["discrete", "raw logits"] * 3
    gate = visit.page.locator(".matrix").first.locator("figure").first
    assert gate.locator(".entry text").all_text_contents() == ["1", "−1", *"00000"]
    assert "35 of 35" in visit.text(".certificate")
    assert "26.8" in visit.text(".certificate")  # the smallest margin


def test_light_and_dark_have_the_figures_colours(browser, address):
    for scheme, shade in (("light", lambda ink: ink), ("dark", at_night)):
        visit = Visit(browser, color_scheme=scheme)
        visit.open(address, expression=EXAMPLE)
        other = {"light": "dark", "dark": "light"}[scheme]

        def fill(kind: str, visit: Visit = visit) -> str:
            box = visit.page.locator(f".stage-tokens .ink-{kind} rect").first
            numbers = re.findall(r"\d+", box.evaluate("e => getComputedStyle(e).fill"))
            return "#" + "".join(f"{int(number):02x}" for number in numbers)

        for kind in ("parenthesis", "value", "operator"):
            assert fill(kind) == shade(KINDS[kind]).fill
        visit.page.keyboard.press("t")
        assert visit.page.evaluate("document.documentElement.dataset.theme") == other
        assert fill("value") != shade(KINDS["value"]).fill
        visit.page.reload()
        visit.page.wait_for_selector("#value")
        assert fill("value") != shade(KINDS["value"]).fill  # it is remembered
        assert visit.complaints == []
        visit.page.close()


def test_the_heat_maps_colours_are_those_of_the_figures():
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    ends = tuple(to_hex(colormaps[DIVERGING](place)) for place in (0.1, 0.9))
    for ours, theirs in zip(DIVERGING_ENDS, ends, strict=True):
        channels = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in (ours, theirs)]
        assert np.abs(np.diff(channels, axis=0)).max() <= 3


@pytest.mark.parametrize("view", ["trace", "weights"])
def test_a_narrow_screen(visit, address, view):
    visit.page.set_viewport_size({"width": 360, "height": 740})
    visit.open(address, algebra="listops", weights="7520", view=view)
    visit.page.wait_for_selector("#verdict.exact")
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if view == "trace":
        label = visit.page.locator(".label").first.bounding_box()
        token = visit.page.locator(".stage-tokens .token").first.bounding_box()
        assert label is not None
        assert token is not None
        assert label["y"] + label["height"] <= token["y"] + 1  # above, not beside


def test_markup_stays_text(mistaken_visit, address):
    visit = mistaken_visit
    markup = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    visit.page.goto(f"{address}#algebra=boolean&expression={quote(markup)}")
    visit.page.wait_for_selector("#problem:not([hidden])")
    assert visit.page.input_value("#expression") == markup
    assert visit.page.locator("#mirror").text_content() == markup
    assert visit.page.locator("img").count() == 1  # the page's own
    assert {
        request.split("#")[0].split("/", 3)[2]
        for request in visit.requests
        if request.startswith("http")
    } == {address.split("/")[2]}
