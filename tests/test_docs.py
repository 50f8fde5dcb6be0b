"""The pages that list things list all of them: commands, options, names, parameters, bounds."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

import exactformer as ef
from exactformer.cli import app
from exactformer.domains import bounds
from exactformer.domains.rules import RULES
from exactformer.model.layers import LAYERS

DOCS = Path(__file__).resolve().parent.parent / "docs"
GROUP = typer.main.get_command(app)
assert isinstance(GROUP, TyperGroup)
COMMANDS: dict[str, Any] = dict(GROUP.commands)


def sections(page: str) -> dict[str, str]:
    """The text of a page below each of its headings of the second level; "" has what is above."""
    first, *others = re.split(r"^## ", (DOCS / page).read_text(), flags=re.MULTILINE)
    return {"": first} | {title: text for title, text in (part.split("\n", 1) for part in others)}


def options(command: Any) -> set[str]:
    names = {name for p in command.params for name in (*p.opts, *p.secondary_opts)}
    return {name for name in names if name.startswith("-")} - {"--help", "-h"}


def test_every_command_has_a_section_and_no_other_does():
    titles = {title.strip("`").split()[-1] for title in sections("command-line.md") if title}
    assert titles == COMMANDS.keys()


def test_every_option_of_the_program_itself():
    assert options(GROUP) <= words(sections("command-line.md")[""])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_and_no_other(name):
    rows = re.findall(r"^\| (`-.*?) \|", sections("command-line.md")[command(name)], re.MULTILINE)
    listed = {option for row in rows for option in re.findall(r"(?<!\w)--?[a-z][a-z-]*", row)}
    assert listed == options(COMMANDS[name])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument(name):
    usage = sections("command-line.md")[command(name)].split(":")[0]
    arguments = [p for p in COMMANDS[name].params if p.param_type_name == "argument"]
    assert all(str(argument.metavar) in usage for argument in arguments)


def command(name: str) -> str:
    return f"`exactformer {name}`"


def words(text: str) -> set[str]:
    """Every name in code style, without what follows it in there."""
    return {word for code in re.findall(r"`([^`]+)`", text) for word in re.findall(r"[\w-]+", code)}


def test_every_public_name_has_a_section_and_no_other_does():
    titles = {title.strip("`").removeprefix("ef.") for title in sections("python.md") if title}
    assert titles == set(ef.__all__)


@pytest.mark.parametrize("name", ef.__all__)
def test_every_parameter_and_method(name):
    section, thing = sections("python.md")[f"`ef.{name}`"], getattr(ef, name)
    wanted = parameters(thing)
    if inspect.isclass(thing):
        members = vars(thing).items()
        public = {n: m for n, m in members if not n.startswith("_")}
        wanted |= public.keys()
        for member in public.values():
            function = getattr(member, "__func__", member)  # of a class method
            wanted |= parameters(function) if inspect.isfunction(function) else set()
    assert wanted <= words(section)
    assert ">>>" in section


def parameters(thing) -> set[str]:
    return {name for name in inspect.signature(thing).parameters if name not in ("self", "cls")}


def test_every_bound_with_its_value():
    rows = re.findall(r"\| `([A-Z_]+)` \| ([\d,]+) \|", sections("own-algebras.md")["Sizes"])
    listed = {name: int(value.replace(",", "")) for name, value in rows}
    assert listed == {name: value for name, value in vars(bounds).items() if name.isupper()}


def test_every_rule():
    rows = re.findall(
        r"^\| `([a-z-]+)` .* \| (yes|no) \|$", sections("own-algebras.md")["Rules"], re.M
    )
    assert {name: order == "yes" for name, order in rows} == {
        name: rule.ordered for name, rule in RULES.items()
    }


def test_every_tap_of_every_layer_is_in_the_tables():
    text = (DOCS / "interp.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("| `")
    ]
    named = [(re.findall(r"`(\w+)`", row[0]), row[1:-1]) for row in rows]
    assert [names[0] for names, cells in named if len(cells) == 1] == list(LAYERS["depth"].taps)
    for column, layer in enumerate(("log", "plain")):
        listed = [n for names, cells in named if len(cells) == 2 and cells[column] for n in names]
        assert set(listed) == set(LAYERS[layer].taps)
        assert len(listed) == len(set(listed))
