"""Reads plain data from a file field by field; a mistake is a ValueError that says where it is."""

import difflib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from exactformer.domains.bounds import LONGEST_TEXT, require

PART = 1 << 22  # bytes of a file that are read at once
SHOWN = 40  # characters of a value that a message shows
FEW = 8  # symbols that a message lists
LONGEST_WORD = 100  # characters of a word for which another one that may have been meant is sought
LARGEST_NUMBER = 1e300  # excludes infinity and NaN, and fits into a float


def read_bytes(path: Path, longest: int = LONGEST_TEXT) -> bytes:
    """Read a whole file; a ValueError if it is longer than any of its kind may be."""
    parts, left = [], longest
    with open(path, "rb") as file:
        while part := file.read(min(left + 1, PART)):  # asked for more, it would take memory for it
            parts.append(part)
            left -= len(part)
            if left < 0:
                raise ValueError(f"{path}: expected {longest} bytes at most, found more")
    return b"".join(parts)


def read_json(text: str | bytes) -> Any:
    """Read JSON strictly: in UTF-8, without NaN, and with no name twice in an object."""
    try:
        text = text if isinstance(text, str) else text.decode()
        return json.loads(text, parse_constant=_no_number, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("its lists and objects are nested too deeply") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"expected numbers, found {name}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the field {show(name)} is there twice")
        found[name] = value
    return found


def show(value: object) -> str:
    """A value in a few words, for a message."""
    if isinstance(value, dict):
        return "an object" if value else "an empty object"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    shown = json.dumps(value) if value is None or isinstance(value, bool) else ascii(value)
    return shown if len(shown) <= SHOWN else f"{shown[: SHOWN - 3]}..."


def expect(value: object, kind: type | tuple[type, ...], expected: str) -> None:
    """Raise a TypeError that says what was found unless `value` is of this kind."""
    if not isinstance(value, kind):
        function = getattr(value, "__name__", None) if callable(value) else None
        found = f"the function {function!r}, not called" if function else show(value)
        found = "None" if value is None else found  # in Python's words, not in JSON's
        raise TypeError(f"expected {expected}, found {found}")


def listed(words: Sequence[str], last: str = "or") -> str:
    """Words joined as in a sentence: `a, b or c`."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if words[1:] else words)


def a_few(symbols: Sequence[str]) -> str:
    """A few symbols, for a message."""
    if not symbols:
        return "nothing"
    if len(symbols) > FEW:
        return f"one of {' '.join(symbols[:FEW])} ... ({len(symbols)} in all)"
    return listed(symbols)


def suggestion(word: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown word: the known word that may have been meant."""
    if len(str(word)) > LONGEST_WORD:  # comparing takes as long as the product of the lengths
        return ""
    near = [other for other in known if len(other) <= LONGEST_WORD]
    close = difflib.get_close_matches(str(word), near, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def require_device(name: str) -> None:
    """Raise a ValueError unless it is the name of a device, whether there is such a one or not."""
    kind = name.partition(":")[0]
    if kind not in ("cpu", "cuda"):
        meant = "cuda" if kind.lower() == "gpu" else kind.lower()
        hint = suggestion(meant, ("cpu", "cuda"))
        raise ValueError(f"expected cpu or cuda, found {name!r}{hint}")


@dataclass(frozen=True)
class Place:
    """A value and its location, such as `operators[2].table[5]`; that of the whole is empty."""

    value: Any
    where: str = ""

    def fault(self, problem: str) -> ValueError:
        return ValueError(f"{self.where}: {problem}" if self.where else problem)

    def unexpected(self, expected: str) -> ValueError:
        return self.fault(f"expected {expected}, found {show(self.value)}")

    def fields(self, required: Iterable[str], optional: Iterable[str] = ()) -> "dict[str, Place]":
        """The fields of an object; a ValueError if a required one is missing or one is unknown."""
        required, optional = tuple(required), tuple(optional)
        if not isinstance(self.value, dict):
            raise self.unexpected("an object")
        for name in required:
            if name not in self.value:
                raise self.fault(f"there is no {name!r}")
        for name in self.value:
            if name not in required and name not in optional:
                raise self.fault(f"unknown field {show(name)}")
        before = f"{self.where}." if self.where else ""
        return {name: Place(value, before + name) for name, value in self.value.items()}

    def items(self, most: int, *, least: int = 1) -> "list[Place]":
        """The items of a list of `least` to `most` items."""
        if not isinstance(self.value, list) or len(self.value) < least:
            raise self.unexpected("a list with something in it" if least else "a list")
        require(self.where, len(self.value), most)
        return [Place(value, f"{self.where}[{i}]") for i, value in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.unexpected("text")
        return self.value

    def one_of(self, known: Iterable[str]) -> str:
        known = tuple(known)
        if not isinstance(self.value, str) or self.value not in known:
            raise self.unexpected(listed([repr(word) for word in known]))
        return self.value

    def flag(self) -> bool:
        if not isinstance(self.value, bool):
            raise self.unexpected("true or false")
        return self.value

    def whole(self, least: int = 0, most: int = 2**63 - 1) -> int:
        if type(self.value) is not int:
            raise self.unexpected("a whole number")
        if not least <= self.value <= most:
            raise self.unexpected(f"a whole number from {least} to {most}")
        return self.value

    def number(self) -> float:
        if type(self.value) not in (int, float) or not abs(self.value) < LARGEST_NUMBER:
            raise self.unexpected("a number")
        return float(self.value)
