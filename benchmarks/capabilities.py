"""The page of the docs about what can be done in which notation.

    python benchmarks/capabilities.py > docs/capabilities.md

It is made from the table in exactformer/domains/capabilities.py. `tests/test_capabilities.py` tries
each cell, and holds the page against the table.
"""

import sys
from collections.abc import Iterable

from exactformer.domains.capabilities import CAPABILITIES, OF_OTHERS, Capability, refusal
from exactformer.domains.catalog import boolean
from exactformer.domains.notation import NOTATIONS
from exactformer.paper.files import table

WAYS = {"depth": ", iterations by the depth", "log": ", iterations by the logarithm"}

PAGE = """# What can be done in which notation

What can be asked of a model or of an algebra in infix, prefix, [plain](plain.md) notation, and in
[Polish and reverse Polish](polish.md). It is the same with iterations by the depth and
[by the logarithm](iterations.md), unless each has a row.

{table}

The same of domains that are no algebras, which have one way to iterate: [machines](machines.md)
over texts and over spans, [integers](integers.md), numbers with their
[lowest digit first](integers.md#lowest-digit-first), [square roots](integers.md#square-roots) and
[rearrangements](rearrangements.md).

{kinds}

Where it says no, a command ends with a message and the exit status 2, and a function with a
ValueError. The message says what to use instead:

```console exit-2
$ exactformer sample boolean --parentheses 0.5
exactformer: {message}
```

What depends on one algebra or on its weights is not in the table: certified weights for iterations
by the logarithm, operators that ignore the order of their operands for training end to end, the ten
digits for published ListOps files. [Limits](limits.md) and the pages about these things have it.
"""


def cells(capability: Capability, way: str) -> list[str]:
    """Yes for each notation, or why not."""
    return _said(capability, [notation.layer or way for notation in NOTATIONS.values()])


def others(capability: Capability) -> list[str]:
    """Yes for each kind of domain that is no algebra, or why not."""
    return _said(capability, OF_OTHERS)


def _said(capability: Capability, layers: Iterable[str]) -> list[str]:
    refused = capability.refused
    return [f"no: {refused[layer].why}" if layer in refused else "yes" for layer in layers]


def rows() -> list[list[str]]:
    """A row for each capability; one for each way to iterate where that makes a difference."""
    found = []
    for capability in CAPABILITIES.values():
        told = {way: cells(capability, way) for way in WAYS}
        if told["depth"] == told["log"]:
            found.append([capability.what, capability.reached, *told["depth"]])
        else:
            found += [[capability.what + WAYS[way], capability.reached, *told[way]] for way in WAYS]
    return found


def page() -> str:
    lines = table(["what", "with", *NOTATIONS], rows(), words=2 + len(NOTATIONS))
    has = [[c.what, c.reached, *others(c)] for c in CAPABILITIES.values()]
    kinds = "\n".join(table(["what", "with", *OF_OTHERS.values()], has, words=2 + len(OF_OTHERS)))
    message = refusal("parentheses", boolean())
    return PAGE.format(table="\n".join(lines), kinds=kinds, message=message)


if __name__ == "__main__":
    sys.stdout.write(page())
