"""Tables that were read off certified weights, kept for the next process: it then needs no torch.

Those of the built-in algebras are shipped; others are kept in the user's folder of caches, under a
name that comes from all that decides about them: the algebra, the weights, the format and the code
that makes tables. The hash in a file shows damage, but whoever can write there can write a hash,
too. So no value is taken on trust: tables must have the grammar of the algebra and its value in
every case, which is what certified weights were proved to have. All that a file vouches for is that
the weights were certified, and in that it is trusted as the installed code is. A file that is not
like that is as good as none: tables are made anew. Where they cannot be kept, they are not.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from exactformer.atomic import write_atomically
from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.catalog import algebra_sha256
from exactformer.domains.grammar import CLOSED, DONE, START, TOP
from exactformer.domains.notation import Notation
from exactformer.domains.syntax import grammar_of
from exactformer.engine.automaton import REFUSED, PlainAutomaton, SpanAutomaton
from exactformer.engine.choice import soon_made
from exactformer.engine.plain import plain_automaton
from exactformer.named import find_weights, is_constructed
from exactformer.weightfile import (
    WeightFile,
    content_sha256,
    pack_header,
    read_safetensors,
)

FORMAT = "exactformer tables 1"
SHIPPED = Path(__file__).parent / "shipped"  # DOMAIN.safetensors
FOLDER = "EXACTFORMER_CACHE_DIR"  # names another folder of caches
MOST_KEPT = 64  # files; the oldest go

# What decides about tables, beside the algebra and the weights.
PACKAGE = Path(__file__).parent.parent
MAKERS = (
    *("domains", "model", "verify", "certify.py"),
    *("engine/automaton.py", "engine/plain.py", "engine/read_off.py"),
)


def find_tables(algebra: Algebra, weights: str) -> SpanAutomaton | None:
    """The kept tables of weights, by the name a user gives them; None if there are none."""
    identity = _identity(algebra, weights)
    if identity is None:
        return None
    shipped = read_tables(SHIPPED / f"{algebra.name}.safetensors", algebra, identity)
    if shipped or not (path := _path(algebra, identity)):
        return shipped
    return read_tables(path, algebra, identity)


def keep_tables(algebra: Algebra, weights: str, tables: SpanAutomaton) -> None:
    """Store tables for `find_tables`, if a folder for them can be written."""
    identity = _identity(algebra, weights)
    if identity is None or not (path := _path(algebra, identity)):
        return
    with suppress(OSError, ValueError):  # no folder to write to: the next process makes them again
        path.parent.mkdir(parents=True, exist_ok=True)
        write_tables(path, algebra, [identity], tables)
        files = sorted(path.parent.glob("*.safetensors"), key=lambda file: file.stat().st_mtime)
        for old in files[:-MOST_KEPT]:
            old.unlink(missing_ok=True)


def write_tables(
    path: Path, algebra: Algebra, weights: Sequence[str], tables: SpanAutomaton
) -> None:
    """Write tables to a file; `weights` are those that they belong to, by hash, or by name if
    constructed.
    """
    arrays = {name: np.ascontiguousarray(getattr(tables, name)) for name in arrays_of(algebra)}
    header = {"format": FORMAT, "algebra": algebra_sha256(algebra), "weights": list(weights)}
    header["sha256"] = content_sha256(header, arrays)
    write_atomically(path, save(arrays, pack_header(header)))


def read_tables(path: Path, algebra: Algebra, weights: str) -> SpanAutomaton | None:
    """Read tables from a file; None if it is missing, damaged, or for other weights."""
    try:
        header, arrays = read_safetensors(path, "np", FORMAT)
        found = header.pop("sha256", None)
        if (
            found != content_sha256(header, arrays)
            or header.get("algebra") != algebra_sha256(algebra)
            or not isinstance(header.get("weights"), list)
            or weights not in header["weights"]
            or set(arrays) != set(arrays_of(algebra))
        ):
            return None
        kind = PlainAutomaton if algebra.notation is Notation.PLAIN else SpanAutomaton
        tables = kind(**arrays, n_values=len(algebra.values))
        return tables if fits(algebra, tables) else None
    except (OSError, ValueError, TypeError):  # a forged header may hold anything
        return None


def arrays_of(algebra: Algebra) -> tuple[str, ...]:
    """The names of the arrays of an algebra's automaton."""
    plain = algebra.notation is Notation.PLAIN
    return ("step", "value", "grammar", *(("whole",) if plain else ()))


def fits(algebra: Algebra, tables: SpanAutomaton) -> bool:
    """Whether tables accept what the grammar does, with the algebra's value in every case."""
    if algebra.notation is Notation.PLAIN:
        return _are_those_of(algebra, tables)
    return (
        _has_shape(algebra, tables)
        and _has_grammar(algebra, tables)
        and _forgets_order(algebra, tables)
        and _has_values(algebra, tables)
    )


