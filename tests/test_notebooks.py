"""The notebooks run from top to bottom, and are kept with what they show."""

import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
# In a process of its own: the kernel's client leaves sockets and event loops behind.
EXECUTE = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], 4)
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def test_they_are_there():
    assert [path.stem for path in NOTEBOOKS] == ["own_model", "tour", "viz_boolean_params"]


def shown(path: Path) -> list[list[str]]:
    """The outputs of each cell of code: text with its numbers masked, which may differ between
    machines, and else the kind of what is shown.
    """
    found: list[list[str]] = []
    for cell in nbformat.read(path, 4).cells:
        if cell.cell_type == "code":
            texts = []
            for output in cell.outputs:
                data = output.get("data", {"text/plain": output.get("text", "")})
                others = sorted(data.keys() - {"text/plain"})
                texts.append(" ".join([*others, re.sub(r"[\d.]+", "#", data["text/plain"])]))
            found.append(texts)
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_and_shows_what_it_is_kept_with(path, tmp_path):
    kept = nbformat.read(path, 4)
    nbformat.validate(kept)
    assert path.stat().st_size < 1 << 19
    assert all(cell.execution_count for cell in kept.cells if cell.cell_type == "code")
    assert sum(map(bool, shown(path))) > len(shown(path)) / 2
    again = tmp_path / path.name
    command = [sys.executable, "-c", EXECUTE, str(path), str(again)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600)
    assert result.returncode == 0, result.stderr
    assert shown(again) == shown(path)
