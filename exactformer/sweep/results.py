"""The results of a sweep as a table: certified seeds by setting.

A record says "exact" of weights that may since have been removed or replaced. So each seed's
weights and proof are read too, and its proof is verified, before it counts.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from exactformer.paper.files import quoted, table, write
from exactformer.problems.accuracy import interval_in_words
from exactformer.sweep.plan import Setting, Shard, setting_name
from exactformer.training.run import finished_seed, seed_files
from exactformer.training.workers import start_workers

HEADER = ("setting", "seeds", "certified", "95% interval", "at the first attempt")
HEADER += ("95% interval", "steps, median", "margin, median", "margin, least")

ALONE_SECONDS = 3.0  # before processes check, too: so long they take to start


@dataclass(frozen=True)
class SettingRow:
    """The records of the seeds of one setting that have ended."""

    setting: Setting
    records: list[dict[str, Any]]

    @property
    def certified(self) -> list[dict[str, Any]]:
        return [record for record in self.records if record["verdict"] == "exact"]

    @property
    def at_first(self) -> int:
        """Number of seeds certified at their first attempt."""
        return sum(record["attempt"] == 1 for record in self.certified)

    def of_certified(self, field: str) -> list[float]:
        """The values of one field over all certified seeds."""
        return [record[field] for record in self.certified]

    @property
    def cells(self) -> list[str]:
        total, certified = len(self.records), len(self.certified)
        cells = [setting_name(self.setting), str(total)]
        for count in (certified, self.at_first):
            cells += [str(count), interval_in_words(count, total, digits=3)]
        if not certified:
            return [*cells, "-", "-", "-"]
        margins = self.of_certified("margin")
        steps = f"{median(self.of_certified('steps_in_all')):.0f}"
        return [*cells, steps, f"{median(margins):.2f}", f"{min(margins):.2f}"]


def read_rows(folder: Path, shards: Sequence[Shard], workers: int = 1) -> list[SettingRow]:
    """One for each setting, with the seeds that have ended so far: those whose record, weights and
    proof are there. Files that do not agree, and a proof that is refused, are a ValueError. What
    takes longer is checked in `workers` processes, which makes no difference to the result.
    """
    check, begun = partial(_checked_records, folder), time.monotonic()
    checked: list[list[dict[str, Any]]] = []
    for shard in shards:
        if workers > 1 and time.monotonic() - begun > ALONE_SECONDS:
            break
        checked.append(check(shard))
    if rest := shards[len(checked) :]:
        with start_workers(min(workers, len(rest))) as pool:
            checked += pool.map(check, rest)
    records: dict[Setting, list[dict[str, Any]]] = {}
    for shard, of_shard in zip(shards, checked, strict=True):
        records.setdefault(shard.setting, []).extend(of_shard)
    return [SettingRow(setting, of_setting) for setting, of_setting in records.items()]


def _checked_records(folder: Path, shard: Shard) -> list[dict[str, Any]]:
    out, records = folder / shard.name, []
    for seed in shard.seeds:
        whole = all((out / name).exists() for name in seed_files(seed))
        if whole and (result := finished_seed(out, shard.domain, seed)):
            records.append(result.record)
    return records


def write_results(folder: Path, rows: Sequence[SettingRow]) -> list[Path]:
    """Write the table, in Markdown and CSV."""
    cells = [row.cells for row in rows]
    csv = "\n".join(quoted([HEADER, *cells])) + "\n"
    markdown = "\n".join(table(HEADER, cells))
    return [write(folder / "sweep.csv", csv), write(folder / "sweep.md", markdown)]
