"""Training with one setting changed: whether attention is learned, and whether its start
matters.
"""

from pathlib import Path

from exactformer.domains.catalog import CATALOG
from exactformer.paper import published
from exactformer.paper.files import heading, table, write_both
from exactformer.paper.runs import RUNS, TrainingRun, train_all
from exactformer.problems.accuracy import interval_in_words

ATTEMPTS = 3
CONTROLS: dict[str, tuple[tuple[str, float], ...]] = {
    "as it is": (),
    "attention frozen": (("attention_rate", 0.0),),
    "zero-mean start": (("open_bits", 0.0),),
}


def controls(results: Path, quick: bool = False) -> list[Path]:
    """The table of certified seeds among the paper's with one setting changed."""
    tasks, seeds = (["boolean"], published.SEEDS[:2]) if quick else (list(CATALOG), published.SEEDS)
    folder = RUNS / ("quick" if quick else "") / "controls"
    runs = {
        (name, task): TrainingRun(
            task,
            seeds,
            folder / name.replace(" ", "-") / task,
            settings=(("attempts", ATTEMPTS), *settings),
        )
        for name, settings in CONTROLS.items()
        for task in tasks
    }
    trained = train_all(list(runs.values()))
    header = ["training", "task", "certified at the first attempt", "95% interval"]
    header += [f"within {ATTEMPTS}", "rows of depth 1 right, mean share"]
    rows, csv = [], ["training,task,seed,verdict,attempt,rows_right,rows"]
    for (name, task), run in runs.items():
        ended = trained[run]
        exact = [result for result in ended if result.exact]
        first = sum(result.record["attempt"] == 1 for result in exact)
        share = sum(r.record["rows_right"] / r.record["rows"] for r in ended) / len(ended)
        cells = [name, task, f"{first} of {len(ended)}", interval_in_words(first, len(ended))]
        rows.append([*cells, f"{len(exact)} of {len(ended)}", f"{share:.4f}"])
        csv += [
            f"{name},{task},{r.seed},{r.record['verdict']},{r.record['attempt']},"
            f"{r.record['rows_right']},{r.record['rows']}"
            for r in ended
        ]
    text = [*heading("Controls", "controls"), *table(header, rows, words=2), "", NOTE, ""]
    text += [f"- `{run}`" for run in runs.values()]
    return write_both(results, "controls", csv, text)


NOTE = f"""\
The staged method with up to {ATTEMPTS} attempts a seed, the paper's ten seeds. With attention
frozen, a seed has the random routing of its start, and only feedforward and gate learn. A start
around zero opens half of the bits instead of most."""
