"""The figures that have axes: results and curves of training."""

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import CATALOG, boolean
from exactformer.domains.sampling import mean_tokens
from exactformer.model.architecture import paper_architecture
from exactformer.model.storage import to_file
from exactformer.paper import published
from exactformer.paper.drawing import LARGE, NAMES, NORMAL, PAGE, SMALL, constrained, drawn, writes
from exactformer.paper.loss_curves import Curves, loss_curves
from exactformer.trace.palette import DIVERGING, KINDS, TASKS, kind_of
from exactformer.training.recipe import end_to_end_recipe, recipe_for
from exactformer.training.state import export, initial, logits_of
from exactformer.weights.named import read_weights
from exactformer.weights.tensors import Arrays


def fig4(results: Path) -> list[Path]:
    """A: the paper's ten seeds trained end to end, every 50 steps: the joint loss, and what the
    discrete model gets wrong of the step's depth-2 problems; mean and each seed.
    B: parameters of each model. C: tokens by depth, ours (expected) and the paper's (measured).
    """
    curves = loss_curves(results / "loss_curves.csv")
    return [*drawn("fig4", lambda: _learning(curves), results), results / "loss_curves.csv"]


def _learning(curves: Curves) -> Figure:
    figure = constrained(6.6, h_pad=0.06, w_pad=0.06, hspace=0.06)
    halves: Any = figure.subfigures(2, 1, height_ratios=(2, 1.2))
    above, beneath = halves
    panels = above.subplots(2, 3, sharex="col", sharey="row")
    for (loss, wrong), task in zip(panels.T, TASKS, strict=True):
        _seeds(loss, task, curves, "loss")
        _seeds(wrong, task, curves, "two")
        loss.axhline(_least_loss(task), color="0.4", lw=0.8, ls=":")
        loss.set(yscale="log", title=NAMES[task])
        loss.title.set_color(TASKS[task][0])
        wrong.set(xlabel="step", ylim=(-0.03, 1.03))
    _seeds_legend(panels[0, 2], TASKS["listops"][0])
    panels[0, 0].set_ylabel("joint loss (nats)")
    panels[1, 0].set_ylabel("depth-2 problems wrong")
    below = beneath.subplots(1, 2, width_ratios=(1, 1.5))
    _sizes(below[0])
    _tokens(below[1])
    for ax, letter in ((panels[0, 0], "A"), (below[0], "B"), (below[1], "C")):
        ax.set_title(letter, loc="left", fontsize=LARGE, fontweight="bold")
    return figure


def _least_loss(task: str) -> float:
    """The least loss of a joint step, which squeezed probabilities keep above zero."""
    recipe = end_to_end_recipe(CATALOG[task]())
    return -(recipe.blended_weight + recipe.depth_two_weight) * float(np.log(1 - recipe.margin))


def _seeds(ax: Axes, task: str, curves: Curves, part: str) -> None:
    color, _ = TASKS[task]
    by_seed = list(curves[task].values())
    steps = list(by_seed[0])
    values = np.array([[getattr(curve[step], part) for step in steps] for curve in by_seed])
    ax.plot(steps, values.T, color=color, lw=0.5, alpha=0.35)
    ax.plot(steps, values.mean(0), color=color, lw=1.5)
    ax.set_xlim(0, steps[-1] * 1.02)


def _seeds_legend(ax: Axes, color: str) -> None:
    handles = [
        Line2D([], [], color=color, lw=1.5, label="mean of ten seeds"),
        Line2D([], [], color=color, lw=0.5, alpha=0.5, label="one seed"),
        Line2D([], [], color="0.4", lw=0.8, ls=":", label="least possible"),
    ]
    ax.legend(handles=handles, loc="upper right", borderaxespad=0)


def _sizes(ax: Axes) -> None:
    for row, task in enumerate(TASKS):
        size = paper_architecture(CATALOG[task]())
        ax.barh(row, size.parameters, color=TASKS[task][0], height=0.55)
        label = f"{size.parameters:,}"
        ax.text(size.parameters + 90, row, label, va="center", fontsize=NORMAL)
    ax.set_yticks(range(len(TASKS)), [NAMES[task] for task in TASKS])
    ax.invert_yaxis()
    ax.set(xlabel="parameters (the paper's numbers)", xlim=(0, 5600))
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _tokens(ax: Axes) -> None:
    for task, (color, marker) in TASKS.items():
        paper = published.MEAN_TOKENS[task]
        depths = np.arange(1, len(paper) + 1)
        ours = mean_tokens(CATALOG[task](), len(paper))[1:]
        ax.plot(depths, ours, color=color, lw=1.3, label=f"{NAMES[task]}, ours")
        hollow = {"mfc": "none", "mew": 0.8, "ms": 3.6}
        label = f"{NAMES[task]}, paper's"
        ax.plot(depths, paper, color=color, marker=marker, ls="", label=label, **hollow)
    ax.set(xlabel="depth", ylabel="mean tokens", yscale="log", xlim=(0, 31))
    handles, labels = ax.get_legend_handles_labels()
    order = [0, 2, 4, 1, 3, 5]
    ax.legend([handles[i] for i in order], [labels[i] for i in order], ncols=2, loc="upper left")
    ax.set_ylim(3, 150_000)


def models(algebra: Algebra, seed: int) -> dict[str, Arrays]:
    """The tensors of Fig. A.1: constructed, random and learned, with logits where there are any."""
    learned = read_weights(str(seed), algebra)
    start = initial(algebra, recipe_for(algebra), seed, learned.origin["attempt"])
    tensors = {name: tensor[None] for name, tensor in start.items()}
    random, logits = export(algebra, tensors, 0), logits_of(tensors, 0, len(algebra.vocabulary))
    return {
        "constructed, feedforward fitted to the table": read_weights("fitted", algebra).arrays,
        f"random, before training (seed {seed})": to_file(algebra, random, {}, logits).arrays,
        f"learned, after training (seed {seed})": learned.arrays,
    }


