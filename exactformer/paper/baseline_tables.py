"""The paper's comparisons with a looped transformer and with CRvNN, beside ours.

Tables are rendered from the records of `baseline_records.py`. All models of a task are tried on the
same problems (`comparison.py`), drawn naturally and balanced by class.
"""

import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from exactformer.baselines.positions import ENCODINGS
from exactformer.baselines.recipe import RATES, recipe_for
from exactformer.paper import published
from exactformer.paper.baseline_records import QUICK_PROBLEMS, SHIPPED, record_of
from exactformer.paper.comparison import DRAWINGS, TABLE_DEPTHS, count_at
from exactformer.paper.files import Record, table, write_both
from exactformer.problems.accuracy import RESAMPLES, in_words, interval_of_counts
from exactformer.protocol.recipe import FITTED

TITLES = {"learned": "learned", "rope": "RoPE", "fire": "FIRE", "crvnn": "CRvNN"}
EPOCHS = {"best": "best epoch", "last": "last epoch"}
CSV_HEADER = "task,model,rate,seed,fitted,epoch,drawing,depth,right,problems"


def table2(results: Path, quick: bool = False) -> list[Path]:
    """tab:baseline: the looped transformer at depths 2, 3 and 10."""
    return _looped_table(results, 2, published.LOOPED_DEPTHS, ("best",), quick)


def table3(results: Path, quick: bool = False) -> list[Path]:
    """atab:baseline_full: the looped transformer at depths 1, 2, 3, 5 and 10."""
    return _looped_table(results, 3, published.LOOPED_FULL_DEPTHS, tuple(EPOCHS), quick)


def table4(results: Path, quick: bool = False) -> list[Path]:
    """atab:crvnn: CRvNN on ListOps, mean and standard deviation over all five seeds."""
    depths = published.CRVNN_DEPTHS
    records = _records(["listops"], ["crvnn"], quick)
    header = ["model", "seeds fitted", *(f"depth {depth}" for depth in depths)]
    pairs = list(zip(published.CRVNN_MEAN, published.CRVNN_SD, strict=True))
    text = _heading("Table 4: CRvNN on ListOps", "table4", quick)
    for drawing in DRAWINGS:
        for epoch, title in EPOCHS.items():
            rows = [["the paper's", "", *(f"{mean:.3f} ({sd:.3f})" for mean, sd in pairs)]]
            for record in records:
                seeds = record["seeds"]
                fitted = sum(seed["fitted"] for seed in seeds)
                means, counts = [], []
                for depth in depths:
                    found = [seed[epoch][drawing][str(depth)] for seed in seeds]
                    shares = [right / total for right, total in found]
                    sd = statistics.stdev(shares) if len(shares) > 1 else 0.0
                    means.append(f"{statistics.mean(shares):.3f} ({sd:.3f})")
                    counts.append("; ".join(_counted(found)[1:]))
                name = f"CRvNN at {record['recipe']['learning_rate']}"
                rows += [[name, f"{fitted} of {len(seeds)}", *means], ["right, 95%", "", *counts]]
            rows += _our_rows("listops", drawing, depths, 1, quick)
            text += [f"## {drawing}, {title}", "", *table(header, rows), ""]
    parameters = records[0]["parameters"]
    text += [
        f"Mean (standard deviation) over all seeds; below, how many each seed has right. "
        f"{INTERVALS} {parameters:,} parameters (paper: "
        f"{published.CRVNN_PARAMETERS:,}), {parameters / 4416:.0f} times the 4,416 of the "
        "construction, not the printed 500 times.",
        "",
        *_runs(records),
        CRVNN_NOTE,
    ]
    return write_both(results, "table4", _csv(records, depths), text)


def _records(tasks: Iterable[str], networks: Iterable[str], quick: bool) -> list[Record]:
    return [
        record_of(recipe_for(task, network, rate).name, quick)
        for task in tasks
        for network in networks
        for rate in (RATES[:1] if quick else RATES)
    ]


def _counted(found: Sequence[tuple[int, int]]) -> list[str]:
    """Mean share that is right, how many each seed has right, and the mean's interval."""
    right, totals = zip(*found, strict=True)
    ends = in_words(interval_of_counts(right, totals[0]), digits=3)
    counts = ", ".join(str(count) for count in right)
    return [f"{sum(right) / sum(totals):.3f}", f"{counts} of {totals[0]}", ends]


