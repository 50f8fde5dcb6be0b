"""The verdict on weights: exact with a proof, inexact with a counterexample, or undecided.

`verify.check` decides exactness by a finite check. Where it finds fault, the model itself is run on
ever longer expressions until one comes out wrong: that one is shown.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from exactformer.domains.algebra import FIRST_VALUE, Algebra
from exactformer.domains.expression import Expression, span_tokens
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import draw, enumerate_length
from exactformer.host.atomic import write_atomically
from exactformer.model.circuit import Weights
from exactformer.model.predict import predict
from exactformer.model.remembered import fixed
from exactformer.model.storage import to_file
from exactformer.verify import Findings, check_all, proof_of
from exactformer.verify.proof import FORMAT

FAULT = "exactformer fault 1"  # the format of what is saved where there is no proof
LONGEST = 17  # tokens of the expressions that are tried: enough for depth 4 in infix
AT_MOST = 10_000  # of one length; beyond that, the first so many in order
DEEPER = range(3, 9)  # depths of the random expressions tried after those
BATCH = 2_000


@dataclass(frozen=True)
class Counterexample:
    """An expression on which the model is wrong; `shortest` if all shorter ones were tried."""

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
        """The certificate as plain data: a proof's fields, and some more for people."""
        findings = self.findings
        data = proof_of(self.algebra, self.weights_sha256, findings) | {
            "format": FORMAT if self.verdict == "exact" else FAULT,
            "verdict": self.verdict,
            "wrong_rows": len(findings.wrong_rows),
            "in_decimals": {
                "smallest_margin": float(findings.smallest_margin),
                "rounding_bound": float(findings.rounding_bound),
            },
        }
        if self.counterexample:
            text = str(self.counterexample.expression)
            data["counterexample"] = vars(self.counterexample) | {"expression": text}
        return data

    def __repr__(self) -> str:
        findings = self.findings
        right = findings.rows - len(findings.wrong_rows)
        return (
            f"Certificate({self.algebra.name}: {self.verdict}, {right} of {findings.rows} "
            f"{findings.checked} right, margin {float(findings.smallest_margin):.6g})"
        )

    def _repr_html_(self) -> str:
        """The certificate as HTML, for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

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
        if findings.grouping:
            lines.append(f"  operators group {findings.grouping}")
        if self.counterexample:
            example = self.counterexample
            kind = "shortest counterexample" if example.shortest else "counterexample"
            found = "no single value" if example.found is None else example.found
            lines.append(f"  {kind}: {example.expression} is {example.expected}, not {found}")
        return "\n".join(lines)

    def save(self, path: Path) -> None:
        """Write the proof that `verify` accepts; for weights without one, write all findings."""
        if self.verdict == "exact":
            data = proof_of(self.algebra, self.weights_sha256, self.findings)
        else:
            data = self.to_dict()
        write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def certify(algebra: Algebra, weights: Weights, found: Findings | None = None) -> Certificate:
    """`found` is what the finite check of these weights said, where it was made already."""
    weights = fixed(weights)
    sha256, found = to_file(algebra, weights, {}).sha256, found or findings(algebra, weights)
    if found.exact:
        return Certificate("exact", algebra, sha256, found)
    example = find_counterexample(algebra, weights, _suspects(algebra, found))
    verdict = "inexact" if example else "undecided"
    return Certificate(verdict, algebra, sha256, found, example)


def require_exact(algebra: Algebra, weights: Weights) -> Certificate:
    """A certificate for those who write weights and say that they are exact: made anew from the
    weights that are written, whatever was found before. Weights without a proof are a ValueError.
    """
    found = findings(algebra, weights)
    if not found.exact:
        raise ValueError(
            f"expected weights that are certified exact, found others: {'; '.join(found.failed)}; "
            f"`certify` tells more"
        )
    return certify(algebra, weights, found)


def findings(algebra: Algebra, weights: Weights) -> Findings:
    """The finite check alone: quick, and no search for a counterexample."""
    return findings_of_all(algebra, [weights])[0]


def findings_of_all(algebra: Algebra, seeds: Sequence[Weights]) -> list[Findings]:
    """The findings of many weights, whose exact arithmetic runs over all of them together."""
    files = [to_file(algebra, weights, {}) for weights in seeds]
    return check_all(algebra, [(file.arrays, file.activation) for file in files])


def find_counterexample(
    algebra: Algebra, weights: Weights, suspects: Sequence[Expression] = ()
) -> Counterexample | None:
    """An expression whose value the model gets wrong. It is the first wrong suspect, or a shorter
    one if the search over all short expressions finds one.
    """
    known = _first_wrong(algebra, weights, sorted(suspects, key=len)[:AT_MOST])
    exhaustive = True
    for expressions, whole_length in _candidates(algebra):
        longer = known and expressions and len(expressions[0]) >= len(known.expression)
        if longer or (known and not exhaustive):
            break
        exhaustive &= whole_length
        if example := _first_wrong(algebra, weights, expressions):
            return replace(example, shortest=exhaustive)
    return known and replace(known, shortest=exhaustive)


def _suspects(algebra: Algebra, found: Findings) -> list[Expression]:
    """Expressions whose only span has a wrong row, and those that the level gate groups wrongly."""
    texts = [
        tuple(span_tokens(algebra, row.operator, [FIRST_VALUE + i for i in row.operands]))
        for row in found.wrong_rows
        if row.operator is not None
    ]
    texts += [example.ids for example in found.grouping.wrong] if found.grouping else []
    return [Expression(algebra, np.array(ids, dtype=np.int16)) for ids in dict.fromkeys(texts)]


def _first_wrong(
    algebra: Algebra, weights: Weights, expressions: Sequence[Expression]
) -> Counterexample | None:
    """The first expression whose value the model gets wrong."""
    for start in range(0, len(expressions), BATCH):
        batch = expressions[start : start + BATCH]
        for expression, found in zip(batch, predict(algebra, weights, batch), strict=True):
            if found != (expected := evaluate(expression)):
                return Counterexample(expression, expected, found, shortest=False)
    return None


def _candidates(algebra: Algebra) -> Iterator[tuple[list[Expression], bool]]:
    """Batches of expressions to try, and whether each completes or continues a length."""
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
