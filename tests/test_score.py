"""`exactformer score`, and the other commands on published notations, as a user meets them.

Published files are checked where EXACTFORMER_DATA names their folder.
"""

import json
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

import exactformer as ef
from exactformer.domains.algebra import Algebra, Operator
from exactformer.domains.catalog import boolean, listops
from exactformer.domains.formats.long_range import draw_long_range
from exactformer.domains.formats.nangia import format_nangia
from exactformer.domains.sampling import draw
from tests.test_cli_model import exactformer, output, refused

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def published(name: str) -> Path:
    folder = os.environ.get("EXACTFORMER_DATA")
    if not folder:
        pytest.skip("EXACTFORMER_DATA does not name the folder of the published files")
    return Path(folder) / name


MOST_ROWS = 1_000  # of a published file, by the transformer


def first_rows(path: Path, folder: Path) -> Path:
    part = folder / path.name
    with path.open("rb") as file:
        part.write_bytes(b"".join(islice(file, MOST_ROWS)))
    return part


def score(*arguments: str | Path, stdin: bytes = b"") -> dict:
    status, printed, errors = exactformer("score", *arguments, "--json", stdin=stdin)
    assert errors == ""
    result = json.loads(printed)
    assert status == (0 if result["correct"] == result["total"] else 1)
    return result


def rows(path: Path, expressions: list[ef.Expression]) -> Path:
    lines = [f"{ef.oracle(e)}\t{format_nangia(e)}" for e in expressions]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def nangia_file(tmp_path) -> Path:
    return rows(tmp_path / "rows.tsv", draw(listops(4, "mean"), 3, 50, np.random.default_rng(0)))


# Published files


@pytest.mark.parametrize(
    ("name", "algebra"),
    [
        ("listops/test_d20s.tsv", "listops-5-mean"),
        ("listops/test_d8.tsv", "listops-max-min-first-last"),
    ],
)
@pytest.mark.parametrize("engine", ["fast", "model"])
def test_published_listops(name, algebra, engine, tmp_path):
    """All rows by the engine; the first thousand by the transformer."""
    file = published(name) if engine == "fast" else first_rows(published(name), tmp_path)
    result = score("listops", file, "--engine", engine)
    assert result["engine"] == engine
    assert (result["correct"], result["total"]) == (10_000 if engine == "fast" else MOST_ROWS,) * 2
    assert (result["algebra"], result["format"]) == (algebra, "nangia")
    assert (result["median"], result["verdict"]) == ("mean", "exact")


def test_the_other_median_differs_on_the_published_file():
    result = score("listops", published("listops/test_d20s.tsv"), "--median", "lower")
    assert (result["correct"], result["total"]) == (10_000 - 1_386, 10_000)
    assert (result["algebra"], result["median"]) == ("listops-5", "lower")


@pytest.mark.parametrize(
    ("number", "total"), list(enumerate([6, 410, 2198, 4104, 5361, 6027])), ids=str
)
@pytest.mark.parametrize("engine", ["fast", "model"])
def test_published_logic(number, total, engine, tmp_path):
    file = published(f"logic/test{number}")
    if engine == "model":
        file, total = first_rows(file, tmp_path), min(total, MOST_ROWS)
    result = score("boolean", file, "--weights", "7520", "--engine", engine)
    assert (result["correct"], result["total"]) == (total, total)
    assert (result["format"], result["verdict"]) == ("bowman", "exact")


# The Long Range Arena's


def test_a_long_range_arena_set(tmp_path):
    """More rows, and by the engine as well, where published files are scored: its tables for ten
    operands take a while.
    """
    whole = "EXACTFORMER_DATA" in os.environ
    count = 100 if whole else 50
    path = tmp_path / "basic_test.tsv"
    path.write_text(output("sample", "listops", "--format", "lra", "--count", str(count)))
    assert path.read_text().startswith("Source\tTarget\n( ( (")
    for engine in ("fast", "model") if whole else ("model",):
        result = score("listops", path, "--engine", engine)
        assert (result["correct"], result["total"]) == (count, count)
        assert (result["algebra"], result["format"]) == ("listops-10-mean", "lra")


