"""All readers read the same language, whatever the spellings."""

from pathlib import Path

import numpy as np
import pytest

from attacks import spellings
from attacks.spellings import SIZES, AtOnce, attack, changed
from exactformer.api import construct
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.definition import load_algebra
from exactformer.domains.errors import ExpressionError
from exactformer.domains.lexicon import Lexicon
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.engine import device, readers, tensor
from exactformer.engine.device import DeviceEngine
from exactformer.engine.gpu import GpuEngine
from exactformer.engine.layout import Layout
from tests.emulated import COMPILER, Emulator
from tests.rows import listed
from tests.test_cli_model import refused

DEFINITIONS = {  # each was once read in another way by some reader
    "times": """
        values = ["0", "1", "2", "3", "4"]
        spellings = { "x" = "*" }
        [[operators]]
        symbol = "*"
        arity = 2
        rule = "product"
        [[operators]]
        symbol = "+"
        arity = 2
        rule = "sum"
    """,
    "truth": """
        values = ["T", "F"]
        spellings = { "A" = "&", "TA" = "~" }
        [[operators]]
        symbol = "&"
        arity = 2
        table = "T T -> T\\n T F -> F\\n F F -> F"
        [[operators]]
        symbol = "~"
        arity = 1
        table = "-> F T"
    """,
    "question": """
        values = ["?", "F"]
        [[operators]]
        symbol = "&"
        arity = 2
        table = "? ? -> ?\\n ? F -> F\\n F F -> F"
    """,
    "words": """
        values = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"]
        spellings = { "plus" = "+", "minus" = "-", "times" = "*" }
        [[operators]]
        symbol = "+"
        arity = 2
        rule = "sum"
        [[operators]]
        symbol = "-"
        arity = 2
        rule = "difference"
        [[operators]]
        symbol = "*"
        arity = 2
        rule = "product"
    """,
    "numbers": """
        values = ["0", "1", "2", "3", "4"]
        spellings = { "5" = "+", "8" = "(", "9" = ")" }
        [[operators]]
        symbol = "+"
        arity = 2
        rule = "sum"
    """,
}
CASES = [  # the value, or where the error is
    ("times", "(2x3)", 1),
    ("times", "(2 x 3)", "1"),
    ("times", "((2x 3)+1)", 2),
    ("times", "((2 x 3)+1)", "2"),
    ("truth", "(TA F)", "T"),
    ("truth", "(T A F)", "F"),
    ("truth", "((TA F)&T)", "T"),
    ("truth", "(TAF)", 1),
    ("truth", "(T AF)", 3),
    ("question", "(?&?)", "?"),
    ("question", "(\ud800&?)", 1),
    ("words", "((2times 3) + (4 + 5))", 2),
    ("words", "((2 times3) + (4 + 5))", 4),
    ("words", "((2 times 3) + (4 + 5))", "5"),
    ("words", "((2 times 3)plus(4 + 5))", "5"),
    ("numbers", "8 1 5 2 9", "3"),
    ("numbers", "8 1+2 9", "3"),
    ("numbers", "(1+2 9", "3"),
    ("numbers", "((1+2)+8 4 5 2 9)", "4"),
    ("numbers", "81 5 2 9", 0),
    ("numbers", "8 15 2 9", 2),
    ("numbers", "(1+29", 3),
    ("numbers", "8 1 5 2 9 9", 10),
]


def definition(name: str, folder: Path) -> Path:
    path = folder / f"{name}.toml"
    path.write_text(f'name = "{name}"\nnotation = "infix"\n{DEFINITIONS[name]}')
    return path


def outcome(read, text: str | bytes) -> str | int:
    """The value, or where the error is."""
    try:
        return read(text)
    except ExpressionError as error:
        return error.offset


@pytest.mark.parametrize("name", DEFINITIONS)
def test_spellings_that_were_misread(name, tmp_path):
    algebra = load_algebra(definition(name, tmp_path))
    engine = construct(algebra).fast_engine("fast")
    on_device = DeviceEngine(engine.automaton, algebra, "cpu")
    readings = [
        lambda text: evaluate(parse(algebra, text)),
        engine.value,
        on_device.value,
    ]
    if COMPILER:
        layout = Layout(engine.automaton, **SIZES)
        by_kernels = DeviceEngine(engine.automaton, algebra, "cpu")
        by_kernels.parallel = GpuEngine(
            engine.automaton, algebra, device="cpu", launch=Emulator(layout.options), layout=layout
        )
        readings.append(by_kernels.value)
    limits = {"WORTH_SHARING": 1, "SMALLEST_PART": 4, "second_core": AtOnce}
    for case, text, expected in CASES:
        if case == name:
            with changed(device, WORTH_A_LAUNCH=1):
                assert [outcome(read, text) for read in readings] == [expected] * len(readings)
            with changed(readers, **limits):
                assert outcome(engine.value, text) == expected


def test_glued_words_in_a_file_are_refused(tmp_path):
    (tmp_path / "glued.txt").write_text("((2 times 3) + (4 + 5))\n((2times 3) + (4 + 5))\n")
    said = refused("eval", definition("words", tmp_path), "--file", tmp_path / "glued.txt")
    assert "line 2, column 3: expected" in said
    assert "found '2times', which is no token" in said


