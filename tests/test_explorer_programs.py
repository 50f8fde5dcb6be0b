"""Programs on the page, in a real browser: statements, the wires between them, and their values."""

from dataclasses import replace

import numpy as np
import pytest

import exactformer as ef
from exactformer.domains.catalog import BUILT_IN
from exactformer.domains.errors import ExpressionError
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.program_syntax import parse_program
from exactformer.explorer.choices import Choices
from exactformer.explorer.page import write_trace
from exactformer.trace.programs import TracedStatement
from tests.explorer import NO_BROWSER, Visit

pytestmark = NO_BROWSER

HALF_ADDER = "sum = ((a|b)&(~carry));\ncarry = (a&b);\na = 1;\nb = 0;"
COPIES = "y = x;\nz = ((y&x)|(~w));\nx = (w|0);\nw = 1;\nv = ((1&1)&1);"
SEEN = """boxes => boxes.map(box => ({
    name: box.querySelector(".name").textContent,
    text: box.querySelector(".text").textContent,
    value: box.querySelector(".value")?.textContent ?? null,
    state: ["known", "acts", "waits"].find(state => box.classList.contains(state)),
    full: box.querySelector("title").textContent,
}))"""


def boxes(visit: Visit) -> list[dict]:
    return visit.page.locator(".statement[data-statement]").evaluate_all(SEEN)


def expected(statement: TracedStatement, now: int) -> dict:
    """The text in the box of a statement after so many iterations."""
    known, waits = statement.end <= now, now < statement.start
    text = statement.text if known or waits else statement.states[now - statement.start]
    return {
        "name": statement.name,
        "text": text,
        "value": statement.value if known else None,
        "state": "known" if known else "waits" if waits else "acts",
        "full": f"{statement.name} = {statement.text}" + f" is {statement.value}" * known,
    }


