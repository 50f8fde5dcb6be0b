"""Proof files: writes them, and checks them against weights.

A proof is the verdict *exact* with all that it rests on. It is checked by making it again from the
weights and comparing the two, so that there is no field that nobody checks.
"""

import json
from pathlib import Path
from typing import Any

from exactformer.domains.catalog import describe, is_built_in
from exactformer.domains.data import read_bytes, read_json
from exactformer.domains.domain import Domain
from exactformer.verify.conditions import check
from exactformer.verify.findings import Findings
from exactformer.weights.file import WeightFile

FORMAT = "exactformer proof 2"

ARITHMETIC = {
    "counts, ranks and routed sums": "whole numbers, exact in float32, float16 and bfloat16",
    "feedforward": "IEEE binary64 from float32 weights: single multiplications and additions, "
    "fused or not, in any order and rounding mode, with subnormal numbers kept or flushed to zero",
}


class ProofRejected(Exception):
    """Raised for a proof file that does not hold for the weights."""


def proof_of(domain: Domain, weights_sha256: str, findings: Findings) -> dict[str, Any]:
    """The proof of weights that pass the check, as plain data."""
    proof = {
        "format": FORMAT,
        "verdict": "exact",
        "weights_sha256": weights_sha256,
        "arithmetic": ARITHMETIC,
        "checked": findings.checked,
        "rows": findings.rows,
        "conditions": findings.conditions,
        "smallest_margin": str(findings.smallest_margin),
        "rounding_bound": str(findings.rounding_bound),
        "most_operands": findings.most_operands,
        "grouping": None if findings.grouping is None else str(findings.grouping),
        "algebra": describe(domain),  # the name is older than other kinds of domains
    }
    return {name: value for name, value in proof.items() if value is not None}


def verify(proof_path: Path, weights_path: Path, algebra: Domain | None = None) -> Findings:
    """Check a proof file against a weights file; raises ProofRejected where they disagree.

    `algebra` is what they must be about. Without it they are about what they say, which is no more
    than a name unless that name is built in.
    """
    proof = _read(proof_path)
    file = WeightFile.read(weights_path)
    if algebra is not None and file.domain != algebra:
        raise ProofRejected(
            f"{weights_path} is about another {file.domain.kind} than the {algebra.name} asked for"
        )
    try:
        is_built_in(file.domain)
    except ValueError as error:
        raise ProofRejected(f"{weights_path}: {error}") from None
    if proof.get("weights_sha256") != file.sha256:
        raise ProofRejected(f"{proof_path} is about other weights than {weights_path}")
    try:
        findings = check(file.domain, file.arrays, file.activation)
    except ValueError as error:
        raise ValueError(f"{weights_path}: {error}") from None
    if not findings.exact:
        raise ProofRejected(f"{weights_path}: not proved exact: {'; '.join(findings.failed)}")
    expected = proof_of(file.domain, file.sha256, findings)
    for name in expected | proof:
        claimed, found = _as_text(proof.get(name)), _as_text(expected.get(name))
        if claimed != found:
            raise ProofRejected(
                f"{proof_path}: {name[:40]!r}: claims {claimed[:200]}, but the weights give "
                f"{found[:200]}"
            )
    return findings


def _read(path: Path) -> dict[str, Any]:
    try:
        proof = read_json(read_bytes(path))
        if not isinstance(proof, dict) or proof.get("format") != FORMAT:
            found = proof.get("format", "none") if isinstance(proof, dict) else "no object"
            raise ValueError(f"expected the format {FORMAT!r}, found {str(found)[:60]!r}")
        return proof
    except ValueError as error:
        raise ValueError(f"{path}: expected a proof file, found none: {error}") from None


def _as_text(value: Any) -> str:
    """A value as JSON text, which distinguishes 1, 1.0 and true and ignores the order of fields."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)
