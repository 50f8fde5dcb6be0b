"""Standard input, output and errors that are closed, full, or read by nobody any more."""

import os
import subprocess
import sys

import pytest

CODES = "; echo ${PIPESTATUS[0]} >&3"


def shell(command: str) -> tuple[int, str, str]:
    """Exit status of the first command in bash, what came out, and what was said."""
    reading, writing = os.pipe()
    program = f"{sys.executable} -m exactformer"
    result = subprocess.run(
        ["bash", "-c", f"exec 3>&{writing}; {command.replace('exactformer', program)} 3>&-{CODES}"],
        capture_output=True,
        text=True,
        timeout=120,
        pass_fds=[writing],
    )
    os.close(writing)
    with os.fdopen(reading) as file:
        return int(file.read()), result.stdout, result.stderr


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("exactformer eval boolean '(1&0)' >&-", "Bad file descriptor"),
        ("exactformer info boolean >&-", "Bad file descriptor"),
        ("exactformer sample boolean --count 100000 >&-", "Bad file descriptor"),
        ("exactformer eval boolean '(1&0)' >/dev/full", "No space left on device"),
        ("exactformer sample boolean --count 100000 >/dev/full", "No space left on device"),
        ("exactformer eval boolean --file - >/dev/full < <(yes 1 | head -99999)", "No space left"),
        ("exactformer certify boolean >/dev/full", "No space left on device"),
        ("exactformer --version >/dev/full", "No space left on device"),
        ("exactformer eval --help >/dev/full", "No space left on device"),
    ],
)
def test_what_was_not_printed_is_no_success(command, reason):
    status, printed, said = shell(command)
    assert (status, printed) == (2, ""), said
    assert said.startswith(f"exactformer: standard output: {reason}")
    assert said.count("\n") == 1


def test_an_error_as_json_is_one_where_the_output_is_full():
    status, _, said = shell("exactformer eval boolean '(1&0)' --json >/dev/full")
    assert (status, said) == (2, '{"error": "standard output: No space left on device"}\n')


@pytest.mark.parametrize(
    "command",
    [
        "exactformer sample boolean --count 1000000 | head -1",
        "exactformer sample boolean --count 1000000 --json | head -c 10",
        "exactformer sample boolean --count 1000000 --depths 2,3 | head -1",
        "exactformer sample listops --count 5000 --format lra | head -1",
        "exactformer eval boolean --file <(yes '(1&0)' | head -1000000) | head -1",
    ],
)
def test_a_reader_that_goes_ends_the_command_as_it_ends_others(command):
    """By SIGPIPE, quietly, with the status of `cat` and `grep`; 1 would mean "no"."""
    status, printed, said = shell(command)
    assert (status, said) == (141, "")
    assert printed


def test_nothing_is_left_where_the_reader_of_a_file_command_goes(tmp_path):
    status, _, _ = shell(f"exactformer sample boolean --out {tmp_path}/rows --json | true")
    assert status == 141
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]


@pytest.mark.parametrize("command", ["eval boolean --file -", "score boolean -"])
def test_a_closed_standard_input_is_told(command):
    status, printed, said = shell(f"exactformer {command} <&-")
    assert (status, printed) == (2, "")
    assert said == "exactformer: standard input: Bad file descriptor\n"


def test_a_closed_standard_input_that_is_not_needed_does_no_harm():
    assert shell("exactformer eval boolean '(1&0)' <&-") == (0, "0\n", "")


def test_messages_do_not_go_among_the_data(tmp_path):
    """Whatever is for standard error is dropped where that is closed."""
    status, printed, _ = shell("exactformer eval boolean '(1&' 2>&-")
    assert (status, printed) == (2, "")
    out = tmp_path / "out"
    train = f"train boolean --seeds 7520 --out {out} --json"
    status, printed, _ = shell(f"exactformer {train} 2>&-")
    assert (status, printed[:2]) == (0, "[{")
    assert all(not path.read_bytes().startswith(b"exactf") for path in out.iterdir())


def test_all_three_closed_at_once(tmp_path):
    out = tmp_path / "model"
    status, _, _ = shell(f"exactformer construct boolean --out {out} <&- >&- 2>&-")
    assert status == 2  # the name of the file was not printed
    good = tmp_path / "good"
    assert shell(f"exactformer construct boolean --out {good}")[0] == 0
    assert out.read_bytes() == good.read_bytes()