def _looped_table(
    results: Path, number: int, depths: Sequence[int], epochs: Sequence[str], quick: bool
) -> list[Path]:
    records = _records(published.LOOPED_FULL, ENCODINGS, quick)
    text = _heading(f"Table {number}: the looped transformer", f"table{number}", quick)
    header = ["model", "seeds fitted (paper's)"]
    for depth in depths:
        header += [f"depth {depth}", "right", "95%", "paper's"]
    for task in published.LOOPED_FULL:
        text += [f"## {task}", ""]
        for drawing in DRAWINGS:
            for epoch in epochs:
                rows = [
                    _looped_cells(record, drawing, epoch, depths)
                    for record in records
                    if record["recipe"]["task"] == task
                ]
                rows += _our_rows(task, drawing, depths, 4, quick)
                text += [f"### {drawing}, {EPOCHS[epoch]}", "", *table(header, rows), ""]
    text += [*_runs(records), LOOPED_NOTE, "", _sixtieths()]
    return write_both(results, f"table{number}", _csv(records, depths), text)


def _sixtieths() -> str:
    """A finding about the paper's own accuracies of single seeds."""
    cells = [
        accuracy
        for task in ("arithmetic", "listops")
        for row in published.LOOPED_FULL[task].values()
        for accuracy in row
        if 0 < accuracy < 1
    ]
    possible = {round(k / 60, 2) for k in range(1, 60)}
    fitting = sum(cell in possible for cell in cells)
    return (
        "Of the paper's accuracies for arithmetic and ListOps, which are of one seed each, "
        f"{fitting} of the {len(cells)} that are neither 0 nor 1 are multiples of 1/60, as "
        f"{len(possible)} of the 99 such numbers with two digits are."
    )


def _looped_cells(record: Record, drawing: str, epoch: str, depths: Sequence[int]) -> list[str]:
    recipe, seeds = record["recipe"], record["seeds"]
    task, encoding = recipe["task"], recipe["network"]
    fitted = [seed for seed in seeds if seed["fitted"]]
    paper_fitted = published.LOOPED_SEEDS_THAT_FITTED[task][encoding]
    cells = [f"{TITLES[encoding]} at {recipe['learning_rate']}"]
    cells.append(f"{len(fitted)} of {len(seeds)} ({paper_fitted} of 5)")
    for depth in depths:
        found = [seed[epoch][drawing][str(depth)] for seed in fitted]
        cells += _counted(found) if found else ["none", "", ""]
        paper = published.LOOPED_FULL[task][encoding][published.LOOPED_FULL_DEPTHS.index(depth)]
        cells.append(f"{paper:.2f}")
    return cells


def _our_rows(
    task: str, drawing: str, depths: Sequence[int], width: int, quick: bool
) -> list[list[str]]:
    """Our models and the commonest answer, on the same problems, in cells like those above."""
    if quick:
        return []
    record = json.loads((SHIPPED / f"{task}-ours.json").read_text())
    ours, common = ["**ours**, certified", "10 of 10"], ["always the commonest answer", ""]
    for depth in depths:
        i, total = TABLE_DEPTHS.index(depth), count_at(depth)
        right = _counted([(record["right"][drawing][i], total)])
        most = _counted([(record["majority"][drawing][i], total)])
        if width == 1:
            ours.append("; ".join(right[1:]))
            common.append(most[0])
        else:
            ours += [*right, "1.00"]
            common += [*most[:2], "", ""]
    return [ours, common]


def _csv(records: Iterable[Record], depths: Sequence[int]) -> list[str]:
    return [CSV_HEADER] + [
        f"{record['recipe']['task']},{record['recipe']['network']},"
        f"{record['recipe']['learning_rate']},{seed['seed']},{int(seed['fitted'])},"
        f"{epoch},{drawing},{depth},{counts[str(depth)][0]},{counts[str(depth)][1]}"
        for record in records
        for seed in record["seeds"]
        for epoch in EPOCHS
        for drawing, counts in seed[epoch].items()
        for depth in depths
    ]


def _heading(title: str, name: str, quick: bool) -> list[str]:
    made = (
        f"Made by `exactformer reproduce {name}`, from the training records that are shipped in "
        "`exactformer/paper/records`."
    )
    if quick:
        made = (
            f"Made by `exactformer reproduce {name} --quick`. **A quick version: one seed, few "
            f"epochs, a tenth of each (Boolean: 100 whole ones), {QUICK_PROBLEMS} problems a "
            f"depth. All but Boolean have hardly begun to learn.**"
        )
    return [f"# {title}", "", made, ""]


