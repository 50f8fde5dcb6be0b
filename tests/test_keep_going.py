"""`eval --file --keep-going` goes on past bad lines, marks them, and tells them all the same."""

import json

import pytest

from tests.in_process import run_here
from tests.test_cli_model import refused

LINES = b"(1&0)\n(1&\n\n(~0)\n(1&0&1)\nTRUE\n"
PYTHON = b"1 and 0\n(1 and\n\nnot 0\n1 xor 1\nTrue\n"
VALUES = ["0", None, None, "1", None, "1"]


def evaluated(path, *options: str) -> tuple[int, str, str]:
    return run_here(["eval", "boolean", "--file", str(path), *options])


@pytest.mark.parametrize("engine", ["fast", "model"])
@pytest.mark.parametrize("syntax", ["native", "python"])
def test_bad_lines_are_marked(tmp_path, engine, syntax):
    lines = LINES if syntax == "native" else PYTHON
    (tmp_path / "lines").write_bytes(lines)
    options = ("--engine", engine, "--syntax", syntax)
    without = evaluated(tmp_path / "lines", *options)
    status, printed, errors = evaluated(tmp_path / "lines", *options, "--keep-going")
    assert status == 2
    assert printed.splitlines() == [value or "(error)" for value in VALUES]
    assert without == (2, "", errors)  # the same lines, columns and words


@pytest.mark.parametrize("options", [(), ("--engine", "model", "--iterations", "depth")])
def test_bad_lines_are_null_in_json(tmp_path, options):
    (tmp_path / "lines").write_bytes(LINES)
    status, printed, errors = evaluated(tmp_path / "lines", "--keep-going", "--json", *options)
    assert status == 2
    found = json.loads(printed)
    assert found["values"] == VALUES
    taken = found.get("iterations", VALUES)  # the tables have none
    assert [one is None for one in taken] == [value is None for value in VALUES]
    assert json.loads(errors)["line"] == 2


def test_published_listops_go_on_as_well(tmp_path):
    (tmp_path / "lines").write_text("[MAX 1 2 ]\n[MAX 1 \n[MIN 1 2 ]\n")
    command = ["eval", "listops", "--file", str(tmp_path / "lines"), "--syntax", "nangia"]
    status, printed, errors = run_here([*command, "--keep-going"])
    assert (status, printed) == (2, "2\n(error)\n1\n")
    assert run_here(command) == (2, "", errors)


def test_large_files_with_bad_lines_all_over(tmp_path):
    good, bad = "((1|0)&(~0))\n" * 9_999, "(1&\n"
    (tmp_path / "lines").write_text((good + bad) * 100)
    status, printed, errors = evaluated(tmp_path / "lines", "--keep-going")
    assert status == 2
    assert printed == ("1\n" * 9_999 + "(error)\n") * 100
    assert errors.endswith("and 90 more bad lines\n")


def test_without_bad_lines_nothing_changes(tmp_path):
    (tmp_path / "lines").write_text("(1&0)\n1\n")
    assert evaluated(tmp_path / "lines", "--keep-going") == (0, "0\n1\n", "")


def test_where_it_is_refused(tmp_path):
    assert "--keep-going is for --file" in refused("eval", "boolean", "1", "--keep-going")
    command = ("eval", "boolean", "--file", "lines", "--ray", "auto", "--keep-going")
    assert "--keep-going is for --file" in refused(*command)


def test_an_overlong_bad_line_is_the_last_one_read(tmp_path, monkeypatch):
    """The limit is lowered here; --help and the page of the command line give it as 256 MiB."""
    monkeypatch.setattr("exactformer.engine.stream.BUFFER", 64)
    monkeypatch.setattr("exactformer.engine.stream.LONGEST_BAD_LINE", 500)
    for length, printed in ((400, "1\n(error)\n0\n"), (5_000, "1\n(error)\n")):
        (tmp_path / "lines").write_text(f"1\n{')' * length}\n0\n")
        status, found, errors = evaluated(tmp_path / "lines", "--keep-going")
        assert (status, found) == (2, printed)
        assert "no parenthesis is open" in errors


@pytest.mark.parametrize("options", [("--engine", "model"), ("--syntax", "python")])
def test_an_overlong_line_ends_other_ways_of_reading(tmp_path, monkeypatch, options):
    monkeypatch.setattr("exactformer.domains.formats.lines.LONGEST_LINE", 100)
    (tmp_path / "lines").write_text(f"1\n{')' * 200}\n0\n")
    status, found, errors = evaluated(tmp_path / "lines", "--keep-going", *options)
    assert (status, found) == (2, "")
    assert "line 2: expected at most 99 bytes" in errors
