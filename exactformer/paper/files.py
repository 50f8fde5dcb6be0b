"""Tables in Markdown and CSV, the files that they are written to, and the records behind them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from exactformer.host.atomic import write_atomically
from exactformer.training.run import versions

Record = dict[str, Any]


def row(cells: Sequence[str]) -> str:
    """A line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def table(header: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> list[str]:
    """The lines of a Markdown table whose first columns are words and the others numbers."""
    marks = ["---"] * words + ["---:"] * (len(header) - words)
    return [row(header), row(marks), *map(row, rows)]


def heading(title: str, name: str) -> list[str]:
    """The first lines of a page."""
    return [f"# {title}", "", f"Made by `exactformer reproduce {name}`.", ""]


def quoted(rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines of CSV with every cell in quotes."""
    return [",".join(f'"{cell}"' for cell in cells) for cells in rows]


def write_both(results: Path, name: str, csv: Sequence[str], markdown: Sequence[str]) -> list[Path]:
    """The two files of a table: NAME.csv and NAME.md."""
    lines = [f"# exactformer reproduce {name}", *csv]
    return [
        write(results / f"{name}.csv", "\n".join(lines) + "\n"),
        write(results / f"{name}.md", "\n".join(markdown)),
    ]


def write(path: Path, text: str) -> Path:
    """Write a file; one in Markdown ends with the versions that made it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".md":
        made = ", ".join(f"{name} {number}" for name, number in versions().items())
        text = f"{text.rstrip()}\n\nMade with {made}.\n"
    write_atomically(path, text)
    return path


def write_record(path: Path, record: Record) -> None:
    write(path, json.dumps(record, indent=1) + "\n")


def find_record(path: Path) -> Record | None:
    """The record that `write_record` wrote to a path; None if there is no file."""
    return json.loads(path.read_text()) if path.exists() else None