def _runs(records: Sequence[Record]) -> list[str]:
    rows = []
    for record in records:
        cells = [record["name"], f"{record['device']}, torch {record['torch']}"]
        cells += [f"{record['parameters']:,}", str(record["recipe"]["epochs"])]
        rows.append([*cells, f"{record['seconds']:.0f}"])
    seeds = " ".join(str(seed["seed"]) for seed in records[0]["seeds"])
    others = ", and likewise the others" if len(records) > 1 else ""
    notes = [f"Seeds {seeds}. Trained by `{records[0]['command']}`{others}."]
    if any(record.get("shared device") for record in records):
        notes.append(
            "Several runs shared the device, so that the seconds are more than one alone takes."
        )
    unfitted = [
        f"{record['name']} {seed['seed']} ({seed['training accuracy'][0]:.3f}, "
        f"{seed['training accuracy'][1]:.3f})"
        for record in records
        for seed in record["seeds"]
        if not seed["fitted"]
    ]
    if unfitted:
        notes.append(f"Not fitted, with training accuracy at depth 1 and 2: {', '.join(unfitted)}.")
    header = ["run", "device", "parameters", "epochs", "seconds"]
    lines = ["## Training", "", "All seeds of a run train at once.", ""]
    return [*lines, *table(header, rows, words=2), "", *notes, ""]


INTERVALS = f"""\
Seeds share the problems, so that their answers are not pooled: the 95% interval of several seeds'
mean is a percentile bootstrap over seeds ({RESAMPLES:,} resamples, each of one seed fewer than
there are) and over problems, as if all seeds were wrong on the same ones, never narrower than
Wilson's over the problems; that of one seed is Wilson's."""

LOOPED_NOTE = f"""\
Accuracy is the mean over the seeds that reach {FITTED} on both training depths, on 1,000
problems a depth, the same for every seed and model; "right" has a count for each of these seeds.
{INTERVALS} Depths 1 and 2 are those of training: these are problems that the models have seen.
"Natural" problems are drawn by the law of `domains/sampling.py`, in which products make 0 a
common value of arithmetic: hence the commonest answer's row. "Balanced" ones have each value
equally often. The best epoch is that of the highest training accuracy, the mean over the two
depths, measured after every epoch on all of depth 1 and on all (arithmetic: a fixed 10,000) of
depth 2. Our models are the ten that are shipped, on the same problems, shared out among them.

What the paper leaves open, and what is done here: one pre-norm block, width 128, 4 heads, GELU of
width 512; attention both ways; the input embedding added again at each step; the value read off
the last token through a layer norm and a linear map onto the algebra's values, so that an
untrained answer is right by chance (the paper's accuracies far below chance may come from a
read-out over the whole vocabulary; it does not say); cross-entropy; Adam; the paper's "matched
hyperparameters" may mean the 0.01 of its own model, so both rates are here; batch 500, 10%
warm-up from 0.3, cosine to 0.05, gradients clipped to 1, classes balanced. Learned positions
beyond the training lengths keep their random start. FIRE takes |i-j|, so it does not tell left
from right. Matrix products in training are TF32.

The seed with the best training accuracy of each run is kept (`exactformer/paper/records`, half
precision); `exactformer.paper.baseline_records.load_baseline(NAME)` predicts with it."""

CRVNN_NOTE = """\
CRvNN has its own recipe: AdamW, weight decay 0.01, batch 128, gradients clipped to 1, dropout 0.3
(input), 0.1 (cell), 0.2 (output), halt penalty 0.01. The paper gives no number of epochs; here it
is 60, each the 4,400 depth-1 problems, then these with 8,800 fresh depth-2 ones, with the same
warm-up and cosine as the others. The best checkpoint is by training accuracy without dropout; the
paper says validation accuracy, but every depth-2 epoch is a fresh sample.

Two earlier runs at 0.001 were tried on 100 problems a depth: 500, 500, 363, 266, 169, 145 and 88 of
500 at depths 1, 2, 3, 4, 5, 8 and 10 (with one recursion step too many for padded problems, which
a test then found), and 500, 499, 329, 234, 152, 150 and 87 without. They show how far one run may
lie from another."""
