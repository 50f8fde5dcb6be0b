"""Depths as a user writes them: `5`, `1-30`, or several of these with commas."""

import re
from collections.abc import Sequence

from exactformer.domains.sampling import DEEPEST


def read_depths(text: str) -> list[int]:
    """Read depths into ascending numbers, each once."""
    found: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,9})(?:\s*-\s*(\d{1,9}))?\s*", part)
        if not match:
            raise ValueError(f"depths: expected such as 1-30 or 2,4,8, found {part.strip()!r}")
        first, last = int(match[1]), int(match[2] or match[1])
        if first > last:
            raise ValueError(f"depths: expected the smaller first, found {part.strip()!r}")
        if last > DEEPEST:
            raise ValueError(f"depths: expected {DEEPEST:,} at most, found {last}")
        found |= set(range(first, last + 1))
    return sorted(found)


def format_depths(depths: Sequence[int]) -> str:
    """Write depths in the form that `read_depths` reads."""
    parts: list[list[int]] = []
    for depth in depths:
        if parts and depth == parts[-1][-1] + 1:
            parts[-1].append(depth)
        else:
            parts.append([depth])
    return ",".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
