"""Numbers in the README, the report and the pages are those of the tables they cite."""

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import exactformer as ef
from attacks.tensor_changes import CHANGES
from exactformer.engine import choice
from exactformer.engine.plain import MOST_STATES

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


def ratios(column: int) -> list[float]:
    """The engine's speed by that of a floor, for texts of four million tokens and more."""
    long = [row for row in rows("bench.md") if len(row) == 13 and number(row[2]) >= 4_000_000]
    assert len(long) == 24
    return [number(row[4]) / number(row[column]) for row in long]


def number(cell: str) -> float:
    found = re.fullmatch(r"[\d,.]+", cell)
    return float(cell.replace(",", "")) if found else 0.0


def test_the_engine_is_as_fast_beside_stack_machines_as_its_table_says():
    plain, tuned = ratios(6), ratios(7)
    said = read("docs/engine.md")
    assert f"{min(plain):.2f} to {max(plain):.1f} times as fast as a plain stack machine" in said
    assert f"{min(tuned):.2f} to {max(tuned):.1f} times as fast as one tuned" in said


@pytest.mark.parametrize("task", ["arithmetic", "listops"])
def test_the_engine_is_as_fast_on_a_gpu_as_its_table_says(task):
    few = [r for r in rows("engine_gpu.md", task) if len(r) == 10 and number(r[2]) < 300_000_000]
    speeds = {row[1]: int(row[5]) for row in few}
    uniform = speeds.pop("uniformly random")
    said = read("docs/engine.md")
    assert f"{min(speeds.values())} to {max(speeds.values())}" in said
    assert f"{uniform} for uniformly random trees, in {max(number(r[8]) for r in few):.1f}" in said


def test_the_engine_page_says_what_decides():
    said = read("docs/engine.md")
    assert f"at most {choice.SOON_MADE:,} cases" in said
    assert f"at most {choice.SOON_NUMBERS:,} cases times tokens" in said
    assert f"at most {MOST_STATES:,} states" in said
    modulus = int(re.findall(r"arithmetic up to modulo (\d+)", said)[0])
    assert choice.soon_made(ef.arithmetic(modulus))
    assert not choice.soon_made(ef.arithmetic(modulus + 1))


def record(name: str) -> dict:
    return json.loads((ROOT / "exactformer/paper/records/baselines" / name).read_text())


def test_the_report_counts_deep_answers_of_crvnn_as_its_record_does():
    right = sum(
        record("listops-crvnn.deep.json")["right"][str(depth)][0] for depth in range(11, 21)
    )
    common = sum(record("listops-ours.json")["majority"]["natural"][10:20])  # depths from 1 on
    said = read("results/README.md")
    assert f"is right {right} times of 1,000" in said
    assert f"commonest answer of each depth {common} times" in said


def test_the_report_counts_seeds_without_attention_as_the_controls_do():
    frozen, zero = (
        [counts(row[2:5:2]) for row in rows("controls.md", name)]
        for name in ("attention frozen", "zero-mean start")
    )
    assert [sum(column) for column in zip(*frozen, strict=True)] == [0, 1]
    assert [sum(column) for column in zip(*zero, strict=True)] == [22, 30]
    assert "22 are at the first and all within three" in read("results/README.md")


def test_every_seed_trained_end_to_end_that_is_not_certified_has_a_counterexample():
    with (RESULTS / "end-to-end.csv").open() as file:
        verdicts = [row[2] for row in csv.reader(file) if len(row) == 7 and row[0] != "task"]
    assert set(verdicts) == {"exact", "inexact"}
    said = f"All {verdicts.count('inexact')} of its {len(verdicts)} seeds that are not certified"
    assert said in read("results/README.md")


@pytest.mark.parametrize(
    ("factor", "said"),
    [
        (("maximum_detached", "0"), "98 of 566"),
        (("maximum_detached", "1"), "7 of 634"),
        (("through_residual", "0"), "none of 583"),
    ],
)
def test_the_report_counts_runs_by_factor_as_their_table_does(factor, said):
    cells = [cell.split(" of ") for cell in only("estimators.md", *factor)[2:]]
    certified_runs, runs = (sum(map(int, column)) for column in zip(*cells, strict=True))
    assert f"{certified_runs or 'none'} of {runs}" == said
    assert said in read("results/README.md")


def test_plain_notation_counts_harmless_gates_as_their_table_does():
    fresh = [row for row in rows("plain-learning.md") if row[1:3] == ["100", "100"]][:4]
    assert f"of the 400 fresh seeds, {sum(int(row[6]) for row in fresh)}" in read("docs/plain.md")


@pytest.mark.parametrize("table", ["packed.md", "packed_gpu.md"])
def test_the_report_gives_the_range_of_the_first_table_of_batches(table):
    first = [row for row in rows(table) if len(row) == 10 and number(row[2])][:6]
    gains = [row[7] for row in first]
    low, high = min(gains, key=number), max(gains, key=number)
    said = f"{low} to {high.split('.')[0] if number(high) >= 10 else high} times"
    assert said in read("results/README.md")


def test_outputs_of_circuits_are_those_of_the_table():
    lines = (RESULTS / "netlists.md").read_text().splitlines()
    found = [re.findall(r"([\d,]+) of ([\d,]+)", line) for line in lines if line[:1] == "|"][2:]
    assert len(found) == 10
    assert all(len(row) == 5 and len({n for pair in row for n in pair}) == 1 for row in found)
    total = sum(int(row[0][0].replace(",", "")) for row in found)
    for page in ("results/README.md", "docs/circuits.md"):
        assert f"{total:,} of {total:,} outputs" in read(page)


def test_every_page_of_results_is_in_the_report():
    text = (RESULTS / "README.md").read_text()
    pages = {path.name for path in RESULTS.glob("*.md")} - {"README.md"}
    assert not [name for name in pages if f"({name})" not in text]


@pytest.mark.parametrize("page", ["docs/reproduction.md", "docs/trusted-base.md"])
def test_the_ways_to_change_a_tensor_are_counted(page):
    assert f"in the {len(CHANGES)} ways of `attacks/tensor_changes.py`" in read(page)


def test_gates_that_are_lost_again_are_counted_in_the_curves():
    with (RESULTS / "loss_curves.csv").open() as file:
        wrong = [(row[1], float(row[5])) for row in csv.reader(file) if row[0] == "boolean"]
    found, lost = set(), set()
    for seed, share in wrong:
        found |= {seed} if share == 0 else set()
        lost |= {seed} if share > 0 and seed in found else set()
    assert f"`loss_curves.csv`: {len(lost)} of {len(dict(wrong))} Boolean" in read(
        "results/README.md"
    )


def test_seeds_of_large_algebras_are_counted_as_in_their_table():
    large = [row for row in rows("large-algebras.md") if number(row[1]) > 400]
    certified_seeds, seeds = (sum(int(row[5].split(" of ")[i]) for row in large) for i in (0, 1))
    said = f"{certified_seeds} of {seeds} seeds certified, of {large[0][1]} to {large[-1][1]} cases"
    assert said in read("results/README.md")
