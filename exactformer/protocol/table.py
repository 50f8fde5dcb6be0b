"""Accuracy by depth of several models on the same problems, as a table and as a plot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from exactformer.domains.algebra import AN_ALGEBRA, Algebra
from exactformer.domains.plain import expect, show
from exactformer.domains.reference import evaluate
from exactformer.evaluate import Predictor, ask, commonest, interval, interval_in_words
from exactformer.problems.draw import expressions

MAJORITY = "commonest value"


@dataclass(frozen=True)
class Cell:
    """One model at one depth: how many answers of how many are right, over all of its seeds."""

    correct: int
    total: int

    @property
    def interval(self) -> tuple[float, float]:
        return interval(self.correct, self.total)

    def __str__(self) -> str:
        return f"{self.correct} of {self.total} ({interval_in_words(self.correct, self.total)})"


@dataclass(frozen=True)
class DepthTable:
    """`rows` has a model's cells by its name and by depth; the last row always answers the value
    that is commonest among the problems of a depth. Intervals are Wilson's, at 95%.
    """

    algebra: Algebra
    seed: int
    rows: dict[str, dict[int, Cell]]

    @property
    def depths(self) -> list[int]:
        return list(self.rows[MAJORITY])

    def to_dict(self) -> dict[str, Any]:
        return {
            "algebra": self.algebra.name,
            "seed": self.seed,
            "rows": {
                name: {
                    str(depth): vars(cell) | {"interval": list(cell.interval)}
                    for depth, cell in cells.items()
                }
                for name, cells in self.rows.items()
            },
        }

    def __str__(self) -> str:
        """A table in Markdown."""
        lines = ["| model | " + " | ".join(f"depth {depth}" for depth in self.depths) + " |"]
        lines.append("| --- |" + " ---: |" * len(self.depths))
        for name, cells in self.rows.items():
            lines.append(f"| {name} | " + " | ".join(map(str, cells.values())) + " |")
        return "\n".join(lines)

    _repr_markdown_ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw accuracy against depth with its intervals; returns the axes, of matplotlib."""
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ValueError(
                "a plot needs matplotlib: pip install 'exactformer[figures]'"
            ) from None
        if ax is None:
            _, ax = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
        for name, cells in self.rows.items():
            accuracy = [cell.correct / max(1, cell.total) for cell in cells.values()]
            style = {"color": "grey", "linestyle": "--"} if name == MAJORITY else {"marker": "o"}
            (line,) = ax.plot(self.depths, accuracy, label=name, **style)
            if name != MAJORITY:
                low, high = zip(*(cell.interval for cell in cells.values()), strict=True)
                ax.fill_between(self.depths, low, high, color=line.get_color(), alpha=0.2)
        ax.set(xlabel="depth", ylabel="accuracy", ylim=(-0.03, 1.03), title=self.algebra.name)
        ax.legend()
        return ax


def depth_table(
    predictors: Mapping[str, Predictor | Sequence[Predictor]],
    algebra: Algebra,
    depths: Iterable[int],
    count: int,
    seed: int = 0,
    *,
    balanced: bool = False,
) -> DepthTable:
    """Ask several models the same problems, `count` of each depth, and count what is right.

    predictors   by name, whatever has a method `predict` from a list of expressions to as many
                 symbols of values (None for no answer); or a list of such, the seeds of one model.
    seed         of the problems: equal seeds give equal problems, those of `exactformer sample`.
    """
    expect(predictors, Mapping, 'models by name, such as {"mine": model}')
    expect(algebra, Algebra, AN_ALGEBRA)
    expect(depths, Iterable, "a list of depths, such as [3, 10]")
    models: dict[str, list[Predictor]] = {}
    for name, given in predictors.items():
        models[name] = list(given) if isinstance(given, list | tuple) else [given]  # type: ignore
        for model in models[name]:
            if not callable(getattr(model, "predict", None)):
                raise TypeError(f"{name}: expected something with `predict`, found {show(model)}")
        if not models[name] or name == MAJORITY:
            raise ValueError(f"{name}: expected a model of another name, found none")
    rows: dict[str, dict[int, Cell]] = {name: {} for name in (*models, MAJORITY)}
    for depth in depths:
        problems = list(expressions(algebra, depth, count, seed, balanced=balanced))
        values = [evaluate(problem) for problem in problems]
        for name, several in models.items():
            right = [
                answer == value
                for model in several
                for answer, value in zip(ask(model, problems, name), values, strict=True)
            ]
            rows[name][depth] = Cell(sum(right), len(right))
        rows[MAJORITY][depth] = Cell(commonest(values), len(values))
    return DepthTable(algebra, seed, rows)
