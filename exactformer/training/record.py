"""The JSON records of a run: run.json, and SEED.json for each seed that has ended.

Each contains a hash of its other content, so that a damaged one is refused.
"""

import hashlib
import json
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Any

from exactformer.domains.data import Place, read_bytes, read_json
from exactformer.host.atomic import write_atomically

VERDICTS = ("exact", "inexact", "undecided")
COUNTS = ("seed", "attempt", "step", "steps_in_all", "rows_right", "rows")
# What some records have besides: in plain notation, and of machines.
COUNTED = ("level_steps", "states", "continuations", "texts_asked", "fresh_texts_right")
NUMBERS = ("margin", "rounding_bound", "seconds")


def content_sha256(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, allow_nan=False).encode()).hexdigest()


def write_record(path: Path, data: Mapping[str, Any]) -> None:
    hashed = {**data, "sha256": content_sha256(data)}
    write_atomically(path, json.dumps(hashed, indent=1) + "\n")


def read_record(path: Path) -> dict[str, Any]:
    """Read a record, check its hash and return it without the hash."""
    try:
        data = read_json(read_bytes(path))
        if not isinstance(data, dict):
            raise Place(data).unexpected("an object")
        if (hashed := data.pop("sha256", None)) is None:
            raise ValueError("there is no 'sha256'")
        if hashed != content_sha256(data):
            raise ValueError("its content does not match its sha256")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return data


def read_seed_record(path: Path, seed: int) -> dict[str, Any]:
    """The record of a seed that has ended, each of its fields checked."""
    record = read_record(path)
    try:
        others = ("verdict", "counterexample", "weights_sha256", "margin_before_polish")
        fields = Place(record).fields((*COUNTS, *NUMBERS, *others), COUNTED)
        for name in (*COUNTS, *fields.keys() & {*COUNTED}):
            fields[name].whole()
        if record["seed"] != seed:
            raise fields["seed"].unexpected(str(seed))
        for name in NUMBERS:
            fields[name].number()
        if record["margin_before_polish"] is not None:
            fields["margin_before_polish"].number()
        fields["verdict"].one_of(VERDICTS)
        fields["weights_sha256"].text()
        if record["counterexample"] is not None:
            fields["counterexample"].text()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return record


def finite(number: float) -> float | None:
    """The number; None if it is infinite or NaN, which JSON lacks: a seed may diverge."""
    return number if isfinite(number) else None
