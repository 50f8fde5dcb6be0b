"""Files and folders that get their name when they are whole: a reader never sees half of one."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def open_beside(path: Path, suffix: str) -> tuple[int, str]:
    """A file, open, and its name, which ends with the suffix after its writer's id; beside the one
    that it is to replace.
    """
    if path.exists() and not path.is_file():  # renaming would replace a folder, or /dev/null
        raise ValueError(f"{path}: expected the name of a file to write")
    prefix = f".{path.name}.{os.getpid()}."
    try:
        return tempfile.mkstemp(dir=path.parent, prefix=prefix, suffix=suffix)
    except OSError as error:
        error.filename = str(path)  # the name that was asked for
        raise


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write, beside the one that it replaces at the end."""
    handle, name = open_beside(path, f".unfinished{path.suffix}")
    os.close(handle)
    try:
        yield Path(name)
        os.chmod(name, 0o644)  # mkstemp's files are private
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, where there was none, or an empty one."""
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
