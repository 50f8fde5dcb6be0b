"""Many short texts as rows of one buffer: values, labels and errors as if each were read alone."""

import json
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

import exactformer as ef
from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.labelled import read_tsv_row
from exactformer.domains.formats.lines import LONGEST_LINE
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw
from exactformer.domains.syntax import parse
from exactformer.engine import cpu, device
from exactformer.engine.cpu import CpuEngine
from exactformer.engine.device import DeviceEngine
from tests.fuzz import Fuzzer
from tests.rows import listed
from tests.runs import exactformer as run
from tests.test_cli_model import exactformer, output, refused
from tests.test_engine import engine_for, readers  # noqa: F401 (a fixture)
from tests.test_gpu_rows import PLACES, reader
from tests.texts import tree

TASKS = [boolean(), arithmetic(), listops()]
PLAIN = ef.boolean_plain()
KLEENE = str(Path(__file__).resolve().parent.parent / "examples" / "kleene.toml")


def rows(engine: CpuEngine, text: str | bytes, **options) -> list[str]:
    """The value of each line, or the first line of its error."""
    data = text if isinstance(text, bytes) else text.encode()
    found = engine.rows(np.frombuffer(data, dtype=np.uint8), **options)
    return [str(result).splitlines()[0] for result in listed(engine, [found])]


def alone(algebra: ef.Algebra, line: str, number: int, *, labelled: bool = False) -> str:
    try:
        if labelled:
            _, label, expression = read_tsv_row(algebra, line.encode(), number)
            return f"{evaluate(expression)} {label}"
        return evaluate(parse(algebra, line, first_line=number))
    except ExpressionError as error:
        return str(error)


@pytest.mark.usefixtures("readers")
@given(st.sampled_from([*TASKS, PLAIN]), st.integers(0, 2**32), st.booleans())
def test_damaged_lines_among_right_ones(algebra, seed, labelled):
    texts = Fuzzer(ef.boolean() if algebra == PLAIN else algebra, seed)
    label = np.random.default_rng(seed).choice([*algebra.values, "TRUE", " ", ""], 20)
    lines = [texts.text().replace("\n", " ") for _ in range(20)]
    if labelled:
        pairs = zip((line.replace("\t", " ") for line in lines), label, strict=True)
        lines = ["\t".join(pair[:: 1 - 2 * (i % 2)]) for i, pair in enumerate(pairs)]
    engine = engine_for(algebra)
    data = np.frombuffer("".join(f"{line}\n" for line in lines).encode(), dtype=np.uint8)
    found = engine.rows(data, first_line=7, labelled=labelled)
    results = listed(engine, [found])
    if labelled:
        said = [algebra.values[number] for number in found.labels]
        results = [r if i in found.errors else f"{r} {said[i]}" for i, r in enumerate(results)]
    expected = [alone(algebra, line, i, labelled=labelled) for i, line in enumerate(lines, 7)]
    assert list(map(str, results)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(1&0)\n1", ["0", "1"]),
        ("(1&0)\r\n1\r\n", ["0", "1"]),
        ("\t(1 ∧\t0)\n TRUE \n", ["0", "1"]),
        ("1\n\n0\n", ["1", "line 2, column 1: expected a value (1 0) or '(', found no text", "0"]),
        ("\n", ["line 1, column 1: expected a value (1 0) or '(', found no text"]),
        ("", []),
        (
            b"1\n(1&\xff0)\n0",
            ["1", "line 2, column 4: expected UTF-8 text, found the byte 0xff", "0"],
        ),
        (b"\xed\xa0\x80", ["line 1, column 1: expected UTF-8 text, found the byte 0xed"]),
        ("1\0\n(1&0\n", None),
        ("11\n1 1\n", None),
        ("(1&0\n)\n", None),
    ],
)
def test_ends_of_lines_and_what_is_no_text(text, expected):
    """A line is what is between two newlines; an expression does not go on in the next one."""
    found = rows(engine_for(boolean()), text)
    if expected is None:
        assert [row[:6] for row in found] == ["line 1", "line 2"]
    else:
        assert found == expected


