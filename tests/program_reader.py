"""A second, small evaluator of Boolean programs, for tests: no code of the package is in it."""

import re

SPELT: dict[str, str] = {
    "∧": "&",
    "AND": "&",
    "∨": "|",
    "OR": "|",
    "∼": "~",
    "NOT": "~",
    "TRUE": "1",
    "FALSE": "0",
}
TOKENS = set("()&|~01")
NAME = re.compile(r"[^\W\d][\w.\[\]]*")
WORD = re.compile(rf"{NAME.pattern}|\w+|\S")


def results(data: bytes) -> dict[str, str]:
    """The value of each name that no statement uses, in the order of the text. What is no program
    is an AssertionError.
    """
    *statements, rest = re.sub(r"#[^\n]*", "", data.decode()).split(";")
    assert statements, "no statement"
    assert not rest.strip(), "text behind the last statement"
    sides: dict[str, list[str]] = {}
    for statement in statements:
        name, equals, side = (part.strip() for part in statement.partition("="))
        assert equals, f"no '=' in {statement!r}"
        assert NAME.fullmatch(name), f"no name in {statement!r}"
        assert name not in SPELT, f"the token {name}"
        assert name not in sides, f"a second {name}"
        sides[name] = [SPELT.get(str(word), str(word)) for word in WORD.findall(side)]
    values, waiting = dict[str, str](), sides
    while waiting:
        later = {}
        for name, side in waiting.items():
            used = [word for word in side if word not in TOKENS]
            assert all(word in sides for word in used), f"no statement for a name of {side}"
            if all(word in values for word in used):
                values[name] = value([values.get(word, word) for word in side])
            else:
                later[name] = side
        assert len(later) < len(waiting), "a cycle"
        waiting = later
    used = {word for side in sides.values() for word in side}
    return {name: values[name] for name in sides if name not in used}


def value(side: list[str]) -> str:
    """The value of an expression, span by span from the inside."""
    text, before = "".join(side), ""
    assert all(word in TOKENS for word in side), f"another word in {side}"
    while text != before:
        before = text
        text = re.sub(r"\(~([01])\)", lambda span: str(1 - int(span[1])), text)
        text = re.sub(
            r"\(([01])([&|])([01])\)",
            lambda span: (min if span[2] == "&" else max)(span[1], span[3]),
            text,
        )
    assert text in ("0", "1"), f"no expression: {side}"
    return text
