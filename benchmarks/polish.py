"""Polish notation: the gate learned from texts alone, and texts of a million tokens.

    python benchmarks/polish.py > results/polish.md

`--seeds N` takes other numbers of data sets. Exit status 1 if a gate that was learned is not the
declared one, or if a value is wrong.
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from reports import heading, parser

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for `tests`

import exactformer as ef
from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.expression import Expression
from exactformer.domains.sampling import enumerate_length
from exactformer.paper.files import table
from exactformer.problems.accuracy import interval_in_words
from exactformer.training.arities import Undetermined, learn_arities
from tests.polish_algebras import CALCULATOR, LISTOPS, random_text, stack_value

LONGEST = 5  # tokens of the texts that gates are learned from
SIZES = (5, 10, 15, 20, 30, 40)
OPERATORS = (1_000, 10_000, 100_000, 400_000)


def reverse(algebra: Algebra) -> Algebra:
    """The algebra in reverse Polish notation."""
    name = algebra.name.replace("polish", "reverse-polish")
    return Algebra(name, algebra.values, algebra.operators, "reverse-polish")


LEARNED = [
    ef.boolean_polish(),
    reverse(ef.boolean_polish()),
    CALCULATOR,
    ef.arithmetic_polish(),
    reverse(ef.arithmetic_polish()),
    LISTOPS,
]


def learned(algebra: Algebra, count: int, seed: int) -> bool | None:
    """Whether the gate learned from so many different texts is the declared one; None if the texts
    are refused, or lack a symbol.
    """
    rng = np.random.default_rng([seed, count, algebra.notation.operators_first])
    texts: dict[bytes, list[str]] = {}
    while len(texts) < count:
        ids = drawn(algebra, rng)
        texts[ids.tobytes()] = [algebra.vocabulary[token] for token in ids.tolist()]
    try:
        found = learn_arities([*texts.values()])
    except Undetermined:
        return None
    declared = algebra.declared_gates
    counts = declared["G_A"][FIRST_VALUE:].tolist()
    wanted = dict(zip(algebra.vocabulary[FIRST_VALUE:], counts, strict=True))
    right = found.counts.items() <= wanted.items() and found.side == declared["side"][0]
    return right if not right or len(found.counts) == len(wanted) else None


def drawn(algebra: Algebra, rng: np.random.Generator) -> np.ndarray:
    """A text of up to LONGEST tokens: its length uniform, then the text among all of that shape."""
    shapes = shapes_of(algebra)
    length = list(shapes)[rng.integers(len(shapes))]
    ids = shapes[length][rng.integers(len(shapes[length]))].copy()
    values = ids == FIRST_VALUE
    ids[values] = rng.integers(FIRST_VALUE, algebra.first_operator, values.sum())
    return ids


KEPT: dict[str, dict[int, list[np.ndarray]]] = {}


def shapes_of(algebra: Algebra) -> dict[int, list[np.ndarray]]:
    """Every text of up to LONGEST tokens with the first value only, by length."""
    if algebra.name not in KEPT:
        one = Algebra("one", algebra.values[:1], [
            ef.Operator(op.symbol, op.arities, {(0,) * op.arities[0]: 0})
            for op in algebra.operators
        ], algebra.notation)  # fmt: skip
        shift = len(algebra.values) - 1
        found = {
            length: [
                np.where(text.ids > FIRST_VALUE, text.ids + shift, text.ids)
                for text in enumerate_length(one, length)
            ]
            for length in range(1, LONGEST + 1)
        }
        KEPT[algebra.name] = {length: texts for length, texts in found.items() if texts}
    return KEPT[algebra.name]


def learning(seeds: int) -> Iterator[list[str]]:
    """A row for each algebra and number of texts."""
    for algebra in LEARNED:
        shapes = shapes_of(algebra)
        most = sum(
            len(algebra.values) ** int((ids == FIRST_VALUE).sum())
            for texts in shapes.values()
            for ids in texts
        )
        for count in SIZES:
            if count > most // 2:
                continue
            found = [learned(algebra, count, seed) for seed in range(seeds)]
            right, wrong = found.count(True), found.count(False)
            yield [
                algebra.name, str(algebra.notation), f"{len(algebra.vocabulary) - 2}", f"{count}",
                f"{right} of {seeds}", interval_in_words(right, seeds), f"{wrong}",
            ]  # fmt: skip


def long_texts() -> Iterator[list[str]]:
    """A row for each algebra and size of a text."""
    rng = np.random.default_rng(0)
    for algebra, name in ((LISTOPS, "listops/7520"), (CALCULATOR, "constructed")):
        model = ef.load(name, algebra)
        model.evaluate(algebra.values[0], "fast")
        for operators in OPERATORS:
            ids = random_text(algebra, operators, rng)
            text = Expression(algebra, np.array(ids, dtype=np.int16))
            began = time.perf_counter()
            (outcome,) = model.outcomes([text])
            between = time.perf_counter()
            fast = model.evaluate(text, "fast")
            ended = time.perf_counter()
            wanted, number = stack_value(algebra, ids), ef.strahler(text)
            right = outcome.value == fast == wanted and outcome.iterations == number
            yield [
                algebra.name, name, f"{len(ids):,}", f"{text.depth:,}", f"{outcome.iterations}",
                f"{between - began:.2f} s", f"{ended - between:.3f} s", "yes" if right else "NO",
            ]  # fmt: skip


def main() -> int:
    arguments = parser(__doc__)
    arguments.add_argument("--seeds", type=int, default=100)
    seeds = arguments.parse_args().seeds
    print(heading("Polish notation"))
    gates = list(learning(seeds))
    header = ["algebra", "notation", "symbols", "texts", "gate learned", "95%", "wrong"]
    print("\n".join(table(header, gates, words=2)))
    print(f"""
The gate and the side are learned from different texts of up to {LONGEST} tokens, without values and
without being told which symbol is an operator (`exactformer/training/arities.py`); {seeds} sets of
texts each. A set counts as learned if the gate is the declared one for every symbol. All others are
refused, because the texts leave more than one gate, or lack a symbol. *Wrong* are gates that were
learned and are not the declared ones. Intervals are Wilson's, over the sets.
""")
    long = list(long_texts())
    header = [
        "algebra",
        "weights",
        "tokens",
        "depth",
        "iterations",
        "transformer",
        "engine",
        "right",
    ]
    print("\n".join(table(header, long, words=2)))
    print("""
Random texts, parsed before the clock starts. *Right* are those of which the transformer and the
engine both give the value of a loop that shares nothing with them, with as many iterations as the
Horton-Strahler number of the tree.
""")
    return 1 if any(int(row[-1]) for row in gates) or any(row[-1] == "NO" for row in long) else 0


if __name__ == "__main__":
    sys.exit(main())