@pytest.mark.parametrize("algebra", [*TASKS, PLAIN], ids=lambda algebra: algebra.name)
def test_rows_deeper_than_the_stack(algebra, readers, monkeypatch):  # noqa: F811
    monkeypatch.setattr("exactformer.engine.readers.FIRST_ROOM", 2)
    expressions = draw(algebra, 6, 50, np.random.default_rng(0))
    values = [evaluate(expression) for expression in expressions]
    engine = engine_for(algebra)
    assert rows(engine, "\n".join(map(str, expressions))) == values
    assert engine.values(expressions) == engine.texts(list(map(str, expressions))) == values
    text = "".join(f"{v}\t{e}\n{e}\t{v}\n" for e, v in zip(expressions, values, strict=True))
    found = engine.rows(np.frombuffer(text.encode(), dtype=np.uint8), labelled=True)
    assert [algebra.values[number] for number in found.labels[::2]] == values
    assert (found.values == found.labels).all()


@pytest.mark.parametrize("algebra", [*TASKS, PLAIN], ids=lambda algebra: algebra.name)
def test_right_rows_never_reach_the_parser(algebra, monkeypatch):
    def must_not(*arguments):
        raise AssertionError("a right row was read by itself")

    expressions = draw(algebra, 3, 50, np.random.default_rng(1))
    values = list(map(evaluate, expressions))
    engine = engine_for(algebra)
    monkeypatch.setattr(cpu, "parse", must_not)
    monkeypatch.setattr(cpu, "read_tsv_row", must_not)
    monkeypatch.setattr(cpu, "read_shared", must_not)
    pairs = list(zip(map(str, expressions), values, strict=True))
    assert rows(engine, "".join(f"{text}\r\n" for text, _ in pairs)) == values
    assert engine.texts([f"{text}\n" for text, _ in pairs]) == values
    for write in ("{0}\t{1}\n", "{1}\t{0}\n", " {1} \t {0} \r\n", "{1}\t{1}\n"):
        text = "".join(write.format(*pair) for pair in pairs)
        assert rows(engine, text, labelled=True) == values


def test_only_the_first_errors_are_looked_for():
    text = np.frombuffer(b"x\n1\n" * 50, dtype=np.uint8)
    found = engine_for(boolean()).rows(text, 1, 3)
    assert (found.bad, sorted(found.errors)) == (50, [0, 2, 4])
    assert [error.line for error in found.errors.values()] == [1, 3, 5]


# Lists of texts


KINDS = {
    "text": ["(1&0)", "(~0)", "1"],
    "bytes": [b"(1&0)", b"(~0)", b"1"],
    "both": ["(1&0)", b"(~0)", "1"],
    "an expression among them": ["(1&0)", parse(boolean(), "(~0)"), b"1"],
    "several lines each": ("(1\n&\n0)", "(~\t0)", " 1 "),
    "an array of text": np.array(["(1&0)", "(~0)", "1"]),
    "an array of bytes": np.array([b"(1&0)", b"(~0)", b"1"]),
    "an array of objects": np.array(["(1&0)", b"(~0)", "1"], dtype=object),
    "what can be gone through": {"(1&0)": 0, "(~0)": 0, "1": 0}.keys(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("made", [False, True], ids=["first call", "later call"])
def test_a_list_of_any_texts(kind, made):
    model = ef.construct(boolean())
    if made:
        model.fast_engine("fast")
    found = model.evaluate(KINDS[kind])
    assert found == ["0", "1", "1"]
    assert all(type(value) is str for value in found)


def test_no_texts():
    model = ef.construct(boolean())
    assert model.evaluate([]) == model.evaluate([]) == []
    assert model.fast_engine("fast").values([]) == []


@pytest.mark.parametrize("joined", [10, 1 << 20])
@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        ("(1&", "line 1, column 4: expected"),
        ("(1&\n0))", "line 2, column 3: expected"),
        ("", "line 1, column 1: expected a value (1 0) or '(', found no text"),
        ("1\0", "line 1, column 2: expected"),
        ("\ud800", "line 1, column 1: expected"),
        (b"(\xff", "line 1, column 2: expected UTF-8"),
        (b" ", "line 1, column 1: expected a value (1 0) or '(', found no text"),
    ],
)
def test_the_first_bad_text_of_a_list(bad, problem, joined, monkeypatch):
    monkeypatch.setattr(cpu, "MOST_JOINED", joined)
    one = "1" if isinstance(bad, str) else b"1"
    texts = [one] * 20 + [bad] + [one] * 7 + [bad]
    with pytest.raises(ExpressionError) as raised:
        engine_for(boolean()).texts(texts)
    assert str(raised.value).startswith(problem)
    assert raised.value.__notes__ == ["in text 21 of 29"]


