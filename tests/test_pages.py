"""README.md and the pages of docs/ are true: commands run, examples hold, links lead on.

- Every command in a ```sh or ```console block is run, from top to bottom, in a folder of the page's
  own with a copy of examples/: one command may read what another wrote. What a ```console block
  shows below `$ command` is all that it prints. A block marked `exit-1` or `exit-2` has commands
  that end with that status. Those of README.md and those with a pipe or a redirection are run by a
  shell; other pages' commands run in the process of the test, which has loaded torch already.
- A block marked `no-run` (a server, hours of training, an installation) only has to name commands,
  targets of the Makefile and files that exist. `make` is never run.
- A block marked `lab PACKAGE` needs a package that is no part of this environment: `make test-lab`
  runs it.
- The ```toml blocks that have a file name behind `toml` are files in the page's folder.
- The `>>>` lines of a page's ```python blocks are one doctest, run in the same folder after the
  commands.
"""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.in_process import run_here

ROOT = Path(__file__).resolve().parent.parent
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
}


def blocks(page: str) -> Iterator[tuple[list[str], str]]:
    """Every fenced block of a page: the words behind its fence, and what it holds."""
    for info, body in re.findall(r"^```([^\n]+)\n(.*?)^```$", PAGES[page], re.M | re.S):
        yield info.split(), body


def commands(page: str) -> Iterator[tuple[list[str], str, str]]:
    """The words behind the fence, a command, and the output shown below it."""
    for info, body in blocks(page):
        body = body.replace("\\\n", " ")
        if info[0] == "sh":
            lines = [line for line in body.splitlines() if not line.startswith("#")]
            yield from ((info, line, "") for line in lines if line.strip())
        elif info[0] == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, output = part.split("\n", 1)
                yield info, command, output


def numbered(*, run: bool) -> list:
    """The commands of all pages: those to run, or those that only have to name what exists."""
    found = []
    for page in PAGES:
        for number, (info, command, output) in enumerate(commands(page), 1):
            if "lab" in info:
                continue
            if run != ("no-run" in info or command.startswith("make ")):
                name = f"{page} {number} {command}"
                found.append(pytest.param(page, info, command, output, id=name))
    return found


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory):
    """Folder in which the commands of a page run, with the examples as in the repository."""
    folders: dict[str, Path] = {}

    def folder(page: str) -> Path:
        if page not in folders:
            folders[page] = tmp_path_factory.mktemp("page")
            shutil.copytree(ROOT / "examples", folders[page] / "examples")
            for info, body in blocks(page):
                if info[0] == "toml" and info[1:]:
                    (folders[page] / info[1]).write_text(body)
        return folders[page]

    return folder


def run_by_shell(command: str, folder: Path) -> tuple[int, str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path}
    result = subprocess.run(
        command, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=600
    )
    return result.returncode, result.stdout, result.stderr


@pytest.mark.parametrize(("page", "info", "command", "output"), numbered(run=True))
def test_command(page, info, command, output, folder_of, monkeypatch):
    words = shlex.split(command)
    if page == "README.md" or words[0] != "exactformer" or {"|", ">"} & set(words):
        status, printed, errors = run_by_shell(command, folder_of(page))
    else:
        monkeypatch.chdir(folder_of(page))
        status, printed, errors = run_here(words[1:])
    expected = next((int(word[-1]) for word in info if word.startswith("exit-")), 0)
    assert status == expected, printed + errors
    if info[0] == "console":
        printed += errors if expected else ""
        assert printed.strip("\n") == output.strip("\n")


@pytest.mark.parametrize(("page", "info", "command", "output"), numbered(run=False))
def test_named(page, info, command, output):
    """A command that is not run is there all the same."""
    words = shlex.split(command, comments=True)
    if words[0] == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in words[1:] if "=" not in word} <= set(targets)
    elif words[0] == "exactformer":
        status, printed, errors = run_here([words[1], "--help"])
        assert (status, errors) == (0, "")
        assert f"Usage: exactformer {words[1]}" in printed
    elif words[0] == "python":
        file = f"{words[2].replace('.', '/')}" if words[1] == "-m" else words[1]
        assert any((ROOT / f"{file}{end}").is_file() for end in ("", ".py", "/__main__.py"))
    else:
        assert words[0] in ("pip", "source", "git", "ray")


@pytest.mark.parametrize("page", PAGES)
def test_python(page, folder_of, monkeypatch):
    source = "\n".join(body for info, body in blocks(page) if info == ["python"])
    monkeypatch.chdir(folder_of(page))
    test = doctest.DocTestParser().get_doctest(source, {}, page, page, 0)
    report: list[str] = []
    doctest.DocTestRunner().run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", PAGES)
def test_links(page):
    """Links to files of the repository lead to files, and those to headings to headings."""
    text = re.sub(r"^```.*?^```$", "", PAGES[page], flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        file, _, heading = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), f"{page} links to {target}, which is not there"
        if heading:
            titles = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
            assert heading in map(anchor, titles), f"{page} links to {target}: no such heading"


def anchor(title: str) -> str:
    """The anchor of a heading in an address."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def test_the_pages_build(tmp_path):
    """As `make docs` builds them: a warning is an error."""
    for package in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(package, reason=f"`make docs` installs {package}")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", ROOT / "docs", tmp_path]
    result = subprocess.run(build, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "index.html").exists()
