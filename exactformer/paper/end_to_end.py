"""The paper's own experiment: ten seeds of each task, trained end to end, beside its counts."""

from math import sqrt
from pathlib import Path

import torch

from exactformer.domains.catalog import CATALOG
from exactformer.model.construct import gate as constructed_gate
from exactformer.paper import published
from exactformer.paper.files import table, write_both
from exactformer.paper.runs import RUNS, Run, train_all
from exactformer.training.run import Result


def end_to_end(results: Path, quick: bool = False) -> list[Path]:
    """Which seeds are certified, and what stops the others: the cases of depth 1, or the gate."""
    tasks, seeds, epochs = list(CATALOG), published.SEEDS, None
    if quick:
        tasks, seeds, epochs = ["boolean"], seeds[:2], 20
    folder = RUNS / ("quick" if quick else "") / "end-to-end"
    runs = {
        task: Run(task, seeds, folder / task, method="end-to-end", epochs=epochs) for task in tasks
    }
    trained = train_all(list(runs.values()))
    header = ["task", "certified", "95% interval", "paper", "the constructed gate", "margin, least"]
    rows = []
    for task, run in runs.items():
        ended = trained[run]
        exact = [result for result in ended if result.exact]
        low, high = wilson(len(exact), len(ended))
        gates = sum(has_constructed_gate(result) for result in ended)
        margins = [result.record["margin"] for result in exact]
        rows.append(
            [
                task,
                f"{len(exact)} of {len(ended)}",
                f"{low:.2f} to {high:.2f}",
                f"{published.SEEDS_THAT_CONVERGED[task]} of {len(published.SEEDS)}",
                f"{gates} of {len(ended)}",
                f"{min(margins):.2f}" if margins else "",
            ]
        )
    by_seed = [_cells(task, result) for task, run in runs.items() for result in trained[run]]
    seed_header = ["task", "seed", "verdict", "stopped by", "rows right", "seconds"]
    markdown = ["# End to end", "", "Made by `exactformer reproduce end-to-end`.", ""]
    markdown += [*table(header, rows), "", NOTE, ""]
    markdown += [f"- `{run}`" for run in runs.values()]
    markdown += ["", "## Seed by seed", "", *table(seed_header, by_seed)]
    csv = [",".join(f'"{cell}"' for cell in row) for row in [seed_header, *by_seed]]
    return write_both(results, "end-to-end", csv, markdown)


def _cells(task: str, result: Result) -> list[str]:
    record = result.record
    rows = f"{record['rows_right']:,} of {record['rows']:,}"
    cells = [task, str(result.seed), record["verdict"], stopped_by(result)]
    return [*cells, rows, f"{record['seconds']:.0f}"]


def has_constructed_gate(result: Result) -> bool:
    weights = result.model.weights
    return torch.equal(weights.G_PE, constructed_gate(result.model.algebra).to(weights.G_PE))


def stopped_by(result: Result) -> str:
    """What keeps a seed from being exact."""
    if result.exact:
        return ""
    faults = []
    if result.record["rows_right"] < result.record["rows"]:
        faults.append("depth 1")
    if not has_constructed_gate(result):
        faults.append("the gate")
    return " and ".join(faults)


def wilson(successes: int, trials: int, z: float = 1.96) -> tuple[float, float]:
    """The 95% interval of a rate by Wilson's score."""
    rate, n = successes / trials, trials
    middle = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


NOTE = """\
Every parameter is trained together by straight-through gradients: in each epoch first on depth 1,
then on depth 1 and 2, for the paper's number of epochs. There is one attempt, no search, no score
function and no polish, and nothing in training knows the right gate; the certificate judges
afterwards. The paper calls a seed converged by its accuracy on problems; ours are certified.

The constants were found in sweeps of random settings on seeds from 200 on, none of which is used
here; `run.json` of each folder has all of them, and `training/soft_layer.py` says which mattered.
Seconds are wall time since the run began, one seed after the other, two runs at a time."""
