"""The files that tables are written to."""

from collections.abc import Sequence
from pathlib import Path

from exactformer.weightfile import write_atomically


def row(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return path
