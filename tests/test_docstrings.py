"""Docstrings are sentences that a reader understands without the function next to them."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import exactformer as ef

PACKAGE = Path(ef.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

# Openings that refer to a neighbour, or that leave out what is described.
FRAGMENT = re.compile(
    r"(The same|Of |What |As |Those |These |Where |That |Which |How many |Also |None for |Not for |"
    r"There is nothing|They )"
)
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(path: Path) -> list[tuple[int, str]]:
    """The line and the text of every docstring of a file."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, DOCUMENTED)]
    return [(node.body[0].lineno, text) for node in nodes if (text := ast.get_docstring(node))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_docstring_begins_as_a_fragment(path: Path) -> None:
    found = [f"{line}: {text[:60]}" for line, text in docstrings(path) if FRAGMENT.match(text)]
    assert not found


def test_a_fragment_is_noticed() -> None:
    for text in ("The same for a field.", "Of each sequence.", "What is known.", "As `run`, but"):
        assert FRAGMENT.match(text)


@pytest.mark.parametrize("name", [name for name in ef.__all__ if not name.startswith("__")])
def test_everything_in_the_interface_is_documented_in_sentences(name: str) -> None:
    thing = getattr(ef, name)
    if not (inspect.isfunction(thing) or inspect.isclass(thing) or inspect.ismodule(thing)):
        return
    text = inspect.getdoc(thing)
    assert text, f"{name} has no docstring"
    assert text.split("\n\n")[0].rstrip().endswith((".", ":")), text
