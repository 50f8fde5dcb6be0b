"""Files and folders that get their name when they are whole: a reader never sees half of one.

Until then they are hidden beside it, as `.NAME.PROCESS.RANDOM.unfinished`, locked by their writer.
What a killed writer left there is removed by the next process that writes into the same folder.
"""

import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

UNFINISHED = re.compile(r"\..+\.(\d+)\.\w{8}\.unfinished(\.[^.]*)?")


def write_atomically(path: Path, data: bytes | str) -> None:
    """Write to a temporary name, then rename: a reader sees the old file or the new, never half."""
    with new_file(Path(path)) as unfinished:
        unfinished.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A file to write, which replaces the one of this name at the end. Its mode is that of any new
    file, as the umask has it. An OSError on the way, such as of a full disk, names the file.
    """
    if path.exists() and not path.is_file():  # renaming would replace a folder, or /dev/null
        raise ValueError(f"{path}: expected the name of a file to write")
    with _naming(path):
        _tidy(path.parent)
        unfinished = _beside(path, path.suffix)
        handle = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _lock(handle)
            yield unfinished
            os.fsync(handle)
            os.replace(unfinished, path)
        except BaseException:
            unfinished.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A folder to fill, which gets its name at the end; there must be none yet, or an empty one."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder}: expected the name of a new folder, found something there")
    with _naming(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        _tidy(folder.parent)
        unfinished = _beside(folder)
        unfinished.mkdir()
        handle = os.open(unfinished, os.O_RDONLY)
        try:
            _lock(handle)
            yield unfinished
            os.replace(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
        finally:
            os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove what writers that were killed have left; those that live are let be, also those on
    another machine or in another container, whose processes cannot be seen from here.
    """
    for name in os.listdir(folder):
        found = UNFINISHED.fullmatch(name)
        if found and not _is_alive(int(found[1])) and not _is_locked(folder / name):
            with suppress(OSError):  # another process was quicker
                left = folder / name
                shutil.rmtree(left) if left.is_dir() else left.unlink()


@cache
def _tidy(folder: Path) -> None:
    """Once for each folder: there may be thousands of files in it, and as many to write."""
    with suppress(OSError):  # one that cannot be listed may still be written to
        remove_unfinished(folder)


def _beside(path: Path, suffix: str = "") -> Path:
    """A name that nothing has yet, and that says who writes it."""
    return path.parent / f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.unfinished{suffix}"


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Let errors of the system name what was asked for: a full disk does not say for which file,
    and a hidden name tells a user nothing.
    """
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(path), None
        raise


def _lock(handle: int) -> None:
    with suppress(OSError):  # not every file system has locks
        fcntl.flock(handle, fcntl.LOCK_EX)


def _is_locked(path: Path) -> bool:
    """Whether a writer holds it, or whether that cannot be known."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it lives, and is another user's
    return True
