"""What differs between notations is asked of the notation: elsewhere, no code names one."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from exactformer.domains.notation import NOTATIONS

PACKAGE = Path(__file__).parent.parent / "exactformer"

# The files that may tell notations apart, and why each does.
DECIDE = {
    "domains/notation.py": "the notations themselves",
    "domains/definition.py": "a file in plain notation has sections of precedence",
    "domains/reference.py": "the oracle, with an account of each way to group",
    "domains/strahler.py": "the Strahler number, with an account of each way to group",
    "domains/formats/nangia.py": "the ListOps data are for prefix notation",
    "engine/choice.py": "layers whose tables are read on the CPU only",
    "export/huggingface.py": "words of a model's card",
    "verify/coq.py": "the notations that the extracted checker reads",
    "problems/folders.py": "words of a data set's card",
}
# Tables by layer, of which one has the name of its notation.
BY_LAYER = {"model/layers.py", "trace/runs.py"}
# The same words for something else, or the notation of an algebra that is made there.
OTHER_MEANINGS = {"domains/catalog.py", "domains/precedence.py", "explorer/page.py"}


def questions(source: str) -> Iterator[int]:
    """The lines that ask which notation there is: by its name, by a comparison, or by what groups
    its operators. Docstrings and the text of messages are none.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [
                    side.value if isinstance(side, ast.NamedExpr) else side
                    for side in (left, *others)
                ]
                if any(isinstance(s, ast.Attribute) and s.attr == "notation" for s in sides):
                    yield node.lineno
            case ast.Attribute(value=ast.Name(id="Notation"), attr=attr) if attr.isupper():
                yield node.lineno
            case ast.Attribute(attr="groups_by"):
                yield node.lineno
            case ast.ImportFrom(names=names) if {"Infix", "Plain"} & {name.name for name in names}:
                yield node.lineno
            case ast.Constant(value=str(name)) if name in NOTATIONS:
                yield node.lineno


def test_nobody_else_asks_for_a_notation() -> None:
    asked = {
        str(path.relative_to(PACKAGE)): sorted(set(questions(path.read_text(encoding="utf-8"))))
        for path in PACKAGE.rglob("*.py")
    }
    asking = {path for path, lines in asked.items() if lines}
    strangers = asking - DECIDE.keys() - BY_LAYER - OTHER_MEANINGS
    assert not strangers, {path: asked[path] for path in strangers}
    assert asking == DECIDE.keys() | BY_LAYER | OTHER_MEANINGS, "a file of the list asks no more"
    assert len(DECIDE) <= 12


@pytest.mark.parametrize(
    "question",
    [
        "algebra.notation is Notation.PLAIN",
        "algebra.notation != word",
        "(found := algebra.notation) not in known",
        "word in (algebra.notation,) or TABLE[algebra.notation.groups_by]",
        "str(algebra.notation) == 'plain'",
        "{'prefix': 1}[str(algebra.notation)]",
        "from exactformer.domains.notation import Plain",
    ],
)
def test_a_question_is_found(question: str) -> None:
    assert list(questions(f'"""A notation, such as plain."""\n{question}\n')) != []


def test_what_a_notation_answers_is_no_question() -> None:
    source = 'algebra.notation.arrange(a, b)\nf"{algebra.notation} notation, not plain"'
    assert list(questions(source)) == []
