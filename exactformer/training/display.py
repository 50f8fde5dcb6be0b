"""The progress of a run: a table on a terminal, and curves in TensorBoard."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from exactformer.domains.domain import Domain
from exactformer.host.progress import WIDE
from exactformer.training.kinds import AnyRecipe, training_of
from exactformer.training.run import Observer, Result
from exactformer.training.state import State

NOT_NARROW = ("loss", "depth 2")  # left out where the terminal has no room for them
LINE_SECONDS = 10.0  # between two lines where there is no terminal to redraw


class Terminal(Observer):
    """A table with a row for each seed, redrawn; without a terminal, a line now and then."""

    def __init__(
        self, domain: Domain, recipe: AnyRecipe, seeds: Sequence[int], console: Console
    ) -> None:
        self.domain, self.recipe, self.seeds, self.console = domain, recipe, seeds, console
        self.results: dict[int, Result] = {}
        self.state: State | None = None
        self.counted = training_of(domain).counted(domain, recipe)
        self.started = self.last_line = time.monotonic()
        self.steps_before: int | None = None
        self.live = Live(console=console, auto_refresh=False) if console.is_terminal else None

    def __enter__(self) -> "Terminal":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self.live:
            self.live.stop()

    def evaluated(self, state: State) -> None:
        self.state = state
        if self.live:
            self.live.update(self._picture(), refresh=True)
        elif time.monotonic() - self.last_line >= LINE_SECONDS:
            self.last_line = time.monotonic()
            self.console.print(self._summary(), soft_wrap=True)

    def ended(self, result: Result) -> None:
        self.results[result.seed] = result
        if not self.live:
            record = result.record
            self.console.print(
                f"{self.domain.name} {result.seed}: {record['verdict']}, attempt "
                f"{record['attempt']}, step {record['step']}, margin {record['margin']:.3g}",
                soft_wrap=True,
            )

    def _summary(self) -> Text:
        exact = sum(result.exact for result in self.results.values())
        training = self.state.seeds if self.state else []
        steps = sum(seed.spent for seed in training)
        steps += sum(result.record["steps_in_all"] for result in self.results.values())
        if self.steps_before is None:  # a resumed run starts with steps made before
            self.steps_before = steps
        elapsed = time.monotonic() - self.started
        rate = (steps - self.steps_before) / elapsed if elapsed else 0.0
        left = ""
        if training and rate:
            longest = max(self.recipe.steps - seed.step for seed in training)
            left = f", at most {longest * len(training) / rate:.0f} s to the end of attempts"
        return Text(
            f"{self.domain.name}: {exact} of {len(self.seeds)} seeds certified, "
            f"{elapsed:.0f} s, {rate:.0f} seed-steps a second{left}"
        )

    def _picture(self) -> Group:
        table = Table(box=None, pad_edge=False)
        counted = [name for name, _ in self.counted.values()]
        names = ["seed", "attempt", "step", "loss", *counted, "verdict"]
        if self.console.width < WIDE:
            names = [name for name in names if name not in NOT_NARROW]
        for name in names:
            table.add_column(name, justify="right")
        training = {seed.seed: seed for seed in self.state.seeds} if self.state else {}
        for number in self.seeds:
            if number in self.results:
                cells = self.results[number].record
            elif number in training:
                seed = training[number]
                cells = asdict(seed) | {"loss": f"{seed.loss:.2e}", "verdict": "training"}
                for field, (name, total) in self.counted.items():
                    if cells[field] is not None:
                        cells[name] = f"{cells[field]} of {total}"
            else:
                continue
            table.add_row(*(str(cells.get(name, "")) for name in names))
        bar = ProgressBar(total=len(self.seeds), completed=len(self.results), width=40)
        return Group(table, Padding(bar, 0), self._summary())  # a bar alone ends no line


class TensorBoard(Observer):
    """Loss and exact counts of each seed by step; needs the extra `tensorboard`."""

    def __init__(self, folder: Path, domain: Domain, recipe: AnyRecipe) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise ValueError(
                "TensorBoard's logs need its package: pip install 'exactformer[tensorboard]'"
            ) from None
        self.writer = SummaryWriter(str(folder))
        self.counted = training_of(domain).counted(domain, recipe)

    def evaluated(self, state: State) -> None:
        for seed in state.seeds:
            self.writer.add_scalar(f"loss/{seed.seed}", seed.loss, seed.spent)
            for field, (name, _) in self.counted.items():
                if (count := getattr(seed, field)) is not None:
                    self.writer.add_scalar(f"{name} right/{seed.seed}", count, seed.spent)

    def ended(self, result: Result) -> None:
        self.writer.add_scalar(f"exact/{result.seed}", result.exact, result.record["steps_in_all"])
        self.writer.flush()
