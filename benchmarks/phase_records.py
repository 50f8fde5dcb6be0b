"""The records of `phases.py`: what became of the seeds of every setting, one file a task."""

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from exactformer.domains.catalog import CATALOG, describe
from exactformer.domains.data import Place
from exactformer.model.architecture import paper_architecture
from exactformer.training.record import content_sha256, read_record
from exactformer.weights.file import write_atomically

SLICES = ("spread", "width", "open_bits")  # what varies beside the rate, the others as they are
POINT = ("feedforward_rate", *SLICES)
FATES = ("exact", "rows_wrong", "rest_wrong")


@dataclass(frozen=True)
class Cell:
    """A setting, and the seeds that have ended by what became of them at their one attempt."""

    feedforward_rate: float
    spread: float
    width: int
    open_bits: float
    exact: tuple[int, ...]
    rows_wrong: tuple[int, ...]  # of depth 1, after the last step
    rest_wrong: tuple[int, ...]  # every row is right, but the gate is not, or a margin is too small
    weights_sha256: str  # of the hashes of their weights by seed

    @property
    def certified(self) -> int:
        return len(self.exact)

    @property
    def ended(self) -> int:
        return sum(len(getattr(self, fate)) for fate in FATES)


Slice = dict[tuple[float, float], Cell]  # by the value of what varies, and the rate


@dataclass(frozen=True)
class Record:
    """The cells of a task."""

    task: str
    recipe: dict[str, Any]  # as it is, but for one attempt: each constant that a cell does not set
    seeds: tuple[int, ...]  # of every cell
    device: str
    versions: dict[str, str]
    cells: tuple[Cell, ...]

    @property
    def own(self) -> dict[str, Any]:
        """The point of the recipe as it is."""
        width = self.recipe["width"] or paper_width(self.task)
        return {name: self.recipe[name] for name in POINT} | {"width": width}

    def is_whole(self, cell: Cell) -> bool:
        return cell.ended == len(self.seeds)

    def slice(self, name: str) -> Slice:
        """The cells that differ from the recipe in the rate and in this only; none if they all
        differ in the rate alone.
        """
        others = [other for other in SLICES if other != name]
        cells = [c for c in self.cells if all(getattr(c, o) == self.own[o] for o in others)]
        found = {(getattr(c, name), c.feedforward_rate): c for c in cells}
        return found if any(value != self.own[name] for value, _ in found) else {}


def paper_width(task: str) -> int:
    return paper_architecture(CATALOG[task]()).hidden


def write(folder: Path, record: Record) -> Path:
    """Write a record with the counts beside the seeds, one line for each cell."""
    counted = [{"certified": cell.certified, "ended": cell.ended} for cell in record.cells]
    cells = [asdict(cell) | count for cell, count in zip(record.cells, counted, strict=True)]
    algebra = describe(CATALOG[record.task]())
    data = asdict(record) | {"algebra": algebra, "cells": cells}
    text = json.dumps(data | {"sha256": content_sha256(data)})
    folder.mkdir(parents=True, exist_ok=True)
    path = _path(folder, record.task)
    write_atomically(path, text.replace('{"feedforward_rate"', '\n{"feedforward_rate"') + "\n")
    return path


def read(folder: Path, task: str) -> Record | None:
    """A record whose hash is right and whose counts are those of its seeds, if there is one."""
    path = _path(folder, task)
    if not path.exists():
        return None
    data = read_record(path)
    try:
        top = Place(data).fields([*(field.name for field in fields(Record)), "algebra"])
        if data["task"] != task:
            raise top["task"].unexpected(task)
        if data["algebra"] != describe(CATALOG[task]()):
            raise top["algebra"].unexpected(f"that of {task} as it is now")
        seeds = tuple(place.whole() for place in top["seeds"].items(10**6))
        cells = tuple(_cell(place, seeds) for place in top["cells"].items(10**6))
        if len({tuple(getattr(cell, name) for name in POINT) for cell in cells}) < len(cells):
            raise top["cells"].fault("expected different settings, found one twice")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return Record(task, data["recipe"], seeds, data["device"], data["versions"], cells)


def _path(folder: Path, task: str) -> Path:
    return folder / f"phases-{task}.json"


def _cell(place: Place, seeds: tuple[int, ...]) -> Cell:
    held = place.fields([*(field.name for field in fields(Cell)), "certified", "ended"])
    fates = {fate: tuple(s.whole() for s in held[fate].items(10**6, least=0)) for fate in FATES}
    point = {name: held[name].number() for name in POINT} | {"width": held["width"].whole(1)}
    cell = Cell(**point, **fates, weights_sha256=held["weights_sha256"].text())  # pyright: ignore
    for count in ("certified", "ended"):
        if held[count].whole() != getattr(cell, count):
            raise held[count].unexpected(f"{getattr(cell, count)}, as many as its seeds are")
    ended = [seed for fate in fates.values() for seed in fate]
    if len(set(ended)) < len(ended) or not set(ended) <= set(seeds):
        raise place.fault("expected seeds of the record, each in one list")
    return cell
