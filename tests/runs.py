"""Training runs as a user starts them, for the tests of training."""

import subprocess
import sys
from pathlib import Path

from exactformer.training.run import Observer
from exactformer.training.state import State

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "exactformer"]
ARGUMENTS = ["train", "boolean", "--out"]

Files = dict[str, bytes]


def exactformer(*arguments: str | Path, before: str = "", **options) -> subprocess.CompletedProcess:
    """The command in a process of its own; `before` is Python to run first in it."""
    command: list[str | Path] = [*COMMAND]
    if before:
        command = [sys.executable, "-c", f"{before}\nfrom exactformer.cli import main\nmain()"]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=300, **options
    )


def refused(*arguments: str | Path, **options) -> str:
    """The message of a user's mistake: on stderr, with nothing on stdout and no traceback."""
    result = exactformer(*arguments, **options)
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    return " ".join(result.stderr.replace("│", " ").split())


def files(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def weights(folder: Path) -> Files:
    return {name: data for name, data in files(folder).items() if name.endswith(".safetensors")}


def seed_list(seeds: list[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, seeds))


def forget(folder: Path, *seeds: int) -> None:
    """Make seeds of a finished run unfinished."""
    for seed in seeds:
        for kind in ("safetensors", "proof.json", "json"):
            (folder / f"{seed}.{kind}").unlink()


class Enough(Exception):
    pass


class StopAtFirstLook(Observer):
    def evaluated(self, state: State) -> None:
        raise Enough


CHECKPOINT_OFTEN = "import exactformer.training.run as run; run.CHECKPOINT_SECONDS = 0.0"