def test_what_is_no_text_in_a_list():
    model = ef.construct(boolean())
    for _ in range(2):
        with pytest.raises(TypeError, match="found 1"):
            model.evaluate(["1", 1])  # pyright: ignore
        model.fast_engine("fast")


# Commands


@pytest.fixture
def kleene(tmp_path):
    """Values of several lengths, in blocks of a few lines; and what they are."""
    algebra = ef.load_algebra(KLEENE)
    expressions = [
        e for depth in (1, 2, 3) for e in draw(algebra, depth, 30, np.random.default_rng(1))
    ]
    values = [evaluate(expression) for expression in expressions]
    labelled = [f"{e}\t{v}\n" for e, v in zip(expressions, values, strict=True)]
    (tmp_path / "rows.txt").write_text("".join(f"{e}\n" for e in expressions))
    (tmp_path / "rows.tsv").write_text("".join(labelled))
    return tmp_path, values


@pytest.mark.parametrize("counted", [1, 5])
def test_a_text_that_changes_while_it_is_read(counted, monkeypatch):
    """As one may that a second reader still has when nobody waits for it any more: there may be
    more rows than were counted, or fewer.
    """
    monkeypatch.setattr("exactformer.engine.rows.count_rows", lambda *_: counted)
    text = np.frombuffer(b"(1&0)\n1\n0\n", dtype=np.uint8)
    found = engine_for(boolean()).read_rows(text, ord("\n"))
    assert (len(found.values), found.values[0]) == (counted, boolean().values.index("0"))


def test_values_of_a_file(kleene, monkeypatch):
    folder, values = kleene
    monkeypatch.setattr("exactformer.engine.stream.LINES_AT_ONCE", 100)
    command = ("eval", KLEENE, "--file", folder / "rows.txt")
    assert output(*command).split() == values
    assert json.loads(output(*command, "--json"))["values"] == values


@pytest.mark.parametrize("at_once", [100, 1 << 23])
def test_labels_of_a_file(kleene, at_once, monkeypatch):
    folder, values = kleene
    monkeypatch.setattr("exactformer.domains.formats.lines.LINES_AT_ONCE", at_once)
    lines = (folder / "rows.tsv").read_text().splitlines()
    wrong = list(range(3, len(lines), 7))
    for i in wrong:
        other = "true" if values[i] != "true" else "false"
        lines[i] = f"{other}\t{lines[i].split(chr(9))[0]}\r"
    (folder / "rows.tsv").write_text("\n".join(lines))
    status, printed, errors = exactformer("score", KLEENE, folder / "rows.tsv", "--json")
    found = json.loads(printed)
    assert (status, errors, found["engine"]) == (1, "", "fast")
    assert (found["correct"], found["total"]) == (len(lines) - len(wrong), len(lines))
    assert found["wrong"] == [
        {"line": i + 1, "expected": lines[i].split()[0], "found": values[i]} for i in wrong[:10]
    ]
    by_model = ("score", KLEENE, folder / "rows.tsv", "--json", "--engine", "model")
    assert json.loads(exactformer(*by_model)[1]) == found | {"engine": "model"}


