"""The first things that a new user tries, in Python, in a notebook and at a terminal.

Of a command's words the test is in its own process; of exit statuses and terminals, in another.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import tomllib
from pathlib import Path

import numpy as np
import pytest

import exactformer as ef
from exactformer.cli import app
from exactformer.domains.catalog import CATALOG, find_algebra
from exactformer.problems.files import HEADER
from exactformer.trace.palette import KINDS
from tests.in_process import run_here
from tests.test_cli import COMMAND
from tests.test_cli import exactformer as in_a_process
from tests.test_cli_model import output, refused

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = sorted(
    command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands
)


# The package, and its names


def test_the_version():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert settings["tool"]["hatch"]["version"]["path"] == "exactformer/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", ef.__version__)
    assert in_a_process("--version").stdout == f"exactformer {ef.__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_h_is_help(command):
    text = output(command, "-h")
    assert f"Usage: exactformer {command}" in text
    assert text == output(command, "--help")


def test_dir_shows_the_public_names_before_torch_is_there():
    code = "import sys, exactformer; print(*dir(exactformer)); assert 'torch' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    shown = set(result.stdout.split())
    assert {"Model", "construct", "load", "train", "boolean", "parse", "__version__"} <= shown
    assert "protocol" in shown
    assert set(ef.__all__) <= shown
    for name in shown:
        assert getattr(ef, name)
    with pytest.raises(AttributeError, match="nonesuch"):
        _ = ef.nonesuch  # pyright: ignore[reportAttributeAccessIssue]


# What Python shows


def test_reprs_fit_a_line_or_two():
    boolean, wide = ef.boolean(), find_algebra("arithmetic-mod-99")
    model = ef.construct(boolean)
    shown = {
        repr(boolean): "Algebra(boolean: values 1 0, operators & | ~, infix)",
        repr(boolean.operators): "(Operator(& of 2), Operator(| of 2), Operator(~ of 1))",
        repr(model): "Model(boolean: constructed, feedforward closed)",
        repr(ef.load("boolean/7520")): "Model(boolean: trained, seed 7520, attempt 1)",
        repr(model.certify()): "Certificate(boolean: exact, 35 of 35 rows right, margin 0.5)",
        repr(model.trace("(~0)")): "Trace(boolean, (~0): value 1 after 1 iteration)",
        repr(ef.parse(boolean, "(~0)")): "Expression(boolean, (~0))",
    }
    for found, expected in shown.items():
        assert found == expected
    deep = ef.draw(ef.listops(), 5, 1, np.random.default_rng(0))[0]
    model = ef.construct(ef.listops())
    for thing in (wide, *ef.listops(None).operators, deep, model.trace(deep)):
        assert len(repr(thing)) <= 160
        assert "\n" not in repr(thing)
    assert repr(wide).startswith("Algebra(arithmetic-mod-99: values 0 1 2 ")


def test_a_trace_is_a_coloured_table_in_a_notebook():
    trace = ef.construct(ef.boolean()).trace("((1|0)&(~0))")
    page = trace._repr_html_()
    assert page.count("<table>") == 2
    assert page.count("<td") == 2 * 6 * 12
    for kind in ("parenthesis", "value", "operator", "empty"):
        assert f"background:{KINDS[kind].fill}" in page
    assert ">&amp;</td>" in page
    assert ">&</td>" not in page
    assert "receives operands 1 0 and operator |, and becomes 1" in page
    assert "value 1 after 2 iterations" in page


def test_a_long_trace_is_a_line_in_a_notebook():
    text = "(~" * 60 + "0" + ")" * 60
    page = ef.construct(ef.boolean()).trace(text)._repr_html_()
    assert page.startswith("<pre>Trace(boolean, (~(~")
    assert len(page) < 300


def test_a_certificate_in_a_notebook_tells_all():
    certificate = ef.construct(ef.boolean()).certify()
    assert certificate._repr_html_().startswith("<pre>exact\n")


def test_equal_models_have_the_same_weights(tmp_path):
    model = ef.construct(ef.boolean())
    model.save(tmp_path / "file")
    same, other = ef.load(tmp_path / "file"), ef.construct(ef.boolean(), "table")
    assert model == same
    assert hash(model) == hash(same)
    assert model not in (other, ef.construct(ef.arithmetic()), "boolean")
    assert {model: 1}[same] == 1


def test_what_is_missing_for_a_late_name_is_told():
    code = "import sys; sys.modules['torch'] = None; import exactformer; exactformer.{}"
    for name in ("Model", "protocol"):
        command = [sys.executable, "-c", code.format(name)]
        result = subprocess.run(command, capture_output=True, text=True)
        assert result.stderr.splitlines()[-1].startswith("ModuleNotFoundError: import of torch")


# Mistakes in Python


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ('model(["(1&0)"])', "expected the text of an expression, found a list"),
        ("model(10)", "expected the text of an expression, found 10"),
        ("model(None)", "expected the text of an expression, found None"),
        ('model.predict("(1&0)")', "expected a list of expressions, found '(1&0"),
        ('ef.construct("boolean")', "expected an Algebra, such as exactformer.bo"),
        ("ef.construct(ef.boolean)", "found the function 'boolean', not called"),
        ('ef.train("boolean")', "(), found 'boolean'"),
        ('ef.parse("boolean", "1")', "(), found 'boolean'"),
        ("ef.load(7520)", "expected the name of shipped weights or a path, found"),
        ('ef.oracle("(1&0)")', "expected an Expression, which parse makes of tex"),
        ("ef.draw(ef.boolean(), 1, 1, 0)", "default_rng(0), as rng, found 0"),
        ("ef.draw_balanced(ef.boolean(), 1, 1, rng=0)", "as rng, found 0"),
        ('ef.draw("boolean", 1, 1, rng)', "(), found 'boolean'"),
        ('ef.draw(ef.boolean(), "2", 1, rng)', "a whole number for the depth, found '2'"),
        ("ef.draw(ef.boolean(), 2, 1.5, rng)", "a whole number for the count, found 1.5"),
        ('list(ef.enumerate_depth("boolean", 1))', "(), found 'boolean'"),
    ],
)
def test_the_wrong_type_is_told(mistake, message):
    rng = np.random.default_rng(0)
    with pytest.raises(TypeError) as caught:
        eval(mistake, {"ef": ef, "model": ef.construct(ef.boolean()), "rng": rng})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("boolean/752", "found 'boolean/752'; did you mean 'boolean/7520'?"),
        ("bolean/fitted", "did you mean 'boolean/fitted'?"),
        ("mine.safetensors", "no such file: 'mine.safetensors'"),
        ("nonesuch", "such as boolean/7520, found 'nonesuch'"),
        (".", "found the folder '.'"),
        ("constructed", "constructed: expected an algebra, too"),
    ],
)
def test_weights_that_are_not_there(name, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=re.escape(message)):
        ef.load(name)


def test_weights_in_a_folder_with_the_name_of_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("constructed").mkdir()
    ef.construct(ef.boolean()).save("constructed/mine.safetensors")
    assert ef.load("constructed/mine.safetensors") == ef.construct(ef.boolean())


# Mistakes at a terminal


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("eval bolean 1", "found 'bolean'; did you mean 'boolean'?"),
        ("eval boolean 1 --weights 7521", "or a file, found '7521'; did you mean '7520'?"),
        ("eval boolean 1 --weights mine.safetensors", "no such file: 'mine.safetensors'"),
        ("eval boolean 1 --weights constructed/closd", "did you mean 'constructed/closed'?"),
        ("eval mine.toml 1", "mine.toml: No such file or directory"),
        ("score boolean rows.tsv", "exactformer: rows.tsv: No such file or directory"),
        ("verify nothing weights", "exactformer: nothing: No such file or directory"),
        ("reproduce tabel2", "did you mean 'table2'?"),
        ("bench listop", "did you mean 'listops'?"),
        ("train boolean --out a --method stagd", "found 'stagd'; did you mean 'staged'?"),
        ("train boolean --out a --set step=1", "has no 'step'; did you mean 'steps'?"),
        ("construct boolean --out no/such", "exactformer: no/such: No such file or directory"),
        ("sample boolean --out no/such.tsv", "exactformer: no/such.tsv: No such file or directory"),
        ("sample boolean --depths 100000", "tokens in all that can be drawn at once"),
    ],
)
def test_what_may_have_been_meant(line, message):
    assert message in refused(*line.split())


def json_error(*arguments: str, stdin: bytes = b"") -> dict:
    status, printed, errors = run_here([*arguments, "--json"], stdin)
    assert (status, printed) == (2, "")
    return json.loads(errors)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["eval", "boolean", "(1&0&1)"],
            {
                "error": "expected ')', found '&': a second operator in the same parentheses",
                "line": 1,
                "column": 5,
            },
        ),
        (["eval", "boolean", "--file", "gone"], {"error": "gone: No such file or directory"}),
        (["eval", "gone.toml", "1"], {"error": "gone.toml: No such file or directory"}),
        (["certify", "boolean", "--weights", "a.b"], {"error": "no such file: 'a.b'"}),
        (
            ["eval", "bolean", "1"],
            {
                "error": "Invalid value for 'DOMAIN': expected one of boolean, arithmetic, "
                "listops, boolean-plain, arithmetic-plain, boolean-polish, arithmetic-polish, "
                "parity, even-pairs, cycle-5, compare, "
                "flip-flop, s3, s5, folds, integers, binary-addition, binary-multiplication, "
                "reverse-string, duplicate-string, odds-first, bucket-sort, stack-manipulation, "
                "missing-duplicate-string, compute-sqrt, chomsky/TASK, or the path of a .toml file "
                "that defines one (docs/own-algebras.md shows how), found 'bolean'; did you mean "
                "'boolean'?"
            },
        ),
        (["evl"], {"error": "No such command 'evl'. Did you mean 'eval'?"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_an_error_under_json_is_json(arguments, expected):
    assert json_error(*arguments) == expected


def test_bad_lines_and_definitions_under_json(tmp_path):
    error = json_error("eval", "boolean", "--file", "-", stdin=b"1\n(1&\n")
    assert (error["line"], error["column"]) == (2, 4)
    assert error["error"].startswith("-: line 2, column 4: expected a value")
    (tmp_path / "mine.toml").write_text("values = 3")
    assert "mine.toml" in json_error("info", str(tmp_path / "mine.toml"))["error"]


def test_exit_statuses_are_the_same_under_json(tmp_path):
    (tmp_path / "rows").write_text("(1&0)\t1\n")
    for status, arguments in enumerate(
        [("eval", "boolean", "1"), ("score", "boolean", str(tmp_path / "rows")), ("evl",)]
    ):
        result = in_a_process(*arguments, "--json")
        assert result.returncode == status
        assert json.loads(result.stderr if status == 2 else result.stdout)


@pytest.mark.parametrize("domain", [*CATALOG, "listops-5-mean", "listops-first-last"])
@pytest.mark.parametrize("depth", [0, 2])
def test_score_knows_what_sample_writes(domain, depth, tmp_path):
    rows = output("sample", domain, "--depth", str(depth), "--count", "20")
    (tmp_path / "rows").write_text(rows)
    assert output("score", domain, str(tmp_path / "rows")).startswith("20 of 20 rows right\n")
    (tmp_path / "rows.json").write_text(output("sample", domain, "--count", "20", "--json"))
    assert "expected lines, as `sample` without --json" in refused(
        "score", domain, str(tmp_path / "rows.json")
    )


def test_no_rows_have_a_header_and_refused_ones_none():
    assert output("sample", "boolean", "--depths", "1", "--count", "0") == f"{HEADER}\n"
    refused("sample", "boolean", "--depths", "100000")  # with nothing printed


def test_tables_of_baselines_away_from_the_repository(tmp_path):
    """They are made from records that are shipped, and train nothing."""
    command = [*COMMAND, "reproduce", "table2", "table4", "--out", tmp_path / "here", "--json"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert (result.returncode, result.stderr) == (0, "")
    for name in ("table2", "table4"):
        made, kept = ((folder / f"{name}.csv") for folder in (tmp_path / "here", ROOT / "results"))
        assert made.read_bytes() == kept.read_bytes()
    assert not (tmp_path / "runs").exists()


# At a terminal


def at_terminal(*arguments: str, width: int, typed: bytes | None = None) -> str:
    """What a command writes to its standard error at a terminal so wide, without the codes that
    move the cursor. `typed` is what its user types; without it, there is nothing to read.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    settings = termios.tcgetattr(theirs)
    settings[3] &= ~termios.ECHO
    termios.tcsetattr(theirs, termios.TCSANOW, settings)
    sized = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    with subprocess.Popen(
        [*COMMAND, *arguments],
        stdin=subprocess.DEVNULL if typed is None else theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=sized | {"TERM": "xterm"},
    ):
        os.close(theirs)
        if typed is not None:
            os.write(ours, typed)
        shown = b""
        while data := _read(ours):
            shown += data
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # how Linux tells that the other side was closed
        return b""


