"""Notations, kinds of domains and their tables answer: no other code asks which one there is."""

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
    "export/huggingface.py": "words of a model's card",
    "problems/folders.py": "words of a data set's card",
}
# The files that ask whether an algebra declares levels, which only plain notation has.
ASK_FOR_LEVELS = {
    "explorer/choices.py": "random levels for random weights",
    "model/construct.py": "declared levels for weights that are written down",
    "training/run.py": "levels that are learned",
}
# Tables by layer, of which one has the name of the notation that it reads.
BY_LAYER = {
    "domains/capabilities.py",
    "interp/causal.py",
    "model/layers.py",
    "model/iterations.py",
    "engine/build.py",
    "export/loop.py",
    "trace/runs.py",
}
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


def asks_for_kind(source: str) -> Iterator[int]:
    """The lines that ask of which kind a domain is: by its class, or by comparing its kind."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, asked]):
                if {"Algebra", "Domain"} & {
                    n.id for n in ast.walk(asked) if isinstance(n, ast.Name)
                }:
                    yield node.lineno
            case ast.Compare(left=left, comparators=others):
                kinds = [s for s in (left, *others) if isinstance(s, ast.Attribute)]
                if any(s.attr == "kind" and "domain" in ast.dump(s.value) for s in kinds):
                    yield node.lineno


def test_only_domains_ask_for_the_kind_of_a_domain() -> None:
    asked = {
        str(path.relative_to(PACKAGE)): list(asks_for_kind(path.read_text(encoding="utf-8")))
        for path in PACKAGE.rglob("*.py")
    }
    asking = {path: lines for path, lines in asked.items() if lines}
    assert asking.keys() == {"domains/algebra.py", "domains/belonging.py"}, asking


def test_a_question_for_the_kind_is_found() -> None:
    for question in ("isinstance(x, (str, Algebra))", "model.domain.kind == word"):
        assert list(asks_for_kind(question)) == [1]
    assert not list(asks_for_kind("TABLE[domain.kind](domain)\nweights.kind == 'table'"))


def test_nobody_else_asks_for_a_notation() -> None:
    asked = {
        str(path.relative_to(PACKAGE)): sorted(set(questions(path.read_text(encoding="utf-8"))))
        for path in PACKAGE.rglob("*.py")
    }
    asking = {path for path, lines in asked.items() if lines}
    strangers = asking - DECIDE.keys() - BY_LAYER - OTHER_MEANINGS
    assert not strangers, {path: asked[path] for path in strangers}
    assert asking == DECIDE.keys() | BY_LAYER | OTHER_MEANINGS, "a file of the list asks no more"
    assert len(DECIDE) + len(ASK_FOR_LEVELS) <= 12


def test_nobody_else_asks_whether_there_are_levels() -> None:
    asking = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if asks_for_levels(path.read_text(encoding="utf-8"))
    }
    tables = {
        "verify/conditions.py",
        "weights/tensors.py",
    }  # by kind: what an algebra's weights need
    assert asking == ASK_FOR_LEVELS.keys() | tables


def asks_for_levels(source: str) -> bool:
    """Whether a condition depends on there being levels of precedence."""
    nodes = list(ast.walk(ast.parse(source)))
    conditions = [node.test for node in nodes if isinstance(node, ast.If | ast.IfExp)]
    conditions += [
        node
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "bool"
    ]
    return any(
        isinstance(part, ast.Attribute) and part.attr == "precedence"
        for condition in conditions
        for part in ast.walk(condition)
    )


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
