"""Values of many lines on standard output, as lines or as JSON, however many there are."""

import json
import sys
from collections.abc import Iterable
from itertools import chain
from typing import Any

from exactformer.domains.algebra import Algebra
from exactformer.domains.formats.blocks import Kept

BAD_LINE = "(error)"  # instead of a value, none of which has a bracket in its symbol


def print_json(items: Iterable[Any], end: str = "\n") -> None:
    """Print a JSON list item by item: it may be longer than the memory is large."""
    separator = "["
    for item in items:
        sys.stdout.write(separator + json.dumps(item, ensure_ascii=False))
        separator = ", "
    print("[]" if separator == "[" else "]", end=end)


def print_outcomes(kept: Kept[Any], as_json: bool) -> None:
    """Print the value of each line by the transformer, in JSON with its iterations. A bad line is
    null in JSON, else BAD_LINE.
    """
    if not as_json:
        for block in kept:
            print(
                "".join(f"{outcome.value if outcome else BAD_LINE}\n" for outcome in block), end=""
            )
        return
    print('{"engine": "model", "values": ', end="")
    print_json((outcome and outcome.value for outcome in chain.from_iterable(kept)), end="")
    print(', "iterations": ', end="")
    print_json((outcome and outcome.iterations for outcome in chain.from_iterable(kept)), "}\n")


def print_values(kept: Kept[Any], domain: Algebra, as_json: bool) -> None:
    """Print the values of lines, given as numbers, as lines or as JSON."""
    from exactformer.evaluation.values import spelt

    if not as_json:
        words = [f"{value}\n" for value in (*domain.values, BAD_LINE)]
        for block in kept:
            print(spelt(block, words), end="")
        return
    print('{"engine": "fast", "values": [', end="")
    words = [f", {json.dumps(value, ensure_ascii=False)}" for value in (*domain.values, None)]
    started = False
    for block in kept:
        text = spelt(block, words)
        print(text if started else text.removeprefix(", "), end="")
        started = started or bool(text)
    print("]}")
