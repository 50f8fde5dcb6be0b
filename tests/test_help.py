"""The list of commands in --help: all of them, each under a heading."""

from inspect import getdoc

import pytest
from typer import Typer
from typer.testing import CliRunner

from exactformer.cli import app
from exactformer.cli.app import GROUPS, REST, Commands


def names(app: Typer) -> list[str]:
    return [c.name or c.callback.__name__ for c in app.registered_commands if c.callback]


def test_every_command_is_named_under_a_heading():
    listed = [command for commands in GROUPS.values() for command in commands]
    assert sorted(listed) == sorted(names(app))
    assert REST not in GROUPS


def test_what_a_command_does_is_told_in_one_line():
    """The list shows the first paragraph, with its line breaks."""
    for command in app.registered_commands:
        first = (getdoc(command.callback) or "").partition("\n\n")[0]
        assert first.endswith("."), command.name
        assert "\n" not in first, first


@pytest.mark.parametrize("command", ["eval", "zebra"])
def test_a_command_that_no_heading_names_comes_last(command):
    other = Typer(cls=Commands, add_completion=False)
    for name in (command, "train", "aardvark"):
        other.command(name)(lambda: None)
    shown = CliRunner().invoke(other, ["--help"])
    assert shown.exit_code == 0, shown.output
    order = [line.split()[1] for line in shown.output.splitlines() if line[:1] == "│"]
    commands = [word for word in order if word in (command, "train", "aardvark")]
    assert commands == {"eval": ["eval", "train", "aardvark"]}.get(
        command, ["train", "zebra", "aardvark"]
    )
    assert REST in shown.output
