"""Drawing for the figures: a sheet of square cells, and files that are reproducible byte by byte.

Matplotlib is needed here and in what imports this module, nowhere else.
"""

import io
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Circle, FancyBboxPatch, Patch, Rectangle

from exactformer.domains.algebra import Algebra
from exactformer.host.atomic import write_atomically
from exactformer.trace.palette import KINDS, MARKED, PLAIN, Ink, Kind, kind_of

PAGE = 7.2  # inches: the width of a page's text, so sizes of type are as they will be read
DPI = 200
SMALL, NORMAL, LARGE = 6.5, 8.0, 9.5  # points
MONO = "DejaVu Sans Mono"
NAMES = {"arithmetic": "arithmetic", "boolean": "Boolean", "listops": "ListOps"}

SETTINGS = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "exactformer",
    "font.size": NORMAL,
    "axes.titlesize": NORMAL,
    "axes.labelsize": NORMAL,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": SMALL + 0.5,
    "ytick.labelsize": SMALL + 0.5,
    "legend.fontsize": SMALL + 0.5,
    "legend.frameon": False,
    "mathtext.fontset": "dejavusans",
}


def drawn(
    name: str, draw: Callable[[], Figure], results: Path, command: str | None = None
) -> list[Path]:
    """Make a figure and write it as PNG and SVG, the same bytes each time, whatever the user's own
    settings are.
    """
    settings: dict[Any, Any] = {**mpl.rcParamsDefault, **SETTINGS, "backend": "agg"}
    with mpl.rc_context(settings):
        figure = draw()
        paths = []
        for kind, metadata in (("png", {}), ("svg", {"Date": None})):
            made = command or f"exactformer reproduce {name}"
            metadata = metadata | {"Title": name, "Description": made}
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata)
            results.mkdir(parents=True, exist_ok=True)
            paths.append(results / f"{name}.{kind}")
            write_atomically(paths[-1], buffer.getvalue())
    return paths


def writes(draw: Callable[[], Figure]) -> Callable[[Path], list[Path]]:
    """Decorate a function that draws: the result writes the figure to a folder, under its name."""

    @wraps(draw)
    def write(results: Path) -> list[Path]:
        return drawn(draw.__name__, draw, results)

    return write


def constrained(height: float, **pads: Any) -> Figure:
    """A figure as wide as a page, whose panels make room for each other's labels."""
    layout = ConstrainedLayoutEngine(**pads)
    return Figure(figsize=(PAGE, height), layout=layout, facecolor="white")


class Sheet:
    """A page of square cells, counted from the top left; x goes right and y goes down."""

    def __init__(self, width: float, height: float) -> None:
        self.figure = Figure(figsize=(PAGE, PAGE * height / width), facecolor="white")
        self.ax: Axes = self.figure.add_axes((0, 0, 1, 1))
        self.ax.set(xlim=(0, width), ylim=(height, 0))
        self.ax.axis("off")

    def text(
        self, x: float, y: float, text: str, size: float = NORMAL, align: str = "center", **more
    ) -> None:
        """Draw text; `y` is the middle of the line."""
        style: dict[str, Any] = {"color": "#222222", "va": "center_baseline"} | more
        self.ax.text(x, y, text, fontsize=size, ha=align, **style)

    def shape(self, shape: Patch, ink: Ink) -> None:
        """Draw a shape in the colours of an ink."""
        shape.set(facecolor=ink.fill, edgecolor=ink.edge)
        self.ax.add_patch(shape)

    def box(self, x: float, y: float, text: str, ink: Ink, size: float = NORMAL) -> None:
        """Draw a cell with its top left corner at (x, y)."""
        self.shape(Rectangle((x + 0.04, y + 0.04), 0.92, 0.92, lw=0.7), ink)
        self.text(x + 0.5, y + 0.5, text, size, color=ink.text)

    def token(self, algebra: Algebra, x: float, y: float, symbol: str) -> None:
        """Draw a token; the zero vector is an empty grey box."""
        kind = kind_of(algebra, symbol)
        label = "" if kind == "empty" else symbol
        self.box(x, y, label, KINDS[kind], NORMAL + 0.5)

    def span(self, x: float, y: float, width: float, height: float, ink: Ink) -> None:
        """Draw a rounded field behind some cells."""
        round_box = "round,pad=0.08,rounding_size=0.2"
        self.shape(FancyBboxPatch((x, y), width, height, boxstyle=round_box, lw=0.8), ink)

    def legend(self, end: float, y: float, kinds: Sequence[Kind]) -> None:
        """Draw small boxes with the names of token types, in a line that ends at x."""
        names = [{"empty": "zero vector"}.get(kind, kind) for kind in kinds]
        widths = [1.5 + 0.27 * len(name) for name in names]
        x = end + 0.6 - sum(widths)
        for kind, name, width in zip(kinds, names, widths, strict=True):
            self.shape(Rectangle((x, y - 0.3), 0.6, 0.6), KINDS[kind])
            self.text(x + 0.8, y, name, SMALL + 0.5, "left", color="#555555")
            x += width

    def node(self, x: float, y: float, text: str, ink: Ink, radius: float = 0.42) -> None:
        self.shape(Circle((x, y), radius, lw=0.9, zorder=3), ink)
        self.text(x, y, text, NORMAL, color=ink.text, zorder=4)

    def glow(self, x: float, y: float, ink: Ink) -> None:
        """Draw a field behind a node."""
        self.ax.add_patch(Circle((x, y), 0.6, fc=ink.fill, ec="none", zorder=1))

    def line(self, xs: Sequence[float], ys: Sequence[float], **more) -> None:
        self.ax.plot(xs, ys, **({"color": "#777777", "lw": 0.9, "zorder": 2} | more))

    def arrow(self, x: float, y: float, to_x: float, to_y: float) -> None:
        arrow = {"arrowstyle": "-|>", "color": "#555555", "lw": 1.0, "shrinkA": 0, "shrinkB": 0}
        self.ax.annotate("", (to_x, to_y), (x, y), arrowprops=arrow)

    def labels(
        self, algebra: Algebra, x: float, y: float, symbols: Sequence[str], down: bool = True
    ) -> None:
        """Draw names of rows (down, ending at x) or columns (up from y) in their type's colour."""
        for i, symbol in enumerate(symbols):
            kind = kind_of(algebra, symbol)
            color = KINDS[kind].text
            shown = "0" if kind == "empty" else symbol
            if down:
                self.text(x - 0.25, y + i + 0.5, shown, color=color, align="right")
            else:
                self.text(x + i + 0.5, y - 0.4, shown, color=color)

    def matrix(self, x: float, y: float, values: np.ndarray) -> None:
        """Draw a matrix of whole numbers; zeros are pale and the others marked."""
        for i, row in enumerate(values):
            for j, value in enumerate(row):
                ink = MARKED if value else PLAIN._replace(text="#b5b5b5", edge="#c9c9c9")
                self.box(x + j, y + i, f"{value:g}".replace("-", "−"), ink)
