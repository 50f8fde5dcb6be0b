"""Write the tables that are shipped: read off every certified weights of the built-in algebras.

    python benchmarks/tables.py

Writes `exactformer/engine/shipped/`. All weights of an algebra must give the same tables, as they
are proved exact; each file lists the weights that it was read off. To be run when weights, or the
way that tables are made, have changed: then tests/test_kept.py fails.
"""

from collections.abc import Iterator

import numpy as np

from exactformer.api import load
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import BUILT_IN
from exactformer.engine.automaton import SpanAutomaton
from exactformer.engine.kept import SHIPPED, arrays_of, write_tables
from exactformer.named import SHIPPED as WEIGHTS

KINDS = ("", "/closed", "/units", "/table", "/fitted", "/dense")


def weights_of(algebra: Algebra) -> Iterator[str]:
    """The names of all that can be had without training."""
    yield from (f"constructed{kind}" for kind in KINDS)
    yield from sorted(path.stem for path in (WEIGHTS / algebra.name).glob("*.safetensors"))


def read_off_all(algebra: Algebra) -> dict[str, SpanAutomaton]:
    """The tables of those that are certified, each by what a file knows it by."""
    found: dict[str, SpanAutomaton] = {}
    for name in weights_of(algebra):
        try:
            model = load(name, algebra)
            tables = model.fast_engine("fast").automaton
        except ValueError:  # there is none of that kind, or it is not exact
            continue
        constructed = name.startswith("constructed")
        found[name if constructed else model.certify().weights_sha256] = tables
    return found


def main() -> None:
    SHIPPED.mkdir(exist_ok=True)
    for name, make in BUILT_IN.items():
        algebra = make()
        first, *others = (every := read_off_all(algebra)).values()
        for field in arrays_of(algebra):
            assert all(np.array_equal(getattr(first, field), getattr(o, field)) for o in others)
        path = SHIPPED / f"{name}.safetensors"
        write_tables(path, algebra, list(every), first)
        print(f"{path.name}: {len(first.value)} states, {len(every)} weights")


if __name__ == "__main__":
    main()
