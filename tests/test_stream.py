"""Expressions from files and pipes: any number, any size, a buffer at a time."""

import copy
import io
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exactformer.domains.catalog import arithmetic, boolean, listops
from exactformer.domains.errors import ExpressionError
from exactformer.domains.reference import evaluate
from exactformer.domains.syntax import parse
from exactformer.engine import stream
from tests.fuzz import Fuzzer
from tests.rows import line_values
from tests.test_engine import COMBS, engine_for

TASKS = [boolean(), arithmetic(), listops()]


class Trickle(io.BytesIO):
    """Gives a few bytes at a time, as a pipe may."""

    def readinto(self, buffer) -> int:
        return super().readinto(memoryview(buffer)[:7])


def expected(algebra, line: str) -> str:
    try:
        return evaluate(parse(algebra, line))
    except ExpressionError as error:
        return error.problem


@given(st.sampled_from(TASKS), st.integers(0, 2**32), st.integers(16, 200))
def test_lines_through_a_small_window(algebra, seed, size):
    """Some lines fit, others are read in pieces; right and damaged ones are told apart."""
    fuzzer = Fuzzer(algebra, seed)
    lines = [fuzzer.text().replace("\n", " ").replace("\r", " ") for _ in range(8)]
    data = "\n".join(lines).encode()
    found = [
        result.problem if isinstance(result, ExpressionError) else result
        for result in line_values(engine_for(algebra), Trickle(data), size=size)
    ]
    if not lines[-1]:
        lines.pop()
    assert found == [expected(algebra, line) for line in lines]


@pytest.mark.parametrize("name", COMBS)
def test_a_line_far_longer_than_the_window(name):
    text = COMBS[name](100_000)
    value = evaluate(parse(arithmetic(), text))
    data = f"(1+1)\n{text}\n{text}\n7".encode()
    results = line_values(engine_for(arithmetic()), io.BytesIO(data), size=10_000)
    assert results == ["2", value, value, "7"]


def test_an_error_in_a_long_line_is_located_by_its_byte():
    good = COMBS["left"](10_000)
    place = 30_001
    data = f"5\n{good[:place]}#{good[place:]}\n6".encode()
    results = line_values(engine_for(arithmetic()), io.BytesIO(data), size=5_000)
    assert results[::2] == ["5", "6"]
    error = results[1]
    assert isinstance(error, ExpressionError)
    assert str(error).startswith(f"byte {len('5' + chr(10)) + place}: expected")
    excerpt, caret = str(error).splitlines()[1:]
    assert excerpt[caret.index("^")] == "#"


@pytest.mark.parametrize("size", range(60, 70))
@pytest.mark.parametrize("rest", ["&)", "", "  "])
def test_bytes_are_counted_where_characters_have_several(size, rest):
    """Whichever byte the window begins with."""
    good = "(" * 100 + "1" + "∧1)" * 60
    data = f"{good}{rest}".encode()
    (error,) = line_values(engine_for(boolean()), io.BytesIO(data), size=size)
    place = len(good.encode()) + (1 if rest.strip() else 0)
    assert str(error).startswith(f"byte {place}: expected")


def test_a_long_line_that_ends_too_early():
    results = line_values(engine_for(arithmetic()), io.BytesIO(b"(" * 1_000), size=100)
    assert "1000 parentheses unclosed" in str(results[0])


def test_progress_is_told_in_bytes():
    data, told = b"(1+2)\n" * 100, []
    line_values(engine_for(arithmetic()), io.BytesIO(data), told.append, size=64)
    assert told == sorted(told)
    assert told[-1] == len(data)


EVALUATE = textwrap.dedent("""
    import sys
    from exactformer.cli import main
    sys.argv = ["exactformer", "eval", "arithmetic", "--file", "-"]
    try:
        main()
    finally:
        status = open("/proc/self/status").read()
        print(status.split("VmHWM:")[1].split()[0], file=sys.stderr)
""")
peak_memory = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="peak memory is read there"
)


@peak_memory
def test_many_bad_lines_are_counted_in_little_memory():
    """Kept as errors, these would take more than three gigabytes."""
    count = 1_000_000
    result = subprocess.run(
        [sys.executable, "-c", EVALUATE], input="x\n" * count, capture_output=True, text=True
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "line 10, column 1" in result.stderr
    assert f"and {count - 10} more bad lines" in result.stderr
    assert int(result.stderr.split()[-1]) < 1_000_000, "kilobytes"


@pytest.mark.parametrize("end", [b"", b"\n7\n"])
def test_a_bad_line_that_goes_on_and_on(monkeypatch, end):
    """Its rest is passed over, but not for ever."""
    monkeypatch.setattr("exactformer.engine.stream.LONGEST_BAD_LINE", 10_000)
    data = b"5\n" + b"x" * 5_000 + b"\n6\n" + b"#" + b"(" * 20_000 + end
    first, bad, second, endless = line_values(engine_for(arithmetic()), io.BytesIO(data), size=100)
    assert (first, second) == ("5", "6")
    assert str(bad).startswith("byte 2: expected")
    assert str(endless).startswith("byte 5005: expected")


def test_a_line_longer_than_the_window_that_bytes_cannot_be_read_of(monkeypatch):
    """The parser takes it whole, up to a bound: it is not two lines, each with a value."""
    engine = copy.copy(engine_for(arithmetic()))
    engine.reads_bytes = False
    data = b"5" + b" " * 500 + b"5\n6"
    error, value = line_values(engine, io.BytesIO(data), size=100)
    assert "line 1, column 502: expected the end of the text" in str(error)
    assert value == "6"
    monkeypatch.setattr(stream, "LONGEST_BAD_LINE", 100)
    (error,) = line_values(engine, io.BytesIO(data), size=100)
    assert str(error).startswith("line 1, column 1: expected at most ")


def test_bad_lines_beyond_the_first_few_are_not_looked_at():
    results = line_values(engine_for(arithmetic()), io.BytesIO(b"x\n1\n" * 50))
    assert results[1::2] == ["1"] * 50
    assert all(isinstance(result, ExpressionError) for result in results[:20:2])
    assert results[20::2] == [None] * 40


@peak_memory
def test_a_pipe_larger_than_the_memory_that_is_used():
    """The command, reading 300 million bytes; its peak memory is far less than their number."""
    maker = textwrap.dedent("""
        import sys
        row = "(((1+2)*(3+4))+" * 20_000
        for _ in range(600):
            sys.stdout.write(row)
        sys.stdout.write("7")
        for _ in range(600):
            sys.stdout.write(")" * 20_000)
    """)
    with subprocess.Popen([sys.executable, "-c", maker], stdout=subprocess.PIPE) as source:
        result = subprocess.run(
            [sys.executable, "-c", EVALUATE], stdin=source.stdout, capture_output=True, text=True
        )
    # Each of the 12 million levels adds (1+2)*(3+4) = 1 to the 7 inside.
    assert result.stdout.split() == [str((7 + 12_000_000) % 10)]
    assert int(result.stderr.split()[-1]) < 1_000_000, "kilobytes"
