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

from exactformer.domains.belonging import OfDomain
from exactformer.domains.domain import Domain
from exactformer.domains.expression import Expression
from exactformer.domains.program import Program
from exactformer.domains.reference import evaluate
from exactformer.domains.sampling import DRAWN, enumerate_length
from exactformer.host.atomic import write_atomically
from exactformer.model.gated import Gated
from exactformer.model.predict import predict
from exactformer.model.remembered import fixed
from exactformer.model.storage import to_file
from exactformer.verify import Findings, check_all, proof_of
from exactformer.verify.programs import program_conditions
from exactformer.verify.proof import FORMAT

FAULT = "exactformer fault 1"  # the format of what is saved where there is no proof
LONGEST = 17  # tokens of the expressions that are tried: enough for depth 4 in infix
AT_MOST = 10_000  # of one length; beyond that, the first so many in order
BATCH = 2_000


@dataclass(frozen=True)
class Counterexample:
    """An expression on which the model is wrong; `shortest` if all shorter ones were tried."""

    expression: Expression
    expected: str
    found: str | None  # None where the model ends with anything but a single value
    shortest: bool


@dataclass(frozen=True)
class Certificate(OfDomain):
    verdict: Literal["exact", "inexact", "undecided"]
    domain: Domain
    weights_sha256: str
    findings: Findings
    counterexample: Counterexample | None = None

    @property
    def exact(self) -> bool:
        """Whether the weights are proved right."""
        return self.verdict == "exact"

    def to_dict(self) -> dict[str, Any]:
        """The certificate as plain data: a proof's fields, and some more for people."""
        findings = self.findings
        data = proof_of(self.domain, self.weights_sha256, findings) | {
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
            f"Certificate({self.domain.name}: {self.verdict}, {right} of {findings.rows} "
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
        if findings.wrong_counts:
            lines.append(f"  first wrong count: {findings.wrong_counts[0]}")
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
            data = proof_of(self.domain, self.weights_sha256, self.findings)
        else:
            data = self.to_dict()
        write_atomically(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


@dataclass(frozen=True)
class ProgramCertificate:
    """The verdict on weights, and what their proof implies for a program.

    The values of the program are proved right, for all values of its inputs, if the weights are
    exact and all conditions hold.
    """

    weights: Certificate
    program: Program
    conditions: dict[str, bool]

    @property
    def exact(self) -> bool:
        """Whether the program's values are proved right."""
        return self.weights.exact and all(self.conditions.values())

    def to_dict(self) -> dict[str, Any]:
        """Plain data: that of the certificate, and `program`."""
        program = {
            "exact": self.exact,
            "conditions": self.conditions,
            "statements": len(self.program),
            "inputs": self.program.inputs,
            "uses": len(self.program.wires),
            "levels": int(self.program.levels.max(initial=0)),
        }
        return self.weights.to_dict() | {"program": program}

    def __str__(self) -> str:
        lines = [str(self.weights), "program: " + ("exact" if self.exact else "not proved")]
        lines += [f"  {'yes' if ok else 'NO '}  {name}" for name, ok in self.conditions.items()]
        program, levels = self.program, int(self.program.levels.max(initial=0))
        lines.append(
            f"  {len(program)} statements on {levels} levels, {len(program.wires)} uses of names"
        )
        if self.exact:
            lines.append("  so every name gets the value of its definition, by the theorem")
        return "\n".join(lines)


def certify_program(certificate: Certificate, program: Program) -> ProgramCertificate:
    """The certificate of weights carried over to a program of the same domain."""
    if certificate.domain != program.domain:
        expected, found = certificate.domain.name, program.domain.name
        raise ValueError(f"expected a program of {expected!r}, found one of {found!r}")
    return ProgramCertificate(certificate, program, program_conditions(program))


def certify(domain: Domain, weights: Gated, found: Findings | None = None) -> Certificate:
    """`found` is what the finite check of these weights said, where it was made already."""
    weights = fixed(weights)
    sha256, found = to_file(domain, weights, {}).sha256, found or findings(domain, weights)
    if found.exact:
        return Certificate("exact", domain, sha256, found)
    suspects = (np.array(ids, dtype=np.int16) for ids in dict.fromkeys(found.suspects))
    example = find_counterexample(domain, weights, [Expression(domain, ids) for ids in suspects])
    verdict = "inexact" if example else "undecided"
    return Certificate(verdict, domain, sha256, found, example)


def require_exact(domain: Domain, weights: Gated) -> Certificate:
    """A certificate for those who write weights and say that they are exact: made anew from the
    weights that are written, whatever was found before. Weights without a proof are a ValueError.
    """
    found = findings(domain, weights)
    if not found.exact:
        raise ValueError(
            f"expected weights that are certified exact, found others: {'; '.join(found.failed)}; "
            f"`certify` tells more"
        )
    return certify(domain, weights, found)


def findings(domain: Domain, weights: Gated) -> Findings:
    """The finite check alone: quick, and no search for a counterexample."""
    return findings_of_all(domain, [weights])[0]


def findings_of_all(domain: Domain, seeds: Sequence[Gated]) -> list[Findings]:
    """The findings of many weights, whose exact arithmetic runs over all of them together."""
    files = [to_file(domain, weights, {}) for weights in seeds]
    return check_all(domain, [(file.arrays, file.activation) for file in files])


def find_counterexample(
    domain: Domain, weights: Gated, suspects: Sequence[Expression]
) -> Counterexample | None:
    """An expression whose value the model gets wrong. It is the first wrong suspect, or a shorter
    one if the search over all short expressions finds one.
    """
    known = _first_wrong(domain, weights, sorted(suspects, key=len)[:AT_MOST])
    exhaustive = True
    for expressions, whole_length in _candidates(domain):
        longer = known and expressions and len(expressions[0]) >= len(known.expression)
        if longer or (known and not exhaustive):
            break
        exhaustive &= whole_length
        if example := _first_wrong(domain, weights, expressions):
            return replace(example, shortest=exhaustive)
    return known and replace(known, shortest=exhaustive)


def _first_wrong(
    domain: Domain, weights: Gated, expressions: Sequence[Expression]
) -> Counterexample | None:
    """The first expression whose value the model gets wrong."""
    for start in range(0, len(expressions), BATCH):
        batch = expressions[start : start + BATCH]
        for expression, found in zip(batch, predict(domain, weights, batch), strict=True):
            if found != (expected := evaluate(expression)):
                return Counterexample(expression, expected, found, shortest=False)
    return None


def _candidates(domain: Domain) -> Iterator[tuple[list[Expression], bool]]:
    """Batches of expressions to try, and whether each completes or continues a length."""
    for length in range(1, LONGEST + 1):
        source = enumerate_length(domain, length)
        tried = islice(source, AT_MOST)
        while batch := list(islice(tried, BATCH)):
            yield batch, True
        if next(source, None) is not None:
            yield [], False
    if (drawn := DRAWN.get(domain.kind)) is not None:
        rng = np.random.default_rng(0)
        for size in drawn.larger:
            yield drawn.draw(domain, size, 200, rng), False