def test_random_algebras(monkeypatch):
    """A small run of the attack, with the kernels for one algebra."""
    monkeypatch.setattr(spellings, "KERNELS_EVERY", 30)
    report = attack(count=50, seed=2024)
    assert report.found == []
    assert report.tried["algebras"] + report.tried["algebras left to the model"] == 50
    for notation in ("plain", "polish", "reverse-polish"):
        assert report.tried[f"algebras, {notation}"] > 3
    assert report.tried["algebras, with kernels"] == bool(spellings.COMPILER)
    assert report.tried["texts that are expressions"] > 150
    assert report.tried["texts decided by tensors"] > 50
    assert report.tried["errors in lines longer than the window"] > 10
    assert report.tried["algebras left to the parser"] < 35  # in Polish notation all are


def test_words_for_parentheses(monkeypatch):
    """Readers agree, too, on algebras in which a word stands for each parenthesis."""

    def spelt(rng, name) -> Algebra:
        drawn = random_algebra(rng, name)
        others = {s: t for s, t in drawn.spellings.items() if s not in ("[", "]")}
        words = {rng.choice(["8", "begin", "a", "é"]): "(", rng.choice(["9", "end", "b"]): ")"}
        parts = drawn.name, drawn.values, drawn.operators, drawn.notation
        try:
            return Algebra(*parts, others | words, drawn.precedence)
        except ValueError:  # a word that the algebra has for something else
            return spelt(rng, name)

    random_algebra = spellings.random_algebra
    monkeypatch.setattr(spellings, "random_algebra", spelt)
    monkeypatch.setattr(spellings, "KERNELS_EVERY", 10**9)
    report = attack(count=15, seed=1)
    assert report.found == []
    assert report.tried["texts that are expressions"] > 75


def test_the_attack_finds_a_reader_with_another_rule(monkeypatch):
    """Words for operators that a GPU takes alone, as it once did."""

    def every_byte(words, algebra) -> None:
        made(words, algebra)
        words.single = {s: token for s, token in words.spellings.items() if len(s) == 1}

    made = tensor.Words.__init__
    monkeypatch.setattr(tensor.Words, "__init__", every_byte)
    monkeypatch.setattr(spellings, "KERNELS_EVERY", 10**9)
    operators = Operator.named("+", "sum", [2], 3), Operator.named("*", "product", [2], 3)
    letters = Algebra("letters", tuple("012"), operators, "infix", {"x": "*", "r": "+"})
    monkeypatch.setattr(spellings, "random_algebra", lambda rng, name: letters)
    found = attack(count=3, seed=1).found
    assert any("tensors on" in line for line in found)


def lexemes(text: str, *symbols: str) -> list[str]:
    return Lexicon(dict.fromkeys(symbols, 0)).scanner.findall(text)


def test_what_a_token_is():
    assert lexemes("12 MAXI", "1", "2", "MAX") == ["12", "MAXI"]
    assert lexemes("-->->-", "-", "->", "-->") == ["-->", "->", "-"]
    assert lexemes("1-1 -12 -1", "-1", "-", "1") == ["1", "-1", "-", "12", "-1"]
    assert lexemes("a+b xa+ a +", "a+") == ["a+", "b", "xa", "+", "a", "+"]
    assert lexemes("été e\u0301te\u0301 真偽", "été") == [
        "été",
        "e",
        "\u0301",
        "te",
        "\u0301",
        "真偽",
    ]
    assert lexemes("1\u00a02\u30003\x1c4", "1") == ["1", "2", "3", "4"]
    assert lexemes("#\ud800", "1") == ["#", "\ud800"]


def test_symbols_with_letters_and_marks_are_read_by_the_parser():
    values = ("-1", "0", "1")
    product = lambda a, b: str(int(a) * int(b))  # noqa: E731
    algebra = Algebra("signs", values, (Operator.from_rule("*", [2], product, values),), "infix")
    engine = construct(algebra).fast_engine("fast")
    assert not engine.reads_bytes
    lines = b"(-1*(-1 * 1))\n(-1 * -1)\n(1*-12)\n(0*-1)"
    results = listed(engine, [engine.rows(np.frombuffer(lines, np.uint8))])
    assert [str(result).splitlines()[0] for result in results] == [
        "1",
        "1",
        "line 3, column 4: expected a value (-1 0 1) or '(', found '-', which is no token",
        "0",
    ]


@pytest.mark.parametrize(
    ("symbol", "problem"),
    [
        ("\ud800", "cannot be seen"),
        ("a\x00", "cannot be seen"),
        ("\x1b", "cannot be seen"),
        ("\ufeff1", "cannot be seen"),
        ("\u0301", "begins with a mark that combines"),
        ("\u0301a", "begins with a mark that combines"),
        ("a\u3000b", "white space in it"),
    ],
)
def test_symbols_that_no_text_holds_are_refused(symbol, problem):
    with pytest.raises(ValueError, match=problem):
        Algebra("bad", ("1", symbol), (Operator.named("+", "sum", [2], 2),), "infix")
