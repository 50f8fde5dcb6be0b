"""What folders of problems share: they appear when they are whole, and their splits.

Problems of depth 1 and 2 are to learn from, as in the paper; those to be tested on are deeper.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from exactformer.domains.algebra import Algebra
from exactformer.domains.plain import listed
from exactformer.problems.draw import Problem, problems

TRAINING = (1, 2)  # the depths to learn from


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill; it has its name only when all is in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder}: expected the name of a new folder, found something there")
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        yield unfinished
        unfinished.chmod(0o755)  # mkdtemp's folders are private
        os.replace(unfinished, folder)
    except BaseException:
        shutil.rmtree(unfinished)
        raise


def splits(
    algebra: Algebra, depths: Sequence[int], count: int, seed: int, *, balanced: bool
) -> dict[str, list[Problem]]:
    """`test` is what `problems` gives; `validation` has other expressions of the same depths."""
    if shallow := [depth for depth in depths if depth <= TRAINING[-1]]:
        raise ValueError(
            f"expected depths of {TRAINING[-1] + 1} or more, found {shallow[0]}: "
            f"those of depth {listed([str(d) for d in TRAINING], 'and')} are to learn from"
        )
    train, test, other = (
        list(problems(algebra, each, count, each_seed, balanced=balanced))
        for each, each_seed in ((TRAINING, seed), (depths, seed), (depths, seed + 1))
    )
    tested = {problem.expression for problem in test}
    validation = [problem for problem in other if problem.expression not in tested]
    return {"train": train, "validation": validation, "test": test}