@pytest.mark.parametrize("width", [40, 100])
def test_a_bar_fits_the_terminal(width):
    shown = at_terminal("sample", "boolean", "--depth", "3", "--count", "200000", width=width)
    lines = [line for line in re.split(r"[\r\n]+", shown) if "100,000 expressions" in line]
    assert lines
    assert all(len(line) <= width and "…" not in line for line in lines)
    times = re.findall(r"\d:\d\d:\d\d|-:--:--", lines[-1])  # left, and spent where there is room
    assert len(times) == (2 if width == 100 else 1)


def test_no_bar_where_one_types():
    typed = b"(1&0)\n(~0)\n" + 3 * b"\x04"  # a reader may ask again after an end
    assert at_terminal("eval", "boolean", "--file", "-", width=80, typed=typed) == ""


def test_the_table_of_a_training_run_fits_a_narrow_terminal(tmp_path):
    arguments = ("train", "boolean", "--seeds", "7520", "--out", str(tmp_path / "run"))
    lines = re.split(r"[\r\n]+", at_terminal(*arguments, width=50))
    assert "seed  attempt  step  depth 1  verdict" in [line.strip() for line in lines]
    assert any(line.startswith("boolean: 1 of 1 seeds certified") for line in lines)
    assert all(len(line) <= 50 for line in lines)
