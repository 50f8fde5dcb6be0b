"""Accuracy by depth of several models on the same problems, as a table and as a plot."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from exactformer.domains.algebra import AN_ALGEBRA, Algebra
from exactformer.domains.data import expect, show
from exactformer.domains.reference import evaluate
from exactformer.problems.accuracy import (
    BOOTSTRAP,
    WILSON,
    Predictor,
    ask,
    commonest,
    in_words,
    interval,
    interval_over_seeds,
)
from exactformer.problems.draw import expressions

MAJORITY = "commonest value"
DEPTHS = "a list of depths, such as [3, 10]"


@dataclass(frozen=True)
class Cell:
    """One model at one depth: how many of the same problems each of its seeds has right, and the
    95% interval of their mean accuracy.
    """

    seeds: tuple[int, ...]
    problems: int
    interval: tuple[float, float]

    @classmethod
    def of(cls, right: Sequence[Sequence[bool]]) -> "Cell":
        """From whether each seed is right on each problem."""
        answers = np.array(right, dtype=bool)
        counts = tuple(answers.sum(1).tolist())
        return cls(counts, answers.shape[1], interval_over_seeds(answers))

    @property
    def correct(self) -> int:
        """Right answers of all seeds together."""
        return sum(self.seeds)

    @property
    def total(self) -> int:
        """Answers of all seeds together: each seed answers every problem."""
        return len(self.seeds) * self.problems

    @property
    def method(self) -> str:
        return WILSON if len(self.seeds) == 1 else BOOTSTRAP

    def to_dict(self) -> dict[str, Any]:
        counts = {"seeds": list(self.seeds), "problems": self.problems}
        counts |= {"correct": self.correct, "total": self.total}
        return counts | {"interval": list(self.interval), "method": self.method}

    def __str__(self) -> str:
        counts = ", ".join(map(str, self.seeds))
        return f"{counts} of {self.problems} ({in_words(self.interval)})"


@dataclass(frozen=True)
class DepthTable:
    """`rows` has a model's cells by its name and by depth; the last row always answers the value
    that is commonest among the problems of a depth. Intervals are at 95%: Wilson's over the
    problems for one seed, a bootstrap over seeds and problems for several, since they share the
    problems.
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
                name: {str(depth): cell.to_dict() for depth, cell in cells.items()}
                for name, cells in self.rows.items()
            },
        }

    def __str__(self) -> str:
        """A table in Markdown; the line below it says what its intervals are."""
        lines = ["| model | " + " | ".join(f"depth {depth}" for depth in self.depths) + " |"]
        lines.append("| --- |" + " ---: |" * len(self.depths))
        for name, cells in self.rows.items():
            lines.append(f"| {name} | " + " | ".join(map(str, cells.values())) + " |")
        several = any(
            len(cell.seeds) > 1 for cells in self.rows.values() for cell in cells.values()
        )
        note = f"Right answers, with 95% intervals: {WILSON}"
        if several:
            note = (
                "Right answers of each seed, with 95% intervals of the mean accuracy: for one seed "
                f"{WILSON}; for several, which share the problems, {BOOTSTRAP}"
            )
        return "\n".join([*lines, "", f"{note}."])

    _repr_markdown_ = __str__

    def plot(self, ax: Any = None) -> Any:
        """Draw accuracy against depth with its intervals, and thin lines for the seeds of a model
        that has several; returns the axes, of matplotlib.
        """
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
            shares = [[n / max(1, c.problems) for n in c.seeds] for c in cells.values()]
            if any(len(each) > 1 for each in shares):
                ax.plot(self.depths, shares, color=line.get_color(), linewidth=0.6, label="_seed")
            if name != MAJORITY:
                low, high = zip(*(cell.interval for cell in cells.values()), strict=True)
                ax.fill_between(self.depths, low, high, color=line.get_color(), alpha=0.2)
        ax.set(xlabel="depth", ylabel="accuracy", ylim=(-0.03, 1.03), title=self.algebra.name)
        ax.legend()
        return ax


def depth_table(
    predictors: Mapping[str, Predictor | Sequence[Predictor]],
    algebra: Algebra | None = None,
    depths: Iterable[int] | None = None,
    count: int | None = None,
    seed: int = 0,
    *,
    balanced: bool = False,
) -> DepthTable:
    """Ask several models the same problems, `count` of each depth, and count what is right.

    predictors   by name, whatever has a method `predict` from a list of expressions to as many
                 symbols of values (None for no answer); or a list of such, the seeds of one model.
    seed         of the problems: equal seeds give equal problems, those of `exactformer sample`.

    The first four are needed: they have defaults for the sake of a message that says how.
    """
    if algebra is None or depths is None or count is None:
        raise TypeError(
            "expected models by name, an algebra, depths and a number of problems, "
            'as in depth_table({"mine": model}, algebra, [3, 10], 20)'
        )
    expect(predictors, Mapping, 'models by name, such as {"mine": model}')
    expect(algebra, Algebra, AN_ALGEBRA)
    expect(depths, Iterable, DEPTHS)
    for depth in (depths := list(depths)):
        expect(depth, Integral, DEPTHS)
    expect(count, Integral, "the number of problems of each depth")
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
                [a == value for a, value in zip(ask(model, problems, name), values, strict=True)]
                for model in several
            ]
            rows[name][depth] = Cell.of(right)
        most = commonest(values)
        rows[MAJORITY][depth] = Cell((most,), len(values), interval(most, len(values)))
    return DepthTable(algebra, seed, rows)
