"""What README.md says is so: its commands run, its examples hold, its tree is the repository.

- In ```sh and ```console blocks, `exactformer …` is run; what is shown below `$ exactformer …` is
  its output. A block marked ```sh no-run (a server, hours of training) only has to name commands
  that exist. All blocks run from top to bottom in one folder: one may read what another wrote.
- `make …` names targets of the Makefile.
- The `>>>` lines of all ```python blocks are one doctest.
- The ```text block under "## The repository" lists every folder, two spaces a level, as
  `name/  description`; only those in WHOLE stand for the folders in them.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text() if (ROOT / "README.md").exists() else ""
BLOCKS = re.findall(r"^```([^\n]+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
WHOLE = ("exactformer/weights/",)


def shell_lines() -> list[tuple[str, str, str]]:
    """(info string of the block, command, output shown below it) for every command."""
    commands = []
    for info, body in BLOCKS:
        if info.split()[0] == "sh":
            lines = body.replace("\\\n", " ").splitlines()
            commands += [(info, line.removeprefix("$ "), "") for line in lines]
        elif info.split()[0] == "console":
            parts = re.split(r"^\$ ", body.replace("\\\n", " "), flags=re.MULTILINE)[1:]
            commands += [(info, *part.split("\n", 1)) for part in parts]
    return commands


def numbered(word: str) -> list:
    lines = [line for line in shell_lines() if line[1].startswith(word + " ")]
    return [pytest.param(*line, id=f"{i} {line[1]}") for i, line in enumerate(lines, 1)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Where the commands run: with the examples at hand, as in the repository."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.mark.parametrize(("info", "command", "output"), numbered("exactformer"))
def test_command(info, command, output, folder):
    if "no-run" in info:
        command = f"exactformer {shlex.split(command)[1]} --help"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    if output.strip():
        assert result.stdout.rstrip("\n") == output.rstrip("\n")


@pytest.mark.parametrize(("info", "command", "output"), numbered("make"))
def test_make(info, command, output):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    words = shlex.split(command, comments=True)[1:]
    assert {word for word in words if "=" not in word} <= set(targets)


def test_python(folder, monkeypatch):
    monkeypatch.chdir(folder)
    source = "\n".join(body for info, body in BLOCKS if info == "python" and ">>>" in body)
    test = doctest.DocTestParser().get_doctest(source, {}, "README.md", None, None)
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)


def test_tree():
    listed = tree()
    assert {name for name, text in listed.items() if not text} <= {"exactformer/"}
    folders = {f"{folder}/" for file in repository() for folder in Path(file).parents}
    inner = {name for name in folders if name.startswith(WHOLE) and name not in WHOLE}
    hidden = {name for name in folders if name.startswith(".")}
    assert set(listed) == folders - inner - hidden


def tree() -> dict[str, str]:
    """Path and description of every line of the README's tree."""
    found = re.search(r"^## The repository\n.*?^```text\n(.*?)^```$", README, re.M | re.S)
    assert found, "README.md has no ```text block under '## The repository'"
    listed, parents = {}, []
    for line in filter(str.strip, found[1].splitlines()):
        name, *description = line.split(maxsplit=1)
        level = (len(line) - len(line.lstrip())) // 2
        parents = [*parents[:level], name]
        listed["".join(parents)] = "".join(description)
    return listed


def repository() -> set[str]:
    """Every file that git would keep; in an unpacked source archive, every file but the ignored."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        names = subprocess.check_output(command, cwd=ROOT, text=True).splitlines()
        return {name for name in names if (ROOT / name).exists()}
    ignored = [*(ROOT / ".gitignore").read_text().split(), ".git", "PKG-INFO"]
    files = set()
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not any(fnmatch(name, i) for i in ignored)]
        kept = [name for name in names if not any(fnmatch(name, i) for i in ignored)]
        files |= {(Path(folder) / name).relative_to(ROOT).as_posix() for name in kept}
    return files
