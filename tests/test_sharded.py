"""Files that are evaluated and scored in parts: all that comes out is as of the whole.

Here the parts are taken one after the other in this process, through what a node does with them;
`tests/test_cluster.py` sends them to real nodes.
"""

import pickle
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exactformer as ef
from exactformer.domains.catalog import listops
from exactformer.domains.formats.lines import BadLines, parts
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.sampling import draw
from exactformer.host.cluster import run_here, versions
from tests.test_cli_model import exactformer

BAD = b"nonsense\n"
NANGIA = [
    f"{ef.oracle(e)}\t{format_nangia(e)}\n".encode()
    for e in draw(listops(2, "mean"), 3, 40, np.random.default_rng(0))
]
NATIVE = [f"{e}\n".encode() for e in draw(listops(), 3, 40, np.random.default_rng(0))]
TSV = [line.replace(b"\n", b"\t3\n") for line in NATIVE]
WRONG = [b"1\t[MAX 1 2 ]\n"] * 12
PAIRS = [b"#\ta\tb\n", b"=\ta\t( not a )\n", b"<\t( a ( and b ) )\ta\n"] * 5


class OneByOne:
    """A cluster of nothing but this process."""

    def in_order(self, function, shards, *, gpus=0):
        for shard in shards:
            yield run_here(versions(), pickle.dumps(function), pickle.dumps(shard)).right()


@pytest.fixture
def small_parts(monkeypatch):
    """Of two or three lines."""

    @contextmanager
    def connected(address):
        assert address == "auto"
        yield OneByOne()

    monkeypatch.setattr("exactformer.evaluation.sharded.connected", connected)
    monkeypatch.setattr("exactformer.domains.formats.lines.PART", 40)


def same(*arguments: str | Path, stdin: bytes = b"") -> tuple[int, str, str]:
    """Exit status, output and errors with and without a cluster."""
    whole = exactformer(*arguments, stdin=stdin)
    assert exactformer(*arguments, "--ray", "auto", stdin=stdin) == whole
    return whole


SCORED = {
    "right": (NANGIA, 0),
    "wrong": (NANGIA + WRONG + NANGIA, 1),
    "bad": ([*NANGIA[:7], BAD, *NANGIA, *[BAD] * 12, b"1\t\xff\n"], 2),
    "byte order mark": ([b"\xef\xbb\xbf" + NANGIA[0], *NANGIA], 0),
    "byte order marks": ([b"\xef\xbb\xbf" + line for line in NANGIA[:9]], 2),
    "no newline at the end": ([*NANGIA, b"1\t1"], 0),
    "empty lines": ([*NANGIA, b"\n", *NANGIA, b"\n"], 2),
    "empty": ([], 2),
    "lra": ([b"Source\tTarget\n", b"1\t1\n", *[b"[MAX 1 2 ]\t2\n"] * 30], 0),
    "header only": ([b"Source\tTarget\n"], 2),
    "two headers": ([b"Source\tTarget\n", *[b"[MAX 1 2 ]\t2\n"] * 30, b"Source\tTarget\n"], 2),
    "tsv": ([*TSV, b"7\t( MAX 1 7 )\n"], 1),
    "tsv, bad": ([*TSV, b"( MAX 1 7 )\t11\n", *TSV], 2),
}