# Fig. A.1 in cells of its own: the left edge of each heat map, and its width.
MAPS: dict[str, tuple[float, int, str]] = {
    "G_PE_logits": (2.6, 1, "$G_{PE}$"),
    "W_Q_logits": (4.6, 4, "$W_Q$"),
    "W_K_logits": (9.6, 4, "$W_K$"),
    "G_PE": (17.0, 1, "$G_{PE}$"),
    "W_Q": (19.0, 4, "$W_Q$"),
    "W_K": (24.0, 4, "$W_K$"),
    "W_1": (31.4, 14, "MLP$_1$"),
    "W_2": (46.8, 14, "MLP$_2$"),
}
THRESHOLDS = "Thresholds: ±0.5 for the gate, 0 for $W_Q$ and $W_K$."
CELLS = 66.5  # across
FIRST, PITCH, BLOCK = 6.6, 15.0, 8.75  # down to the first heat map, from one to the next, of one


@writes
def figA1() -> Figure:
    """All Boolean parameters but the feedforward's biases, in the constructed model, a random one
    before training and the same seed after it. Feedforward matrices are turned so that rows are
    tokens throughout.
    """
    algebra = boolean()
    shown = models(algebra, 7520)
    height = FIRST - 2.0 + PITCH * len(shown) + 1.5
    figure = Figure(figsize=(PAGE, PAGE * height / CELLS), facecolor="white")

    def axes(x: float, y: float, width: float, tall: float) -> Axes:
        return figure.add_axes((x / CELLS, 1 - (y + tall) / height, width / CELLS, tall / height))

    def text(x: float, y: float, words: str, size: float = NORMAL, **more) -> None:
        figure.text(x / CELLS, 1 - y / height, words, fontsize=size, **more)

    limit = max(
        float(np.abs(array).max())
        for arrays in shown.values()
        for name, array in arrays.items()
        if name.endswith("logits")
    )
    for row, (title, arrays) in enumerate(shown.items()):
        top = FIRST + PITCH * row
        text(0.6, top - 2.4, "ABC"[row], LARGE, fontweight="bold")
        text(2.6, top - 2.4, title)
        weights = max(float(np.abs(arrays[name]).max()) for name in ("W_1", "W_2"))
        for name, (x, width, label) in MAPS.items():
            if name not in arrays:
                continue
            scale = limit if name.endswith("logits") else weights if width == 14 else 1.0
            ax = axes(x, top, width, BLOCK)
            _heat_map(ax, _rows_are_tokens(name, arrays[name]), scale)
            ax.set_title(label, fontsize=SMALL + 0.5, pad=2.5)
            if width == 14:
                ax.set_xlabel("hidden unit", fontsize=SMALL, labelpad=1)
            if name in ("G_PE_logits", "G_PE", "W_1"):
                _token_labels(ax, algebra)
        _colour_bar(figure, axes(61.6, top, 0.9, BLOCK), weights, "vertical")
        text(61.6, top - 0.6, "weight", SMALL)
        if row == 0:
            text(8.2, top + 2.2, "no logits:", SMALL + 0.5, ha="center", color="#555555")
            text(8.2, top + 3.8, "written down", SMALL + 0.5, ha="center", color="#555555")
    for x, words in ((8.1, "raw logits"), (22.5, "discrete"), (46.1, "feedforward")):
        text(x, 1.5, words, NORMAL, ha="center", color="#555555")
    bottom = FIRST + PITCH * (len(shown) - 1) + BLOCK + 1.6
    _colour_bar(figure, axes(2.6, bottom, 11, 0.9), limit, "horizontal", [-0.5, 0, 0.5])
    text(8.1, bottom + 3.6, "logit", SMALL, ha="center")
    text(22.5, bottom + 3.6, "value", SMALL, ha="center")
    text(46.1, bottom + 1.0, THRESHOLDS, SMALL, ha="center", color="#555555")
    _colour_bar(figure, axes(17, bottom, 11, 0.9), 1.0, "horizontal", [-1, 0, 1])
    return figure


def _rows_are_tokens(name: str, array: np.ndarray) -> np.ndarray:
    if array.ndim == 1:
        return array[:, None]
    return array.T if name == "W_2" else array


def _heat_map(ax: Axes, array: np.ndarray, limit: float) -> None:
    ax.imshow(array, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
    ax.set_xticks(np.arange(array.shape[1] + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(array.shape[0] + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", lw=0.4)
    ax.tick_params(which="both", length=0)
    ax.set_xticks([])
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set(visible=True, color="#9a9a9a", lw=0.5)


def _token_labels(ax: Axes, algebra: Algebra) -> None:
    ax.set_yticks(range(len(algebra.vocabulary)), algebra.vocabulary, fontsize=SMALL + 0.5)
    for label in ax.get_yticklabels():
        label.set_color(KINDS[kind_of(algebra, label.get_text())].text)


def _colour_bar(
    figure: Figure, ax: Axes, limit: float, way: str, ticks: list[float] | None = None
) -> None:
    colours = ScalarMappable(Normalize(-limit, limit), DIVERGING)
    bar = figure.colorbar(colours, cax=ax, orientation=way, ticks=ticks)
    bar.ax.tick_params(labelsize=SMALL, length=2, width=0.5, pad=1.5)
    for spine in bar.ax.spines.values():
        spine.set_linewidth(0.5)