@pytest.mark.parametrize("by", ["depth", "log"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_each_iteration_shows_what_each_statement_is(visit, address, name, by):
    algebra = BUILT_IN[name]()
    text = COPIES if name == "boolean" else str(draw_program(algebra, 6, np.random.default_rng(3)))
    traced = ef.construct(algebra).trace_program(text, by)
    visit.open(address, algebra=name, program=text, iterations=by)
    for now in range(traced.iterations + 1):
        end = now == traced.iterations
        assert visit.text("#where") == (
            f"end, after {now}" if end else f"{now + 1} of {traced.iterations}"
        )
        wanted = [expected(statement, now) for statement in traced.statements]
        assert boxes(visit) == [w | {"text": cut(w, visit)} for w in wanted]
        sent = visit.page.locator(".wire.sent").count()
        ends = {s.name: s.end for s in traced.statements}
        done = {wire for wire in traced.wires if ends[traced.statements[wire[0]].name] <= now}
        assert sent == len(done)
        visit.page.keyboard.press("ArrowRight")
    values = " ".join(f"{name}={value}" for name, value in traced.outputs.items())
    assert visit.text("#value") == values
    assert "as the oracle says" in visit.text("#result")


def cut(shown: dict, visit: Visit) -> str:
    """The text of a box, shortened where the box is: its full text is then in its title."""
    drawn = next(box["text"] for box in boxes(visit) if box["name"] == shown["name"])
    if drawn.endswith("…"):
        assert shown["text"].startswith(drawn[:-1])
        assert len(drawn) > 8
        return drawn
    return shown["text"]


def test_a_statement_is_shown_as_its_layer_says(visit, address):
    visit.open(address, program=HALF_ADDER)
    assert visit.text("#statement") == "carry ="  # it is the one at work
    assert visit.text("#sheet-title") == "Iteration 1"
    assert visit.tokens("tokens") == list("(1&0)")
    assert visit.tokens("wires") == ["", "a", "", "b", ""]
    visit.page.locator(".statement[data-statement='0']").hover()
    assert visit.text("#statement") == "sum ="
    assert visit.text("#sheet-title") == "Waiting"
    assert visit.text("#sheet-caption") == "It waits for carry."
    names = ["(", "(", "a", "|", "b", ")", "&", "(", "~", "carry", ")", ")"]
    assert visit.tokens("waiting") == names
    assert visit.page.locator(".wire.bold").count() == 3
    assert visit.page.locator(".wire.faded").count() == 2
    visit.page.locator("h1").hover()
    assert visit.text("#statement") == "carry ="
    visit.page.locator(".statement[data-statement='0']").click()
    visit.page.locator("h1").hover()
    visit.page.keyboard.press("ArrowRight")
    assert visit.text("#statement") == "sum ="
    assert visit.text("#sheet-title") == "Iteration 2"
    assert visit.tokens("tokens") == list("((1|0)&(~0))")
    assert visit.tokens("wires") == ["", "", "a", "", "b", "", "", "", "", "carry", "", ""]
    assert visit.page.locator(".tree .node").count() == 6
    visit.page.keyboard.press("ArrowRight")
    assert visit.tokens("wires") == []  # names are read once
    visit.page.keyboard.press("ArrowRight")
    assert visit.text("#sheet-title") == "The whole reduction"
    assert visit.page.locator(".label b").all_text_contents() == [
        "At the start",
        "After 1 iteration",
        "After 2 iterations",
    ]


def test_by_keys_alone(visit, address):
    visit.open(address)
    visit.page.focus("#kind")
    visit.page.keyboard.press("p")  # the option that begins so
    visit.page.wait_for_function("() => run?.named")
    assert visit.page.input_value("#expression") == HALF_ADDER
    visit.page.keyboard.press("Escape")
    visit.page.keyboard.press("n")
    assert visit.text("#statement") == "sum ="
    visit.page.keyboard.press("n")
    assert visit.text("#statement") == "carry ="
    visit.page.keyboard.press("p")
    visit.page.keyboard.press("p")
    assert visit.text("#statement") == "b ="
    assert visit.page.locator(".statement.pinned").get_attribute("data-statement") == "3"
    assert visit.link("statement=b")
    visit.page.keyboard.press("Escape")
    assert visit.text("#statement") == "carry ="
    assert visit.page.locator(".statement.pinned").count() == 0
    visit.page.keyboard.press("End")
    assert visit.text("#where") == "end, after 3"
    visit.page.keyboard.press("/")
    visit.page.keyboard.press("Control+End")
    visit.page.keyboard.press("Enter")  # begins a line
    visit.page.keyboard.type("c = (sum&a);")
    visit.page.keyboard.press("Control+Enter")
    visit.page.wait_for_function("() => run.statements.length === 5")
    assert visit.text("#value") == "c=1"
    visit.page.keyboard.press("Escape")
    visit.page.keyboard.press("r")
    visit.page.wait_for_function("() => answer.program.startsWith('x')")


MISTAKES = [
    "a=1;\nb=(a&c);",
    "x=(y&1);\ny=(z|0);\nz=x;",
    "a=1;\na=0;",
    "AND=1;",
    "a=1;\nb=(a&1)",
    "größe=1;b=(größe & ~1);",
    "a=1;\nb=((a|1);\nc=0;",
]


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_is_located_as_by_the_command_line(mistaken_visit, address, text):
    visit = mistaken_visit
    visit.open(address, program=HALF_ADDER)
    visit.type(text, "Control+Enter")
    visit.page.wait_for_selector("#problem:not([hidden])")
    with pytest.raises(ExpressionError) as raised:
        parse_program(ef.boolean(), text)
    assert visit.text("#problem") == str(raised.value).partition("\n")[0]
    place = raised.value.offset
    assert visit.page.locator("#mirror").evaluate("m => m.childNodes[0].length") == place
    marked = text[place] if place < len(text) else " "
    assert visit.page.locator(".caret").text_content() == marked
    visit.type(HALF_ADDER, "Control+Enter")
    visit.page.wait_for_selector("#problem", state="hidden")
    assert visit.text("#value") == "sum=1"


def test_the_mark_at_the_end_of_a_line_leaves_the_lines_as_they_are(mistaken_visit, address):
    visit = mistaken_visit
    text = "a=1\n\n"
    visit.open(address, program=HALF_ADDER)
    visit.type(text, "Control+Enter")
    visit.page.wait_for_selector(".caret")
    assert visit.page.locator("#mirror").text_content() == "a=1 \n\n"


def test_a_file_is_opened(mistaken_visit, address, tmp_path):
    visit = mistaken_visit
    visit.open(address)
    path = tmp_path / "half.txt"
    path.write_bytes(b"\xef\xbb\xbf" + HALF_ADDER.replace("\n", "\r\n").encode())
    for _ in range(2):  # the same one again
        with visit.page.expect_response("**/api/trace"):
            visit.page.set_input_files("#file", path)
        visit.page.wait_for_function("() => answer.program")
        assert visit.page.input_value("#kind") == "program"
        assert visit.page.input_value("#expression") == HALF_ADDER
        assert visit.text("#value") == "sum=1"
    path.write_bytes(b"a=1;\nb=\xff;")
    with visit.page.expect_response("**/api/trace"):
        visit.page.set_input_files("#file", path)
    visit.page.wait_for_selector("#problem:not([hidden])")
    assert "line 2, column 3" in visit.text("#problem")
    path.write_bytes(b"a=1;" * 1_000_000)
    visit.page.set_input_files("#file", path)
    visit.page.wait_for_function("() => byId('problem').textContent.includes('too many to draw')")
    assert "4,000,000 bytes" in visit.text("#problem")


def test_a_link_restores_the_view(visit, browser, address):
    visit.open(address, algebra="listops")
    visit.page.select_option("#kind", "program")
    visit.page.wait_for_function("() => answer.program")
    visit.page.keyboard.press("ArrowRight")
    visit.page.locator(".statement[data-statement='1']").click()
    visit.page.locator("h1").hover()
    link = visit.link("program=", "iteration=2", "statement=a")
    other = Visit(browser)
    other.open(link.partition("#")[0] + "#")
    other.page.goto(link)
    other.page.wait_for_function("() => answer.program")

    def seen(visit: Visit) -> list:
        fields = ["algebra", "kind", "expression", "scrub"]
        return [
            *(visit.page.input_value(f"#{name}") for name in fields),
            *(visit.text(place) for place in ("#where", "#statement", "#sheet-title", "#result")),
            boxes(visit),
        ]

    assert seen(other) == seen(visit)
    assert other.complaints == []
    other.page.close()


def test_an_expression_has_no_wires(visit, address):
    visit.open(address, program=HALF_ADDER)
    visit.page.select_option("#kind", "expression")
    visit.page.wait_for_function("() => !run.named")
    assert visit.page.locator("#wires-panel").is_hidden()
    assert visit.page.locator("#statement").is_hidden()
    visit.page.keyboard.press("n")
    assert visit.text("#sheet-title") == "Iteration 1"


def test_another_value_than_the_oracles_is_seen(visit, tmp_path):
    """Weights in which `&` is `|`, in a file that says otherwise."""
    algebra = ef.boolean()
    either = next(o for o in algebra.operators if o.symbol == "|")
    operators = tuple(
        replace(either, symbol="&") if o.symbol == "&" else o for o in algebra.operators
    )
    weights = ef.construct(replace(algebra, operators=operators)).weights
    saved, path, other = (tmp_path / name for name in ("w.safetensors", "one.html", "other.html"))
    ef.Model(algebra, weights).save(saved)
    write_trace(path, Choices(algebra, str(saved)), HALF_ADDER, kind="program")
    visit.open(path.as_uri(), iteration=4)
    assert visit.text("#value") == "sum=1"  # the error in carry is lost in this OR
    assert visit.page.locator(".statement.off .name").all_text_contents() == ["carry"]
    write_trace(other, Choices(algebra, str(saved)), HALF_ADDER.replace("|", "&"), kind="program")
    visit.open(other.as_uri())
    assert visit.text("#result").endswith("the oracle says sum=0")
    assert visit.page.locator(".statement.off").count() == 0  # none of these has its value yet
    visit.page.keyboard.press("End")
    assert visit.page.locator(".statement.off .name").all_text_contents() == ["sum", "carry"]


def test_no_single_value_is_told_by_the_name(mistaken_visit, address):
    visit = mistaken_visit
    visit.open(address, weights="random/3")
    visit.page.select_option("#kind", "program")
    visit.page.wait_for_selector("#problem:not([hidden])")
    assert "no single value is left: the weights are not exact" in visit.text("#problem")


def test_a_position_is_selected_with_its_statement(visit, address):
    visit.open(address, program=HALF_ADDER)
    visit.page.locator(".stage-tokens .token").nth(3).click()
    assert visit.page.locator(".statement.pinned .name").all_text_contents() == ["carry"]
    visit.page.keyboard.press("ArrowRight")  # another one is at work now
    assert visit.text("#statement") == "carry ="
    assert visit.text("#details h2") == "Position 3"
    visit.page.keyboard.press("Escape")
    assert visit.text("#statement") == "carry ="
    visit.page.keyboard.press("Escape")
    assert visit.text("#statement") == "sum ="


def test_nothing_breaks_where_a_link_leads_to_a_mistake(mistaken_visit, address):
    visit = mistaken_visit
    visit.open(address, program=HALF_ADDER)
    visit.page.evaluate("location.hash = 'program=a=(b&1);'")
    visit.page.wait_for_selector("#problem:not([hidden])")
    for number in (0, 1):  # what was there still is, in grey
        visit.page.locator(f".statement[data-statement='{number}']").hover()
        visit.page.locator(f".statement[data-statement='{number}']").click()
    visit.page.locator(".stage-tokens .token").nth(1).click()
    for key in ("n", "p", "ArrowRight", "Escape", "Space"):
        visit.page.keyboard.press(key)
    visit.type(HALF_ADDER, "Control+Enter")
    visit.page.wait_for_selector("#problem", state="hidden")
    visit.page.keyboard.press("End")
    assert visit.text("#where") == "end, after 3"


def test_names_of_any_length_and_script(visit, address):
    long = "name" * 400
    markup = "größe_变数"
    visit.open(address, program=f"{long} = (1&0);\n{markup} = ({long}|1);\n_ = {markup};")
    assert visit.text("#value") == "_=1"
    names = [box["name"] for box in boxes(visit)]
    assert names[0].startswith("namename")
    assert names[0].endswith("…")
    assert names[1:] == [markup, "_"]
    visit.page.keyboard.press("n")
    visit.page.keyboard.press("n")
    assert visit.text("#statement") == f"{markup} ="
    assert visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