def _are_those_of(algebra: Algebra, tables: SpanAutomaton) -> bool:
    """Whether these are the tables of an algebra in plain notation. They are made again from the
    values of its spans, which is fast, and compared.
    """

    def span_values(operator: int, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        table = algebra.operators[operator - algebra.first_operator]
        return np.array([table(key) for key in keys.tolist()], dtype=np.int32)

    made = plain_automaton(algebra, span_values)
    return all(
        getattr(tables, name).dtype == np.int32
        and np.array_equal(getattr(tables, name), getattr(made, name))
        for name in arrays_of(algebra)
    )


def _has_shape(algebra: Algebra, tables: SpanAutomaton) -> bool:
    step, value, grammar = tables.step, tables.value, tables.grammar
    states = len(value) if value.ndim == 1 else 0
    return (
        states > tables.start
        and all(array.dtype == np.int32 for array in (step, value, grammar))
        and step.shape == (states, len(algebra.vocabulary))
        and grammar.shape == (states,)
        and bool(((step >= REFUSED) & (step < states)).all())
        and bool(((value >= REFUSED) & (value < tables.n_values)).all())
        and bool(((grammar >= 0) & (grammar < len(grammar_of(algebra).ends))).all())
    )


def _has_grammar(algebra: Algebra, tables: SpanAutomaton) -> bool:
    """Whether each step is one of the grammar, and none of those is missing."""
    grammar, first = grammar_of(algebra), algebra.first_operator
    following = np.full((len(grammar.ends), len(algebra.vocabulary)), CLOSED, dtype=np.int32)
    following[:, FIRST_VALUE:first] = np.array(grammar.after_operand)[:, None]
    for state, operators in enumerate(grammar.after_operator):
        for token, after in operators.items():
            following[state, token] = after
    reached = np.where(tables.step == REFUSED, CLOSED, tables.grammar[tables.step])
    whole = 1 + np.arange(tables.n_values)  # the states after a whole expression, by its value
    return (
        bool((reached == following[tables.grammar]).all())
        and bool(((tables.value != REFUSED) == np.array(grammar.complete)[tables.grammar]).all())
        and bool((tables.step[0, FIRST_VALUE:first] == whole).all())
        and tables.grammar[0] == TOP
        and bool((tables.grammar[whole] == DONE).all())
        and tables.grammar[tables.start] == START
    )


def _forgets_order(algebra: Algebra, tables: SpanAutomaton) -> bool:
    """Whether any two operands lead to the same state in either order, so that one order of each
    case is enough; where every order is a case, nothing is required.
    """
    if _every_order(algebra):
        return True
    none = np.full((1, tables.step.shape[1]), REFUSED, dtype=np.int32)
    one = tables.step[:, FIRST_VALUE : algebra.first_operator]
    two = np.concatenate([tables.step, none])[one, FIRST_VALUE : algebra.first_operator]
    return bool((two == two.transpose(0, 2, 1)).all())


def _has_values(algebra: Algebra, tables: SpanAutomaton) -> bool:
    for o, operands, results in algebra.case_arrays(every_order=_every_order(algebra)):
        operator = np.full(len(operands), algebra.first_operator + o)
        state = np.full(len(operands), tables.start)
        for token in algebra.notation.arrange(operator, [*(FIRST_VALUE + operands.T)]):
            state = tables.step[state, token]  # never refused: the grammar was checked
        if (tables.value[state] != results).any():
            return False
    return True


def _every_order(algebra: Algebra) -> bool:
    """Whether every order of operands is a case: if order matters, or if operands are read before
    their operator, since order may matter until that is known.
    """
    return algebra.ordered or algebra.notation.operands_before(2) > 0


def _identity(algebra: Algebra, weights: str) -> str | None:
    """The hash of weights in a file; constructed ones are known by their name. None for weights of
    another algebra, and where tables take long to make; a ValueError for a file without weights.
    """
    if not soon_made(algebra):
        return None
    if is_constructed(weights):
        return weights
    file = WeightFile.read(find_weights(weights, algebra.name))
    return file.sha256 if file.algebra == algebra else None


def _path(algebra: Algebra, identity: str) -> Path | None:
    """Path of the file in which the tables are kept; None if there is no folder for it."""
    try:
        key = [FORMAT, _makers(), algebra_sha256(algebra), identity]
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except (OSError, RuntimeError):  # the code is there without its source, or there is no home
        return None
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()
    folder = os.environ.get(FOLDER) or Path(caches) / "exactformer"
    return Path(folder) / f"{name}.safetensors"


@cache
def _makers() -> str:
    """A hash of the code that makes tables."""
    digest = hashlib.sha256()
    for path in (PACKAGE / name for name in MAKERS):
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()
