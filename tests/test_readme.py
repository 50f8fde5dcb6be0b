"""README.md is short, and its tree is the repository.

The ```text block under "## The repository" lists every folder and every module beside them, two
spaces a level, as `name/  description`; only those in WHOLE stand for the folders in them.
What the page says is checked in test_pages.py.
"""

import os
import re
import shutil
import subprocess
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
WHOLE = ("exactformer/weights/", "exactformer/paper/records/")
MOST_LINES = 150  # it is a door; what is longer is a page of docs/


def test_length():
    assert len(README.splitlines()) <= MOST_LINES


def test_tree():
    listed = tree()
    assert {name for name, text in listed.items() if not text} <= {"exactformer/"}
    folders = {f"{folder}/" for file in repository() for folder in Path(file).parents}
    inner = {name for name in folders if name.startswith(WHOLE) and name not in WHOLE}
    hidden = {name for name in folders if name.startswith(".")}
    modules = {file for file in repository() if re.fullmatch(r"exactformer/[a-z]\w*\.py", file)}
    assert set(listed) == (folders - inner - hidden) | modules


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
