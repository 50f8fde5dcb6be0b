"""The JSON that the page works with, as plain data: from the server, or written into a file.

models    {"first": {"algebra", "weights"}, "limits": {...}, "algebras": [{"name", "layers",
          "vocabulary", "kinds": the type of each token, "weights": names, "examples": a text of
          each kind in TRACED, "sizes": what is given of a random text of each kind}]}; "algebra"
          is a domain of any kind, here and below
trace     what `exactformer trace --json` prints ("expression", "steps", "value"), and "layer", its
          name; "said": of each step {"rows": {name: a cell for each position}, "events":
          sentences}, as the text of the trace has them; "algebra", "weights", "iterations",
          "tokens" at the start, and "expected": the oracle's value; where there are operators,
          "depth", and "parenthesized": the tokens with the parentheses that precedence stands for
          of a program, with "program" in place of "expression": "algebra", "weights",
          "iterations"; "value" and "expected": of all results; "statements": of each {"name",
          "text", "tokens" with names in their places, "start", "end", "reads", "states", "value",
          "expected", "trace": the number of its own}; "traces": of expressions, as above;
          "wires": of each use of a name the numbers of two statements, the one that defines it
          and the one that uses it
weights   {"algebra", "weights", "origin", "activation", "parameters", "vocabulary", "states":
          how many the feedforward has inputs and outputs for, behind those for tokens, "arrays":
          {name: {"shape", "numbers": at most the first 2,000 rows and columns}}, with NAME_logits
          beside a discrete NAME, "certificate": what `exactformer certify --json` prints, less
          the algebra; or {"verdict": "unfinished", "seconds"} where it takes longer than that}
sample    {"expression", "value", "tokens"}: a random expression of an exact depth or length, from
          a seed; or, with "program" in place of "expression", a program of so many statements
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, get_args

import numpy as np

from exactformer.domains.belonging import algebra_of
from exactformer.domains.domain import Domain
from exactformer.domains.expression import EMPTY, Expression
from exactformer.domains.program import Program
from exactformer.domains.program_sampling import draw_program
from exactformer.domains.program_syntax import parse_program
from exactformer.domains.reference import evaluate, evaluate_program
from exactformer.domains.sampling import DRAWN as LAWS
from exactformer.domains.sampling import enumerate_length
from exactformer.domains.symbols import FIRST_VALUE
from exactformer.domains.syntax import parse
from exactformer.explorer.certifier import Certify
from exactformer.explorer.choices import Choices, Subject
from exactformer.model.iterations import Iterations, values_tried
from exactformer.trace import EMPTY_POSITION, Explained, Trace
from exactformer.trace.palette import kind_of
from exactformer.weights.file import WeightFile

MOST_CHARACTERS = 20_000  # of the text of an expression
MOST_TOKENS = 2_000  # of an expression: the page stays quick well beyond a thousand
MOST_NUMBERS = 2_000_000  # in a trace: about twenty megabytes of JSON
MOST_SECONDS = 10  # for a trace
MOST_TRIED = 60_000_000  # numbers of every value in every position: up to ten seconds
MOST_ROWS = 2_000  # and columns of a matrix
LARGEST = {"depth": 1_000, "length": MOST_TOKENS}  # of a random expression
MOST_DRAWN = 200  # statements of a random program

EXAMPLES = {  # the paper's, where a task is its own; any other starts with a random one
    "boolean": "((1|0)&(~0))",
    "arithmetic": "(((1+2)*(3+4))+(5*(6+7)))",
    "listops": "( MAX ( MIN 8 3 5 ) ( SM 4 7 6 ) )",
    "boolean-plain": "~(1&0)&1|0&~~(1|0)",
    "arithmetic-plain": "1+2*3+4*(5+6)*7",
    "boolean-polish": "& | 1 0 ~ & 1 ~ ~ 1",
    "arithmetic-polish": "+ * + 1 2 + 3 4 * 5 + 6 7",
    "folds": "(DIFF 9 (LAST 4 5 6) (MAX 1 (SM 2 3)))",
    "integers": "(123+(45*678))",
    "compute-sqrt": "1101",
}
EXAMPLE_SIZES = {"depth": 3, "length": 12}
PROGRAMS = {  # a half adder; and names that are used more than once
    "boolean": "sum = ((a|b)&(~carry));\ncarry = (a&b);\na = 1;\nb = 0;",
    "arithmetic": "y = ((x*x)+(3*x));\nx = (2+5);",
    "listops": "most = [ MAX a b last ];\na = [ MIN b 8 ];\nb = [ SM 4 7 6 ];\nlast = [ SM a b ];",
    "boolean-plain": "sum = (a|b)&~carry;\ncarry = a&b;\na = 1;\nb = 0;",
    "arithmetic-plain": "y = x*x + 3*x + 1;\nx = 2 + 5;",
    "boolean-polish": "sum = & | a b ~ carry;\ncarry = & a b;\na = 1;\nb = 0;",
    "arithmetic-polish": "y = + * x x * 3 x;\nx = + 2 5;",
}
EXAMPLE_STATEMENTS = 6


class TooLarge(ValueError):
    """Raised for an expression that is well formed but too large to be drawn."""


def models(choices: Choices, only: Subject | None = None) -> dict[str, Any]:
    """The algebras and weights that can be chosen; in a saved file, `only` those that it shows."""
    domain, weights = choices.first
    offered = (
        {only.domain_name: [only.weights_name]}
        if only
        else {name: choices.weights(name) for name in choices.domains}
    )
    return {
        "first": {"algebra": domain, "weights": weights},
        "limits": {
            "characters": MOST_CHARACTERS,
            "tokens": MOST_TOKENS,
            "statements": MOST_DRAWN,
            **LARGEST,
        },
        "algebras": [_domain(choices, name, weights) for name, weights in offered.items()],
    }


def _domain(choices: Choices, name: str, weights: list[str]) -> dict[str, Any]:
    domain = choices.domain(name)
    law = LAWS.get(domain.kind)
    return {
        "name": name,
        "layers": sorted({domain.layer(iterations) for iterations in get_args(Iterations)}),
        "vocabulary": list(domain.vocabulary),
        "kinds": [kind_of(domain, symbol) for symbol in domain.vocabulary],
        "weights": weights,
        "examples": _examples(domain, name),
        "sizes": ({"expression": law.by} if law else {}) | {"program": "statements"},
    }


def _examples(domain: Domain, name: str) -> dict[str, str]:
    """A text of each kind; no program where a symbol has `;` in it, or where there are no
    operators, so that there are none.
    """
    rng = np.random.default_rng(0)
    texts = {"expression": EXAMPLES.get(name) or _example(domain, rng)}
    with suppress(ValueError):
        algebra = algebra_of(domain)
        program = PROGRAMS.get(name) or str(draw_program(algebra, EXAMPLE_STATEMENTS, rng))
        parse_program(algebra, program)
        texts["program"] = program.rstrip()
    return texts


def _example(domain: Domain, rng: np.random.Generator) -> str:
    """A random text of a small size, or the first one of the shortest if there are none."""
    if law := LAWS.get(domain.kind):
        with suppress(ValueError):
            return str(law.draw(domain, EXAMPLE_SIZES[law.by], 1, rng)[0])
    lengths = (enumerate_length(domain, length) for length in range(1, MOST_TOKENS))
    return next((str(text) for texts in lengths for text in texts), "")


def trace(subject: Subject, text: str, iterations: Iterations = "depth") -> dict[str, Any]:
    """The trace of an expression for the page. Raises ExpressionError for text that is no
    expression, TooLarge for one that is too long to draw, and a ValueError for iterations by the
    logarithm with weights that are not exact.
    """
    _require_short(text)
    expression = parse(subject.model.domain, text)
    _require_small("expression", [expression], iterations)
    traced = subject.model.trace(expression, iterations, _Budget())
    return _of(subject, iterations) | _traced(expression, traced, iterations)


def trace_program(subject: Subject, text: str, iterations: Iterations = "depth") -> dict[str, Any]:
    """The trace of a program for the page, with that of each statement from where it has its values
    on. Raises as `trace` does.
    """
    _require_short(text)
    program = parse_program(subject.model.domain, text)
    uses = np.diff(program.first_uses).tolist()
    some = [program.expression(i, [FIRST_VALUE] * count) for i, count in enumerate(uses)]
    _require_small("program", some, iterations)
    traced = subject.model.trace_program(program, iterations, _Budget())
    expected = evaluate_program(program)
    different = {str(statement.became): statement for statement in traced.statements}
    number = {text: i for i, text in enumerate(different)}
    statements = [
        statement.to_dict()
        | {"tokens": statement.tokens, "expected": expected[statement.name]}
        | {"trace": number[str(statement.became)]}
        for statement in traced.statements
    ]
    return _of(subject, iterations) | {
        "program": text,
        "statements": statements,
        "traces": [_traced(s.became, s.run, iterations) for s in different.values()],
        "wires": [[*wire] for wire in traced.wires],
        "value": _results(program, {s.name: s.value for s in traced.statements}),
        "expected": _results(program, expected),
    }


# What is traced, by the kind of text that a request has.
TRACED: dict[str, Callable[[Subject, str, Iterations], dict[str, Any]]] = {
    "expression": trace,
    "program": trace_program,
}


def _require_short(text: str) -> None:
    if len(text) > MOST_CHARACTERS:
        raise TooLarge(
            f"this text has {len(text):,} characters, too many to draw: "
            f"the page takes {MOST_CHARACTERS:,}"
        )


def _require_small(kind: str, expressions: list[Expression], iterations: Iterations) -> None:
    """Refuse an expression, or the statements of a program, with too much to draw or to try."""
    tokens = sum(map(len, expressions))
    if tokens > MOST_TOKENS:
        raise TooLarge(
            f"this {kind} has {tokens:,} tokens, too many to draw: the page takes "
            f"{MOST_TOKENS:,}; exactformer eval has no such limit"
        )
    values = max(values_tried(expression, iterations) for expression in expressions)
    if tokens * values**2 > MOST_TRIED:
        raise TooLarge(
            f"too large to draw: {values:,} values would be tried in each of "
            f"{tokens:,} positions; exactformer eval has no such limit"
        )


def _of(subject: Subject, iterations: Iterations) -> dict[str, Any]:
    """The names of all that a trace is of."""
    names = {"algebra": subject.domain_name, "weights": subject.weights_name}
    return names | {"iterations": iterations}


def _traced(expression: Expression, traced: Trace[Any], iterations: Iterations) -> dict[str, Any]:
    domain = expression.domain
    return traced.to_dict() | {
        "layer": domain.layer(iterations),
        "said": [{"rows": s.rows(), "events": [*s.events(domain)]} for s in traced.steps],
        "tokens": _symbols(expression),
        "expected": evaluate(expression),
        **(_circuit(expression) if domain.operator_counts else {}),
    }


def _circuit(expression: Expression) -> dict[str, Any]:
    """The shape of an expression, which is drawn as a tree."""
    return {"depth": expression.depth, "parenthesized": _symbols(expression.parenthesized)}


def _results(program: Program, values: Mapping[str, str]) -> str:
    """The values of a program's results, as the command line prints them, on one line."""
    names = (program.names[i] for i in program.outputs)
    return " ".join(f"{name}={values[name]}" for name in names)


