"""Notations, kinds of domains and their tables answer: no other code asks which one there is."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from exactformer.domains.notation import NOTATIONS
from exactformer.model.layers import LAYERS

PACKAGE = Path(__file__).parent.parent / "exactformer"

# The files that may tell notations apart, and why each does.
DECIDE = {
    "domains/notation.py": "the notations themselves",
    "domains/algebra.py": "what an algebra takes from its notation: layer, parentheses",
    "domains/definition.py": "a file in plain notation has sections of precedence",
    "domains/reference.py": "the oracle, with an account of each way to group",
    "domains/strahler.py": "the Strahler number, with an account of each way to group",
    "domains/formats/nangia.py": "the ListOps data are for prefix notation",
}
# The files that ask whether an algebra declares levels, which only plain notation has.
ASK_FOR_LEVELS = {
    "explorer/choices.py": "random levels for random weights",
    "training/algebras.py": "levels that are learned",
}
# The files that ask of which kind a domain is.
ASK_FOR_KIND = {
    "domains/algebra.py": "whether another domain has the spans of an algebra",
    "domains/belonging.py": "one message for all that is about algebras",
}
# Tables by layer, of which one has the name of the notation that it reads.
BY_LAYER = {
    "domains/capabilities.py",
    "interp/causal.py",
    "model/layers.py",
    "model/iterations.py",
    "engine/build.py",
    "export/huggingface.py",
    "export/loop.py",
    "problems/folders.py",
    "trace/runs.py",
}
# The same words for something else, or the notation of an algebra that is made there.
OTHER_MEANINGS = {
    "domains/catalog.py",
    "domains/chomsky.py",
    "domains/precedence.py",
    "explorer/page.py",
}


def questions(source: str) -> Iterator[int]:
    """The lines that ask which notation there is: by its name or its class, by a comparison, a
    look-up or a match, or by what follows from its name alone, such as what groups its operators.
    Docstrings and the text of messages are none.
    """
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare() if any(map(is_notation, sides(node))):
                yield node.lineno
            case ast.Subscript(slice=asked) | ast.Match(subject=asked) if is_notation(asked):
                yield node.lineno
            case ast.Call(func=function, args=[asked, *_]) if is_notation(asked):
                if last_name(function) in ("isinstance", "issubclass", "type", "get"):
                    yield node.lineno
            case ast.Attribute(value=ast.Name(id="Notation"), attr=attr) if attr.isupper():
                yield node.lineno
            case ast.Attribute(attr="groups_by" | "Infix" | "Plain"):
                yield node.lineno
            case ast.Attribute(value=ast.Attribute(attr="notation"), attr="full" | "layer"):
                yield node.lineno
            case ast.ImportFrom(names=names) if {"Infix", "Plain"} & {name.name for name in names}:
                yield node.lineno
            case ast.Constant(value=str(name)) if name in NOTATIONS:
                yield node.lineno


def is_notation(node: ast.expr) -> bool:
    """Whether this is a notation, or its name, or the algebra with parentheses in place of one."""
    match node:
        case ast.NamedExpr(value=value):
            return is_notation(value)
        case ast.Call(func=ast.Name(id="str" | "type"), args=[value]):
            return is_notation(value)
    return last_name(node) in ("notation", "parenthesized") and isinstance(node, ast.Attribute)


def last_name(node: ast.expr) -> str:
    """The last name of a variable, an attribute or a call: `b` of `a.b(c)`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Call(func=function):
            return last_name(function)
        case ast.NamedExpr(value=value):
            return last_name(value)
    return ""


def sides(compared: ast.Compare) -> list[ast.expr]:
    return [compared.left, *compared.comparators]


def asks_for_kind(source: str) -> Iterator[int]:
    """The lines that ask of which kind a domain is: by its class, or by comparing its kind."""
    classes = {"Algebra", "Domain"}
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, asked]):
                if classes & {n.id for n in ast.walk(asked) if isinstance(n, ast.Name)}:
                    yield node.lineno
            case ast.Compare():
                kinds = [
                    s for s in sides(node) if isinstance(s, ast.Attribute) and s.attr == "kind"
                ]
                owners = " ".join(ast.dump(s.value) for s in kinds).lower()
                by_class = classes & {last_name(side) for side in sides(node)}
                if "domain" in owners or "algebra" in owners or by_class:
                    yield node.lineno
            case ast.Match(subject=ast.Attribute(value=owner, attr="kind")):
                if last_name(owner) in ("domain", "algebra"):
                    yield node.lineno
            case ast.MatchClass(cls=ast.Name(id="Algebra" | "Domain")):
                yield node.lineno