def test_the_long_range_arena_set_as_data():
    data = json.loads(
        output("sample", "listops", "--format", "lra", "--count", "2", "--seed", "3", "--json")
    )
    expressions = draw_long_range(2, np.random.default_rng(3))
    assert [row["expression"] for row in data] == [format_nangia(e) for e in expressions]
    assert [row["value"] for row in data] == [ef.oracle(e) for e in expressions]


@pytest.mark.parametrize("extra", [["boolean"], ["listops", "--depth", "3"], ["listops-10-mean"]])
def test_the_long_range_arena_set_is_what_it_is(extra):
    assert "the Long Range Arena's set is of listops" in refused(
        "sample", *extra, "--format", "lra"
    )


# Rows right and wrong


def test_what_a_user_reads(nangia_file):
    text = output("score", "listops", nangia_file)
    assert text.splitlines() == [
        "50 of 50 rows right",
        f"  file     {nangia_file} (nangia)",
        "  algebra  listops-4-mean: MAX of 2 to 4, MIN of 2 to 4, MED of 2 to 4, SM of 2 to 4",
        "  median   of an even number: the floor of their mean, as published",
        "  weights  constructed: exact",
        "  engine   fast: tables of certified weights",
    ]


def test_wrong_rows_are_shown(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("2\t[MAX 1 2 ]\n" + "3\t[MAX 1 2 ]\n" * 12)
    status, printed, errors = exactformer("score", "listops", path)
    assert (status, errors) == (1, "")
    assert printed.startswith("1 of 13 rows right\n")
    assert "line 2: expected 3, found 2" in printed
    assert "line 11: expected 3, found 2\n  and 2 more" in printed
    assert "line 12:" not in printed
    result = score("listops", path)
    assert (result["correct"], result["total"], len(result["wrong"])) == (1, 13, 10)
    assert result["wrong"][-1] == {"line": 11, "expected": "3", "found": "2"}


def test_wrong_relations_are_shown(tmp_path):
    path = tmp_path / "pairs"
    path.write_text("#\ta\tb\n=\ta\t( not a )\n")
    result = score("boolean", path)
    assert (result["correct"], result["total"]) == (1, 2)
    assert result["wrong"] == [{"line": 2, "expected": "=", "found": "^"}]


def test_both_medians(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("5\t[MED 2 9 ]\n2\t[MED 2 9 ]\n")
    assert score("listops", path)["wrong"] == [{"line": 2, "expected": "2", "found": "5"}]
    lower = score("listops", path, "--median", "lower")
    assert lower["wrong"] == [{"line": 1, "expected": "5", "found": "2"}]
    assert lower["algebra"] == "listops"


def test_tsv_in_any_domain(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(output("sample", EXAMPLES / "kleene.toml", "--depth", "4"))
    assert score(EXAMPLES / "kleene.toml", path)["correct"] == 10
    path.write_text(output("sample", "boolean", "--depth", "4"))
    result = score("boolean", path, "--format", "tsv", "--weights", "fitted")
    assert (result["correct"], result["median"], result["weights"]) == (10, None, "fitted")


def test_standard_input():
    assert score("listops", "-", stdin=b"2\t[MAX 1 2 ]\n")["correct"] == 1
    assert score("listops", "-", stdin=b"Source\tTarget\n[MAX 1 2 ]\t2\n")["correct"] == 1


def test_many_rows_are_scored_in_blocks(tmp_path):
    """More than are held at once; the wrong ones are in the last block."""
    expressions = draw(listops(4, "mean"), 2, 500, np.random.default_rng(1))
    path = rows(tmp_path / "rows.tsv", expressions * 100)
    with path.open("a") as file:
        file.write("1\t[MAX 1 2 ]\n" * 12)
    result = score("listops", path)
    assert (result["correct"], result["total"]) == (50_000, 50_012)
    assert [row["line"] for row in result["wrong"]] == list(range(50_001, 50_011))
    assert score("listops", "-", stdin=path.read_bytes()) == result | {"file": "-"}


# Refusals


@pytest.mark.parametrize("format", ["nangia", "lra", "tsv"])
def test_a_file_without_end(format):
    errors = refused("score", "listops", "/dev/zero", "--format", format)
    assert errors == (
        "exactformer: /dev/zero: line 1: expected at most 16,777,215 bytes, found a longer line"
    )


def test_a_row_that_is_too_much_for_the_transformer(tmp_path):
    depth = 20_000
    path = tmp_path / "rows.tsv"
    path.write_text(f"1\t1\n2\t{'( MAX 1 ' * depth}2{' )' * depth}\n")
    model = ("--format", "tsv", "--engine", "model")
    errors = refused("score", "listops", path, *model)
    assert f"{path}: Expression(listops, ( MAX 1 ( MAX 1" in errors
    assert "would take 20,000 iterations of 100,001 positions each" in errors
    assert "--no-limit" in errors
    assert score("listops", path, "--format", "tsv")["correct"] == 2


def test_a_bad_file(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("1\t1\n2\t( ( [MAX 1 ) ] )\nx\t1\n")
    errors = refused("score", "listops", path)
    assert f"{path}: line 2, column 16: expected 3 or more parentheses" in errors
    assert "line 3, column 1: expected one of" in errors
    assert "missing" in refused("score", "listops", tmp_path / "missing")
    assert "found an empty file" in refused("score", "listops", "-")


def test_weights_that_do_not_cover_the_file(tmp_path, nangia_file):
    errors = refused("score", "listops", nangia_file, "--weights", "7520")
    assert "7520: weights for 'listops' do not cover MAX of 4 operands (line " in errors
    path = tmp_path / "first.tsv"
    path.write_text("1\t1\n1\t[FIRST 1 2 ]\n")
    errors = refused("score", "listops", path, "--weights", "7520")
    assert "do not cover FIRST of 2 operands (line 2)" in errors
    assert "do not cover FIRST of 2" in refused("score", "listops-5-mean", path)


def test_weights_with_another_median(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("5\t[MED 2 9 ]\n")
    errors = refused("score", "listops", path, "--weights", "7520")
    assert "MED of 'listops' is not that of ListOps with --median mean" in errors
    assert score("listops", path, "--weights", "7520", "--median", "lower")["correct"] == 0
    path.write_text("9\t[MAX 2 9 ]\n")
    assert score("listops", path, "--weights", "7520")["correct"] == 1


def test_wider_weights_than_the_file_needs(tmp_path):
    weights, file = tmp_path / "wide.safetensors", tmp_path / "rows.tsv"
    ef.construct(listops(4, "mean")).save(weights)
    file.write_text("5\t[MED 2 9 ]\n")
    result = score("listops", file, "--weights", weights)
    assert (result["correct"], result["algebra"]) == (1, "listops-4-mean")
    assert score("listops-4-mean", file, "--weights", weights)["correct"] == 1
    assert "not for this" in refused("score", "listops-5-mean", file, "--weights", weights)


def with_digits_in_order(base: Algebra, values: str) -> Algebra:
    """The same tables and rules, by places, on values that stand in other places."""
    return Algebra(f"{base.name}-x", tuple(values), base.operators, "prefix", dict(base.spellings))


TRUE = "9\t[MAX 9 1 ]\n0\t[MIN 0 5 ]\n"
FALSE = "1\t[MAX 9 1 ]\n5\t[MIN 0 5 ]\n"


@pytest.mark.parametrize("base", [listops(3, "mean"), listops(12, "mean"), listops(None, "mean")])
@pytest.mark.parametrize("text", [TRUE, FALSE])
def test_weights_whose_values_are_in_another_order(tmp_path, base, text):
    """Their tables and rules are those of ListOps, place by place; what they compute is not."""
    weights, file = tmp_path / "weights", tmp_path / "rows.tsv"
    ef.construct(with_digits_in_order(base, "9876543210")).save(weights)
    file.write_text(text)
    errors = refused("score", "listops", file, "--weights", weights)
    assert "MAX of" in errors
    assert "is not that of ListOps (line 1): MAX 9 8 is 8, not 9" in errors


def test_too_many_cases_to_compare(tmp_path):
    weights, file = tmp_path / "weights", tmp_path / "rows.tsv"
    ef.construct(with_digits_in_order(listops(None, "mean"), "0123456798")).save(weights)
    file.write_text("1\t[MAX " + "1 " * 12 + "]\n")
    errors = refused("score", "listops", file, "--weights", weights)
    assert "(line 1): too many cases to compare" in errors


def test_the_same_meaning_with_values_in_another_order(tmp_path):
    """Symbol for symbol these are the published operators, so the weights will do."""
    digits = "9876543210"
    rules = {"MAX": max, "MIN": min, "SM": lambda *a: str(sum(map(int, a)) % 10)}
    operators = [Operator.from_rule(name, [2, 3], rule, digits) for name, rule in rules.items()]
    weights, file = tmp_path / "weights", tmp_path / "rows.tsv"
    ef.construct(Algebra("backwards", tuple(digits), tuple(operators), "prefix")).save(weights)
    file.write_text(TRUE + "7\t[SM 9 [MAX 1 8 ] ]\n" + FALSE)
    result = score("listops", file, "--weights", weights)
    assert (result["correct"], result["total"], result["algebra"]) == (3, 5, "backwards")
    assert [row["line"] for row in result["wrong"]] == [4, 5]


def test_logic_by_weights_of_another_boolean_algebra(tmp_path):
    values = ("0", "1")
    other = Algebra("boolean", values, boolean().operators, "infix", dict(boolean().spellings))
    ef.construct(other).save(tmp_path / "weights")
    (tmp_path / "pairs").write_text("=\t( a ( and b ) )\t( a ( or b ) )\n")
    errors = refused("score", "boolean", tmp_path / "pairs", "--weights", tmp_path / "weights")
    assert "not for this 'boolean'" in errors
    errors = refused("eval", "boolean", "(1&0)", "--weights", tmp_path / "weights")
    assert "not for this 'boolean'" in errors


def test_weights_that_are_not_certified(tmp_path, short_search):
    model = ef.construct(boolean())
    blind = replace(model.weights, W_Q=torch.zeros_like(model.weights.W_Q))
    ef.Model(boolean(), blind).save(tmp_path / "wrong")
    (tmp_path / "pairs").write_text("#\ta\tb\n")
    errors = refused("score", "boolean", tmp_path / "pairs", "--weights", tmp_path / "wrong")
    assert "are not certified (inexact)" in errors


def test_what_does_not_fit_together(nangia_file):
    median = ("--median", "mean")
    assert "'listops-5' has its own" in refused("score", "listops-5", nangia_file, *median)
    for format in ("bowman", "tsv"):
        errors = refused("score", "boolean", nangia_file, "--format", format, *median)
        assert f"not for {format}" in errors
    assert "not for 'boolean'" in refused("score", "boolean", nangia_file, "--format", "nangia")
    errors = refused("score", "listops", nangia_file, "--format", "bowman")
    assert "for the domain boolean, not 'listops'" in errors
    assert "--format" in refused("score", "listops", nangia_file, "--format", "csv")


# The notations elsewhere


def test_eval_in_python_syntax():
    python = ("--syntax", "python")
    assert output("eval", "boolean", "not ( True ) and False or True", *python) == "1\n"
    assert output("eval", "arithmetic", "2 + 3*14 - 5", *python) == "9\n"
    assert output("eval", "arithmetic-mod-7", *python, "--", "-1 - 1") == "5\n"
    lines = output("eval", "boolean", "--file", "-", *python, stdin=b"1 or 0\nnot 1\n")
    assert lines == "1\n0\n"
    errors = refused("eval", "boolean", "--file", "-", *python, stdin=b"1\nnot and\n")
    assert "line 2, column 5: expected True" in errors
    assert "not for 'listops'" in refused("eval", "listops", "1", *python)


def test_eval_in_nangias_syntax():
    nangia = ("--syntax", "nangia")
    assert output("eval", "listops", "( ( ( [MED 2 ) 9 ) ] )", *nangia) == "2\n"
    assert output("eval", "listops-3-mean", "[MED 2 9]", *nangia) == "5\n"
    errors = refused("eval", "listops", "[MAX 1 2 3 4 ]", *nangia)
    assert "line 1, column 14: MAX of 4 operands is outside 'listops'" in errors
