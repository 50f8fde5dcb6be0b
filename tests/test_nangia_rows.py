"""Published ListOps by rows: each line as the parser reads it alone, or with the same error.

python -m tests.test_nangia_rows 1000000
"""

import io
import sys
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import LISTOPS_RULES, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.formats.labelled import read_nangia_row
from exactformer.domains.formats.lines import BadLines, Lines
from exactformer.domains.formats.nangia import DIGITS, format_nangia, parse_nangia
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.engine import nangia_rows
from exactformer.engine.nangia_rows import Readings, read_labelled, read_lines, read_published
from exactformer.engine.scan_nangia import MOST_OPERANDS
from tests.fuzz import Fuzzer
from tests.rows import listed
from tests.test_cli_model import exactformer
from tests.test_engine import engine_for, readers  # noqa: F401 (a fixture)
from tests.test_score import published

WIDE = listops(5, "mean", tuple(LISTOPS_RULES))
FORMATS = ("nangia", "lra")
SEPARATORS = ["", " ", " ", "  ", "\r", "\v", "\x1c", "\xa0", "\u3000", "\t", "\x85"]
LABELS = [*DIGITS] * 3 + [" 3", "4 \r", "\xa05", "", " ", "12", "x", "٣", "1\t", "(", "-1"]
JUNK = ["[", "[MAXI", "[max", "MAX", "12", "x", "é", "[MAXé", "1é", "\0", "\x85", "[SM_", "(("]


class Published(Fuzzer):
    """Texts of the notation in both forms, many of them damaged."""

    def __init__(self, seed: int) -> None:
        super().__init__(WIDE, seed)
        self.tokens = ["(", ")", "]", *DIGITS, *(f"[{name}" for name in LISTOPS_RULES)]

    def token(self) -> str:
        return self.rng.choice(JUNK if self.rng.random() < 0.1 else self.tokens)

    def text(self) -> str:
        native = parse(WIDE, " ".join(self.expression(self.rng.randint(0, 3))))
        words = format_nangia(native).split()
        if self.rng.random() < 0.4:
            words = [word for word in words if word not in "()"]
        edits = self.rng.choice([0, 0, 0, 1, 1, 2])
        if self.rng.random() < 0.3:
            return "".join(self.damaged(list(" ".join(words)), edits))
        return self.spaced(self.damaged(words, edits))

    def spaced(self, words: list[str]) -> str:
        if self.rng.random() < 0.6:
            return " ".join(words)
        few = [*self.rng.sample(SEPARATORS, 2), " ", " "]
        return "".join(word + self.rng.choice(few) for word in words)

    def line(self, format: str) -> bytes:
        """With a label, in most cases one."""
        fields = [self.rng.choice(LABELS), self.text()]
        tab = "\t" if self.rng.random() < 0.97 else self.rng.choice(["", " ", "\t\t"])
        line = tab.join(fields if format == "nangia" else fields[::-1]).encode()
        if self.rng.random() < 0.02:
            place = self.rng.randrange(len(line) + 1)
            line = line[:place] + self.rng.choice([b"\xff", b"\xc3", b"\xe3\x80"]) + line[place:]
        return (line + self.rng.choice([b"", b"", b"\r", b"\r\r"])).replace(b"\n", b" ")


def array(lines: list[bytes], *, ends: bool = True) -> np.ndarray:
    return np.frombuffer(b"\n".join(lines) + b"\n" * ends, dtype=np.uint8)


def alone(line: bytes, number: int, format) -> tuple | str:
    """The parser's reading of one line."""
    try:
        _, label, reading = read_nangia_row(line, number, format)
    except ExpressionError as error:
        return str(error)
    return label, reading.codes, reading.uses


