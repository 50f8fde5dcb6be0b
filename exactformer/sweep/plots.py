"""A sweep as a figure: success, steps and margin by setting."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from exactformer.paper.drawing import SMALL, constrained, drawn
from exactformer.problems.accuracy import interval
from exactformer.sweep.plan import setting_name
from exactformer.sweep.results import SettingRow

INK, PALE = "#4477aa", "#bbccdd"


def plot(folder: Path, rows: Sequence[SettingRow]) -> list[Path]:
    """Write sweep.png and sweep.svg: the share of seeds that are certified, and at the first
    attempt, with 95% intervals; steps and margins of those as quartiles with the extremes.
    """
    return drawn("sweep", lambda: _figure(rows), folder, command="exactformer sweep")


def _figure(rows: Sequence[SettingRow]) -> Figure:
    figure = constrained(1.2 + 0.28 * len(rows), w_pad=0.08)
    success, steps, margin = figure.subplots(1, 3, sharey=True)
    for y, row in enumerate(rows):
        _share(success, y - 0.12, len(row.certified), len(row.records), INK, "certified")
        _share(success, y + 0.12, row.at_first, len(row.records), PALE, "at the first attempt")
    success.set(xlim=(-0.02, 1.02), xlabel="share of seeds")
    handles, labels = success.get_legend_handles_labels()
    figure.legend(handles[:2], labels[:2], loc="outside upper left", ncols=2, fontsize=SMALL)
    for ax, field, name in ((steps, "steps_in_all", "steps"), (margin, "margin", "margin")):
        ax.boxplot(
            [row.of_certified(field) for row in rows],
            positions=range(len(rows)),
            orientation="horizontal",
            whis=(0, 100),
            widths=0.5,
            medianprops={"color": INK},
        )
        ax.set(xlabel=f"{name} of certified seeds", xlim=(0, None))
    success.set_yticks(range(len(rows)), [setting_name(row.setting) for row in rows])
    success.set_ylim(len(rows) - 0.5, -0.5)
    return figure


def _share(ax: Axes, y: float, count: int, total: int, color: str, label: str) -> None:
    share = count / max(1, total)
    low, high = interval(count, total)
    reach = [[max(0, share - low)], [max(0, high - share)]]  # of 0 and of all, but for rounding
    ax.errorbar(share, y, xerr=reach, fmt="o", ms=3, lw=1, capsize=2, color=color, label=label)