@pytest.mark.parametrize("at_once", [4, 1 << 23])
def test_bad_lines_of_a_labelled_file(tmp_path, at_once, monkeypatch):
    monkeypatch.setattr("exactformer.domains.formats.lines.LINES_AT_ONCE", at_once)
    path = tmp_path / "rows.tsv"
    path.write_bytes(b"(1&0)\t0\n(1&0)\n(1&\t0\n1\t1\t1\n(1|0)\t2\n" + b"\n" * 8 + b"1\t\xff")
    said = refused("score", "boolean", path, "--format", "tsv")
    for line in (
        "line 2, column 6: expected expression <TAB> value, found 1 field (1&0) ^",
        "line 3, column 4: expected a value",
        "line 4, column 4: expected expression <TAB> value, found 3 fields",
        "line 5, column 7: expected one of 1 0",
        "line 6, column 1: expected expression <TAB> value, found 1 field",
        "and 3 more bad lines",
    ):
        assert line in said


def test_a_labelled_line_that_is_too_long(tmp_path):
    """However many bytes are read at once."""
    path = tmp_path / "rows.tsv"
    for blanks, refusal in ((LONGEST_LINE - 4, False), (LONGEST_LINE - 3, True)):
        path.write_bytes(b"1\t1\n" + b"0" + b" " * blanks + b"\t0\n1\t1\n")
        if refusal:
            said = refused("score", "boolean", path, "--format", "tsv")
            assert "line 2: expected at most 16,777,215 bytes, found a longer line" in said
        else:
            assert output("score", "boolean", path, "--format", "tsv").startswith("3 of 3 rows")


def test_many_lines_through_a_pipe():
    """In a process of its own, by two readers: more than a megabyte."""
    expressions = draw(arithmetic(), 3, 2_000, np.random.default_rng(2))
    values = "".join(f"{evaluate(expression)}\n" for expression in expressions)
    text = "".join(f"{expression}\n" for expression in expressions)
    result = run("eval", "arithmetic", "--file", "-", input=text * 60)
    assert (result.returncode, result.stderr) == (0, "")
    assert len(text * 60) > 1 << 20
    assert result.stdout == values * 60


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
@pytest.mark.parametrize("place", PLACES[1:])
def test_a_gpu_changes_nothing(place, task, monkeypatch):
    """What an engine that has a GPU says of lines, and of a list, is what the CPU says."""
    monkeypatch.setattr(device, "WORTH_A_LAUNCH", 2000)
    on_cpu, trial = engine_for(task), reader(place, task)
    engine = DeviceEngine(on_cpu.automaton, task, trial.device)
    engine.many, values = trial, trial.values
    asked: list[int] = []

    def asked_for(text: Tensor, separator: int) -> Tensor:
        asked.append(separator)
        return values(text, separator)

    monkeypatch.setattr(trial, "values", asked_for)
    fuzzer, rng = Fuzzer(task, seed=3), Random(3)
    texts = [fuzzer.text().replace("\n", " ") for _ in range(300)]
    deep = [tree(task, "left", size, rng) for size in (20, 60, 3000)]
    texts += [" ".join(task.vocabulary[i] for i in ids) for ids in deep]
    lines = np.frombuffer("\n".join(texts).encode(), np.uint8)
    for most in (None, 5):
        found, known = engine.rows(lines, 7, most), on_cpu.rows(lines, 7, most)
        assert found.values.tolist() == known.values.tolist()
        assert {i: str(e) for i, e in found.errors.items()} == {
            i: str(e) for i, e in known.errors.items()
        }
    right = [text for text, value in zip(texts, known.values, strict=True) if value >= 0]
    assert engine.texts(right) == on_cpu.texts(right)
    with pytest.raises(ExpressionError) as refusal:
        engine.texts([*right, "("])
    assert refusal.value.__notes__ == [f"in text {len(right) + 1} of {len(right) + 1}"]
    assert set(asked) == {ord("\n"), 0}
