"""Recipes of the pages for packages that are no part of the environment of the other tests.

A block ```python lab PACKAGE is a program, and the ```text block behind it all that it prints. It
runs where the package is installed: `make test-lab` installs them all.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^```python lab (\w+)\n(.*?)^```\n\n```text\n(.*?)^```$", re.M | re.S)
RECIPES = [
    pytest.param(*found, id=f"{path.stem} {found[0]}")
    for path in sorted((ROOT / "docs").glob("*.md"))
    for found in BLOCK.findall(path.read_text())
]


def test_each_has_its_output_behind_it():
    pages = [path.read_text() for path in (ROOT / "docs").glob("*.md")]
    assert sum(page.count("\n```python lab") for page in pages) == len(RECIPES) > 0


@pytest.mark.parametrize(("package", "program", "output"), RECIPES)
def test_recipe(package, program, output, tmp_path):
    if not find_spec(package):
        pytest.skip(f"`make test-lab` installs {package}")
    file = tmp_path / "recipe.py"  # nnsight reads the source
    file.write_text(program)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        [sys.executable, "-W", "ignore", file],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == output
