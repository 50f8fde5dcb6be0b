"""The files that tables are written to."""

from collections.abc import Sequence
from pathlib import Path

from exactformer.training.run import versions
from exactformer.weightfile import write_atomically


def row(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def write(path: Path, text: str) -> Path:
    """A page for people ends with the versions that made it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".md":
        made = ", ".join(f"{name} {number}" for name, number in versions().items())
        text = f"{text.rstrip()}\n\nMade with {made}.\n"
    write_atomically(path, text)
    return path
