"""Figures of comparisons: accuracy against depth, and what the gate's learning depends on."""

import json
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from exactformer.baselines.recipe import RATES, recipe_for
from exactformer.domains.catalog import CATALOG
from exactformer.paper.baseline_records import SHIPPED
from exactformer.paper.baseline_tables import TITLES
from exactformer.paper.comparison import DEEP, TABLE_DEPTHS, count_at
from exactformer.paper.drawing import NAMES, SMALL, constrained, writes
from exactformer.paper.estimator_tables import factor_shares
from exactformer.paper.files import find_record
from exactformer.problems.accuracy import interval
from exactformer.trace.palette import TASKS

STYLES = {"learned": ("#4477aa", "-"), "rope": ("#ee8866", "--"), "fire": ("#228833", "-.")}
STYLES |= {"crvnn": ("#aa3377", ":")}

Counts = dict[int, Sequence[int]]  # by depth: how many are right, and of how many


def counts_of_best(task: str, network: str) -> Counts:
    """Counts of right answers by depth, of the seed with the best training accuracy at either rate,
    as far beyond the tables' depths as it was tried. Empty if the task does not have this network.
    """
    names = [recipe_for(task, network, rate).name for rate in RATES]
    found = [record for name in names if (record := find_record(SHIPPED / f"{name}.json"))]
    seeds = [(seed, record["name"]) for record in found for seed in record["seeds"]]
    if not seeds:
        return {}
    best, name = max(seeds, key=lambda pair: sum(pair[0]["training accuracy"]))
    deep = find_record(SHIPPED / f"{name}.deep.json") or {"right": {}}
    by_depth = best["best"]["natural"] | deep["right"]
    return {int(depth): count for depth, count in by_depth.items()}


@writes
def accuracy() -> Figure:
    """Accuracy against depth: our certified models, and of every baseline the seed with the best
    training accuracy at either rate, on the same natural problems, with 95% intervals.
    """
    figure = constrained(2.7, w_pad=0.06)
    panels = figure.subplots(1, 3, sharey=True)
    for ax, task in zip(panels, CATALOG, strict=True):
        ours = json.loads((SHIPPED / f"{task}-ours.json").read_text())
        depths = [*TABLE_DEPTHS, *DEEP]
        right = zip(depths, ours["right"]["natural"], strict=True)
        counts: Counts = {depth: (count, count_at(depth)) for depth, count in right}
        _curve(ax, counts, "black", "-", "ours, certified", 1.8)
        for network, (color, line) in STYLES.items():
            if counts := counts_of_best(task, network):
                _curve(ax, counts, color, line, TITLES[network], 1.1)
        common = ours["majority"]["natural"]
        shares = [most / count_at(depth) for most, depth in zip(common, depths, strict=True)]
        ax.plot(depths, shares, color="#999999", lw=0.7, label="commonest answer")
        ax.axvspan(0.5, 2.5, color="#eeeeee", lw=0)
        ax.set(xlabel="depth", xlim=(0.5, 30.5), ylim=(0, 1.03), title=NAMES[task])
    panels[0].set_ylabel("accuracy")
    handles, labels = panels[2].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, fontsize=SMALL)
    return figure


def _curve(ax: Axes, counts: Counts, color: str, line: str, label: str, width: float) -> None:
    depths = sorted(counts)
    low, high = np.array([interval(*counts[depth]) for depth in depths]).T
    ax.fill_between(depths, low, high, color=color, alpha=0.15, lw=0)
    shares = [counts[depth][0] / counts[depth][1] for depth in depths]
    ax.plot(depths, shares, color=color, ls=line, lw=width, label=label)


@writes
def factors() -> Figure:
    """The share of straight-through runs that are certified, by each choice of each factor."""
    figure = constrained(3.6, w_pad=0.06)
    panels = figure.subplots(1, 3, sharey=True)
    ticks: dict[float, str] = {}  # the same of all tasks
    for ax, task in zip(panels, CATALOG, strict=True):
        color, marker = TASKS[task]
        row = 0.0
        for factor, choices in factor_shares(task).items():
            for choice, (exact, total) in choices.items():
                low, high = interval(exact, total)
                ax.plot([low, high], [row, row], color=color, lw=0.8)
                ax.plot(exact / total, row, color=color, marker=marker, ms=3)
                ticks[row] = f"{factor.replace('_', ' ')} {choice}"
                row += 1
            row += 0.6
        ax.set(title=NAMES[task], xlabel="certified", xlim=(0, None))
    panels[0].set_yticks(list(ticks), list(ticks.values()), fontsize=SMALL)
    panels[0].invert_yaxis()
    return figure