def require_the_same(lines: list[bytes], format, first: int = 7, *, ends: bool = True) -> int:
    """Check that the rows are those that the parser reads; returns how many are right."""
    expected = [alone(line, number, format) for number, line in enumerate(lines, first)]
    found = read_labelled(array(lines, ends=ends), first, format)
    right = [i for i, result in enumerate(expected) if not isinstance(result, str)]
    assert (len(found), found.bad) == (len(lines), len(lines) - len(right))
    wrong = [result for result in expected if isinstance(result, str)]
    assert [str(error) for error in found.errors.values()] == wrong[:10]
    digits, rows = listops().values, list(found.rows(WIDE))
    for i in right:
        label, codes, _ = expected[i]
        begin = found.ends[i - 1] if i else 0
        assert found.codes[begin : found.ends[i]].tobytes() == codes, lines[i]
        assert digits[found.label_numbers(WIDE)[i]] == rows[i].label == label, lines[i]
        assert rows[i].line == first + i
    if len(right) == len(lines):
        uses = {}
        for number, (_, _, used) in enumerate(expected, first):
            uses = dict.fromkeys(used, number) | uses
        assert found.uses == uses
    return len(right)


@pytest.mark.usefixtures("readers")
@given(st.integers(0, 2**32), st.sampled_from(FORMATS), st.booleans())
def test_damaged_lines_among_right_ones(seed, format, ends):
    texts = Published(seed)
    lines = [texts.line(format) for _ in range(20)]
    ends = ends or not lines[-1]  # an empty line that does not end is none
    require_the_same(lines, format, ends=ends)
    right = [line for line in lines if not isinstance(alone(line, 1, format), str)]
    assert require_the_same(right, format) == len(right)


@pytest.mark.usefixtures("readers")
@given(st.integers(0, 2**32), st.sampled_from([listops(), listops(operators=("LAST", "PM"))]))
def test_values_of_lines(seed, algebra):
    """Also those of operators, and numbers of operands, that the algebra does not have."""
    texts, engine = Published(seed), engine_for(algebra)
    lines = [texts.text().encode() for _ in range(20)]
    found = read_lines(engine, array(lines), first_line=7)
    expected = []
    for number, line in enumerate(lines, 7):
        try:
            expected.append(evaluate(parse_nangia(algebra, line, first_line=number)))
        except ExpressionError as error:
            expected.append(str(error))
    results = listed(engine, [found])
    assert found.bad == sum(
        result is None or isinstance(result, ExpressionError) for result in results
    )
    for result, wanted in zip(results, expected, strict=True):
        assert str(result) == wanted if result is not None else wanted.startswith("line ")


def test_an_operator_that_is_spelt_like_one_of_listops():
    """What an algebra writes MAX for an operator of another name is no MAX of a published file."""
    smaller = Operator.from_rule("least", [2], min, DIGITS)
    algebra = Algebra("least", DIGITS, [smaller], "prefix", {"MAX": "least"})
    found = read_lines(engine_for(algebra), array([b"[MAX 1 2 ]", b"5"]))
    assert [str(result).splitlines()[0] for result in listed(engine_for(algebra), [found])] == [
        "line 1, column 10: MAX of 2 operands is outside 'least'",
        "5",
    ]


def test_values_in_another_order():
    """Labels and values are compared by their symbols."""
    backwards = DIGITS[::-1]
    largest = Operator.from_rule("MAX", [2], max, backwards)
    engine = engine_for(Algebra("backwards", backwards, [largest], "prefix"))
    found = read_labelled(array([b"2\t[MAX 1 2 ]", b"1\t[MAX 1 2 ]"]), 1, "nangia")
    assert (found.values(engine) == found.label_numbers(engine.algebra)).tolist() == [True, False]


@pytest.mark.parametrize("operands", [MOST_OPERANDS, MOST_OPERANDS + 1, 1_000])
def test_wide_spans(operands):
    binarised = "( " * (operands + 1) + "[SM" + " 1 )" * operands + " ] )"
    lines = [f"0\t[SM{' 1' * operands} ]".encode(), f"0\t{binarised}".encode()]
    assert require_the_same(lines, "nangia", first=1) == 2
    found = read_labelled(array(lines), 1, "nangia")
    assert found.uses == {("SM", operands): 1}


