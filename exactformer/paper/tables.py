"""The paper's tables beside ours: one function for each, which writes its files and names them."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from exactformer.domains.catalog import CATALOG, listops
from exactformer.domains.sampling import draw, mean_tokens
from exactformer.model.architecture import paper_architecture
from exactformer.paper import published
from exactformer.paper.baseline_tables import table2, table3, table4
from exactformer.paper.constants import constants
from exactformer.paper.controls import controls
from exactformer.paper.depth_table import table5, try_depths
from exactformer.paper.end_to_end import end_to_end
from exactformer.paper.estimator_tables import estimators
from exactformer.paper.files import heading, quoted, table, write_both
from exactformer.paper.runs import RUNS, TrainingRun, train_all
from exactformer.training.run import summary

TOKENS_NOTE = """\
The expected mean is exact: it follows from the law of the sampler (`exactformer.domains.sampling`).
The measured mean and maximum are over {count} expressions a depth, drawn with seed {seed}.

**A finding.** The paper allows ListOps two or three operands and writes a second, empty token after
each `)`. Its printed ListOps means have neither. They are what two operands each, sibling depths
uniform from 0 and no empty token give: `draw` on `listops(max_fan_in=2)` with `leaf=0`, the last
column. With exactly two operands each, n operators take 4n + 1 tokens, so a mean over {count} is
1 + 4k/{count} for a whole number k: {whole} of the paper's 30 means have that form, and the mean
at depth 1, 5.00, leaves no room for a third operand.
"""


def _growth() -> list[str]:
    """How linear the logarithm of the paper's mean tokens is in functions of the depth, as R²."""
    rows = []
    for task, means in published.MEAN_TOKENS.items():
        depths = np.arange(1, len(means) + 1)
        fits = [
            np.corrcoef(x, np.log(means))[0, 1] ** 2
            for x in (np.sqrt(depths), depths, np.log(depths))
        ]
        rows.append([task, *(f"{fit:.5f}" for fit in fits)])
    header = ["R² of ln(the paper's mean tokens) in", "√depth", "depth", "ln(depth)"]
    return table(header, rows)


def tokens(results: Path, quick: bool = False) -> list[Path]:
    """atab:performance_alldepth, the column of mean tokens by depth. It needs no quick version."""
    seed = 0
    count = published.PROBLEMS_PER_DEPTH
    two_operands = mean_tokens(listops(max_fan_in=2), 30, leaf=0.0)
    csv = ["task,depth,paper_mean,expected_mean,measured_mean,measured_max,two_operands_mean"]
    markdown = heading("Tokens by depth", "tokens")
    for task, paper_means in published.MEAN_TOKENS.items():
        algebra = CATALOG[task]()
        rng = np.random.default_rng(seed)
        header = ["depth", "paper", "ours, expected", "ours, mean", "ours, max"]
        if task == "listops":
            header.append("two operands, leaf 0")
        means = mean_tokens(algebra, len(paper_means))
        rows = []
        for depth, paper_mean in enumerate(paper_means, start=1):
            lengths = [len(expression) for expression in draw(algebra, depth, count, rng)]
            numbers = [paper_mean, means[depth], float(np.mean(lengths))]
            cells = [str(depth), *(f"{number:.2f}" for number in numbers), str(max(lengths))]
            two = [f"{two_operands[depth]:.2f}"] if task == "listops" else []
            rows.append([*cells, *two])
            csv.append(",".join([task, *cells, *(two or [""])]))
        markdown += [f"## {task}", "", *table(header, rows, words=0), ""]
    markdown += _growth()
    whole = sum(round(count * (mean - 1)) % 4 == 0 for mean in published.MEAN_TOKENS["listops"])
    markdown += ["", TOKENS_NOTE.format(count=count, seed=seed, whole=whole)]
    return write_both(results, "tokens", csv, markdown)


def table1(results: Path, quick: bool = False) -> list[Path]:
    """tab:model_summary: thirty models from random weights, certified, and tried on depths 3-30.

    A hundred problems a depth are distributed among the ten seeds of a task, ten each; their proofs
    say that all of them are right on every other problem, too.
    """
    seeds, count = published.SEEDS, published.PROBLEMS_PER_DEPTH
    if quick:
        seeds, count = seeds[:2], 10
    runs = {
        task: TrainingRun(task, seeds, RUNS / ("quick" if quick else "") / task) for task in CATALOG
    }
    trained = train_all(list(runs.values()))
    header = ["task", "parameters", "certified", "needed a restart", "right", "paper's accuracy"]
    header += ["mean tokens (SD)", "paper's", "max tokens", "paper's"]
    rows = []
    models_of = {task: [result.model for result in trained[run]] for task, run in runs.items()}
    tried = try_depths(models_of, 3, 30, count)
    for task, run in runs.items():
        models = trained[run]
        exact = [model for model in models if model.exact]
        restarted = sum(model.record["attempt"] > 1 for model in exact)
        right = sum(score.correct for score in tried[task].values())
        lengths = [length for score in tried[task].values() for length in score.lengths]
        paper = published.MODEL_SUMMARY[task]
        converged = published.SEEDS_THAT_CONVERGED[task]
        rows.append(
            [
                task,
                str(paper_architecture(CATALOG[task]()).parameters),
                f"{len(exact)} of {len(models)} (paper: {converged} converged)",
                str(restarted),
                f"{right:,} of {len(lengths):,}",
                f"{paper.accuracy:.3f}",
                f"{np.mean(lengths):.2f} ({np.std(lengths):.2f})",
                f"{paper.mean_tokens:.2f} ({paper.sd_tokens:.2f})",
                str(max(lengths)),
                str(paper.max_tokens),
            ]
        )
    markdown = [*heading("Table 1", "table1"), *table(header, rows), "", TABLE1_NOTE]
    for task, run in runs.items():
        markdown += ["", f"## {task}", "", f"`{run}`", "", summary(trained[run])]
    return write_both(results, "table1", quoted([header, *rows]), markdown)


TABLE1_NOTE = """\
Each model is trained on depth 1 and 2 alone and ends with a proof that it is exact at every depth.
The problems of a depth are distributed evenly among a task's models.
The problems are drawn as `results/tokens.md` describes, with seed 0; the paper's ListOps problems
have two operands only, ours two or three, which makes them longer. The paper's text gives 10, 9 and
9 converged seeds for arithmetic, Boolean and ListOps, and up to two hours a seed."""


def _draw(name: str, results: Path, quick: bool = False) -> list[Path]:
    """A figure; matplotlib is loaded here and not before."""
    try:
        from exactformer.paper.figures import FIGURES
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "matplotlib":
            raise
        raise ValueError(
            f"{name} needs matplotlib, which is not installed: pip install 'exactformer[figures]'"
        ) from None
    return FIGURES[name](results)


DRAWN = ("fig1", "fig2", "fig3", "fig4", "figA1", "accuracy", "factors")
TABLES: dict[str, Callable[..., list[Path]]] = {  # of the folder, and whether to be quick
    "table1": table1,
    "table2": table2,
    "table3": table3,
    "table4": table4,
    "tokens": tokens,
    "estimators": estimators,
    "end-to-end": end_to_end,
    "controls": controls,
    "constants": constants,
    "table5": table5,
    **{name: partial(_draw, name) for name in DRAWN},
}
