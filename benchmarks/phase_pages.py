"""The records of `phases.py` as heat maps and as tables. Matplotlib is needed here."""

from collections.abc import Sequence
from itertools import product
from pathlib import Path

from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.patches import Rectangle
from phase_records import SLICES, Cell, Record, Slice

from exactformer.paper.drawing import NAMES, PAGE, SMALL, drawn
from exactformer.paper.files import table
from exactformer.problems.accuracy import interval
from exactformer.weights.file import write_atomically

COMMAND = "python benchmarks/phases.py draw"
SHADES = colormaps["cividis"]  # for all eyes, and lighter with every step where there is no colour
TITLES = {"spread": "spread of the start", "width": "units of the hidden layer"}
TITLES |= {"open_bits": "mean of attention's start"}
UNFINISHED = {"facecolor": "white", "edgecolor": "#999999", "hatch": "//////", "lw": 0}


def figure(folder: Path, records: Sequence[Record]) -> list[Path]:
    """phases.png and phases.svg: a row for each slice, a column for each task."""
    return drawn("phases", lambda: _figure(records), folder, command=COMMAND)


def _axes(cells: Slice) -> tuple[list[float], list[float]]:
    """The values and the rates, in order."""
    values, rates = zip(*cells, strict=True)
    return sorted(set(values)), sorted(set(rates))


def _figure(records: Sequence[Record]) -> Figure:
    slices = [name for name in SLICES if any(record.slice(name) for record in records)] or SLICES
    layout = ConstrainedLayoutEngine(w_pad=0.05, h_pad=0.05)
    size = (PAGE, 0.9 + 1.75 * len(slices))
    made = Figure(figsize=size, layout=layout, facecolor="white")
    panels = made.subplots(len(slices), len(records), squeeze=False)
    for (row, name), (column, record) in product(enumerate(slices), enumerate(records)):
        ax = panels[row][column]
        _panel(ax, record, name)
        if row == 0:
            ax.set_title(f"{NAMES[record.task]}, {len(record.seeds)} seeds a cell")
        if row == len(slices) - 1:
            ax.set_xlabel("rate of the feedforward")
        if column == 0:
            ax.set_ylabel(TITLES[name])
    bar = made.colorbar(
        ScalarMappable(cmap=SHADES), ax=panels, location="bottom", aspect=60, shrink=0.6, pad=0.02
    )
    bar.set_label("share of seeds certified at the first attempt", fontsize=SMALL + 0.5)
    bar.outline.set_visible(False)  # pyright: ignore
    marks = [
        Rectangle((0, 0), 1, 1, fc="white", ec="black", lw=1.6, label="the recipe as it is"),
        Rectangle((0, 0), 1, 1, **UNFINISHED, label="not all seeds have ended"),
    ]
    made.legend(handles=marks, loc="outside lower center", ncols=2, fontsize=SMALL + 0.5)
    return made


def _panel(ax: Axes, record: Record, name: str) -> None:
    cells = record.slice(name)
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)
    if not cells:
        ax.set(xticks=[], yticks=[])
        _write(ax, 0.5, 0.5, "not run", "#444444")
        return
    values, rates = _axes(cells)
    for (y, value), (x, rate) in product(enumerate(values), enumerate(rates)):
        _cell(ax, x, y, record, cells.get((value, rate)))
    if (own := (record.own[name], record.own["feedforward_rate"])) in cells:
        x, y = rates.index(own[1]), values.index(own[0])
        for color, width in (("white", 3.2), ("black", 1.6)):  # seen on dark and on light cells
            frame = Rectangle((x - 0.47, y - 0.47), 0.94, 0.94, fill=False, ec=color, lw=width)
            ax.add_patch(frame)
    ax.set(xlim=(-0.5, len(rates) - 0.5), ylim=(-0.5, len(values) - 0.5))
    ax.set_xticks(range(len(rates)), [f"{rate:g}" for rate in rates])
    ax.set_yticks(range(len(values)), [f"{value:g}" for value in values])


def _cell(ax: Axes, x: int, y: int, record: Record, cell: Cell | None) -> None:
    box = (x - 0.5, y - 0.5), 1, 1
    if cell is None or not record.is_whole(cell):
        ax.add_patch(Rectangle(*box, **UNFINISHED))
        if cell and cell.ended:
            white = {"fc": "white", "ec": "none", "pad": 0.4}
            text = f"{cell.certified}/{cell.ended}…"
            _write(ax, x, y, text, "#444444", SMALL - 1, bbox=white)
        return
    share = cell.certified / cell.ended
    ax.add_patch(Rectangle(*box, facecolor=SHADES(share), edgecolor="white", lw=0.5))
    ink = "black" if share > 0.45 else "white"
    _write(ax, x, y, f"{cell.certified}/{cell.ended}", ink)


def _write(ax: Axes, x: float, y: float, text: str, ink: str, size: float = SMALL, **more) -> None:
    ax.text(x, y, text, color=ink, fontsize=size, ha="center", va="center", **more)


def page(folder: Path, records: Sequence[Record]) -> Path:
    """phases.md: the same counts, with 95% intervals, and what stops the others."""
    lines = ["# Where training succeeds", "", f"`{COMMAND}`", "", HEAD, ""]
    lines += ["![first attempts by rate, start and width](phases.png)", ""]
    for record in records:
        title = f"## {NAMES[record.task]}"
        lines += [title, "", _about(record), ""]
        for name in SLICES:
            if cells := record.slice(name):
                lines += [*_slice(record, name, cells), ""]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "phases.md"
    write_atomically(path, "\n".join(lines).rstrip() + "\n")
    return path


HEAD = """\
Seeds that are certified at the first attempt, out of those of a setting, with Wilson's 95%
intervals: by the rate of the feedforward (columns) and one other constant (rows), everything else
as in the recipe, whose own place is bold. A setting whose seeds have not all ended has no interval:
seeds that fail end last."""


def _about(record: Record) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in record.versions.items())
    seeds = f"Seeds {record.seeds[0]} to {record.seeds[-1]} at every setting"
    kept = f"[record](phases-{record.task}.json)"
    return f"{seeds}, one attempt each, on {record.device} with {versions} ({kept})."


def _slice(record: Record, name: str, cells: Slice) -> list[str]:
    values, rates = _axes(cells)
    own = record.own[name], record.own["feedforward_rate"]
    rows = []
    for value in values:
        shown = {rate: _shown(record, cells.get((value, rate))) for rate in rates}
        bold = [f"**{text}**" if (value, at) == own else text for at, text in shown.items()]
        rows.append([f"{value:g}", *bold])
    header = [f"`{name}`", *(f"{rate:g}" for rate in rates)]
    rows_wrong = sum(len(cell.rows_wrong) for cell in cells.values())
    rest_wrong = sum(len(cell.rest_wrong) for cell in cells.values())
    stops = f"Not certified: {rows_wrong} with rows of depth 1 wrong; {rest_wrong} with every row "
    stops += "right, and the gate wrong or a margin too small."
    return [f"### Rate and {TITLES[name]}", "", *table(header, rows), "", stops]


def _shown(record: Record, cell: Cell | None) -> str:
    if cell is None or not cell.ended:
        return "not run"
    if not record.is_whole(cell):
        return f"{cell.certified}/{cell.ended}, unfinished"
    low, high = interval(cell.certified, cell.ended)
    return f"{cell.certified}/{cell.ended} ({low:.2f} to {high:.2f})"
