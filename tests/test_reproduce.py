"""`exactformer reproduce` writes what it says; and the paper's numbers agree with each other."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from exactformer.domains.catalog import CATALOG, listops
from exactformer.domains.sampling import mean_tokens
from exactformer.model.architecture import paper_architecture
from exactformer.paper import published
from tests.test_cli_model import output, refused

ROOT = Path(__file__).resolve().parent.parent


def reproduce(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exactformer", "reproduce", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("reproduce")
    result = reproduce("tokens", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "written: results/tokens.csv" in result.stderr
    assert result.stdout.rstrip() == (folder / "results/tokens.md").read_text().rstrip()
    return folder / "results"


def test_only_whole_files_are_left(written):
    assert {path.name for path in written.iterdir()} == {"tokens.csv", "tokens.md"}


def test_tokens_by_depth(written):
    first, *lines = (written / "tokens.csv").read_text().splitlines()
    assert first == "# exactformer reproduce tokens"
    rows = list(csv.DictReader(lines))
    assert len(rows) == 3 * 30
    for row in rows:
        task, depth = row["task"], int(row["depth"])
        expected = mean_tokens(CATALOG[task](), depth)[depth]
        assert float(row["paper_mean"]) == published.MEAN_TOKENS[task][depth - 1]
        assert float(row["expected_mean"]) == pytest.approx(expected, abs=0.01)
        # The tree sizes' spread is about their mean, so a hundred draws come within half of it.
        assert float(row["measured_mean"]) == pytest.approx(expected, rel=0.5)
        assert int(row["measured_max"]) >= float(row["measured_mean"])
        if task == "listops":
            two = mean_tokens(listops(max_fan_in=2), depth, leaf=0.0)[depth]
            assert float(row["two_operands_mean"]) == pytest.approx(two, abs=0.01)
        else:
            assert row["two_operands_mean"] == ""


def test_tokens_as_text(written):
    text = (written / "tokens.md").read_text()
    assert "`exactformer reproduce tokens`" in text.split("##")[0]
    assert "| 30 | 18375.68 | 21045.91 |" in text
    assert "30 of the paper's 30 means" in text
    tables = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(tables) == 3 * (2 + 30) + 2 + 3  # by depth, and how they grow
    assert "| boolean | 0.99941 | 0.96823 | 0.94965 |" in text


def same_as_shipped(path: Path) -> bool:
    """But for the versions that a table was made with."""
    both = (path, ROOT / "results" / path.name)
    ours, shipped = (file.read_bytes().partition(b"\nMade with ")[0] for file in both)
    return ours == shipped


def test_the_same_again_in_another_folder(written, tmp_path):
    """Results as in the repository, whose files were written elsewhere. The paths are in the
    output.
    """
    assert all(same_as_shipped(path) for path in written.iterdir())
    folder = tmp_path / "a" / "b"
    printed = output("reproduce", "table2", "--out", folder, "--json")
    paths = [Path(path) for path in json.loads(printed)["table2"]]
    assert [path.parent for path in paths] == [folder] * len(paths)
    assert set(paths) == set(folder.iterdir())
    assert all(same_as_shipped(path) for path in paths)


def test_an_unknown_name_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = refused("reproduce", "tokens", "tokns")
    assert "expected some of" in said
    assert "tokens" in said
    assert "'tokns'" in said
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("in the way")
    said = refused("reproduce", "tokens", "--out", tmp_path / "file" / "results")
    assert str(tmp_path / "file") in said


@pytest.mark.parametrize("task", CATALOG)
def test_the_papers_numbers_agree_with_each_other(task):
    summary = published.MODEL_SUMMARY[task]
    tokens = published.MEAN_TOKENS[task][summary.first_depth - 1 : summary.last_depth]
    assert len(published.MEAN_TOKENS[task]) == summary.last_depth
    assert sum(tokens) / len(tokens) == pytest.approx(summary.mean_tokens, abs=0.01)
    failed, converged = published.SEEDS_THAT_FAILED[task], published.SEEDS_THAT_CONVERGED[task]
    assert set(failed) <= set(published.SEEDS)
    assert len(published.SEEDS) == len(failed) + converged
    assert set(published.LOOPED_DEPTHS) <= set(published.LOOPED_FULL_DEPTHS)


def test_the_papers_sizes_are_ours(task):
    assert paper_architecture(task).parameters == published.PARAMETERS[task.name]
