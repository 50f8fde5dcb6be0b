"""Spans on the page in a real browser: the logarithmic layer, plain and Polish notation."""

from tests.explorer import NO_BROWSER, Visit
from tests.in_process import run_here
from tests.polish_algebras import EXAMPLES

pytestmark = NO_BROWSER

NESTED = "((1|(~(1&0)))&(~0))"
SUMS = "1+2*3+4*(5+6)*7"


def texts(visit: Visit, selector: str) -> list[str]:
    return visit.page.locator(selector).all_text_contents()


def test_the_logarithmic_layer(visit, browser, address):
    visit.open(address, expression=NESTED)
    assert visit.text("#where") == "1 of 4"
    visit.page.select_option("#iterations", "log")
    visit.page.wait_for_function("() => trace.iterations === 'log'")
    assert visit.text("#where") == "1 of 2"
    assert visit.page.locator(".label").count() == 8
    assert visit.text("#sheet-caption") == "5 spans of 19 positions: 4 with a value, 1 waiting"
    assert texts(visit, ".stage-spans text") == ["1", "2", "3", "4", "3", "2", "1", "5", "1"]
    assert texts(visit, ".stage-maps .pair") == ["1→1", "0→1", "1→0", "0→1"]
    assert texts(visit, ".stage-maps .comes") == ["1→1", "0→1"]
    assert texts(visit, ".stage-maps .note") == ["2 □"]
    assert texts(visit, ".stage-maps .chip") == ["0", "1"]  # of the spans without a hole
    assert visit.page.locator(".stage-scan .arc:not(.waits)").count() == 2
    assert visit.page.locator(".stage-scan .arc.waits").count() == 2
    assert visit.tokens("values") == ["1", "1", "0", "…", "1"]
    assert texts(visit, ".bit") == list("0111111111111011110")
    after = visit.tokens("state")
    assert [symbol for symbol in after if symbol] == ["(", "1", "&", "1", ")"]
    visit.page.locator(".stage-tokens .token").nth(5).click()
    assert visit.text("#details .caption") == "In span 3, which has a value: it becomes empty."
    assert "(~□) is a map" in visit.text("#details .facts")
    assert visit.text("#details .map .comes").split() == ["0", "→", "1", "comes"]
    other = Visit(browser)
    other.page.goto(visit.link("iterations=log", "position=5"))
    other.page.wait_for_selector("#value")
    for place in ("#where", "#sheet-caption", "#details"):
        assert other.text(place) == visit.text(place)
    assert other.complaints == []
    other.page.close()
    visit.page.keyboard.press("ArrowRight")
    assert visit.tokens("tokens") == after
    assert visit.tokens("values") == ["1"]
    visit.page.keyboard.press("l")
    visit.page.wait_for_function("() => trace.iterations === 'depth'")
    assert visit.text("#where") == "1 of 4"
    assert visit.page.input_value("#iterations") == "depth"


def test_weights_without_a_proof(mistaken_visit, address):
    """The logarithm is refused, and what shows their failing is the paper's layer."""
    visit = mistaken_visit
    visit.open(address, expression=NESTED, iterations="log")
    visit.page.select_option("#weights", "random/0")
    visit.page.wait_for_selector("#problem:not([hidden])")
    assert "need weights that are certified exact" in visit.text("#problem")
    visit.page.locator("#verdict.inexact").click()
    visit.page.get_by_text("Watch it fail").click()
    visit.page.wait_for_function("() => trace.iterations === 'depth'")
    assert visit.page.locator("#problem").is_hidden()
    assert "✗" in visit.text("#result")


