"""The JSON that the page works with, as plain data: from the server, or written into a file.

models    {"first": {"algebra", "weights"}, "limits": {...}, "algebras": [{"name", "layers",
          "vocabulary", "kinds": the type of each token, "weights": names, "example"}]}
trace     what `exactformer trace --json` prints ("expression", "steps", "value"), and "layer", its
          name; "said": of each step {"rows": {name: a cell for each position}, "events":
          sentences}, as the text of the trace has them; "algebra", "weights", "iterations",
          "depth", "tokens" at the start, "parenthesized": those with the parentheses that
          precedence stands for, and "expected": the oracle's value
weights   {"algebra", "weights", "origin", "activation", "parameters", "vocabulary", "arrays":
          {name: {"shape", "numbers": at most the first 2,000 rows and columns}}, with NAME_logits
          beside a discrete NAME, "certificate": what `exactformer certify --json` prints, less
          the algebra; or {"verdict": "unfinished", "seconds"} where it takes longer than that}
sample    {"expression", "value", "tokens"}: a random expression of an exact depth, from a seed
"""

import time
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, mean_tokens
from exactformer.domains.syntax import parse
from exactformer.explorer.certifier import Certify
from exactformer.explorer.choices import Choices, Subject
from exactformer.model.iterations import Iterations, values_tried
from exactformer.trace import EMPTY_POSITION, Explained
from exactformer.trace.palette import kind_of

MOST_CHARACTERS = 20_000  # of the text of an expression
MOST_TOKENS = 2_000  # of an expression: the page stays quick well beyond a thousand
MOST_NUMBERS = 2_000_000  # in a trace: about twenty megabytes of JSON
MOST_SECONDS = 10  # for a trace
MOST_TRIED = 60_000_000  # numbers of every value in every position: up to ten seconds
MOST_ROWS = 2_000  # and columns of a matrix
DEEPEST = 1_000  # of a random expression

EXAMPLES = {  # the paper's, where a task is its own; any other algebra starts with a random one
    "boolean": "((1|0)&(~0))",
    "arithmetic": "(((1+2)*(3+4))+(5*(6+7)))",
    "listops": "( MAX ( MIN 8 3 5 ) ( SM 4 7 6 ) )",
    "boolean-plain": "~(1&0)&1|0&~~(1|0)",
    "arithmetic-plain": "1+2*3+4*(5+6)*7",
}
EXAMPLE_DEPTH = 3


class TooLarge(ValueError):
    """Raised for an expression that is well formed but too large to be drawn."""


def models(choices: Choices, only: Subject | None = None) -> dict[str, Any]:
    """The algebras and weights that can be chosen; in a saved file, `only` those that it shows."""
    algebra, weights = choices.first
    offered = (
        {only.algebra_name: [only.weights_name]}
        if only
        else {name: choices.weights(name) for name in choices.algebras}
    )
    return {
        "first": {"algebra": algebra, "weights": weights},
        "limits": {"characters": MOST_CHARACTERS, "tokens": MOST_TOKENS, "depth": DEEPEST},
        "algebras": [_algebra(choices, name, weights) for name, weights in offered.items()],
    }


def _algebra(choices: Choices, name: str, weights: list[str]) -> dict[str, Any]:
    algebra = choices.algebra(name)
    example = EXAMPLES.get(name) or str(
        draw(algebra, EXAMPLE_DEPTH, 1, np.random.default_rng(0))[0]
    )
    return {
        "name": name,
        "layers": sorted({algebra.layer(iterations) for iterations in get_args(Iterations)}),
        "vocabulary": list(algebra.vocabulary),
        "kinds": [kind_of(algebra, symbol) for symbol in algebra.vocabulary],
        "weights": weights,
        "example": example,
    }


def trace(subject: Subject, text: str, iterations: Iterations = "depth") -> dict[str, Any]:
    """The trace of an expression for the page. Raises ExpressionError for text that is no
    expression, TooLarge for one that is too long to draw, and a ValueError for iterations by the
    logarithm with weights that are not exact.
    """
    if len(text) > MOST_CHARACTERS:
        raise TooLarge(
            f"this text has {len(text):,} characters, too many to draw: "
            f"the page takes {MOST_CHARACTERS:,}"
        )
    expression = parse(subject.model.algebra, text)
    if len(expression) > MOST_TOKENS:
        raise TooLarge(
            f"this expression has {len(expression):,} tokens, too many to draw: the page takes "
            f"{MOST_TOKENS:,}; exactformer eval has no such limit"
        )
    values = values_tried(expression, iterations)
    if len(expression) * values**2 > MOST_TRIED:
        raise TooLarge(
            f"too large to draw: {values:,} values would be tried in each of "
            f"{len(expression):,} positions; exactformer eval has no such limit"
        )
    algebra, traced = expression.algebra, subject.model.trace(expression, iterations, _Budget())
    return traced.to_dict() | {
        "layer": algebra.layer(iterations),
        "said": [{"rows": s.rows(), "events": [*s.events(algebra)]} for s in traced.steps],
        "algebra": subject.algebra_name,
        "weights": subject.weights_name,
        "iterations": iterations,
        "depth": expression.depth,
        "tokens": _symbols(expression),
        "parenthesized": _symbols(expression.parenthesized),
        "expected": evaluate(expression),
    }


def _symbols(expression: Expression) -> list[str]:
    vocabulary = expression.algebra.vocabulary
    ids = expression.positions.tolist()
    return [EMPTY_POSITION if token == EMPTY else vocabulary[token] for token in ids]


@dataclass
class _Budget:
    """Ends a trace that takes too long or grows too large: a comb, or weights that never halt."""

    numbers: int = 0
    iterations: int = 0
    started: float = field(default_factory=time.monotonic)

    def __call__(self, step: Explained) -> None:
        self.iterations += 1
        self.numbers += step.size
        if self.numbers > MOST_NUMBERS or time.monotonic() - self.started > MOST_SECONDS:
            raise TooLarge(
                f"too large to draw: {len(step.tokens):,} positions are still being reduced after "
                f"{self.iterations:,} iterations; exactformer eval has no such limit"
            )


def weights(subject: Subject, certify: Certify) -> dict[str, Any]:
    file, certificate = subject.file, subject.certificate(certify)
    return {
        "algebra": subject.algebra_name,
        "weights": subject.weights_name,
        "origin": dict(file.origin),
        "activation": file.activation,
        "parameters": sum(
            array.size for name, array in file.arrays.items() if not name.endswith("_logits")
        ),
        "vocabulary": list(file.algebra.vocabulary),
        "arrays": {
            name: {
                "shape": list(array.shape),
                "numbers": array[(slice(MOST_ROWS),) * array.ndim].tolist(),
            }
            for name, array in file.arrays.items()
        },
        "certificate": certificate,
    }


def sample(algebra: Algebra, depth: int, seed: int) -> dict[str, Any]:
    """Draw a random expression that is short enough for the page."""
    if not 0 <= depth <= DEEPEST:
        raise ValueError(f"expected a depth from 0 to {DEEPEST:,}, found {depth}")
    tokens = mean_tokens(algebra, depth)[depth]
    if tokens < 4 * MOST_TOKENS:
        for expression in draw(algebra, depth, 8, np.random.default_rng(seed)):
            if len(expression) <= MOST_TOKENS:
                return {
                    "expression": str(expression),
                    "value": evaluate(expression),
                    "tokens": len(expression),
                }
    raise TooLarge(
        f"expressions of depth {depth} have about {tokens:,.0f} tokens, too many to draw: "
        f"the page takes {MOST_TOKENS:,}"
    )
