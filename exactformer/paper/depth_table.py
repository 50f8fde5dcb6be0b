"""Accuracy and tokens by depth of trained models: the data of Tables 1 and 5."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress

from exactformer.api import Model, load
from exactformer.domains.catalog import CATALOG
from exactformer.domains.sampling import draw
from exactformer.paper import published
from exactformer.paper.files import heading, table, write_both
from exactformer.problems.accuracy import DepthScore, accuracy_by_depth
from exactformer.verify import verify
from exactformer.weights.named import SHIPPED


def try_depths(
    models: Mapping[str, Sequence[Model]], first: int, last: int, count: int
) -> dict[str, dict[int, DepthScore]]:
    """For each task and depth, `count` problems, distributed among the task's models. The tasks run
    side by side, each on one core. Whichever depth is the first, a depth has the same problems.
    """
    torch.set_num_threads(1)
    depths = range(first, last + 1)

    def try_task(task: str) -> dict[int, DepthScore]:
        algebra, rng = CATALOG[task](), np.random.default_rng(0)
        for depth in range(1, first):
            draw(algebra, depth, count, rng)
        scores: dict[int, DepthScore] = {}
        for depth in depths:
            scores |= accuracy_by_depth(models[task], algebra, [depth], count, rng)
            progress.advance(bars[task])
        return scores

    columns = (*Progress.get_default_columns(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress, ThreadPoolExecutor() as pool:
        bars = {task: progress.add_task(f"{task}, depths", total=len(depths)) for task in models}
        return dict(zip(models, pool.map(try_task, models), strict=True))


def table5(results: Path, quick: bool = False) -> list[Path]:
    """atab:performance_alldepth: the shipped models, learned and certified, at every depth."""
    count = 10 if quick else published.PROBLEMS_PER_DEPTH
    last = max(summary.last_depth for summary in published.MODEL_SUMMARY.values())
    scores = try_depths({task: proved(task) for task in published.MEAN_TOKENS}, 1, last, count)
    csv = ["task,depth,right,problems,mean_tokens,max_tokens,paper_accuracy,paper_mean_tokens"]
    header = ["depth"]
    for task in scores:
        header += [f"{task}: right", "paper's accuracy", "mean tokens", "paper's"]
    lines = {depth: [str(depth)] for depth in range(1, last + 1)}
    for task, by_depth in scores.items():
        for depth, score in by_depth.items():
            mean, problems = np.mean(score.lengths), len(score.lengths)
            paper = published.MEAN_TOKENS[task][depth - 1]
            accuracy = f"{published.MODEL_SUMMARY[task].accuracy:.3f}"
            right = f"{score.correct} of {problems}"
            lines[depth] += [right, accuracy, f"{mean:.2f}", f"{paper:.2f}"]
            counts = f"{score.correct},{problems},{mean:.2f},{max(score.lengths)}"
            csv.append(f"{task},{depth},{counts},{accuracy},{paper:.2f}")
    answers = [score for by_depth in scores.values() for score in by_depth.values()]
    right = sum(score.correct for score in answers)
    asked = sum(len(score.lengths) for score in answers)
    markdown = heading("Table 5", "table5")
    markdown += [f"Right at all depths together: **{right:,} of {asked:,}**.", ""]
    markdown += [*table(header, lines.values(), words=0), ""]
    markdown.append(TABLE5_NOTE.format(count=count, seeds=", ".join(map(str, published.SEEDS))))
    return write_both(results, "table5", csv, markdown)


TABLE5_NOTE = """\
At each depth {count} problems are distributed among the ten shipped models of the task: seeds
{seeds}.
Each was learned from random weights on depth 1 and 2 alone, and its proof of exactness is verified
again before it is tried. The problems are those of `tokens.md`, drawn with seed 0, which says why
the ListOps means differ from the paper's: ours have two or three operands, the paper's have two.
Depths 1 and 2 are those of the training, as in the paper; tokens do not count the zero vector after
each `)` of ListOps."""


def proved(task: str) -> list[Model]:
    """The shipped models of a task; a proof that no longer holds is an error."""
    folder = SHIPPED / task
    for seed in published.SEEDS:
        verify(folder / f"{seed}.proof.json", folder / f"{seed}.safetensors")
    return [load(f"{task}/{seed}") for seed in published.SEEDS]