def test_deep_nesting():
    depth = 20_000
    right = b"1\t" + b"[SM 1" * depth + b" 1" + b"]" * depth
    left = b"1\t" + b"( ( ( [SM " * depth + b"1" + b" ) 1 ) ] )" * depth
    assert require_the_same([right, left], "nangia") == 2
    assert require_the_same([right[:-1], left[:-1]], "nangia") == 0


@pytest.mark.parametrize("at_once", [1, 40, 1 << 23])
@pytest.mark.parametrize("format", FORMATS)
def test_a_file_in_blocks(format, at_once, monkeypatch):
    """However many bytes are read at once, lines have their numbers."""
    monkeypatch.setattr("exactformer.domains.formats.lines.LINES_AT_ONCE", at_once)
    header = b"Source\tTarget\r\n" if format == "lra" else b"\xef\xbb\xbf"
    texts = Published(0)
    right = (line for line in map(texts.line, [format] * 200))
    lines = [line for line in right if not isinstance(alone(line, 1, format), str)][:30]

    def blocks(lines: list[bytes]) -> list[Readings]:
        return list(read_published(Lines("x", io.BytesIO(header + b"\n".join(lines))), format))

    first = 2 if format == "lra" else 1
    rows = [row for block in blocks(lines) for row in block.rows(WIDE)]
    assert [row.line for row in rows] == list(range(first, first + len(lines)))
    assert [row.label for row in rows] == [alone(line, 1, format)[0] for line in lines]
    lines[20] = b"1"
    with pytest.raises(BadLines, match=f"line {first + 20}, column 2: expected "):
        blocks(lines)


@pytest.mark.parametrize("counted", [1, 5])
def test_a_text_that_changes_while_it_is_read(counted, monkeypatch):
    """As one may that a second reader still has when nobody waits for it any more: there may be
    more rows than were counted, or fewer.
    """
    monkeypatch.setattr(nangia_rows, "count_rows", lambda *_: counted)
    found = nangia_rows.read_text(array([b"1\t1", b"2\t2", b"3\t3"]), nangia_rows.LABEL_FIRST)
    assert len(found.counts) == counted
    assert found.labels[0] == found.codes[0]


@pytest.mark.parametrize("name", ["listops/test_d20s.tsv", "listops/test_d8.tsv"])
def test_published_files(name):
    lines = published(name).read_bytes().splitlines()
    assert require_the_same(lines, "nangia", first=1) == len(lines) == 10_000
    swapped = [b"\t".join(line.split(b"\t")[::-1]) for line in lines]
    assert require_the_same(swapped, "lra", first=2) == len(lines)


def test_a_file_of_lines_by_the_command_line(tmp_path):
    texts = [b"( ( ( [MED 2 ) 9 ) ] )", b"[SM\t9\xc2\xa09 ]\r", b"7"] * 20
    path = tmp_path / "lines.txt"
    path.write_bytes(b"\n".join(texts))
    command = ("eval", "listops", "--syntax", "nangia", "--file", path)
    assert exactformer(*command) == (0, "2\n8\n7\n" * 20, "")
    path.write_bytes(b"\n".join([*texts, b"[MAX 1 2 3 4 ]", b"", b"( 5 )"]))
    status, printed, errors = exactformer(*command)
    assert (status, printed) == (2, "")
    for line in (
        "line 61, column 14: MAX of 4 operands is outside 'listops'",
        "line 62, column 1: expected a digit, '(' or an operator",
        "line 63, column 3: expected '(' or an operator",
    ):
        assert line in errors


def main() -> None:
    """Random lines, as many as asked for."""
    wanted, right, done = int(sys.argv[1]), 0, 0
    for seed in count():
        texts, format = Published(seed), FORMATS[seed % 2]
        lines = [texts.line(format) for _ in range(200)]
        right += require_the_same(lines, format)
        only = [line for line in lines if not isinstance(alone(line, 1, format), str)]
        require_the_same(only, format)
        done += len(lines)
        if done >= wanted:
            print(f"{done:,} lines, {right:,} of them right; no difference; seeds 0 to {seed}")
            return


if __name__ == "__main__":
    main()
