"""Numbers in the README, the report and docs/training.md are those of the tables they cite."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results"
TASKS = ("boolean", "arithmetic", "listops")


def read(name: str) -> str:
    """A page as one line, so that a sentence is found wherever its lines break."""
    return " ".join((ROOT / name).read_text().split())


def rows(table: str, *first: str) -> list[list[str]]:
    """The cells of the rows of a page whose first cells are these."""
    lines = (RESULTS / table).read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "|" in line]
    return [row for row in cells if tuple(row[: len(first)]) == first]


def only(table: str, *first: str) -> list[str]:
    """The one such row."""
    (row,) = rows(table, *first)
    return row


def counts(cells: list[str]) -> list[int]:
    """Of cells such as `86 of 100`, the first number."""
    return [int(cell.split(" of ")[0].replace(",", "")) for cell in cells]


def certified(table: str, of: str) -> list[int]:
    """How many seeds of each task are certified, in the rows of `table` that count `of` seeds."""
    found = [next(r[1] for r in rows(table, task) if r[1].endswith(f"of {of}")) for task in TASKS]
    return counts(found)


def listed(numbers: list[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def thirty() -> str:
    return f"{sum(counts([only('table1.md', task, *p)[2] for task, p in PARAMETERS]))} of 30"


PARAMETERS = [("boolean", ("280",)), ("arithmetic", ("924",)), ("listops", ("4416",))]


def table_1_right() -> str:
    right = sum(counts([only("table1.md", task, *p)[4] for task, p in PARAMETERS]))
    return f"{right:,} of 8,400"


def depths_right() -> str:
    cells = only("depths.md", "all")[1:]
    each = [[int(part.split(" of ")[0]) for part in cell.split(" / ")[:3]] for cell in cells]
    by_each = {sum(column) for column in zip(*each, strict=True)}
    (right,) = by_each
    return f"{right:,} of 9,000"


def gpu_speeds() -> str:
    few = [row for row in rows("engine_gpu.md", "arithmetic") if row[2] == "268,437,465"]
    best = [int(row[5]) for row in few if len(row) == 10]
    return f"{min(best)} to {max(best)} billion tokens a second"


def another_processor() -> str:
    exact = sum(row[1] == "exact" for row in rows("another-processor.md") if row[0].isdigit())
    return f"{exact} of the ten Boolean seeds"


CLAIMS: dict[str, Callable[[], str]] = {
    "30 of 30": thirty,
    "8,400 of 8,400": table_1_right,
    "9,000 of 9,000": depths_right,
    "speed on a GPU": gpu_speeds,
    "end to end, ten seeds": lambda: f"{listed(certified('end-to-end.md', '10'))} of the paper's",
    "end to end, fresh": lambda: f"{listed(certified('end-to-end.md', '100'))} of a hundred fresh",
    "another processor": another_processor,
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_readme_says_what_its_table_does(claim):
    assert CLAIMS[claim]() in read("README.md")


@pytest.mark.parametrize("page", ["README.md", "results/README.md", "docs/training.md"])
@pytest.mark.parametrize("claim", [c for c in CLAIMS if c.startswith(("30", "end", "another"))])
def test_every_page_on_training_gives_the_same_counts(page, claim):
    assert CLAIMS[claim]().replace("the ten", "ten") in read(page).replace("the ten", "ten")


def test_the_pipe_is_as_fast_as_its_page_says():
    speed = re.search(r"[\d.]+ GB a second", read("results/pipe.md"))
    assert speed
    assert speed[0] in read("README.md")


@pytest.mark.parametrize("task", TASKS)
def test_the_report_has_the_counts_of_every_estimator(task):
    part = read("results/README.md").split("With the same budget of tuning")[1]
    of_task = dict(zip(TASKS, part.split("; on "), strict=False))[task].split(". ")[0]
    found = counts([row[2] for row in rows("estimators.md", task)])
    assert len(found) == 6
    assert set(found) <= {int(number) for number in re.findall(r"\b\d+\b", of_task)}


def test_every_file_named_in_the_report_is_there():
    links = re.findall(r"\]\((?!http|#)([^)#]+)", (RESULTS / "README.md").read_text())
    assert links
    assert not [link for link in links if not (RESULTS / link).exists()]


def test_the_report_counts_looped_transformers_that_fit_as_their_table_does():
    text = (RESULTS / "table2.md").read_text().split("### balanced")
    natural = [text[0], *(part.split("### natural")[1] for part in text[1:] if "natural" in part)]
    fitted = {"0.01": 0, "0.001": 0}
    for model, rate, count in re.findall(
        r"^\| (learned|RoPE|FIRE) at ([\d.]+) \| (\d) of 5", "\n".join(natural), re.M
    ):
        assert model
        fitted[rate] += int(count)
    said = (
        f"{fitted['0.01']} of 45 looped transformers fit; at a tenth of it, {fitted['0.001']} of 45"
    )
    assert said in read("results/README.md")


def test_every_theorem_named_in_a_page_is_in_the_proof():
    proofs = "".join(path.read_text() for path in (ROOT / "proof").glob("*.v"))
    pages = [ROOT / "README.md", ROOT / "proof/README.md", RESULTS / "README.md"]
    text = "".join(page.read_text() for page in pages)
    named = set(re.findall(r"`(\w+_are_\w+|\w+_is_\w+)`", text))
    assert {"checked_rows_are_exact", "running_model_is_exact_in_every_format"} <= named
    stated = set(re.findall(r"^(?:Theorem|Lemma|Corollary|Example) (\w+)", proofs, re.M))
    assert named <= stated
