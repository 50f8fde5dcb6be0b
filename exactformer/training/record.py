"""What a run writes down in JSON: run.json, and SEED.json for each seed that has ended.

Each carries a hash of all else it says, so that a damaged one is refused instead of believed.
"""

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from exactformer.domains.plain import Place, read_bytes, read_json
from exactformer.weightfile import write_atomically

VERDICTS = ("exact", "inexact", "undecided")


def content_sha256(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, allow_nan=False).encode()).hexdigest()


def write_record(path: Path, data: Mapping[str, Any]) -> None:
    hashed = {**data, "sha256": content_sha256(data)}
    write_atomically(path, json.dumps(hashed, indent=1) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """What was written, without the hash, which is checked."""
    try:
        data = read_json(read_bytes(path))
        if not isinstance(data, dict):
            raise Place(data).unexpected("an object")
        if (hashed := data.pop("sha256", None)) is None:
            raise ValueError("there is no 'sha256'")
        if hashed != content_sha256(data):
            raise ValueError("what it says is not what its sha256 was made of")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return data


def read_seed_record(path: Path, seed: int) -> dict[str, Any]:
    """The record of a seed that has ended, each of its fields checked."""
    record = read_record(path)
    try:
        fields = Place(record).fields(SEED_FIELDS)
        if fields["seed"].whole() != seed:
            raise fields["seed"].unexpected(str(seed))
        fields["verdict"].one_of(VERDICTS)
        fields["weights_sha256"].text()
        if fields["counterexample"].value is not None:
            fields["counterexample"].text()
        for name in ("attempt", "step", "steps_in_all", "rows_right", "rows"):
            fields[name].whole()
        for name in ("margin", "rounding_bound", "seconds"):
            fields[name].number()
        if fields["margin_before_polish"].value is not None:
            fields["margin_before_polish"].number()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return record


SEED_FIELDS = (
    "seed",
    "verdict",
    "counterexample",
    "attempt",
    "step",
    "steps_in_all",
    "rows_right",
    "rows",
    "margin_before_polish",
    "margin",
    "rounding_bound",
    "weights_sha256",
    "seconds",
)


def finite(number: float) -> float | None:
    """JSON has no infinite numbers, and none that is no number: a seed may diverge."""
    return number if isfinite(number) else None
