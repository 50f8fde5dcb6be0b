"""Plain notation: model and engine beside the oracle and Python's own eval, and on long texts.

    python benchmarks/plain.py

Writes `results/plain.md`, or another file (`--out`). Every text of up to 9 tokens of boolean-plain
and of up to 5 of arithmetic-plain, and of the algebras in examples/plain/; `--count` random longer
ones, drawn with `--seed`; texts of a million tokens. `--rows FILE` also scores published rows of
Boolean expressions, each with its label after a tab. Exit status 1 if anything is wrong.
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from reports import heading, log, parser

from exactformer.api import Model, construct, load
from exactformer.domains.algebra import Algebra
from exactformer.domains.catalog import arithmetic_plain, boolean_plain
from exactformer.domains.definition import load_algebra
from exactformer.domains.expression import Expression
from exactformer.domains.formats.blocks import in_blocks
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_length
from exactformer.domains.strahler import strahler
from exactformer.evaluation.score import Task, score
from exactformer.paper.files import table, write

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "plain"
DEPTHS = range(3, 13)
SHARES = (0.0, 0.2, 0.8)  # of operands with parentheses that they do not need
AT_ONCE = 200_000  # tokens
LONG = 1_000_000  # tokens


@dataclass(frozen=True)
class Subject:
    """An algebra, its models, up to how many tokens all texts are tried, and what Python makes of
    a text, if that has the same grammar.
    """

    algebra: Algebra
    models: dict[str, Model]
    tokens: int
    python: Callable[[Expression], str] | None


def subjects() -> Iterator[Subject]:
    boolean, arithmetic = boolean_plain(), arithmetic_plain()
    words = {"&": " and ", "|": " or ", "~": " not ", "1": "True", "0": "False"}

    def as_formula(expression: Expression) -> str:
        symbols = (boolean.vocabulary[token] for token in expression.ids.tolist())
        return str(int(eval("".join(words.get(symbol, symbol) for symbol in symbols).strip())))

    def as_number(expression: Expression) -> str:
        return str(eval(str(expression)) % len(expression.algebra.values))

    def models(algebra: Algebra, *shipped: str) -> dict[str, Model]:
        return {"constructed": construct(algebra)} | {name: load(name, algebra) for name in shipped}

    yield Subject(boolean, models(boolean, "boolean/7520"), 9, as_formula)
    yield Subject(arithmetic, models(arithmetic, "arithmetic/7520"), 5, as_number)
    modulo7, implication = (
        load_algebra(EXAMPLES / f"{n}.toml") for n in ("modulo7", "implication")
    )
    yield Subject(modulo7, models(modulo7), 4, as_number)
    yield Subject(implication, models(implication), 7, None)


@dataclass
class Counts:
    texts: int = 0
    tokens: int = 0
    longest: int = 0
    by_model: int = 0  # wrong values,
    by_engine: int = 0
    by_python: int = 0
    iterations: int = 0  # that are not the Strahler number
    most: int = 0

    def add(self, subject: Subject, expressions: list[Expression]) -> None:
        values = [evaluate(expression) for expression in expressions]
        numbers = [strahler(expression) for expression in expressions]
        texts = [str(expression) for expression in expressions]
        for model in subject.models.values():
            found = model.outcomes(expressions)
            self.by_model += sum(o.value != v for o, v in zip(found, values, strict=True))
            self.iterations += sum(o.iterations != n for o, n in zip(found, numbers, strict=True))
            fast = model.evaluate(texts, "fast")
            self.by_engine += sum(f != v for f, v in zip(fast, values, strict=True))
        if subject.python:
            asked = map(subject.python, expressions)
            self.by_python += sum(p != v for p, v in zip(asked, values, strict=True))
        self.texts += len(expressions)
        self.tokens += sum(map(len, expressions))
        self.longest = max(self.longest, *map(len, expressions))
        self.most = max(self.most, *numbers)

    @property
    def wrong(self) -> int:
        return self.by_model + self.by_engine + self.by_python + self.iterations


def every_text(subject: Subject) -> Counts:
    counts = Counts()
    texts = (
        expression
        for length in range(1, subject.tokens + 1)
        for expression in enumerate_length(subject.algebra, length)
    )
    for block in in_blocks(texts, len, AT_ONCE):
        counts.add(subject, block)
    return counts


def random_texts(subject: Subject, count: int, rng: np.random.Generator) -> Counts:
    counts = Counts()
    kinds = [(depth, share) for depth in DEPTHS for share in SHARES]
    for number, (depth, share) in enumerate(kinds):
        some = count * (number + 1) // len(kinds) - count * number // len(kinds)
        drawn = draw(subject.algebra, depth, some, rng, parentheses=share)
        counts.add(subject, drawn)
        log(f"{subject.algebra.name}: {counts.texts:,} of {count:,} random texts")
    return counts


def long_texts(algebra: Algebra, rng: np.random.Generator) -> Iterator[tuple[str, Expression]]:
    """A million tokens each: no parentheses; random trees with few; one chain of parentheses."""
    values, uses = algebra.value_ids, algebra.declared_levels
    binary, prefix = (np.flatnonzero(uses[use]) for use in (1, 0))

    def alternating(tokens: int) -> list[int]:
        operands = rng.choice(values, size=tokens // 2)
        operators = rng.choice(binary, size=tokens // 2)
        return np.column_stack([operands, operators]).ravel().tolist()

    def expression(ids: list[int]) -> Expression:
        return Expression(algebra, np.array(ids, dtype=np.int16))

    yield "no parentheses", expression([*alternating(LONG - 1), int(rng.choice(values))])
    parts: list[int] = []
    while len(parts) < LONG:
        (tree,) = draw(algebra, 16, 1, rng, parentheses=0.1)
        parts += (0, *tree.ids.tolist(), 1, int(rng.choice(binary)))
    yield "random trees", expression([*parts, int(rng.choice(values))])
    chain = [token for _ in range(LONG // 4) for token in (*alternating(2), 0)]
    chain += [int(rng.choice(values)), *[1] * (LONG // 4)]
    yield "a chain of parentheses", expression(chain)
    if len(prefix):
        signs = rng.choice(prefix, size=LONG - 1).tolist()
        yield "prefix operators", expression([*signs, int(rng.choice(values))])


def long_rows(subject: Subject, rng: np.random.Generator) -> Iterator[tuple[list[str], bool]]:
    name, model = list(subject.models.items())[-1]
    model(subject.algebra.values[0])  # compiles the engine's pass
    for shape, expression in long_texts(subject.algebra, rng):
        value, text = evaluate(expression), str(expression)
        begun = time.perf_counter()
        (outcome,) = model.outcomes([expression])
        by_model = time.perf_counter() - begun
        found = model.evaluate(text, "fast")
        by_engine = time.perf_counter() - begun - by_model
        right = (outcome.value, found, outcome.iterations) == (value, value, strahler(expression))
        cells = [subject.algebra.name, name, shape, f"{len(expression):,}"]
        cells += [f"{expression.nesting.max():,}", f"{outcome.iterations}"]
        cells += [f"{by_model:.1f}", f"{by_engine:.3f}", "yes" if right else "NO"]
        log(" ".join(cells))
        yield cells, right


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--count", type=int, default=100_000, help="random texts of an algebra")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--rows", type=Path, help="published rows of Boolean expressions")
    options.add_argument("--out", type=Path, default=Path("results/plain.md"))
    arguments = options.parse_args()
    rng, fine = np.random.default_rng(arguments.seed), True
    every = list(subjects())
    lines = [heading("Plain notation")]
    head = ["algebra", "texts", "tokens in all", "longest", "wrong by the model", "by the engine"]
    head += ["by Python", "iterations not the Strahler number", "most iterations"]
    rows: list[list[str]] = []
    for subject in every:
        for which, counts in (
            (f"{subject.algebra.name}, all of up to {subject.tokens}", every_text(subject)),
            (f"{subject.algebra.name}, random", random_texts(subject, arguments.count, rng)),
        ):
            python = f"{counts.by_python}" if subject.python else "–"
            cells = [which, f"{counts.texts:,}", f"{counts.tokens:,}", f"{counts.longest:,}"]
            cells += [f"{counts.by_model}", f"{counts.by_engine}", python]
            rows.append([*cells, f"{counts.iterations}", f"{counts.most}"])
            fine &= not counts.wrong
            log(" ".join(rows[-1]))
    lines += ["Model and engine run each text with each of these weights; the oracle says what is"]
    lines += ["right:", "", *(f"- {s.algebra.name}: {', '.join(s.models)}" for s in every), ""]
    lines += [*table(head, rows), ""]
    head = ["algebra", "weights", "text", "tokens", "parentheses deep", "iterations"]
    head += ["model, seconds", "engine, seconds", "all right"]
    rows = []
    for subject in every:
        for cells, right in long_rows(subject, rng):
            rows.append(cells)
            fine &= right
    lines += [f"Long texts, on the CPU (threads of torch: {torch.get_num_threads()}):", ""]
    lines += [*table(head, rows, words=3), ""]
    if arguments.rows:
        head = ["file", "weights", "engine", "rows right"]
        rows = []
        for name in every[0].models:
            for engine in ("fast", "model"):
                found = score(Task(boolean_plain(), arguments.rows, None, name, engine=engine))
                fine &= found.correct == found.total
                total = f"{found.correct} of {found.total}"
                rows.append([arguments.rows.name, name, engine, total])
        lines += ["Published rows, as they stand:", "", *table(head, rows, words=3), ""]
    print(write(arguments.out, "\n".join(lines)))
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
