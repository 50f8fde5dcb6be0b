"""A bar for work that takes long: how much of it is done, how fast, and how long it still takes."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

Tell = Callable[[str, float, float | None], None]  # what is counted, how much is done of how much

WIDE = 70  # columns of a terminal that has room for everything; a narrow one shows what matters


def is_typed(name: str | Path) -> bool:
    """Whether a file is typed by a user at a terminal, where a bar would be in the way."""
    return str(name) == "-" and sys.stdin.isatty()


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f}/s")


@contextmanager
def bar(shown: bool = True) -> Iterator[Tell]:
    """A function to report progress to. It draws a bar on a terminal, removed at the end."""
    console = Console(stderr=True)
    done, left = TextColumn("{task.completed:,.0f} {task.description}"), TimeRemainingColumn()
    columns = (BarColumn(), done, left)
    if console.width >= WIDE:
        columns = (BarColumn(), done, _Rate(), left, TimeElapsedColumn())
    with Progress(
        *columns,
        console=console,
        transient=True,
        disable=not (shown and console.is_terminal),
        redirect_stdout=False,  # results are no part of the display, wherever they go
        redirect_stderr=False,
    ) as progress:
        task = progress.add_task("", total=None)

        def tell(unit: str, done: float, total: float | None) -> None:
            if unit != progress.tasks[0].description:  # another rate
                progress.reset(task, description=unit)
            progress.update(task, completed=done, total=total)

        yield tell
