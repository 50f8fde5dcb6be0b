"""Functions compiled to machine code, and kept on disk for the next process.

Numba keeps what it compiled beside the source, or else in the user's folder of caches. It fails
where neither can be written, and where a file is damaged; here such a function is compiled anew.
"""

import pickle
import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba import njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

DIGEST = sha256().digest_size
VERSIONS = f"numba-{numba.__version__}-llvmlite-{llvmlite.__version__}"


def compiled(function: Callable[..., Any], *, allocates: bool = False) -> Any:
    """`function`, compiled at its first call; it gives up the interpreter's lock. One that makes no
    array has none to free: it does not count who uses them, and becomes part of what calls it. For
    a row of a few tokens, counting and calling take ten times as long as reading.
    """
    options: dict[str, Any] = {"_nrt": allocates, "forceinline": not allocates}
    dispatcher: Any = njit(nogil=True, **options)(function)
    try:
        dispatcher._cache = CheckedCache(function)
    except RuntimeError:  # Numba found no folder that it could write to
        _say_that_nothing_is_kept()
    return dispatcher


@cache
def _say_that_nothing_is_kept() -> None:
    print(
        "exactformer: what is compiled cannot be kept, so the engine starts slowly each time; "
        "NUMBA_CACHE_DIR names a folder that can be written",
        file=sys.stderr,
    )


class CheckedFiles(IndexDataCacheFile):
    """Cache files with a digest at the end, since a changed byte of machine code could do anything.
    A file that does not match its digest counts as missing.
    """

    def _dump(self, obj: Any) -> bytes:
        data = super()._dump(obj)
        return data + sha256(data).digest()

    def _load_index(self) -> dict[Any, str]:
        try:
            with open(self._index_path, "rb") as file:
                pickle.load(file)  # the version, which is not part of the digest
                _check(file.read())
            return super()._load_index()
        except Exception:  # damaged data may raise anything
            return {}

    def _load_data(self, name: str) -> Any:
        with open(self._data_path(name), "rb") as file:
            _check(file.read())
        return super()._load_data(name)


def _check(data: bytes) -> None:
    if data[-DIGEST:] != sha256(data[:-DIGEST]).digest():
        raise OSError("damaged")


@cache
def _sources_sha256(folder: Path) -> str:
    """A hash of a folder's code. Machine code contains the functions that it calls and the
    constants that it names; numba notices changes only in the file of the function itself.
    """
    return sha256(b"".join(path.read_bytes() for path in sorted(folder.glob("*.py")))).hexdigest()


class CheckedCache(FunctionCache):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        folder = Path(function.__code__.co_filename).parent
        stamp = self._impl.locator.get_source_stamp(), _sources_sha256(folder)
        # Numba has one index for all its versions, which each would begin anew.
        name = f"{self._impl.filename_base}-{VERSIONS}"
        self._cache_file = CheckedFiles(self._cache_path, name, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError:  # the folder is full, or was made read-only in the meantime
            _say_that_nothing_is_kept()
