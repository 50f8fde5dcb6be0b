"""Weights that were certified are remembered for the next process, by a hash of each and no more.

The tables of weights that were certified are those of the algebra's own values. The certificate
proves that running the weights gives every case of every operator the algebra's value, and of the
same values `build.py` makes the same automaton; so neither torch nor another check is needed. What
is kept is a hash of the weights, beside those of the algebra and of the code that certified them: a
file each in the user's folder of caches, and a list in the package for the built-in algebras.
Weights files are hashed at each use, so nothing is known of changed ones.

All that a file vouches for is that weights were certified, and in that it is trusted as the
installed code is. Whoever can write files as the user can claim it of any weights, and these are
then answered for with the algebra's values instead of their own; no file makes a value wrong. One
that says anything else than it should, or that belongs to another user, is as good as none: the
weights are certified anew. Where nothing can be written, nothing is kept.
"""

import hashlib
import os
import stat
from contextlib import suppress
from functools import cache
from pathlib import Path

from exactformer.domains.belonging import algebra_of
from exactformer.domains.catalog import domain_sha256
from exactformer.domains.domain import Domain
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.build import algebra_values, build_automaton
from exactformer.engine.choice import soon_made
from exactformer.host.atomic import write_atomically
from exactformer.weights.named import is_constructed, read_weights

FORMAT = "exactformer certified 1"
SHIPPED = Path(__file__).parent / "certified.txt"  # a `line` for each of some weights
FOLDER = "EXACTFORMER_CACHE_DIR"  # names another folder of caches
ENDING = ".certified"
MOST_KEPT = 64  # files; the oldest go

# Constructed weights that the code alone determines, so that their name stands for them. The fitted
# ones are in a file, and the numbers of the dense ones depend on torch and the processor.
BY_NAME = ("constructed", "constructed/closed", "constructed/units", "constructed/table")

# The code that decides what those are, and whether weights are certified.
PACKAGE = Path(__file__).parent.parent
DECIDING = (
    "domains",
    "weights",
    "model",
    "verify",
    "certify.py",
    "engine/loaded.py",
    "engine/read_off.py",
)


def find_tables(domain: Domain, weights: str | Path) -> SpanAutomaton | None:
    """The tables of weights, by the name a user gives them, if these are known to be certified and
    the tables are soon made; else None. Weights that are missing, or for another algebra, are a
    ValueError.
    """
    if not soon_made(domain):
        return None
    algebra = algebra_of(domain)
    by_name = is_constructed(weights)
    known_as = str(weights) if by_name else read_weights(weights, algebra).sha256
    if not is_certified(algebra, known_as):
        return None
    try:
        return build_automaton(algebra, algebra_values(algebra))
    except ValueError:  # more states than the engine takes: the transformer is to run
        return None


def is_certified(domain: Domain, weights: str) -> bool:
    """Whether weights, by their hash or one of `BY_NAME`, are known to be certified."""
    with suppress(OSError):
        if line(domain, weights).encode() in SHIPPED.read_bytes().splitlines():
            return True
    file = _file(domain, weights)
    return file is not None and _holds(*file)


def keep_certified(domain: Domain, weights: str | Path, sha256: str) -> None:
    """Store for `find_tables` that weights were certified, if a folder can be written. `weights` is
    the name a user gives them. `sha256` is the hash of those that were certified: a file of that
    name may hold others by now.
    """
    by_name = is_constructed(weights)
    if not soon_made(domain) or (by_name and weights not in BY_NAME):
        return
    if not (file := _file(domain, str(weights) if by_name else sha256)):
        return
    path, content = file
    with suppress(OSError, ValueError):  # no folder to write to: the next process certifies again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)
        files = sorted(path.parent.glob(f"*{ENDING}"), key=lambda file: file.stat().st_mtime)
        for old in files[:-MOST_KEPT]:
            old.unlink(missing_ok=True)


def line(domain: Domain, weights: str) -> str:
    """The line of a file that says that weights, by their hash or `BY_NAME`, were certified."""
    return f"{domain_sha256(domain)} {weights}"


def _file(domain: Domain, weights: str) -> tuple[Path, bytes] | None:
    """The path of the file that says that weights were certified, named by the hash of its content,
    and that content; None if there is no folder for it.
    """
    try:
        content = f"{FORMAT}\n{_code()}\n{line(domain, weights)}\n".encode()
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except (OSError, RuntimeError):  # the code is there without its source, or there is no home
        return None
    folder = Path(os.environ.get(FOLDER) or Path(caches) / "exactformer")
    return folder / f"{hashlib.sha256(content).hexdigest()}{ENDING}", content


def _holds(path: Path, content: bytes) -> bool:
    """Whether a file has this content, and belongs to this user or to root. No more of it is read
    than that, and what is no file, such as a pipe, is not waited for.
    """
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            found = os.fstat(handle)
            is_ours = stat.S_ISREG(found.st_mode) and found.st_uid in (os.geteuid(), 0)
            return is_ours and os.read(handle, len(content) + 1) == content
        finally:
            os.close(handle)
    return False


@cache
def _code() -> str:
    """A hash of the code that decides."""
    digest = hashlib.sha256()
    for path in (PACKAGE / name for name in DECIDING):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