@pytest.mark.parametrize(("lines", "status"), SCORED.values(), ids=SCORED)
def test_scored(lines, status, small_parts, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_bytes(b"".join(lines))
    assert same("score", "listops", path)[0] == status


def test_scored_as_json(small_parts):
    assert same("score", "listops", "-", "--json", stdin=b"".join(SCORED["wrong"][0]))[0] == 1
    errors = same("score", "listops", "-", "--json", stdin=b"".join(SCORED["bad"][0]))[2]
    assert '"line": 8' in errors


def test_scored_pairs_of_formulas(small_parts):
    assert same("score", "boolean", "-", stdin=b"".join(PAIRS))[0] == 1
    assert same("score", "boolean", "-", stdin=b"".join([*PAIRS, BAD, *PAIRS]))[0] == 2


def test_scored_with_weights_of_a_file(small_parts, tmp_path):
    """Those that cover all, and those that do not: an operator is first used in the last part."""
    path, weights = tmp_path / "rows.tsv", tmp_path / "wide.safetensors"
    path.write_bytes(b"".join(NANGIA))
    ef.construct(listops(2, "mean")).save(weights)
    assert same("score", "listops", path, "--weights", weights)[0] == 0
    path.write_bytes(b"".join([*NANGIA, b"1\t[FIRST 1 2 ]\n"]))
    status, _, errors = same("score", "listops", path, "--weights", weights)
    assert status == 2
    assert "do not cover FIRST of 2 operands (line 41)" in errors
    assert same("score", "listops", path)[0] == 0


@pytest.mark.parametrize(("weights", "problem"), [("7520", "FIRST"), ("no.file", "no.file")])
def test_bad_lines_come_before_what_is_wrong_with_weights(weights, problem, small_parts):
    how = ("score", "listops", "-", "--weights", weights)
    lines = [*NANGIA, b"1\t[FIRST 1 2 ]\n"]
    assert problem in same(*how, stdin=b"".join(lines))[2]
    errors = same(*how, stdin=b"".join([*lines, BAD]))[2]
    assert errors.startswith("exactformer: -: line 42, column 9: expected label <TAB> expr")


EVALUATED = {
    "right": (NATIVE, 0),
    "bad": ([*NATIVE[:7], BAD, *NATIVE, *[BAD] * 12, b"\xff\n"], 2),
    "byte order mark": ([b"\xef\xbb\xbf" + NATIVE[0], *NATIVE], 0),
    "byte order marks": ([b"\xef\xbb\xbf" + line for line in NATIVE[:9]], 2),
    "no newline at the end": ([*NATIVE, b"1"], 0),
    "empty lines": ([*NATIVE, b"\n", *NATIVE, b"\n"], 2),
    "empty": ([], 2),
}


@pytest.mark.parametrize(
    "how",
    [[], ["--json"], ["--engine", "model", "--iterations", "log", "--json"]],
    ids=["text", "json", "iterations"],
)
@pytest.mark.parametrize(("lines", "status"), EVALUATED.values(), ids=EVALUATED)
def test_evaluated(lines, status, how, small_parts, tmp_path):
    path = tmp_path / "expressions.txt"
    path.write_bytes(b"".join(lines))
    assert same("eval", "listops", "--file", path, *how)[0] == status


def test_evaluated_in_another_syntax_with_weights_of_a_file(small_parts, tmp_path):
    weights = tmp_path / "mine.safetensors"
    ef.construct(ef.boolean()).save(weights)
    how = ("eval", "boolean", "--file", "-", "--syntax", "python", "--weights", weights)
    lines = [b"1 or 0 and not 1\n", b"not True\n"] * 20
    assert same(*how, stdin=b"".join(lines))[0] == 0
    assert "line 41, column 5" in same(*how, stdin=b"".join([*lines, b"not and\n"]))[2]


def test_what_the_transformer_would_take_hours_for(small_parts):
    """The line of it is named, unless a bad line comes before it."""
    depth = 20_000
    long = b"(~" * depth + b"1" + b")" * depth + b"\n"
    how = ("eval", "boolean", "--file", "-", "--engine", "model")
    lines = [b"(1&0)\n"] * 20
    assert "line 21: " in same(*how, stdin=b"".join([*lines, long, *lines]))[2]
    bad_first = same(*how, stdin=b"".join([*lines, BAD, *lines, long]))[2]
    assert "iterations" not in bad_first


def test_what_does_not_go_together(small_parts):
    ray = ("--ray", "auto")
    status, _, errors = exactformer("eval", "boolean", "1", *ray)
    assert (status, "expected --file with --ray" in errors) == (2, True)
    status, _, errors = exactformer("score", "boolean", "a", "--predictions", "b", *ray)
    assert (status, "expected no option but --answers and --json" in errors) == (2, True)
    status, _, errors = exactformer("eval", "boolean", "--file", "a", "--device", "gpu", *ray)
    assert (status, "expected cpu or cuda, found 'gpu'; did you mean 'cuda'" in errors) == (2, True)
    status, _, errors = exactformer("eval", "boolean", "--file", "missing", *ray)
    assert (status, errors) == (2, "exactformer: missing: No such file or directory")


def test_a_line_without_end_is_refused(small_parts):
    for command in (["score", "listops"], ["eval", "listops", "--file"]):
        status, printed, errors = exactformer(*command, "/dev/zero", "--ray", "auto")
        assert (status, printed) == (2, "")
        assert "line 1: expected at most 16,777,215 bytes, found a longer line" in errors


@given(data=st.binary(max_size=60).map(lambda b: b.replace(b"\x00", b"\n")), size=st.integers(1, 9))
def test_parts_are_the_file(data, size, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "file"
    path.write_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("exactformer.domains.formats.lines.PART", size)
        cut = list(parts(path))
    assert b"".join(part.data for part in cut) == data
    for i, part in enumerate(cut):
        before = b"".join(earlier.data for earlier in cut[:i])
        assert part.first_line == 1 + before.count(b"\n")
        assert part.data.endswith(b"\n") or part is cut[-1]
        assert part.data or len(cut) == 1


def test_bad_lines_travel_and_add_up():
    first = BadLines("rows", [f"line {i}" for i in range(8)], 9, {"line": 0})
    second = BadLines("rows", [f"line {i}" for i in range(20, 25)], 5, {"line": 20})
    added = pickle.loads(pickle.dumps(first)) + second
    assert str(added).splitlines() == [
        "rows: line 0",
        *(f"line {i}" for i in range(1, 8)),
        *("line 20", "line 21"),
        "and 4 more bad lines",
    ]
    assert added.place == {"line": 0}
