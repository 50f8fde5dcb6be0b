"""A bar for work that takes long: how much of it is done, how fast, and how long it still takes."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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


class _Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        rate = task.finished_speed or task.speed
        return Text("" if rate is None else f"{rate:,.0f}/s")


@contextmanager
def bar() -> Iterator[Tell]:
    """A function that is told the progress; it is shown on a terminal, and gone at the end."""
    console = Console(stderr=True)
    columns = (
        BarColumn(),
        TextColumn("{task.completed:,.0f} {task.description}"),
        _Rate(),
        TimeRemainingColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, disable=not console.is_terminal, transient=True
    ) as shown:
        task = shown.add_task("", total=None)

        def tell(unit: str, done: float, total: float | None) -> None:
            if unit != shown.tasks[0].description:  # another rate
                shown.reset(task, description=unit)
            shown.update(task, completed=done, total=total)

        yield tell
