"""The verdict on weights: exact with a proof, inexact with a counterexample, or undecided.

`verify.check` decides exactness by a finite check. Where it finds fault, the model itself is run on
ever longer expressions until one comes out wrong: that one is shown.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from exactformer.domains.algebra import Algebra
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_length
from exactformer.domains.syntax import Expression
from exactformer.model.circuit import Weights
from exactformer.model.predict import predict
from exactformer.model.storage import to_file
from exactformer.verify import Findings, check
from exactformer.weightfile import write_atomically

LONGEST = 17  # tokens of the expressions that are tried: enough for depth 4 in infix
AT_MOST = 10_000  # of one length; beyond that, the first so many in order
DEEPER = range(3, 9)  # depths of the random expressions tried after those
BATCH = 2_000


@dataclass(frozen=True)
class Counterexample:
    """An expression on which the model is wrong. `shortest` if all shorter ones were tried."""

    expression: Expression
    expected: str
    found: str | None  # None where the model ends with anything but a single value
    shortest: bool


@dataclass(frozen=True)
class Certificate:
    verdict: Literal["exact", "inexact", "undecided"]
    algebra: Algebra
    weights_sha256: str
    findings: Findings
    counterexample: Counterexample | None = None

    def to_dict(self) -> dict[str, Any]:
        """The proof file; margins are exact fractions, with decimals beside them for people."""
        findings = self.findings
        data: dict[str, Any] = {
            "verdict": self.verdict,
            "weights_sha256": self.weights_sha256,
            "conditions": findings.conditions,
            "rows": findings.rows,
            "wrong_rows": len(findings.wrong_rows),
            "smallest_margin": str(findings.smallest_margin),
            "rounding_bound": str(findings.rounding_bound),
            "in_decimals": {
                "smallest_margin": float(findings.smallest_margin),
                "rounding_bound": float(findings.rounding_bound),
            },
            "algebra": self.algebra.to_dict(),
        }
        if findings.most_operands:
            data["most_operands"] = findings.most_operands
        if self.counterexample:
            example = self.counterexample
            data["counterexample"] = {
                "expression": str(example.expression),
                "expected": example.expected,
                "found": example.found,
                "shortest": example.shortest,
            }
        return data

    def __str__(self) -> str:
        findings = self.findings
        lines = [self.verdict]
        lines += [f"  {'yes' if ok else 'NO '}  {name}" for name, ok in findings.conditions.items()]
        right, kind = findings.rows - len(findings.wrong_rows), findings.checked
        lines.append(f"  {kind} {right} of {findings.rows} right")
        if findings.wrong_rows:
            lines.append(f"  first wrong {kind[:-1]}: {findings.wrong_rows[0]}")
        lines.append(f"  smallest margin {float(findings.smallest_margin):.6g}")
        lines.append(f"  rounding at most {float(findings.rounding_bound):.6g}")
        if findings.most_operands:
            bounds = ", ".join(f"{n} in {name}" for name, n in findings.most_operands.items())
            lines.append(f"  operands of one span: up to {bounds}; more are refused")
        if self.counterexample:
            example = self.counterexample
            kind = "shortest counterexample" if example.shortest else "counterexample"
            found = "no single value" if example.found is None else example.found
            lines.append(f"  {kind}: {example.expression} is {example.expected}, not {found}")
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        write_atomically(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n")


def certify(algebra: Algebra, weights: Weights) -> Certificate:
    sha256, found = to_file(algebra, weights, {}).sha256, findings(algebra, weights)
    if found.exact:
        return Certificate("exact", algebra, sha256, found)
    example = find_counterexample(algebra, weights)
    verdict = "inexact" if example else "undecided"
    return Certificate(verdict, algebra, sha256, found, example)


def findings(algebra: Algebra, weights: Weights) -> Findings:
    """The finite check alone: quick, and no search for a counterexample."""
    file = to_file(algebra, weights, {})
    return check(algebra, file.arrays, file.activation)


def find_counterexample(algebra: Algebra, weights: Weights) -> Counterexample | None:
    """The first expression, in order of length, whose value the model gets wrong."""
    exhaustive = True
    for expressions, whole_length in _candidates(algebra):
        exhaustive &= whole_length
        for expression, found in zip(
            expressions, predict(algebra, weights, expressions), strict=True
        ):
            if found != (expected := evaluate(expression)):
                return Counterexample(expression, expected, found, exhaustive)
    return None


def _candidates(algebra: Algebra) -> Iterator[tuple[list[Expression], bool]]:
    """Batches to try, and whether a batch completes or continues all expressions of its length."""
    for length in range(1, LONGEST + 1):
        source = enumerate_length(algebra, length)
        tried = islice(source, AT_MOST)
        while batch := list(islice(tried, BATCH)):
            yield batch, True
        if next(source, None) is not None:
            yield [], False
    rng = np.random.default_rng(0)
    for depth in DEEPER:
        yield draw(algebra, depth, 200, rng), False
