"""Write the list of weights that are shipped as certified, after certifying each of them.

    python benchmarks/certified.py

Writes `exactformer/engine/certified.txt`: a line for each weights of a built-in algebra that can be
had without training, namely those that the code constructs and all shipped files, also the infix
ones that serve plain notation. To be run when weights, or what constructs them, have changed: then
tests/test_kept.py fails.
"""

from collections.abc import Iterator

from exactformer.api import load
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import BUILT_IN
from exactformer.engine.kept import BY_NAME, SHIPPED, line
from exactformer.host.atomic import write_atomically
from exactformer.weights.named import SHIPPED as WEIGHTS
from exactformer.weights.named import is_constructed

HEADER = "# Hash of an algebra, and weights for it that were certified: by hash, or by name."


def certified_lines(algebra: Algebra) -> Iterator[str]:
    """The lines of all weights of an algebra that are certified."""
    files = sorted(WEIGHTS.glob("*/*.safetensors"))
    for name in (*BY_NAME, *(f"{file.parent.name}/{file.stem}" for file in files)):
        try:
            model = load(name, algebra)
        except ValueError:  # they cannot be constructed, or are for another algebra
            continue
        if (certificate := model.certify()).verdict == "exact":
            yield line(algebra, name if is_constructed(name) else certificate.weights_sha256)


def main() -> None:
    lines = [HEADER]
    for name, make in BUILT_IN.items():
        found = list(certified_lines(make()))
        print(f"{name}: {len(found)} weights")
        lines += found
    write_atomically(SHIPPED, "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