def test_plain_notation(visit, address):
    visit.open(address, algebra="arithmetic-plain", weights="arithmetic/7520", expression=SUMS)
    assert visit.page.locator("#iterations").is_hidden()
    assert visit.page.locator(".label").count() == 9
    assert visit.tokens("tokens") == list(SUMS)
    assert texts(visit, ".stage-levels text") == ["1", "2", "1", "2", "1", "2"]
    assert texts(visit, ".stage-parentheses text") == ["(", "(", ")", "(", "(", ")", "))"]
    assert texts(visit, ".stage-spans text") == ["1", "2", "1", "3", "4", "5", "4", "3"]
    assert texts(visit, ".stage-maps .comes") == ["1→8", "1→1"]
    assert visit.tokens("values") == ["…", "6", "8", "1", "1"]
    visit.page.locator(".stage-tokens .token").nth(7).hover()
    assert "4*□, then …*7" in visit.text("#details .facts")
    assert visit.page.locator(".map tr").count() == 10
    assert visit.page.locator(".tree .hovered").get_attribute("data-of") == "7"
    visit.page.locator(".stage-tokens .token").nth(8).hover()  # a parenthesis: the gate inside
    assert visit.page.locator(".tree .hovered").get_attribute("data-of") == "10"
    assert visit.page.locator(".tree .node:not(.gone)").count() == 13
    visit.page.keyboard.press("ArrowRight")
    assert texts(visit, ".tree .node:not(.gone)") == ["1", "6", "+", "8", "+"]
    visit.page.locator(".stage-tokens .token").nth(6).hover()  # the value of the gate further on
    assert visit.page.locator(".tree .hovered").get_attribute("data-of") == "13"
    assert "1+6=7, then 7+8=5" in visit.text("#details .facts")
    visit.page.keyboard.press("End")
    assert texts(visit, ".tree .node:not(.gone)") == ["5"]
    assert "No operator is left" in visit.text("#sheet-caption")
    assert "as the oracle says" in visit.text("#result")
    visit.page.keyboard.press("w")
    visit.page.wait_for_selector("#verdict.exact")
    assert "Levels G_L" in " ".join(visit.page.locator(".matrix h3").all_inner_texts())


def test_a_mistake_in_plain_notation(mistaken_visit, address):
    visit = mistaken_visit
    visit.open(address, algebra="boolean-plain")
    visit.type("1 and or 0")
    visit.page.wait_for_selector(".caret")
    assert "line 1, column 7" in visit.text("#problem")
    assert "| has no operand before it" in visit.text("#problem")
    assert visit.page.locator("#mirror").evaluate("m => m.childNodes[0].length") == 6
    visit.type("not ( True ) and ( True )")
    visit.page.wait_for_selector("#problem", state="hidden")
    assert visit.text("#value") == "0"


def test_spans_on_a_narrow_screen(visit, address):
    visit.page.set_viewport_size({"width": 360, "height": 740})
    for view in ({"expression": NESTED, "iterations": "log"}, {"algebra": "arithmetic-plain"}):
        visit.open(address, **view)
        visit.page.wait_for_selector(".stage-maps .comes")
        assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_polish_notation(visit, address):
    visit.open(
        address, algebra="arithmetic-polish", weights="arithmetic/7520", expression="+ * 2 3 4"
    )
    assert visit.tokens("tokens") == list("+*234")
    assert texts(visit, ".stage-counts text") == ["1", "1", "-1", "-1", "-1"]
    assert texts(visit, ".stage-heights text") == ["0", "1", "2", "1", "0"]
    assert texts(visit, ".stage-spans text") == ["1", "2", "1"]
    assert visit.page.locator(".tree .node:not(.gone)").count() == 5
    visit.page.keyboard.press("End")
    assert texts(visit, ".tree .node:not(.gone)") == ["0"]
    assert "as the oracle says" in visit.text("#result")


def test_reverse_polish_notation(browser, tmp_path):
    path = tmp_path / "page.html"
    text, domain = "1 2 - 3 _ *", str(EXAMPLES / "modulo7.toml")
    assert run_here(["trace", domain, text, "--html", str(path)])[0] == 0
    visit = Visit(browser)
    visit.page.goto(path.as_uri())
    visit.page.wait_for_selector("#value", state="attached")
    assert visit.tokens("tokens") == text.split()
    assert texts(visit, ".tree .node:not(.gone)") == ["1", "2", "-", "3", "_", "*"]
    visit.page.keyboard.press("ArrowRight")
    assert texts(visit, ".tree .node:not(.gone)") == ["6", "4", "*"]
    visit.page.keyboard.press("End")
    assert texts(visit, ".tree .node:not(.gone)") == ["3"]
    assert visit.complaints == []
