"""The page as one file, opened from disk in a real browser."""

import subprocess
import sys
from pathlib import Path

import pytest

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import boolean
from exactformer.explorer.choices import Choices
from exactformer.explorer.page import write_trace
from tests.explorer import NO_BROWSER
from tests.programs import HALF_ADDER

pytestmark = NO_BROWSER


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "trace.html"
    write_trace(path, Choices(boolean(), "7520"), "((1|0)&(~0))")
    return path


def test_the_file_opens_from_disk_and_asks_for_nothing(visit, file):
    visit.page.context.set_offline(True)
    visit.open(file.as_uri(), iteration=2, position=6)
    assert visit.text("#sheet-title") == "Iteration 2"
    assert visit.text("#details h2") == "Position 6"
    visit.page.keyboard.press("ArrowRight")
    assert visit.text("#value") == "1"
    assert visit.link("iteration=3", "position=6")
    visit.page.keyboard.press("w")
    assert "exact" in visit.text(".certificate")
    assert visit.page.locator("#weights").is_disabled()
    assert visit.page.locator("#drawing").is_hidden()
    loaded = [request for request in visit.requests if not request.startswith("data:")]
    assert {request.split("#")[0] for request in loaded} == {file.as_uri()}


@pytest.mark.parametrize(
    ("arguments", "spans"),
    [
        (["boolean", "((1|0)&(~0))", "--iterations", "log"], ["1", "2", "1", "3", "1"]),
        (["arithmetic-plain", "1+2*3"], ["1", "2"]),
    ],
    ids=["log", "plain"],
)
def test_spans_in_a_file(visit, tmp_path, arguments, spans):
    path = tmp_path / "spans.html"
    command = [sys.executable, "-m", "exactformer", "trace", *arguments, "--html", path]
    assert subprocess.run(command, capture_output=True, text=True).stdout == f"{path}\n"
    visit.page.context.set_offline(True)
    visit.open(path.as_uri())
    assert visit.page.locator(".stage-spans text").all_text_contents() == spans
    assert visit.page.locator("#iterations").is_disabled()
    visit.page.keyboard.press("l")  # nothing to choose from
    visit.page.keyboard.press("End")
    assert "as the oracle says" in visit.text("#result")


def test_symbols_that_are_markup_stay_text(visit, tmp_path):
    """An algebra may call its tokens anything; in a file they are part of the page."""
    values = ("</script><script>alert`1`</script>", "{{script}}", "<b>&amp;")
    table = {(i, j): min(i, j) for i in range(3) for j in range(i, 3)}
    algebra = Algebra("odd", values, (Operator("<!--", (2,), table),), "infix")
    path = tmp_path / "odd.html"
    write_trace(path, Choices(algebra, "constructed"), f"( {values[1]} <!-- {values[2]} )")
    visit.open(path.as_uri())
    assert visit.text("#value") == values[1]
    assert visit.page.input_value("#algebra") == "odd"
    assert values[2] in visit.tokens("tokens")
    visit.page.keyboard.press("w")
    assert "exact" in visit.text(".certificate")


def test_a_program_in_a_file(visit, tmp_path):
    program, path = tmp_path / "half.txt", tmp_path / "half.html"
    program.write_text(HALF_ADDER)
    command = [sys.executable, "-m", "exactformer", "trace", "boolean", "--program", str(program)]
    done = subprocess.run([*command, "--html", path], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{path}\n")
    visit.page.context.set_offline(True)
    visit.open(path.as_uri(), iteration=2, statement="sum")
    assert visit.text("#statement") == "sum ="
    assert visit.tokens("tokens") == list("((1|0)&(~0))")
    assert visit.page.locator(".wire.read").count() == 3
    assert visit.page.locator("#kind").is_disabled()
    assert visit.page.locator("#open").is_hidden()
    visit.page.keyboard.press("End")
    assert "as the oracle says" in visit.text("#result")