def _symbols(expression: Expression) -> list[str]:
    vocabulary = expression.domain.vocabulary
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
        "algebra": subject.domain_name,
        "weights": subject.weights_name,
        "origin": dict(file.origin),
        "activation": file.activation,
        "parameters": sum(
            array.size for name, array in file.arrays.items() if not name.endswith("_logits")
        ),
        "vocabulary": list(file.domain.vocabulary),
        "states": _states(file),
        "arrays": {
            name: {
                "shape": list(array.shape),
                "numbers": array[(slice(MOST_ROWS),) * array.ndim].tolist(),
            }
            for name, array in file.arrays.items()
        },
        "certificate": certificate,
    }


def _states(file: WeightFile) -> int:
    """The number of states that the feedforward has outputs for, behind those for tokens."""
    last = file.arrays.get("b_2", file.arrays.get("outputs"))
    return 0 if last is None else last.shape[-1] - len(file.domain.vocabulary)


def sample(domain: Domain, size: int, seed: int, *, by: str) -> dict[str, Any]:
    """Draw a random expression of a depth or length that is short enough for the page."""
    law = LAWS[domain.kind]
    if law.by != by:
        raise ValueError(f"texts of {domain.name!r} are drawn by their {law.by}, not their {by}")
    if not 0 <= size <= LARGEST[by]:
        raise ValueError(f"expected a {by} from 0 to {LARGEST[by]:,}, found {size}")
    tokens = law.tokens(domain, size)
    if tokens < 4 * MOST_TOKENS:
        for expression in law.draw(domain, size, 8, np.random.default_rng(seed)):
            if len(expression) <= MOST_TOKENS:
                return {
                    "expression": str(expression),
                    "value": evaluate(expression),
                    "tokens": len(expression),
                }
    raise TooLarge(
        f"expressions of {by} {size} have about {tokens:,.0f} tokens, too many to draw: "
        f"the page takes {MOST_TOKENS:,}"
    )


def sample_program(domain: Domain, statements: int, seed: int) -> dict[str, Any]:
    """Draw a random program that is short enough for the page."""
    algebra = algebra_of(domain)
    if not 1 <= statements <= MOST_DRAWN:
        raise ValueError(f"expected statements from 1 to {MOST_DRAWN}, found {statements}")
    rng, tokens = np.random.default_rng(seed), list[int]()
    for _ in range(8):
        program = draw_program(algebra, statements, rng)
        text = str(program).rstrip()
        parse_program(algebra, text)  # there are none if a symbol has `;` in it
        tokens.append(len(program.ids))
        if tokens[-1] <= MOST_TOKENS and len(text) <= MOST_CHARACTERS:
            value = _results(program, evaluate_program(program))
            return {"program": text, "value": value, "tokens": tokens[-1]}
    raise TooLarge(
        f"programs of {statements} statements have {min(tokens):,} tokens and more, too many to "
        f"draw: the page takes {MOST_TOKENS:,}"
    )


# What is drawn at random, by what a request gives the size of.
DRAWN = {
    **{by: partial(sample, by=by) for by in LARGEST},
    "statements": sample_program,
}
