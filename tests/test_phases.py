"""`benchmarks/phases.py`: a table with the counts of its records, and none of what has not run."""

import json
import re
import subprocess
import sys
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.phase_records import Cell, Record, paper_width, read, write
from exactformer.domains.catalog import boolean
from exactformer.sweep.plan import plan
from exactformer.sweep.run import run_shard
from exactformer.training.recipe import recipe_for
from exactformer.training.record import write_record

SCRIPT = Path(__file__).resolve().parent.parent / "benchmarks" / "phases.py"
OWN = recipe_for(boolean())


def phases(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300)


def cell(rate: float, spread: float, exact: int, rows_wrong: int = 0, rest_wrong: int = 0) -> Cell:
    ends = [0, exact, exact + rows_wrong, exact + rows_wrong + rest_wrong]
    fates = [tuple(range(4)[a:b]) for a, b in pairwise(ends)]
    return Cell(rate, spread, paper_width("boolean"), OWN.open_bits, *fates, weights_sha256="")


RECORD = Record(
    task="boolean",
    recipe=asdict(OWN),
    seeds=(0, 1, 2, 3),
    device="cpu",
    versions={"torch": "2"},
    cells=(
        cell(0.02, 0.1, exact=0, rows_wrong=3, rest_wrong=1),
        cell(0.05, 0.1, exact=3, rest_wrong=1),
        cell(0.02, 0.4, exact=0, rows_wrong=2),  # two are still to end
        cell(0.05, 0.4, exact=0),  # not begun
    ),
)


def test_the_table_has_the_counts_of_the_record(tmp_path):
    write(tmp_path, RECORD)
    drawn = phases("draw", "--records", tmp_path, "--out", tmp_path / "new")
    assert drawn.returncode == 0, drawn.stderr
    page = (tmp_path / "new" / "phases.md").read_text()
    assert "| `spread` | 0.02 | 0.05 |" in page
    assert "| 0.1 | 0/4 (0.00 to 0.49) | **3/4 (0.30 to 0.95)** |" in page
    assert "| 0.4 | 0/2, unfinished | not run |" in page
    assert "5 with rows of depth 1 wrong; 2 with every row right" in page
    assert "`width`" not in page
    assert (tmp_path / "new" / "phases.png").read_bytes().startswith(b"\x89PNG")
    shown = re.findall(r">(\d+/\d+…?)<", (tmp_path / "new" / "phases.svg").read_text())
    assert sorted(shown) == ["0/2…", "0/4", "3/4"]


def test_a_changed_record_is_refused(tmp_path):
    path = write(tmp_path, RECORD)
    data = json.loads(path.read_text())
    data["cells"][1]["certified"] = 4
    path.write_text(json.dumps(data))
    drawn = phases("draw", "--records", tmp_path, "--out", tmp_path / "new")
    assert (drawn.returncode, drawn.stdout) == (2, "")
    assert "phases-boolean.json: its content does not match its sha256" in drawn.stderr
    assert not (tmp_path / "new").exists()
    del data["sha256"]
    write_record(path, data)  # with the hash of what it says now
    with pytest.raises(ValueError, match=r"cells\[1\].certified: expected 3, as many as its seeds"):
        read(tmp_path, "boolean")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ((replace(RECORD.cells[0], rest_wrong=(2,)),), "each in one list"),
        ((replace(RECORD.cells[0], rest_wrong=(7,)),), "expected seeds of the record"),
        ((RECORD.cells[0], RECORD.cells[0]), "expected different settings, found one twice"),
        ((), "a list with something in it"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(tmp_path, cells, message):
    write(tmp_path, replace(RECORD, cells=cells))
    with pytest.raises(ValueError, match=message):
        read(tmp_path, "boolean")


def test_what_has_ended_is_in_the_record(tmp_path):
    """Nothing is trained within no seconds; then one seed of one sweep, and the same command."""
    arguments = ["--tasks", "boolean", "--slices", "spread", "--rates", "0.05"]
    arguments += ["--spreads", "0.1", "0.2", "--seeds", "2", "--block", "1", "--limit", "0"]
    folders = ["--runs", tmp_path / "runs", "--records", tmp_path]
    result = phases("run", *arguments, *folders)
    assert result.returncode == 0, result.stderr
    assert "boolean: 0 of 4 seeds have ended" in result.stderr
    settings = {"attempts": ["1"], "feedforward_rate": ["0.05"]}
    first, _ = plan(boolean(), (40000, 40001), settings, block=1)
    files = run_shard(first, tmp_path / "runs" / "boolean" / "recipe")
    result = phases("run", *arguments, *folders)
    assert "boolean: 1 of 4 seeds have ended" in result.stderr
    record = read(tmp_path, "boolean")
    assert record is not None
    own, wider = record.cells
    assert (own.spread, own.exact, own.ended) == (0.1, (40000,), 1)
    assert json.loads(files["40000.json"])["verdict"] == "exact"
    assert (wider.spread, wider.ended) == (0.2, 0)
    assert not any(map(record.is_whole, record.cells))
