"""The paper's tables beside ours: one function for each, which writes its files and names them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from exactformer.domains.catalog import CATALOG, listops
from exactformer.domains.sampling import draw, mean_tokens
from exactformer.paper import published
from exactformer.weightfile import write_atomically

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


def tokens(results: Path, seed: int = 0) -> list[Path]:
    """atab:performance_alldepth, the column of mean tokens by depth."""
    count = published.PROBLEMS_PER_DEPTH
    two_operands = mean_tokens(listops(max_fan_in=2), 30, leaf=0.0)
    csv = ["task,depth,paper_mean,expected_mean,measured_mean,measured_max,two_operands_mean"]
    markdown = ["# Tokens by depth", "", "Made by `exactformer reproduce tokens`."]
    for task, paper_means in published.MEAN_TOKENS.items():
        algebra = CATALOG[task]()
        rng = np.random.default_rng(seed)
        extra = task == "listops"
        header = ["depth", "paper", "ours, expected", "ours, mean", "ours, max"]
        header += ["two operands, leaf 0"] * extra
        markdown += ["", f"## {task}", "", _row(header), _row(["---:"] * len(header))]
        means = mean_tokens(algebra, len(paper_means))
        for depth, paper_mean in enumerate(paper_means, start=1):
            lengths = [len(expression) for expression in draw(algebra, depth, count, rng)]
            numbers = [paper_mean, means[depth], float(np.mean(lengths))]
            cells = [str(depth), *(f"{number:.2f}" for number in numbers), str(max(lengths))]
            cells += [f"{two_operands[depth]:.2f}"] * extra
            markdown.append(_row(cells))
            csv.append(",".join([task, *cells, *[""] * (not extra)]))
    whole = sum(round(count * (mean - 1)) % 4 == 0 for mean in published.MEAN_TOKENS["listops"])
    markdown += ["", TOKENS_NOTE.format(count=count, seed=seed, whole=whole)]
    return [
        _write(results / "tokens.csv", "# exactformer reproduce tokens\n" + "\n".join(csv) + "\n"),
        _write(results / "tokens.md", "\n".join(markdown)),
    ]


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text)
    return path


TABLES: dict[str, Callable[[Path], list[Path]]] = {"tokens": tokens}