def asks_for_layer(source: str) -> Iterator[int]:
    """The lines that compare a layer or a way to iterate with one of them."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare():
                asked = sides(node)
            case ast.Match(subject=subject):
                asked = [subject]
            case _:
                continue
        names = {last_name(side) for side in asked}
        named = [part for side in asked for part in getattr(side, "elts", [side])]
        by_name = any(isinstance(part, ast.Constant) and part.value in LAYERS for part in named)
        by_name |= "LAYERS" in [last_name(s.value) for s in asked if isinstance(s, ast.Subscript)]
        if names & {"layer", "iterations", "by"} and (by_name or isinstance(node, ast.Match)):
            yield node.lineno


def asking(question: Callable[[str], Iterator[int]]) -> dict[str, list[int]]:
    """The lines of each file of the package that ask a question."""
    asked = {
        path.relative_to(PACKAGE).as_posix(): sorted(set(question(path.read_text("utf-8"))))
        for path in PACKAGE.rglob("*.py")
    }
    return {path: lines for path, lines in asked.items() if lines}


def test_only_domains_ask_for_the_kind_of_a_domain() -> None:
    found = asking(asks_for_kind)
    assert found.keys() == ASK_FOR_KIND.keys() | {"domains/kinds.py"}, found  # which has the table


def test_nobody_asks_which_layer_there_is() -> None:
    assert asking(asks_for_layer) == {}


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(x, (str, Algebra))",
        "model.domain.kind == word",
        "algebra.kind in words",
        "word == Algebra.kind",
        "type(domain) is Algebra",
        "match x:\n    case Algebra():\n        pass",
        "match domain.kind:\n    case _:\n        pass",
    ],
)
def test_a_question_for_the_kind_is_found(question: str) -> None:
    assert list(asks_for_kind(question)) != []


def test_a_table_by_kind_is_no_question() -> None:
    assert not list(asks_for_kind("TABLE[domain.kind](domain)\nweights.kind == 'table'"))


@pytest.mark.parametrize(
    "question",
    [
        "domain.layer(iterations) == 'plain'",
        "iterations != 'log'",
        "by in ('depth', 'log')",
        "module.layer is LAYERS['depth']",
        "match iterations:\n    case _:\n        pass",
    ],
)
def test_a_question_for_the_layer_is_found(question: str) -> None:
    assert list(asks_for_layer(question)) != []


def test_a_table_by_layer_is_no_question() -> None:
    source = "GRAPHS[domain.layer(by)]\niterations is None\nlayer not in GRAPHS\nword == 'depth'"
    assert list(asks_for_layer(source)) == []


def test_nobody_else_asks_for_a_notation() -> None:
    found = asking(questions)
    strangers = found.keys() - DECIDE.keys() - BY_LAYER - OTHER_MEANINGS
    assert not strangers, {path: found[path] for path in strangers}
    assert found.keys() == DECIDE.keys() | BY_LAYER | OTHER_MEANINGS, "a file asks no more"
    assert len(DECIDE.keys() | ASK_FOR_LEVELS.keys() | ASK_FOR_KIND.keys()) <= 12


def test_nobody_else_asks_whether_there_are_levels() -> None:
    found = asking(asks_for_levels)
    assert found.keys() == ASK_FOR_LEVELS.keys(), found


def asks_for_levels(source: str) -> Iterator[int]:
    """The lines with a condition that depends on there being levels of precedence."""
    for node in ast.walk(ast.parse(source)):
        conditions: list[ast.expr] = []
        match node:
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                conditions = [test]
            case ast.Assert(test=test) | ast.UnaryOp(op=ast.Not(), operand=test):
                conditions = [test]
            case ast.BoolOp(values=conditions) | ast.comprehension(ifs=conditions):
                pass
            case ast.Compare():
                conditions = sides(node)
            case ast.Call(func=ast.Name(id="bool"), args=conditions):
                pass
        for condition in conditions:
            for part in ast.walk(condition):
                if isinstance(part, ast.Attribute) and part.attr == "precedence":
                    yield part.lineno


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
        "isinstance(algebra.notation, notation.Plain)",
        "TABLE[algebra.notation] or TABLE.get(str(algebra.notation))",
        "type(algebra.notation) in known",
        "algebra.notation.full",
        "algebra.parenthesized is not algebra",
        "match algebra.notation:\n    case _:\n        pass",
    ],
)
def test_a_question_is_found(question: str) -> None:
    assert list(questions(f'"""A notation, such as plain."""\n{question}\n')) != []


def test_what_a_notation_answers_is_no_question() -> None:
    source = 'algebra.notation.arrange(a, b)\nf"{algebra.notation} notation, not plain"'
    assert list(questions(source)) == []
