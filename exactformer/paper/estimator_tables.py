"""The table of the estimator study, from the records of `estimator_study.py`."""

import json
from pathlib import Path

from exactformer.domains.catalog import CATALOG
from exactformer.paper.estimator_study import (
    COMMON,
    ESTIMATORS,
    FACTORS,
    FRESH_SEEDS,
    SETTINGS,
    SHIPPED,
    SURROGATES,
    TUNING_SEEDS,
)
from exactformer.paper.files import Record, heading, table, write_both
from exactformer.problems.accuracy import interval_in_words

HEADER = ("task", "estimator", "certified", "95% interval", "depth 1 right", "the right gate")
HEADER += (f"best of tuning, of {len(TUNING_SEEDS)}", "settings with any")


def shipped(task: str, name: str) -> Record:
    return json.loads((SHIPPED / f"{task}-{name}.json").read_text())


def estimators(results: Path, quick: bool = False) -> list[Path]:
    """The table of certified fresh seeds for each estimator, all tuned with one budget. `quick`
    changes nothing, since the records are shipped.
    """
    rows, csv, chosen = [], ["task,estimator,seed,exact,depth_one,gate"], []
    for record in (shipped(task, name) for task in CATALOG for name in ESTIMATORS):
        judged, tuning = record["judged"], record["tuning"]
        counts = {key: sum(row[key] for row in judged) for key in ("exact", "depth one", "gate")}
        certified = [setting["certified"] for setting in tuning]
        cells = [record["task"], record["name"], f"{counts['exact']} of {len(judged)}"]
        cells += [interval_in_words(counts["exact"], len(judged))]
        cells += [str(counts["depth one"]), str(counts["gate"]), str(max(certified))]
        rows.append([*cells, f"{sum(map(bool, certified))} of {len(tuning)}"])
        settings = ", ".join(f"{key} {value:g}" for key, value in record["chosen"].items())
        chosen.append(
            f"- {record['task']}, {record['name']} ({record['steps']:,} steps): {settings}"
        )
        csv += [
            f"{record['task']},{record['name']},{row['seed']},{int(row['exact'])},"
            f"{int(row['depth one'])},{int(row['gate'])}"
            for row in judged
        ]
    text = heading("Estimators for the gate", "estimators")
    text += [*table(HEADER, rows, words=2), "", NOTE, "", "## The settings chosen", "", *chosen]
    text += ["", "## What matters to straight-through", "", FACTOR_NOTE, "", *factor_table()]
    return write_both(results, "estimators", csv, text)


def factor_shares(task: str) -> dict[str, dict[str, tuple[int, int]]]:
    """For each factor and its choices, how many of the runs with it are certified."""
    rows = [
        {**row, "surrogate": name} for name in SURROGATES for row in shipped(task, name)["rows"]
    ]
    shares: dict[str, dict[str, tuple[int, int]]] = {}
    for factor, choices in {"surrogate": SURROGATES, **FACTORS}.items():
        shares[factor] = {}
        for choice in choices:
            exact = [row["exact"] for row in rows if row[factor] == choice]
            shown = choice if isinstance(choice, str) else f"{choice:g}"
            shares[factor][shown] = sum(exact), len(exact)
    return shares


def factor_table() -> list[str]:
    by_task = {task: factor_shares(task) for task in CATALOG}
    rows = []
    for factor, choices in by_task["boolean"].items():
        for choice in choices:
            found = [shares[factor][choice] for shares in by_task.values()]
            rows.append([factor, choice, *(f"{exact} of {total}" for exact, total in found)])
    return table(["factor", "", *by_task], rows, words=2)


NOTE = f"""\
Everything is trained end to end, as `results/end-to-end.md` says; only how the gate learns differs
(`training/gates.py`). Every estimator has one budget: {SETTINGS} random settings, each from the
seeds {TUNING_SEEDS[0]} to {TUNING_SEEDS[-1]}; the one that certifies the most (the first of equals)
is then trained from the seeds {FRESH_SEEDS[0]} to {FRESH_SEEDS[-1]}, which nothing was chosen by.
All vary {" and ".join(COMMON)}, and what is theirs (`ESTIMATORS` in `paper/estimator_study.py`);
on ListOps all vary its gate_pull, too. ListOps has smaller batches and about half the steps here,
so its shares are not those of `end-to-end.md`. What all share, such as the rates of attention and
feedforward, the loss, the undetached maximum and the temperature, was found for straight-through in
earlier sweeps (about 5,000 runs, seeds from 200 to 264): in this the comparison favours it, and the
two that draw a gate and pass its gradient through the same mask.

`score` is the plain score function of the expected error of noisy gates, in antithetic pairs;
`score-baseline` takes each draw's error relative to the mean of the others. `search` tries every
gate within two coordinates of the present one and is no gradient. Where depth 1 is right and the
gate is not, the gate stopped the seed; where the gate is right and depth 1 is not, depth 1 did.
Depth 1 counts as right with all bags of an operator; the certificate asks for more, such as that
nothing becomes of nothing: two seeds of Gumbel-Softmax on Boolean have both and are not certified.
To search `gate_factor` is a factor of the pull alone, so that it had fewer different settings.

`python -m exactformer.paper.estimator_study TASK NAME` makes a record, on a GPU."""

FACTOR_NOTE = """\
Runs with random settings of all of these, each from a seed of its own (400 and up), and how many
were certified. `maximum_detached`: whether the largest count is a constant to the gradient;
`through_residual` and `through_attention`: where the mask has a gradient at all; `temperature` of
the outputs' sigmoid; `margin` of the probabilities in the loss; `gate_factor`: the gate's rate, of
0.01. ListOps has the pull of its recipe in all of them. `exactformer reproduce factors` draws
it."""
